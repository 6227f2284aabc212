# leasectl run when things fail: whatever dies, stops or falls silent, no process of
# the command is alive when its lease may be over.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;
use Lease::Ctl;
use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

my $node = Lease::Node::make('trouble');
my $dir = $node->basedir;
my ($host, $port) = ($node->host, $node->port);
my $socket = "$host/.s.PGSQL.$port";

sub sql { return $node->safe_psql('postgres', $_[0]) }
sub expiry { return sql("SELECT extract(epoch FROM expiry) FROM leases WHERE name = '$_[0]'") }

# A ticker under leasectl, running.
sub start
{
	my ($name, $ttl, @args) = @_;
	my $env = ref $args[-1] ? pop @args : {};
	my $run = Lease::Ctl::start($node, 'run', $name, '--ttl', $ttl, '--', Lease::Ctl::ticker("$dir/$name", @args), $env);
	Lease::Ctl::ticks("$dir/$name") or die $run->err;
	Lease::Ctl::ticks("$dir/$name.child") or die $run->err if grep { $_ eq 'fork' } @args;
	return $run;
}

# The ticker (and its child) was gone before the lease was over.
sub dead_in_time
{
	my ($test, $name, $expiry) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	for my $file (glob "$dir/$name $dir/$name.child")
	{
		next if !-e $file;
		my $left = $expiry - Lease::Ctl::last_tick($file);
		cmp_ok($left, '>', 0, "$test: the command was gone before the TTL" . ($file =~ /child/ ? ', its child, too' : ''));
		note(sprintf '%s: %.3f s before the expiry', $test, $left);
	}
	return;
}

# A TCP relay to the server's socket. USR1: silent, for all; USR2: silent for
# those that are there, while new ones get through. Nobody is told anything.
sub relay
{
	my $listener = IO::Socket::INET->new(Listen => 10, LocalAddr => '127.0.0.1') or die $!;
	my $pid = fork // die $!;
	return ($pid, $listener->sockport) if $pid;
	# It has no part in the test's own end.
	$SIG{__DIE__} = sub { POSIX::_exit(1) };

	my ($silent, %peer, %forgotten) = (0);
	local $SIG{USR1} = sub { $silent = 1 };
	local $SIG{USR2} = sub { %forgotten = (%forgotten, %peer); %peer = () };
	local $SIG{TERM} = sub { POSIX::_exit(0) };
	while (1)
	{
		my @all = $silent ? () : ($listener, map { $_->[0] } values %peer);
		for my $from (IO::Select->new(@all)->can_read(0.05))
		{
			if ($from == $listener)
			{
				my $client = $listener->accept or next;
				my $server = IO::Socket::UNIX->new($socket) or next;
				$peer{$client} = [ $client, $server ];
				$peer{$server} = [ $server, $client ];
			}
			elsif (my $pair = $peer{$from})
			{
				if (sysread $from, my $data, 65536) { syswrite $pair->[1], $data }
				else { delete @peer{ $pair->[0], $pair->[1] }; shutdown $_, 2 for @$pair }
			}
		}
	}
}

# leasectl is killed.
my $run = start('killed', '3s', 'fork');
my $guard = (grep { $_ != $run->{pid} } Lease::Ctl::processes($node))[0];
$run->signal('KILL');
is($run->status, 'killed by 9', 'kill -9 of leasectl');
dead_in_time('kill -9', 'killed', expiry('killed'));
ok(Lease::Ctl::wait_for(sub { !Lease::Ctl::is_alive($guard) }), 'and the guard does not stay');
$run = start('deaf', '3s', 'deaf', 'fork');
$run->signal('KILL');
is($run->status, 'killed by 9', 'kill -9 of leasectl, with a command that ignores TERM');
dead_in_time('kill -9, deaf', 'deaf', expiry('deaf'));
$run = start('job', '2s', 'fork');
kill KILL => -$run->{pid};
is($run->status, 'killed by 9', "kill -9 of leasectl's whole group");
dead_in_time('kill -9 of the group', 'job', expiry('job'));

# The guard is killed: there is another, and all goes on.
$run = start('unguarded', '3s');
($guard) = grep { $_ != $run->{pid} } Lease::Ctl::processes($node);
kill KILL => $guard;
ok(Lease::Ctl::wait_for(sub { grep { $_ != $run->{pid} && $_ != $guard } Lease::Ctl::processes($node) }),
	'a guard that is killed is replaced');
$run->signal('KILL');
is($run->status, 'killed by 9', 'and leasectl after it');
dead_in_time('kill -9 after the guard', 'unguarded', expiry('unguarded'));

