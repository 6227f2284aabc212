# Whatever is done to the table beside the calls, they answer right: nothing
# that a session remembers of it outlives what it was true of.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('ddl');

sub sql { return $node->safe_psql('postgres', @_) }

# Calls in a loop, and DDL in a loop beside them
my $calls = q{\set n random(1, 500)
\set r random(1, 2000000000)
SELECT 1/lease_try('new' || :r, 'me', '1 ms')::int;
SELECT 1/lease_try('own' || :client_id, 'me', '1 min')::int;
SELECT 1/(lease_token('own' || :client_id, 'me') > 0)::int;
SELECT 1/lease_renew('own' || :client_id, 'me', '1 min')::int;
SELECT 1/lease_release('own' || :client_id, 'me')::int;
SELECT 1/(NOT lease_try('all', 'b', '1 min'))::int;
SELECT 1/lease_renew('n' || :n, 'a', '1 hour')::int;
SELECT 1/(cardinality(lease_renew_all('{all,n1,n2,n3}', 'a', '1 hour')) = 4)::int;
SELECT 1/(lease_try_any(ARRAY['all', 'slot' || :client_id], 'b' || :client_id, '1 min') IS NOT NULL)::int;
};

sub beside_calls
{
	my ($what, $rounds, @ddl) = @_;
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	my $bench = Lease::Node::pgbench_start($node, '-c 4 -j 2 -M prepared', $calls);
	my $grants = q{SELECT sum(grants) FROM dist_lock WHERE name ~ '^own'};
	my $stuck = 0;

	$node->poll_query_until('postgres', "SELECT ($grants) > 0") or die 'no calls';
	for my $round (1 .. $rounds)
	{
		my $before = sql($grants);
		$session->query($_ =~ s/%d/$round/r) for @ddl;
		$node->poll_query_until('postgres', "SELECT ($grants) > $before") or $stuck++;
	}
	is($stuck, 0, "$what: the calls went on after each round");
	is($session->{stderr}, '', "$what: no error of it");
	Lease::Node::pgbench_stop($bench, "$what beside calls: no error of theirs");
	$session->quit;
	note("$what: " . sql($grants) . ' grants');
	return;
}

sql(q{SELECT lease_try('all', 'a', '1 hour');
	SELECT count(lease_try('n' || n, 'a', '1 hour')) FROM generate_series(1, 500) n});
beside_calls('REINDEX CONCURRENTLY, VACUUM FULL, CLUSTER, ANALYZE', 4,
	'REINDEX INDEX CONCURRENTLY dist_lock_pkey',
	'VACUUM FULL dist_lock',
	'REINDEX TABLE CONCURRENTLY dist_lock',
	'CLUSTER dist_lock USING dist_lock_pkey',
	'ANALYZE dist_lock');
beside_calls('ALTER TABLE, VACUUM (TRUNCATE), CREATE INDEX', 4,
	'ALTER TABLE dist_lock ADD COLUMN x%d int',
	'VACUUM (TRUNCATE) dist_lock',
	'ALTER TABLE dist_lock ADD COLUMN y%d float8 DEFAULT random()',
	'CREATE INDEX CONCURRENTLY ON dist_lock (expiry)',
	'ALTER TABLE dist_lock SET (fillfactor = 50)',
	'CREATE INDEX x%d ON dist_lock (token)',
	'DROP INDEX x%d');
# These lock the table first and the index then.
beside_calls('REINDEX', 10, 'REINDEX TABLE dist_lock', 'REINDEX INDEX dist_lock_pkey');
is(sql(q{SELECT lease_token('all', 'a') = token FROM dist_lock WHERE name = 'all'}),
	't', 'the lease held all the while is still held');
if (sql(q{SELECT count(*) FROM pg_available_extensions WHERE name = 'amcheck'}))
{
	sql('CREATE EXTENSION amcheck');
	is( sql(q{SELECT count(*) FROM pg_index i, bt_index_parent_check(indexrelid, true)
			WHERE indrelid = 'dist_lock'::regclass}),
		sql(q{SELECT count(*) FROM pg_index WHERE indrelid = 'dist_lock'::regclass}),
		'the indexes are right (amcheck)');
}

