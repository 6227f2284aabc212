# The recipes of doc/recipes.md do what they are for, as they are printed there.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Pages;
use Lease::Queue;
use Lease::Session;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('recipes');
my $look = Lease::Session->connect($node);
my $dir = $node->basedir . '/here';
mkdir $dir or die $!;

local @ENV{qw(PGHOST PGPORT PGDATABASE)} = ($node->host, $node->port, 'postgres');
delete @ENV{qw(PGUSER PGAPPNAME)};

sub recipe { my ($title, $language) = @_; return examples('doc/recipes.md', $title, $language); }

# A file beside which the recipes run; a program if it begins as one.
sub file
{
	my ($name, $text) = @_;
	unlink "$dir/$name";
	append_to_file("$dir/$name", $text);
	chmod 0755, "$dir/$name" or die $!;
	return;
}

# Lines of a file, so far.
sub lines { my ($name) = @_; return -e "$dir/$name" ? split /\n/, slurp_file("$dir/$name") : (); }

# Starts lines of a shell on a machine of that name.
sub start
{
	my ($host, $lines, %env) = @_;
	my $p = { out => '', err => '' };

	mkdir "$dir/$host";
	file("$host/hostname", "#!/bin/sh\necho $host\n") if !-e "$dir/$host/hostname";
	local @ENV{ 'PATH', keys %env } = ("$dir/$host:$ENV{PATH}", values %env);
	$p->{run} = IPC::Run::start([ 'bash', '-c', "cd '$dir' || exit\n$lines" ], '<', \undef, '>', \$p->{out}, '2>', \$p->{err});
	return $p;
}

# Their exit status.
sub status { my ($p) = @_; $p->{run}->finish; return $p->{run}->full_result >> 8; }

sub statuses { return join ' ', sort map { status($_) } @_; }

# Ends a leader and all of its group, which is not the test's: it must not outlive that.
sub end
{
	kill TERM => map { -$_ } map { lines("pid-$_") } @_;
	return;
}
$SIG{TERM} = sub { exit 143 };
END { local $?; end('node-a', 'node-b') }

sub until_true
{
	my ($condition) = @_;
	for (1 .. 3000)
	{
		return 1 if $condition->();
		sleep 0.01;
	}
	return 0;
}