# leasectl is stopped, and its session lost; the network falls silent.
my ($relay, $relay_port) = relay();
my ($nat, $nat_port) = relay();
my %by_relay = (PGHOST => '127.0.0.1', PGPORT => $relay_port);
my %stopped = map { $_ => start($_, '3s', @{ { stopped => ['fork'], stopped_deaf => ['deaf'] }->{$_} }) } qw(stopped stopped_deaf);
my %silent = map { $_ => start($_, '4s', @{ { silent => ['fork'], silent_deaf => ['deaf'] }->{$_} }, \%by_relay) } qw(silent silent_deaf);
my $forgotten = start('forgotten', '4s', { %by_relay, PGPORT => $nat_port });
my $terminated = start('terminated', '4s', { PGAPPNAME => 'terminated' });
my $first_token = sql(q{SELECT token FROM leases WHERE name = 'terminated'});
$_->signal('STOP') for values %stopped;
kill USR1 => $relay;
kill USR2 => $nat;
is(sql(q{SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'terminated'}), 1,
	'a session of leasectl is terminated');
for my $name (sort keys %stopped)
{
	dead_in_time($name, $name, expiry($name));
	is($stopped{$name}->ends(0), 0, "$name: leasectl itself is still stopped");
	sleep 0.01 while time < expiry($name) + 0.2;
	$stopped{$name}->signal('CONT');
	is($stopped{$name}->status, 76, "$name: when it goes on, it says that the lease was lost");
	like($stopped{$name}->err, qr/\Aleasectl: lost the lease "$name", [^\n]*\n(?:leasectl: \d+ renewals, [^\n]*\n)?\z/, "$name: and nothing of a release");
}
for my $name (sort keys %silent)
{
	is($silent{$name}->status, 76, "$name: status 76");
	like($silent{$name}->err, qr/lost the lease "$name"/, "$name: in words, too");
	dead_in_time($name, $name, expiry($name));
	cmp_ok($silent{$name}->{took}, '<', 8, "$name: a silent server does not hold up the end for long");
}
for my $survivor ($forgotten, $terminated)
{
	sleep 0.01 while time - $survivor->{began} < 6;
	ok(!$survivor->ends(0), 'the command goes on for longer than a TTL');
	like($survivor->err, qr/could not renew, tries again: .*\nleasectl: renewed again/, 'a new connection was made');
	$survivor->signal('TERM');
	is($survivor->status, 143, 'until it is ended');
}
is(sql(q{SELECT token FROM leases WHERE name = 'terminated'}), $first_token, 'as the same tenure');
is(sql(q{SELECT count(*) FROM leases WHERE state = 'free' AND last_end = 'released' AND name IN ('forgotten', 'terminated')}),
	2, 'which was released at the end');

# Waiting for a lease goes on, too.
sql(q{SELECT lease_try('busy', 'other', '1 hour')});
my $waiting = Lease::Ctl::start($node, 'run', 'busy', '--wait', '1min', 'true');
my $tired = Lease::Ctl::start($node, 'run', 'busy', '--wait', '2s', 'true');

# The server restarts, and takes two seconds for it.
my $survivor = start('restart', '10s', 'fork');
$node->poll_query_until('postgres', q{SELECT count(*) = 2 FROM lease_waiters});
$first_token = sql(q{SELECT token FROM leases WHERE name = 'restart'});
my $renewed = sql(q{SELECT renewed_at FROM leases WHERE name = 'restart'});
$node->stop('fast');
sleep 2;
$node->start;
ok($node->poll_query_until('postgres', "SELECT renewed_at > '$renewed' FROM leases WHERE name = 'restart'"),
	'a restart of 2 s: the lease is renewed after it');
ok(!$survivor->ends(0), 'the command survives');
is(sql(q{SELECT token FROM leases WHERE name = 'restart'}), $first_token, 'in the same tenure');
sql(q{SELECT lease_break('busy')});
is($waiting->status, 0, 'who waited gets the lease after it');
like($tired->status, qr/^(69|75)$/, 'or ends when its wait is over');

# The server goes for good.
my $lost = start('gone', '4s', 'fork');
my $deaf = start('gone_deaf', '4s', 'deaf');
$node->stop('immediate');
my $none = Lease::Ctl::start($node, 'run', 'none', '--wait', '1s', 'true');
is($none->status, 69, 'a server that is not there during the wait: status 69');
cmp_ok($none->{took}, '>=', 1, 'when the wait is over');
is($lost->status, 76, 'a server that goes for good: status 76');
like($lost->err, qr/lost the lease "gone", ends the command: connection to server/, 'and the reason');
is($deaf->status, 76, 'the same with a command that ignores TERM');
cmp_ok($deaf->{took}, '<', 4 + 6, 'a dead server does not hold up the end');
is($survivor->status, 76, 'the survivor of the restart does not survive that');
is_deeply([ Lease::Ctl::processes($node) ], [], 'no process of leasectl is left');

kill TERM => $relay, $nat;
waitpid $_, 0 for $relay, $nat;
$node->start;
dead_in_time("server gone: $_", $_, expiry($_)) for qw(gone gone_deaf restart);
Lease::Node::unhurt($node);
$node->stop;
done_testing();