# DROP and CREATE EXTENSION by somebody else
my $session = $node->background_psql('postgres', on_error_stop => 1);
$session->query_safe(q{PREPARE try AS SELECT lease_try('k', 'a', '1 hour')});
$session->query_safe(q{PREPARE token AS SELECT lease_token('k', 'a')});
is($session->query_safe('EXECUTE try'), 't', 'a session that has everything cached');
my $token = $session->query_safe('EXECUTE token');
for my $schema ('public', '"a $chema of ""ours"""')
{
	sql("DROP EXTENSION lease; CREATE SCHEMA IF NOT EXISTS $schema; CREATE EXTENSION lease SCHEMA $schema");
	$session->query_safe("SET search_path = $schema");
	is($session->query_safe('EXECUTE token'),
		'', "DROP and CREATE in another session ($schema): a new lease, nobody holds it");
	is($session->query_safe('EXECUTE try'), 't', "$schema: taken");
	my $next = $session->query_safe('EXECUTE token');
	cmp_ok($next, '>', $token, "$schema: with a higher token");
	$token = $next;
	is($session->query_safe(q{SELECT lease_renew('k', 'a', '1 hour'), lease_renew_all('{k}', 'a', '1 hour'),
			lease_release('k', 'a'), lease_try_any('{k}', 'a', '1 hour')}),
		't|{k}|t|k', "$schema: renewed, released, taken again");
	is(sql("SELECT count(*) FROM $schema.dist_lock"), 1, "$schema: in the new table");
	$token = $session->query_safe('EXECUTE token');
}
sql('DROP EXTENSION lease; CREATE EXTENSION lease');
$session->query_safe('RESET search_path');

# Hints that point past the end, or at another lease's row
sql(q{SELECT lease_try('before', 'a', '1 hour');
	INSERT INTO dist_lock(name, owner, expiry, token)
		SELECT 'fill' || n, 'f', now() + '1 hour', n FROM generate_series(1, 3000) n;
	SELECT lease_try('stays', 'a', '1 hour');
	SELECT lease_try('goes', 'a', '1 hour')});
my $stays = sql(q{SELECT token FROM dist_lock WHERE name = 'stays'});
my $everyone = q{SELECT lease_token('stays', 'a'), lease_token('goes', 'a') > 0, lease_token('fill3000', 'f')};
is($session->query_safe($everyone), "$stays|t|3000", 'seen at the end of the table');
my $pages = sql(q{SELECT pg_relation_size('dist_lock') / 8192});
sql(q{DELETE FROM dist_lock WHERE name ~ '^fill' OR name = 'goes'});
sql(q{VACUUM dist_lock});
# One row goes to a page nearer to the front.
sql(q{WITH row AS (DELETE FROM dist_lock WHERE name = 'stays' RETURNING *)
	INSERT INTO dist_lock SELECT * FROM row});
sql(q{VACUUM (TRUNCATE) dist_lock});
cmp_ok(sql(q{SELECT pg_relation_size('dist_lock') / 8192}), '<', $pages,
	'VACUUM (TRUNCATE) made the table shorter');
is($session->query_safe($everyone), "$stays||",
	'hints that point past the end: what is there is found, what is not is not');
is($session->query_safe(
		q{SELECT lease_renew('stays', 'a', '1 hour'), lease_try('goes', 'b', '1 hour'), lease_try('fill3000', 'f', '1 hour')}),
	't|t|t', 'and renewed, and taken');

$session->quit;

# The moment in which the tail is gone and the sessions have not heard of it
my $reader = Lease::Node::pgbench_start($node, '-c 2 -M prepared',
	q{SELECT 1/(coalesce(lease_token('tail', 'a'), 4000) = 4000)::int;});
for (1 .. 20)
{
	sql(q{INSERT INTO dist_lock(name, owner, expiry, token)
		SELECT 'fill' || n, 'f', now() + '1 hour', n FROM generate_series(1, 500) n
		UNION ALL SELECT 'tail', 'a', now() + '1 hour', 4000});
	sql(q{SELECT pg_sleep(0.01);
		DELETE FROM dist_lock WHERE name ~ '^fill' OR name = 'tail'});
	sql('VACUUM (TRUNCATE) dist_lock');
}
Lease::Node::pgbench_stop($reader, 'VACUUM (TRUNCATE) beside calls: no error');

# Places on a page pass from one lease to another all the time.
sql(q{INSERT INTO dist_lock(name, owner, expiry, token)
	SELECT 'p' || n, 'a', now() + '1 hour', n FROM generate_series(1, 8) n});
Lease::Node::pgbench_ok($node, '-T 2 -c 4 -j 2 -M prepared',
	'hints that point at another lease are not taken for it',
	q{\set n random(1, 8)
\set m random(1, 8)
SELECT 1/lease_renew('p' || :n, 'a', '1 hour', :n)::int;
SELECT 1/(lease_token('p' || :m, 'a') = :m)::int;
});

Lease::Node::unhurt($node);
$node->stop;
done_testing();
