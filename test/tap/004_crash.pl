# What a crash may forget and what it may not: a grant, a renewal and a time
# that was kept never, whatever synchronous_commit says; a plain release, yes.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

# Hardly anybody but a commit flushes: the WAL writer looks every ten seconds.
my $node = Lease::Node::make(
	'crash',
	autovacuum             => 'off',
	wal_writer_delay       => '10s',
	wal_writer_flush_after => '100MB',
	checkpoint_timeout     => '1h');

sub sql { return $node->safe_psql('postgres', @_) }

sub crash
{
	$node->stop('immediate');
	$node->start;
	return;
}

# Does a transaction that does this, in a session with this setting, reach the
# disk before its commit returns?
sub durable
{
	my ($setting, @statements) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 1);

	$session->query_safe("SET client_min_messages = error");
	$session->query_safe("SET synchronous_commit = $setting");
	$session->query_safe('BEGIN');
	$session->query_safe($_) for @statements;
	my $written = $session->query_safe('SELECT pg_current_wal_insert_lsn()');
	$session->query_safe('COMMIT');
	my $flushed = $session->query_safe(
		"SELECT pg_current_wal_flush_lsn() > '$written'");
	is($session->query_safe('SHOW synchronous_commit'),
		$setting, "synchronous_commit is $setting again");
	$session->quit;
	return $flushed;
}

# Or can it return earlier? Somebody else may flush just then, so one commit of three tells.
sub forgettable
{
	my ($before, @transaction) = @_;
	for (1 .. 3)
	{
		sql($before) if $before;
		return 1 if durable(@transaction) eq 'f';
	}
	return 0;
}

sql(q{CREATE TABLE work (i int);
	CREATE TABLE later (i int);
	CREATE FUNCTION note_work() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN INSERT INTO work VALUES (0); RETURN NULL; END';
	CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON later
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_work()});

my $try = q{SELECT 1/lease_try('d', 'a', '1 min')::int};
my $renew = q{SELECT 1/lease_renew('d', 'a', '1 min')::int};
my $release = q{SELECT 1/lease_release('d', 'a')::int};
my $write = q{INSERT INTO work VALUES (1)};

ok(forgettable('', 'off', $write), 'without leases, off is off');
is(durable('off', $try), 't', 'a grant is durable though the session says off');
is(durable('local', $try), 't', 'the extension by a try is, too (local)');
is(durable('off', $renew), 't', 'a renewal is durable');
is(durable('off', q{SELECT 1/(lease_renew_all('{d}', 'a', '1 min') = '{d}')::int}),
	't', 'lease_renew_all is durable');
ok(forgettable($try, 'on', $release), 'a release alone does not wait for the disk');
is(durable('off', q{SELECT 1/(lease_try_any('{d}', 'a', '1 min') = 'd')::int}),
	't', 'a grant by lease_try_any is durable');
is(durable('on', $write, $release), 't', 'a write before a release is durable');
sql($try);
is(durable('on', $release, $write), 't', 'a write after a release is durable');
sql($try);
is(durable('on', $release, "SELECT pg_logical_emit_message(true, 'x', 'y')"),
	't', 'a write that has no row is, too');
sql($try);
is(durable('on', 'SAVEPOINT s', $release, 'ROLLBACK TO s', $write),
	't', 'a write after a release that was rolled back is durable');
is(durable('off', 'SAVEPOINT s', $try, 'RELEASE s'),
	't', 'a grant in a subtransaction is durable');
ok(forgettable($try, 'off', $release, $write),
	'with a release, a session that says off gets off');
sql($try);
is(durable('off', q{SELECT 1/lease_release('d', 'a', '10 min')::int}),
	't', 'a release that keeps others out for longer is durable');
my $anew = q{DELETE FROM dist_lock; SELECT lease_try('d', 'a', '10 min')};
ok(forgettable($anew, 'off', q{SELECT 1/lease_release('d', 'a', '1 min')::int}),
	'one that moves no expiry later is not held up');
