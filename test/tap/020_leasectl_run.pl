# leasectl run: what the command gets, what its end and its signals become, and
# what leasectl says about itself.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Ctl;
use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

# The extension's schema is not in search_path, and has an odd name.
my $node = Lease::Node::make('run');
my $schema = q{"Odd 'n' ""schema"};
$node->safe_psql('postgres',
	qq{DROP EXTENSION lease; CREATE SCHEMA $schema; CREATE EXTENSION lease SCHEMA $schema});
my $dir = $node->basedir;

sub sql { return $node->safe_psql('postgres', "SET search_path = $schema, public; $_[0]") }
sub leasectl { return Lease::Ctl::run($node, @_) }

sub free
{
	my ($name, $test) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(sql("SELECT state FROM leases WHERE name = '$name'"), 'free', $test // "$name is released");
}

# What the command gets
my ($status, $out, $err) = leasectl('run', q{it's "odd"}, '--', 'sh', '-c',
	'echo "$LEASE_NAME|$LEASE_OWNER|$LEASE_TOKEN|$PGCONNECT_TIMEOUT"; [ -t 0 ] || echo more; ls /proc/self/fd');
is($status, 0, 'run: the status of the command');
is($err, '', 'run: not a word when all is well');
my ($name, $owner, $token, $timeout) = split /\|/, (split /\n/, $out)[0], -1;
is($name, q{it's "odd"}, 'LEASE_NAME');
like($owner, qr/^[^:]+:\d+:[0-9a-f]{16}$/, 'LEASE_OWNER: host, process and chance');
is($token, sql(q{SELECT token FROM leases}), 'LEASE_TOKEN');
is(sql(q{SELECT last_owner FROM leases}), $owner, 'the owner in the database is the same');
is($timeout, '', 'no variable of leasectl reaches the command');
like($out, qr/more\n0\n1\n2\n3\n\z/, 'nor any descriptor (3 is the directory that ls reads)');
free(q{it''s "odd"});
is((leasectl('run', 'x', '--owner', 'me', 'sh', '-c', 'echo $LEASE_OWNER'))[1], "me\n", '--owner');
is((leasectl('run', '--ttl=1min', 'x', '--', 'echo', '--ttl', '-v', '--'))[1], "--ttl -v --\n",
	"the command's options are its own");
is((leasectl('run', 'x', 'echo', '-n', 'a'))[1], 'a', 'also without "--"');

is((leasectl('run', 'x', 'sh', '-c', 'exec leasectl run y sh -c "exit 3" >&- <&-'))[0], 3, 'run without standard descriptors');

# Its end
for my $case (
	[ 'exit 0', 0 ], [ 'exit 7', 7 ], [ 'exit 75', 75 ], [ 'kill -9 $$', 137 ], [ 'kill -TERM $$', 143 ])
{
	is((leasectl('run', 'x', 'sh', '-c', $case->[0]))[0], $case->[1], "$case->[0]: status $case->[1]");
	free('x');
}
append_to_file("$dir/data", 'no program');
for my $case ([ "$dir/data", 126 ], [ $dir, 126 ], [ 'no-such-program', 127 ], [ "$dir/none", 127 ])
{
	($status, $out, $err) = leasectl('run', 'x', '--keep', '1h', $case->[0]);
	is($status, $case->[1], "a command that cannot be run: status $case->[1]");
	like($err, qr/could not run/, 'and a word about it');
	free('x', 'the lease is released, and not kept for a command that was not run');
}

# leasectl's own statuses
for my $args (
	[], ['walk'], ['run'], [ 'run', 'x' ], [ 'run', 'x', '--ttl' ], [ 'run', '--odd', 'x', 'true' ],
	[ 'run', '--ttl', 'soon', 'x', 'true' ], [ 'run', '--ttl', '-1s', 'x', 'true' ],
	[ 'run', '--ttl', '10ms', 'x', 'true' ], [ 'run', '--ttl', '5s', '--grace', '3s', 'x', 'true' ],
	[ 'run', '--wait', '1 month', 'x', 'true' ], [ 'run', 'x' x 256, 'true' ], [ 'run', '', 'true' ],
	[ 'run', '--owner', '', 'x', 'true' ], [ 'ls', 'x' ], [ 'break' ], [ 'watch' ])
{
	($status, $out, $err) = leasectl(@$args);
	is($status, 64, 'status 64: leasectl ' . substr "@$args", 0, 40);
	like($err, qr/^leasectl: .*\n\z/s, 'which says why');
}
like((leasectl('run', '-vq', 'x', 'true'))[2], qr/unknown option "-vq"/, 'the option that is wrong, not its neighbour');
like((leasectl('run', '--ttl', '999900us', 'x', 'true'))[2], qr/--ttl is 1 s, /, 'a duration just below a unit');
($status, $out, $err) = leasectl('run', '-h', "$dir/nowhere", 'x', 'true');
is($status, 69, 'no server: status 69');
like($err, qr/^leasectl: .*: No such file or directory Is the server running .*\n\z/, 'in a line');
is((leasectl('run', '-d', 'nowhere', 'x', 'true'))[0], 69, 'no such database: status 69');
($status, $out, $err) = leasectl('run', '-d', 'template1', 'x', 'true');
is($status, 69, 'no extension: status 69');
like($err, qr/extension lease is not installed in database "template1"/, 'which says so');
is((leasectl('--help'))[1] =~ /Usage:/, 1, '--help');
like((leasectl('--version'))[1], qr/^leasectl \d+\.\d+\n/, '--version');

# Connections, as for psql
my ($host, $port) = ($node->host, $node->port);
append_to_file("$dir/services", "[here]\nhost=$host\nport=$port\ndbname=postgres\n");
my %nothing = (PGHOST => '', PGPORT => 1, PGDATABASE => 'nowhere');
is((leasectl('run', @$_, 'x', 'true', { %nothing, PGSERVICEFILE => "$dir/services" }))[0], 0, "run @$_")
  for [ '-h', $host, '-p', $port, '-d', 'postgres' ],
  [ "--host=$host", "--port=$port", '--dbname=postgres', '-w' ],
  [ '-d', "host=$host port=$port dbname=postgres" ],
  [ '-d', "postgresql:///postgres?host=$host&port=$port" ],
  [ '-d', 'service=here' ],
  [ '-d', "host=$dir,$host port=$port dbname=postgres target_session_attrs=read-write" ];

# Not acquired, waiting, keeping
sql(q{SELECT lease_try('held', 'other', '1 hour')});
is_deeply([ leasectl('run', 'held', 'true') ], [ 75, '', '' ], 'held by another: status 75, and not a word');
like((leasectl('run', 'held', '-v', 'true'))[2], qr/"held" is held by another/, 'with --verbose a word');
my $waiting = Lease::Ctl::start($node, 'run', '--wait', '600ms', 'held', 'true');
is($waiting->status, 75, '--wait: nobody releases it, status 75');
cmp_ok($waiting->{took}, '>=', 0.6, 'after the wait');
for my $wait ('1min', 'forever')
{
	sql(q{SELECT lease_try('held', 'other', '1 hour')});
	$waiting = Lease::Ctl::start($node, 'run', '--wait', $wait, '--ttl', '1s', 'held', 'sh', '-c', 'echo $LEASE_TOKEN');
	$node->poll_query_until('postgres', "SELECT kind = 'acquire' FROM $schema.lease_waiters");
	sleep 1.2;    # more than the TTL, which counts from the grant
	sql(q{SELECT lease_release('held', 'other')});
	is($waiting->status, 0, "--wait $wait: gets it when it is released");
	like($waiting->out, qr/^\d+\n\z/, 'and runs the command with the token');
}
sql(q{SELECT lease_try('held', 'other', '1 hour')});
$waiting = Lease::Ctl::start($node, 'run', '--wait', '1min', 'held', 'true');
$node->poll_query_until('postgres', "SELECT kind = 'acquire' FROM $schema.lease_waiters");
$waiting->signal('TERM');
is($waiting->status, 143, 'TERM while it waits: 143');
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM $schema.lease_waiters"), 'and it waits no more');
my $began = time;
is((leasectl('run', 'kept', '--keep', '1s', 'true'))[0], 0, '--keep');
is((leasectl('run', 'kept', 'true'))[0], 75, 'nobody gets it for a while');
is((leasectl('run', 'kept', '--wait', '10s', 'true'))[0], 0, 'then the next one does');
cmp_ok(time - $began, '>=', 1, 'a second after it was acquired');

# Started with a signal ignored, as by nohup
{
	local $SIG{HUP} = 'IGNORE';
	$waiting = Lease::Ctl::start($node, 'run', '--wait', '1min', 'held', 'true');
}
$node->poll_query_until('postgres', "SELECT kind = 'acquire' FROM $schema.lease_waiters");
$waiting->signal('HUP');
ok(!$waiting->ends(0.3), 'HUP while it waits, under nohup: it waits on');
sql(q{SELECT lease_release('held', 'other')});
is($waiting->status, 0, 'and gets the lease');

# Renewals
($status, $out, $err) = leasectl('run', 'long', '-v', '--ttl', '2s', 'sleep', '2.5');
is($status, 0, 'a command may take longer than the TTL');
like($err, qr/^leasectl: holds "long" as ".*", token \d+$/m, '--verbose: the grant');
like($err, qr/^leasectl: \d renewals, p50 [\d.]+ m?s, p99 [\d.]+ m?s, at the closest [\d.]+ m?s of 2 s were left$/m,
	'--verbose: the figures at the end');
is(sql(q{SELECT grants FROM leases WHERE name = 'long'}), 1, 'all of it in one tenure');
# A renewal that waits for a row takes long, and leaves little.
my $blocker = $node->background_psql('postgres');
my $slow = Lease::Ctl::start($node, 'run', 'slow', '--ttl', '6s', 'sleep', '3.5');
$node->poll_query_until('postgres', "SELECT state = 'held' FROM $schema.leases WHERE name = 'slow'");
$blocker->query_safe("BEGIN; UPDATE $schema.dist_lock SET last_end = 'x' WHERE name = 'slow'");
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query ~ 'lease_renew' AND wait_event_type = 'Lock'});
sleep 0.7;
$blocker->query_safe('COMMIT');
$blocker->quit;
is($slow->status, 0, 'a renewal of 0.7 s');
like($slow->err, qr/warning: the TTL of 6 s is less than ten times as long as renewals take \(p99 [\d.]+ m?s\)/,
	'is told: the TTL is too short for it');

# Nobody reads what it has to say, as after ^S: the pipe is full, but the lease is renewed.
pipe my $reader, my $writer or die $!;
$writer->blocking(0);
1 while syswrite $writer, 'x' x 4096;
$writer->blocking(1);
sub mute
{
	my @args = @_;
	my $pid = fork // die $!;
	return bless { pid => $pid, began => time }, 'Lease::Ctl' if $pid;
	setpgrp; # what does not end is killed as a group
	@ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');
	open STDERR, '>&', $writer or die $!;
	exec 'leasectl', 'run', 'unheard', @args or POSIX::_exit(99);
}
is(mute('-v', '--ttl', '1s', 'sh', '-c', 'sleep 1.2; exit 7')->status(10), 7,
	'a full pipe for its messages does not hold it up');
sysread $reader, my $page, 4096;
is(mute('x' x 5000)->status(10), 126, 'nor does one with less room than a message needs');
close $_ for $reader, $writer;

# Without the right to release there is no use in trying again.
sql(q{CREATE ROLE limited LOGIN; REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA } . $schema . q{ FROM PUBLIC});
sql("GRANT USAGE ON SCHEMA $schema TO limited; GRANT EXECUTE ON FUNCTION lease_try, lease_token TO limited");
my $unreleased = Lease::Ctl::start($node, 'run', 'unreleased', '-U', 'limited', 'true');
is($unreleased->status, 0, 'a lease that it may not release: the status of the command');
like($unreleased->err, qr/could not release "unreleased", .*permission denied for function lease_release/, 'and the reason');
cmp_ok($unreleased->{took}, '<', 4, 'at once');
sql(q{GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA } . $schema . q{ TO PUBLIC});

# Broken or lost under the command
my $victim = Lease::Ctl::start($node, 'run', 'broken', '--ttl', '1500ms', Lease::Ctl::ticker("$dir/broken"));
Lease::Ctl::ticks("$dir/broken");
sql(q{SELECT lease_break('broken'), lease_try('broken', 'other', '1 hour')});
is($victim->status, 76, 'a broken lease: the command is ended, status 76');
like($victim->err, qr/lost the lease "broken"/, 'with a word');
is(sql(q{SELECT owner FROM leases WHERE name = 'broken'}), 'other', 'the lease of the other is left alone');
$victim = Lease::Ctl::start($node, 'run', 'late', '--ttl', '1h', 'sh', '-c', "until [ -e '$dir/late' ]; do sleep 0.02; done");
$node->poll_query_until('postgres', "SELECT state = 'held' FROM $schema.leases WHERE name = 'late'");
sql(q{SELECT lease_break('late')});
append_to_file("$dir/late", '');
is($victim->status, 76, 'lost, and noticed at the end only: status 76');
like($victim->err, qr/warning: lease "late" .*lost before the command ended/s, 'with the reason that the server gives');

# Signals go on to the command.
for my $signal (qw(TERM INT HUP QUIT USR1 USR2))
{
	my $file = "$dir/trap.$signal";
	my $trap = Lease::Ctl::start($node, 'run', 'trap', 'sh', '-c',
		"trap 'echo $signal; exit 9' $signal; echo \$PPID >$file; while :; do sleep 0.02; done");
	Lease::Ctl::wait_for(sub { -s $file });
	$trap->signal($signal);
	is($trap->status, 9, "$signal reaches the command, whose status counts");
	is($trap->out, "$signal\n", 'it has got it once');
}
my $untrapped = Lease::Ctl::start($node, 'run', 'trap', Lease::Ctl::ticker("$dir/untrapped"));
Lease::Ctl::ticks("$dir/untrapped");
$untrapped->signal('INT');
is($untrapped->status, 'killed by 2', 'INT ends the command, and leasectl as a shell expects it');
free('trap');
my $stopped = Lease::Ctl::start($node, 'run', 'tstp', Lease::Ctl::ticker("$dir/tstp"));
Lease::Ctl::ticks("$dir/tstp");
my $state = sub { return slurp_file("/proc/$stopped->{pid}/stat") =~ /\) (\w)/ && $1 };
$stopped->signal('TSTP');
ok(Lease::Ctl::wait_for(sub { $state->() eq 'T' }), 'TSTP stops the command, and leasectl with it');
my $size = -s "$dir/tstp";
sleep 0.1;
is(-s "$dir/tstp", $size, 'both');
$stopped->signal('CONT');
ok(Lease::Ctl::wait_for(sub { -s "$dir/tstp" > $size }), 'CONT continues both');
$stopped->signal('TERM');
is($stopped->status, 143, 'and it can be ended');

# What a command leaves behind in its group ends with it.
my $left = Lease::Ctl::start($node, 'run', 'left', '--grace', '200ms', 'sh', '-c',
	'"$@" & while ! [ -s "$5.child" ]; do sleep 0.01; done; exit 3', 'sh',
	Lease::Ctl::ticker("$dir/left", 'fork', 'deaf'));
is($left->status, 3, 'a command that leaves deaf children behind: its status');
cmp_ok(Lease::Ctl::last_tick("$dir/left$_"), '<', time, "no child lives on: left$_") for '', '.child';
free('left');
is_deeply([ Lease::Ctl::processes($node) ], [], 'no process of leasectl is left');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
