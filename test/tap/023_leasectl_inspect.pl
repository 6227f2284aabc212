# leasectl ls, waiters, watch, break and doctor.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use JSON::PP;
use Lease::Ctl;
use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

my $node = Lease::Node::make('inspect');
my $dir = $node->basedir;

sub sql { return $node->safe_psql('postgres', $_[0]) }
sub leasectl { return Lease::Ctl::run($node, @_) }

# The rows of a --json, by name.
sub json
{
	my ($status, $out, $err) = leasectl(@_);
	my $rows = eval { JSON::PP->new->utf8->decode($out) } // die "$@: $out$err";
	return { map { $_->{name} // $_->{check} => $_ } @$rows };
}

# ls
is((leasectl('ls', '--json'))[1], "[]\n", 'ls --json of nothing');
like((leasectl('ls'))[1], qr/\ANAME +STATE +OWNER +TOKEN .*\n\z/, 'ls of nothing: the head of the table');
sql(q{
	SELECT lease_try('held', 'me', '1 hour'), lease_renew('held', 'me', '1 hour');
	SELECT lease_try('free', 'me', '1 hour'), lease_release('free', 'me');
	SELECT lease_try('cooling', 'me', '1 hour'), lease_release('cooling', 'me', '2 hours');
	SELECT lease_try('expired', 'me', '1 ms')});
my $leases = json('ls', '--json');
is_deeply({ map { $_ => $leases->{$_}{state} } keys %$leases },
	{ held => 'held', free => 'free', cooling => 'cooling', expired => 'expired' }, 'ls --json: states');
my $held = $leases->{held};
is($held->{token}, sql(q{SELECT token FROM leases WHERE name = 'held'}), 'ls --json: the token, a number');
is_deeply([ @{$held}{qw(owner role waiters grants takeovers session_pid last_owner)} ],
	[ 'me', sql('SELECT current_user'), 0, 1, 0, undef, undef ], 'ls --json: who holds it');
cmp_ok($held->{remaining}, '>', 3500, 'ls --json: remaining time in seconds');
cmp_ok($held->{min_margin}, '>', 3500, 'ls --json: margin in seconds');
like($held->{$_}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/, "ls --json: $_") for qw(acquired_at renewed_at expiry);
is_deeply([ sort keys %$held ], [ sort split /,/, sql(q{SELECT string_agg(attname, ',') FROM pg_attribute
		WHERE attrelid = 'leases'::regclass AND attnum > 0}) ], 'ls --json: all that the view has');
my (undef, $table) = leasectl('ls');
like($table, qr/^held +held +me +$held->{token} +\S+ +59 min \d+ s +0 +1 +0 +\d/m, 'ls: a line of the table');
is((grep { length > 120 } split /\n/, $table), 0, 'ls: fits on a terminal');
# An infinite expiry, made by hand
sql(q{INSERT INTO dist_lock (name, owner, expiry, token) VALUES ('hand', 'made', 'infinity', 1)});
is_deeply([ @{ json('ls', '--json')->{hand} }{qw(expiry remaining acquired_at)} ], [ 'infinity', undef, undef ],
	'ls --json: a row made by hand');
sql(q{DELETE FROM dist_lock});

# Output that nobody takes
sub shell { return system("PGHOST='@{[ $node->host ]}' PGPORT=@{[ $node->port ]} PGDATABASE=postgres timeout 20 $_[0]") >> 8 }
is(shell("leasectl ls >&- 2>'$dir/closed'"), 74, 'a standard output that is closed is noticed');
is(shell("leasectl $_ >/dev/full 2>'$dir/full'"), 74, "$_: a full disk is noticed")
	for 'ls', 'ls --json --watch 1s', 'watch x', '--help';
like(slurp_file("$dir/full"), qr/^leasectl: could not write the output: No space left on device\n\z/, 'and told');

# Names that are odd
my @odd = ("quote \" and \\ and '", "line\nfeed\ttab", "\e[31mred\e[0m", "\x7f\x01", '</script>', '{"a": 1}',
	"\x{e9}\x{4e2d}\x{6587}\x{1f600}", "\x{9b}31m", "\x{2028}");
for my $name (@odd)
{
	utf8::encode(my $bytes = $name);
	is((leasectl('run', $bytes, '--owner', $bytes, 'true'))[0], 0, 'run with an odd name');
}
$leases = json('ls', '--json');
is_deeply([ sort keys %$leases ], [ sort @odd ], 'ls --json: odd names come back as they were');
is_deeply([ sort map { $_->{last_owner} } values %$leases ], [ sort @odd ], 'ls --json: odd owners, too');
(undef, $table) = leasectl('ls');
unlike($table, qr/[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]/, 'ls: nothing that a terminal would obey');
is(scalar(split /\n/, $table), @odd + 1, 'ls: a line for each');
like($table, qr/^\\x1b\[31mred\\x1b\[0m /m, 'ls: it is shown, not obeyed');
$node->safe_psql('postgres', q{CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'});
$node->safe_psql('postgres', q{CREATE DATABASE ascii TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'});
$node->safe_psql($_, 'CREATE EXTENSION lease') for 'latin', 'ascii';
$node->safe_psql('latin', q{SELECT lease_try('caf' || chr(233), 'a', '1 h')});
is_deeply([ keys %{ json('ls', '--json', '-d', 'latin') } ], ["caf\x{e9}"], 'ls --json of a LATIN1 database is UTF-8');
is((leasectl('run', '-d', 'latin', "caf\xc3\xa9", 'true'))[0], 75, 'run in a LATIN1 database: the same name');
$node->safe_psql('ascii', q{SELECT lease_try(E'caf\\351', 'a', '1 h')});
is_deeply([ keys %{ json('ls', '--json', '-d', 'ascii') } ], ["caf\x{fffd}"],
	'ls --json of bytes in no encoding: is JSON all the same');
sql(q{DELETE FROM dist_lock});

# ls --watch, over a restart of the server
my $watching = Lease::Ctl::start($node, 'ls', '--json', '--watch', '200ms');
Lease::Ctl::wait_for(sub { $watching->out =~ /\[\]\n\[\]/ });
$node->restart;
sql(q{SELECT lease_try('later', 'me', '1 hour')});
ok(Lease::Ctl::wait_for(sub { $watching->out =~ /"later"/ }), 'ls --watch shows what changes, and comes back');
$watching->signal('TERM');
is($watching->status, 'killed by 15', 'ls --watch until it is ended');

# waiters
is((leasectl('waiters', '--json'))[1], "[]\n", 'waiters --json of nothing');
my @queue;
for my $place (1 .. 3)
{
	push @queue, Lease::Ctl::start($node, 'run', 'later', '--wait', '1min', 'true');
	$node->poll_query_until('postgres', "SELECT count(*) = $place FROM lease_waiters");
}
my ($status, $out, $err) = leasectl('waiters');
like($out, qr/\ANAME .*\nlater +acquire +1 +\d+ .*\nlater +acquire +2 .*\nlater +acquire +3 .*\n\z/, 'waiters: in order');
is(json('ls', '--json')->{later}{waiters}, 3, 'ls counts them');
like((leasectl('waiters', '--json'))[1], qr/"name": "later", "kind": "acquire", "position": 1, "pid": \d+, "since": "\d[^"]+", "seconds": \d/,
	'waiters --json');

# watch
my $watch = Lease::Ctl::start($node, 'watch', 'later', '--exec', 'echo "$LEASE_NAME $LEASE_STATE [$LEASE_TOKEN] [$LEASE_OWNER]"');
my $watch_json = Lease::Ctl::start($node, 'watch', '--json', 'later');
my $token = sql(q{SELECT token FROM leases WHERE name = 'later'});
ok(Lease::Ctl::wait_for(sub { $watch->out =~ /^\d{4}-\S+ later held token $token owner me\nlater held \[$token\] \[me\]\n/ }),
	'watch: the holder at the beginning, and --exec');

# break
($status, $out, $err) = leasectl('break', 'later');
is($status, 0, 'break: status 0');
is($out, qq{"later" is broken\n}, 'break: says so');
is_deeply([ map { $_->status } @queue ], [ 0, 0, 0 ], 'all that waited have their turn');
ok(Lease::Ctl::wait_for(sub { $watch->out =~ /later free \[\] \[\]\n\z/ }), 'watch: nobody at the end');
ok(Lease::Ctl::wait_for(sub { $watch_json->out =~ /"free"/ }), 'watch --json');
is_deeply([ grep { !exists $_->{owner} || $_->{name} ne 'later' } map { decode_json($_) } $watch_json->out =~ /(.*)\n/g ],
	[], 'watch --json: an object a line');
$node->restart;
sql(q{SELECT lease_try('later', 'back', '1 hour')});
ok(Lease::Ctl::wait_for(sub { $watch->out =~ /later held \[\d+\] \[back\]\n\z/ }), 'watch: goes on after a restart');
$_->signal('TERM') for $watch, $watch_json;
is($_->status, 'killed by 15', 'watch until it is ended') for $watch, $watch_json;
$node->safe_psql('postgres', q{CREATE ROLE hasty LOGIN; ALTER ROLE hasty SET statement_timeout = '200ms'});
my $hasty = Lease::Ctl::start($node, 'watch', 'later', '-U', 'hasty', '--exec', 'echo "[$PGCONNECT_TIMEOUT]"');
ok(Lease::Ctl::wait_for(sub { $hasty->out =~ /^\[\]$/m }), 'watch --exec: no variable of leasectl reaches the command');
ok(!$hasty->ends(0.7), 'watch: goes on after a statement_timeout');
$hasty->signal('TERM');
$hasty->status;
is($hasty->err, '', 'without a word');
my $locking = $node->background_psql('postgres');
$locking->query_safe('BEGIN; LOCK dist_lock');
$hasty = Lease::Ctl::start($node, 'watch', 'later', '-U', 'hasty');
$node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query ~ '^CALL' AND wait_event_type = 'Lock'});
$node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE query ~ '^CALL' AND wait_event_type = 'Lock'});
$locking->quit;
is($hasty->status . $hasty->out, 69, 'watch: does not take a statement_timeout at the beginning for a free lease');
my $unheard = do { local $SIG{CHLD} = 'IGNORE'; Lease::Ctl::start($node, 'watch', 'later', '--exec', 'exit 3') };
ok(Lease::Ctl::wait_for(sub { $unheard->err =~ /--exec failed with status 3$/m }), 'watch --exec: tells failures, also where SIGCHLD was ignored');
$unheard->signal('TERM');
$unheard->status;
is((leasectl('break', 'none'))[0], 1, 'break: nothing to break, status 1');
$node->safe_psql('postgres', 'CREATE ROLE nobody LOGIN');
($status, $out, $err) = leasectl('break', 'later', '-U', 'nobody');
is("$status $err", "69 leasectl: permission denied for function lease_break\n", 'break: not for everybody');
# It waits for an open fence, and says whom it waits for; given up, it breaks nothing.
my $fence = $node->background_psql('postgres');
my $pid = $fence->query_safe(q{BEGIN; SELECT lease_fence('later', token) FROM leases WHERE name = 'later'; SELECT pg_backend_pid()});
$pid =~ s/\D//g;
my $breaking = Lease::Ctl::start($node, 'break', 'later');
ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM pg_stat_activity WHERE query ~ 'lease_break\(' AND wait_event_type = 'Lock'}),
	'break: waits for an open fence');