ok(forgettable('', 'off', q{SELECT 1/(NOT lease_try('d', 'b', '1 min'))::int}, $write),
	'a losing try asks for nothing');

# A deferred trigger writes after the last statement.
sql($anew);
sql("BEGIN; INSERT INTO later VALUES (1); $release; COMMIT");
crash();
is(sql('SELECT count(*) FROM work WHERE i = 0'),
	1, 'what a deferred trigger wrote beside a release survives a crash');

# Crashes. Each thing to survive is the last that was written.
my $token = sql(q{SET synchronous_commit = off;
	SELECT lease_token('g', 'a') WHERE lease_try('g', 'a', '10 min')});
like($token, qr/^\d+$/, 'granted with synchronous_commit = off');
crash();
is(sql(q{SELECT lease_token('g', 'a')}),
	$token, 'synchronous_commit = off, immediate stop: the grant is there');
is(sql(q{SELECT lease_try('g', 'b', '1 min')}), 'f', 'and nobody else gets it');
sql(q{SELECT lease_release('g', 'a')});
my $next = sql(q{SELECT lease_token('g', 'b') WHERE lease_try('g', 'b', '10 min')});
cmp_ok($next, '>', $token, 'and the next token is higher');

sql(q{SELECT lease_try('kept', 'a', '10 s')});
my $until = sql(q{SET synchronous_commit = off;
	SELECT acquired_at + '50 s' FROM dist_lock
	WHERE name = 'kept' AND lease_release('kept', 'a', '50 s')});
crash();
is(sql(q{SELECT owner IS NULL, expiry FROM dist_lock WHERE name = 'kept'}),
	"t|$until", 'ttl 10 s, keep 50 s, immediate stop: nobody before the 50 s are over');
is(sql(q{SELECT lease_try('kept', 'a', '1 s'), lease_try('kept', 'b', '1 s')}),
	'f|f', 'neither the releaser nor another');

$token = sql(q{SELECT lease_token('both', 'a') WHERE lease_try('both', 'a', '10 min')});
sql(q{BEGIN; SELECT lease_release('both', 'a'); INSERT INTO work VALUES (2); COMMIT});
crash();
is(sql(q{SELECT (SELECT count(*) FROM work WHERE i = 2), owner IS NULL
		 FROM dist_lock WHERE name = 'both'}),
	'1|t', 'a release and a write in one transaction: both survive');

# A forgotten release is a lease that lasts as long as its ttl; tokens go on.
$token = sql(q{SELECT lease_token('r', 'a') WHERE lease_try('r', 'a', '4 s')});
is(sql(q{SELECT lease_release('r', 'a')}), 't', 'released');
my $highest = sql('SELECT max(token) FROM dist_lock');
crash();
my $state = sql(q{SELECT owner IS NULL OR owner = 'a' AND expiry <= acquired_at + '4 s'
	FROM dist_lock WHERE name = 'r'});
is($state, 't', 'a release before a crash is done or forgotten, no more');
$node->poll_query_until('postgres', q{SELECT lease_try('r', 'b', '10 min')})
  or die 'the lease does not come free';
cmp_ok(sql(q{SELECT lease_token('r', 'b')}), '>', $token, 'the next token of it is higher');
cmp_ok(sql(q{SELECT lease_token('new', 'b') WHERE lease_try('new', 'b', '1 min')}),
	'>', $highest, 'tokens are higher after a crash than all before it');

# A grant that was rolled back has drawn a token, too.
sql(q{BEGIN; SELECT lease_try('undone', 'a', '1 min'); ROLLBACK});
$highest = sql('SELECT max(token) FROM dist_lock');
crash();
cmp_ok(sql(q{SELECT lease_token('undone', 'a') WHERE lease_try('undone', 'a', '1 min')}),
	'>', $highest, 'a grant that was rolled back before a crash brings no token back');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