# A migration: the index is built by one while others wait, though one before left it half-built.
{
	my $title = 'A migration on one of all nodes';
	my ($every_node, $migrate) = recipe($title, 'sh');
	file('migrate', $migrate);
	$look->must($_) for 'CREATE TABLE events (at timestamptz NOT NULL, what text)', 'CREATE INDEX events_at ON events (at)',
	  q{UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'events_at'::regclass};
	$look->must(q{SELECT 1/lease_try('migrations', 'before', '1 h')::int});
	my @nodes = map { start($_, $every_node) } qw(node-a node-b node-c);
	queued($look, 3);
	$look->must(q{SELECT lease_release('migrations', 'before')});
	is(statuses(@nodes), '0 0 0', 'migration: all nodes go on');
	is(join('', map { $_->{err} =~ s/.*already exists, skipping\n//gr } @nodes), '', 'without a word but what psql notes');
	is($look->must(q{SELECT indisvalid FROM pg_index WHERE indrelid = 'events'::regclass}), 't', 'the index is there, and valid');
	is($look->must(q{SELECT grants, takeovers FROM leases WHERE name = 'migrations'}), '4|0', 'each had its turn');

	# One is ended in the middle: nothing of it is left in the server that the next one would meet.
	file('migrate', "#!/bin/sh\necho \$\$ >migrating\nexec ./whole-migrate\n");
	file('whole-migrate', $migrate);
	$look->must('DROP INDEX events_at');
	my $reader = Lease::Session->connect($node);
	$reader->must($_) for 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT 1';
	my $building = q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^CREATE INDEX CONCURRENTLY' AND wait_event = 'virtualxid'};
	my $ended = start('node-a', $every_node);
	eventually($look, $building, 30) or die 'no index is built';
	kill KILL => lines('migrating');
	is(status($ended), 137, 'a migration is ended in the middle');
	ok(eventually($look, $building =~ s/= 1/= 0/r, 10), 'and in the server, too');
	my $heir = start('node-b', $every_node);
	ok(eventually($look, $building, 30), 'the next one builds it anew');
	$reader->quit;
	is(status($heir), 0, 'to the end');
	is($look->must(q{SELECT indisvalid FROM pg_index WHERE indrelid = 'events'::regclass}), 't', 'and it is valid');

	my $program = Lease::Session->connect($node);
	my ($acquire, $attach) = split /\n/, (recipe($title, 'sql'))[0];
	like($program->must($acquire), qr/^\d+$/, 'from a program: the lease');
	is($program->must($attach), 't', 'bound to its connection');
	$program->quit;
	ok(eventually($look, q{SELECT state = 'free' FROM leases WHERE name = 'migrations'}, 10), 'and free when that is closed');
}

# A leader, the one after it, and who follows
{
	my $title = 'A leader, and who follows';
	my ($leader, $follower) = recipe($title, 'sh');
	file('lead', "#!/bin/sh\necho \${LEASE_OWNER%:*} >>led\nexec sleep 1000\n");
	file('follow', "#!/bin/sh\necho \"\$1 \${2%:*}\" >>followed\n");
	file('leader.sh', $leader);
	my $follow = start('proxy', "exec $follower");
	my $run = 'setsid bash leader.sh & echo $! >>pid-$(hostname); wait';
	my $one = start('node-a', $run);
	ok(until_true(sub { join(' ', lines('led')) eq 'node-a' }), 'leader: the first one leads');
	my @twins = map { start('node-b', $run) } 1, 2;
	queued($look, 2);
	end('node-a');
	ok(until_true(sub { join(' ', lines('led')) eq 'node-a node-b' }), 'it ends: the next one leads');
	$one->{run}->finish;
	ok(until_true(sub { my @seen = grep { /held/ } lines('followed'); "@seen" eq 'held node-a held node-b' }), 'a follower saw both')
	  or diag(join "\n", lines('followed'));
	queued($look, 1);
	is(join(' ', lines('led')), 'node-a node-b', 'once, though it runs there twice');
	my ($watch, $owner) = split /\n/, (recipe($title, 'sql'))[0];
	is($look->must($watch), $look->must(q{SELECT token FROM leases WHERE name = 'leader'}), 'so does a program');
	like($look->must($owner), qr/^node-b:\d+$/, 'with the name');
	end('node-b');
	$_->{run}->finish for @twins;
	$follow->{run}->kill_kill;
	is($look->must(q{SELECT state, takeovers FROM leases WHERE name = 'leader'}), 'free|0', 'and nobody leads when all have ended');
}

# Worker slots: the imports go on until the test has seen all.
{
	my ($script) = recipe('Worker slots', 'sql');
	file('import.sql', $script);
	file('import_one.sql', "INSERT INTO imports VALUES (:'slot');\nSELECT pg_advisory_lock_shared(1);\n");
	$look->must('CREATE TABLE imports (slot text)');
	$look->must('SELECT pg_advisory_lock(1)');
	my ($command) = $script =~ /run as: (.*)/;
	my @nodes = map { start("node-$_", "$command -q -At") } 'a' .. 'd';
	ok(until_true(sub { $_->{run}->pump_nb for grep { $_->{run}->pumpable } @nodes; 2 == grep { $_->{out} =~ /both slots/ } @nodes }),
		'slots: of four two find both taken');
	is($look->must('SELECT string_agg(slot, \' \' ORDER BY slot) FROM imports'), 'import-1 import-2', 'the other two import, one in each');
	$look->must('SELECT pg_advisory_unlock(1)');
	is(statuses(@nodes), '0 0 0 0', 'all end well');
	my $free = q{SELECT count(*) = 2 FROM leases WHERE name LIKE 'import-%' AND state = 'free' AND last_end = 'released'};
	ok(eventually($look, $free, 10), 'and both are free');
	file('import_one.sql', 'SELECT 1/0;');
	is(status(start('node-a', $command)), 3, 'an import that fails ends with an error');
	ok(eventually($look, $free, 10), 'and its slot is free, too');
}

# Once a minute
{
	my ($script) = recipe('Once a minute', 'sql');
	file('tick.sql', $script);
	$look->must('CREATE TABLE ticks (at timestamptz DEFAULT clock_timestamp())');
	my ($command) = $script =~ /run as: (.*)/;
	is(statuses(map { start("node-$_", $command) } 'a' .. 'e'), '0 0 0 0 0', 'once a minute: all nodes end well');
	is(status(start('node-f', $command)), 0, 'so does one that is late');
	is($look->must('SELECT count(*) FROM ticks'), 1, 'and it ran once');
	is($look->must(q{SELECT state, expiry - acquired_at FROM leases WHERE name = 'tick'}), 'cooling|00:00:55', 'for this minute');
}

# A batch job
{
	my ($tables) = recipe('A batch job that cannot write late', 'sql');
	my ($program, $run) = recipe('A batch job that cannot write late', 'sh');
	file('send-invoices', $program);
	$look->must($_) for grep { /\w/ } split /;\n/, $tables;
	my $unsent = 'SELECT count(*) FILTER (WHERE sent IS NULL), count(DISTINCT sent) > 2000 FROM invoice';
	$look->must('INSERT INTO invoice SELECT generate_series(1, 2500)');
	is(status(start('node-a', $run)), 0, 'batch job: ends well');
	is($look->must($unsent), '0|t', 'all is sent');
	my $old = $look->must(q{SELECT token FROM leases WHERE name = 'invoices'});
	$look->must('TRUNCATE invoice');
	$look->must('INSERT INTO invoice SELECT generate_series(1, 2500)');
	my $late = start('node-a', './send-invoices', LEASE_TOKEN => $old);
	is(status($late), 3, 'one that lost its lease stops');
	like($late->{err}, qr/token $old is not the live tenure/, 'at the fence');
	is($look->query('UPDATE invoice SET sent = now()'), 'LEASE', 'without the fence nobody writes');
	is($look->must($unsent), '2500|f', 'nothing was sent');
}

# Maintenance
{
	my ($lines) = recipe('Maintenance by psql', 'sh');
	my $good = start('node-a', $lines);
	is(status($good), 0, 'maintenance: done');
	like($good->{out}, qr/REINDEX/, 'to the end');
	ok(eventually($look, q{SELECT state = 'free' AND last_end = 'released' FROM leases WHERE name = 'maintenance'}, 10), 'and released with the session');
	$look->must(q{SELECT 1/lease_try('maintenance', 'other', '1 h')::int});
	my $bad = start('node-b', $lines =~ s/'1 h'/'100 ms'/r);
	isnt(status($bad), 0, 'another node is at it: fails in the end');
	unlike($bad->{out}, qr/REINDEX/, 'and touches nothing');
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