$breaking->signal('INT');
is($breaking->status, 'killed by 2', 'break: ends when it is interrupted');
$fence->query_safe('COMMIT');
is(sql(q{SELECT state FROM leases WHERE name = 'later'}), 'held', 'and does not break the lease afterwards');
$fence->query_safe(q{BEGIN; SELECT lease_fence('later', token) FROM leases WHERE name = 'later'});
$breaking = Lease::Ctl::start($node, 'break', 'later');
ok(Lease::Ctl::wait_for(sub { $breaking->err =~ /\b$pid\b/ }), 'break: names whom it waits for');
$fence->query_safe('COMMIT');
$fence->quit;
is($breaking->status, 0, 'break: done when the fence is gone');

# doctor
sub doctor
{
	my ($result, $message, $test, @args) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($code, $text) = leasectl('doctor', @args);

	is($code, $result eq 'ok' ? 0 : 1, "doctor: status, $test");
	like($text, qr/^$result +$message/m, "doctor: $test");
	return;
}

sql(q{DELETE FROM dist_lock});
# Tests run without.
sub settings
{
	my (%settings) = @_;
	$node->append_conf('postgresql.conf', "$_ = '$settings{$_}'") for keys %settings;
	$node->reload;
	$node->poll_query_until('postgres', "SHOW $_", $settings{$_}) for keys %settings;
	return;
}

settings(fsync => 'on');
($status, $out, $err) = leasectl('doctor');
is("$status$err", 0, 'doctor: all is well');
is(() = $out =~ /^ok /mg, 6, 'doctor: six checks');
is_deeply([ sort keys %{ json('doctor', '--json') } ], [qw(durability expired extension fences margins replication)], 'doctor --json');
settings(fsync => 'off');
doctor('warning', 'durability +fsync is off', 'fsync off');
settings(fsync => 'on', full_page_writes => 'off');
doctor('warning', 'durability +full_page_writes is off', 'full_page_writes off');
settings(full_page_writes => 'on', synchronous_standby_names => 'missing');
doctor('warning', 'replication +synchronous_standby_names is set, but no such standby', 'a standby that is not there');
settings(synchronous_standby_names => '');
doctor('warning', 'extension +not in database "template1"', 'extension missing', '-d', 'template1');
# What is installed, as an upgrade of the package would leave it
$node->safe_psql('latin', q{SET allow_system_table_mods = on;
	CREATE OR REPLACE VIEW pg_catalog.pg_available_extensions AS
	SELECT 'lease'::name AS name, '99.0'::text AS default_version, NULL::text COLLATE "C" AS installed_version, NULL::text AS comment});
doctor('warning', 'extension +version \S+ in database "latin", but version 99.0 is installed: ALTER EXTENSION',
	'extension older than what is installed', '-d', 'latin');
$node->safe_psql('latin', q{REVOKE USAGE ON SCHEMA public FROM PUBLIC});
doctor('warning', 'extension +version \S+ in database "latin", but it cannot be used: permission denied for schema public',
	'no right to use it', '-d', 'latin', '-U', 'nobody');
sql(q{INSERT INTO dist_lock (name, owner, expiry, token, granted_to, ttl, renewed_at, acquired_at, min_margin)
	VALUES ('hasty', 'me', now() + '20 s', 1, current_user, '30 s', now() - interval '10 s', now(), '9 s')});
doctor('warning', 'margins +"hasty": only 00:00:09 of a TTL of 00:00:30 were left', 'a margin under a third of the TTL');
sql(q{GRANT pg_read_all_stats TO nobody});
doctor('warning', 'margins +"hasty": only 00:00:09 of a TTL of 00:00:30', 'the same for who may not read the table', '-U', 'nobody');
sql(q{UPDATE dist_lock SET min_margin = '10 s'});
doctor('ok', 'margins', 'a third is enough');
sql(q{INSERT INTO dist_lock (name, owner, expiry, token) SELECT 'dead' || n, 'me', now() - interval '2 min', 1 FROM generate_series(1, 30) n});
doctor('warning', 'expired +"dead1": expired at ', 'an expired lease that nobody takes');
doctor('warning', 'expired +and 10 more', 'many of them');
sql(q{DELETE FROM dist_lock WHERE name ~ 'dead'});
# A minute is long for a test: the fence of one that is said to be older.
my $holder = $node->background_psql('postgres');
$token = sql(q{SELECT lease_token('fenced', 'me') WHERE lease_try('fenced', 'me', '1 hour')});
$holder->query_safe("BEGIN; SELECT lease_fence('fenced', $token)");
doctor('ok', 'fences', 'a short fence');
sql(q{CREATE OR REPLACE VIEW lease_waiters AS
	SELECT a.name, a.pid, a.kind, NULL::bigint AS position, now() - interval '2 min' AS since FROM lease_activity() a});
doctor('warning', 'fences +"fenced": behind the fence, in a transaction \(process \d+\) that is open since ', 'a long fence');
$holder->query_safe('COMMIT');
$holder->quit;
is((leasectl('doctor', '-h', "$dir/nowhere"))[0], 69, 'doctor: no server, status 69');

Lease::Node::unhurt($node);
$node->stop;

# A standby
my $primary = Lease::Node::make('primary', streaming => 1, fsync => 'on');
$node = $primary;
doctor('ok', 'replication +no standby', 'no standby');
$primary->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'copy', has_streaming => 1);
$standby->start;
$primary->wait_for_catchup($standby);
doctor('warning', 'replication +1 standby\(s\), none of them synchronous', 'an asynchronous standby');
is((Lease::Ctl::run($primary, 'run', 'x', 'true'))[0], 0, 'a run on the primary');
$primary->wait_for_catchup($standby);
is((Lease::Ctl::run($standby, 'run', 'x', 'true'))[0], 69, 'run on a standby: status 69');
like((Lease::Ctl::run($standby, 'ls'))[1], qr/^x +free/m, 'ls works there');
my $both = join ',', map { $_->host } $standby, $primary;
my $ports = join ',', map { $_->port } $standby, $primary;
is((Lease::Ctl::run($primary, 'run', '-d', "host=$both port=$ports target_session_attrs=read-write", 'x', 'true'))[0], 0,
	'of two hosts the one that can write is taken');
settings(synchronous_standby_names => '*');
$primary->poll_query_until('postgres', q{SELECT sync_state = 'sync' FROM pg_stat_replication});
doctor('ok', 'replication +a synchronous standby confirms', 'a synchronous standby');
$node = $standby;
doctor('warning', 'replication +this server is a standby', 'on a standby');
$_->stop for $standby, $primary;
done_testing();
