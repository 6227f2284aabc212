# Many sessions on the same leases: nobody is refused what is free, nobody
# waits who need not, no two hold at once, nothing deadlocks.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('contention', log_min_messages => 'error');

sub sql { return $node->safe_psql('postgres', @_) }

# One takes and releases, strangers ask for what they cannot have.
for my $round (1 .. 3)
{
	Lease::Node::pgbench_ok($node, '-T 3 -c 3 -j 3 -M prepared',
		'free lease, strangers with wrong owners: not one try of the client is false',
		q{\if :client_id = 0
SELECT 1/lease_try('k', 'client', '1 min')::int;
SELECT 1/lease_release('k', 'client')::int;
\elif :client_id = 1
SELECT 1/(NOT lease_release('k', 'stranger'))::int;
SELECT 1/(NOT lease_renew('k', 'stranger', '1 min'))::int;
SELECT 1/(lease_token('k', 'stranger') IS NULL)::int;
\else
SELECT 1/(NOT lease_release('k', 'stranger'))::int;
SELECT 1/(NOT lease_renew('k', 'client', '1 min', 1))::int;
SELECT 1/(NOT lease_release('k', 'client', NULL, 1))::int;
SELECT 1/(lease_renew_all('{k}', 'stranger', '1 min') = '{}')::int;
\endif
});
	last if sql(q{SELECT grants FROM dist_lock WHERE name = 'k'}) >= 3000;
}
my $rounds = sql(q{SELECT grants FROM dist_lock WHERE name = 'k'});
cmp_ok($rounds, '>=', 3000, 'in 3,000 rounds at least');
note("$rounds rounds");

# The same 500 names in opposite order
sql(q{SELECT count(lease_try('n' || n, 'o', '1 hour')) FROM generate_series(1, 500) n});
my $up = sql(q{SELECT array_agg('n' || n ORDER BY n) FROM generate_series(1, 500) n});
my $down = sql(q{SELECT array_agg('n' || n ORDER BY n DESC) FROM generate_series(1, 500) n});
my $deadlocks = sql(q{SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'});
Lease::Node::pgbench_ok($node, '-t 100 -c 2 -j 2',
	'two sessions renew the same 500 names in opposite order',
	qq{\\if :client_id = 0
SELECT 1/(lease_renew_all('$up', 'o', '1 hour') = '$up')::int;
\\else
SELECT 1/(lease_renew_all('$down', 'o', '1 hour') = '$down')::int;
\\endif
});
is(sql(q{SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'}),
	$deadlocks, 'no deadlock');

# What an open transaction holds is refused at once.
my $first = $node->background_psql('postgres', on_error_stop => 1);
my $second = $node->background_psql('postgres', on_error_stop => 1);
$_->query_safe(q{SET statement_timeout = '10s'}) for $first, $second;

sub refused_at_once
{
	my ($what, $name) = @_;
	my (@refused, @other);

	$first->query_safe('BEGIN');
	is($first->query_safe("SELECT lease_try('$name', 'a', '1 min')"), 't', "$what: taken");
	for my $i (1 .. 7)
	{
		my ($seconds, $got) = Lease::Node::timed($second,
			"SELECT lease_try('$name', 'b', '1 min')");
		is($got, 'f', "$what: false while that transaction is open");
		push @refused, $seconds;
		($seconds, $got) = Lease::Node::timed($second,
			"SELECT lease_try('$name other $i', 'b', '1 min')");
		is($got, 't', "$what: on another name, true");
		push @other, $seconds;
	}
	cmp_ok(Lease::Node::median(@refused), '<', 0.1, "$what: false within 100 ms");
	cmp_ok(Lease::Node::median(@other), '<', 0.1, "$what: nobody waits on other names");
	$first->query_safe('ROLLBACK');
	is($second->query_safe("SELECT lease_try('$name', 'b', '1 min')"),
		't', "$what: true at the first try after the roll-back");
	return;
}
refused_at_once('brand-new name', 'new');
sql(q{SELECT lease_try('old', 'z', '1 ms')});
refused_at_once('expired row', 'old');

# In opposite order
for my $case ([ 'p', 'q' ], [ 'q', 'p' ])
{
	$first->query_safe('BEGIN');
	$second->query_safe('BEGIN');
	is($first->query_safe("SELECT lease_try('$case->[0]', 'a', '1 min')"), 't', 'first took one');
	is($second->query_safe("SELECT lease_try('$case->[1]', 'b', '1 min')"), 't', 'second the other');
	is($first->query_safe("SELECT lease_try('$case->[1]', 'a', '1 min')"), 'f', 'refused, no wait');
	is($second->query_safe("SELECT lease_try('$case->[0]', 'b', '1 min')"), 'f', 'refused, no deadlock');
	$first->query_safe('ROLLBACK');
	$second->query_safe('ROLLBACK');
}
$_->quit for $first, $second;

# A race. A holder notes since when and until when it held: until just before
# it released, or, one in three, until the lease ended by itself.
sql(q{CREATE TABLE tenure (token bigint PRIMARY KEY, client int, begun timestamptz, over timestamptz)});
Lease::Node::pgbench_ok($node, '-T 4 -c 16 -j 2',
	'sixteen clients race for one name',
	q{\set dies random(1, 3)
\set ttl 10000
\if :dies = 1
\set ttl random(2, 8)
BEGIN;
\endif
SELECT lease_try('r', 'c' || :client_id, :ttl * interval '1 ms') AS got \gset
\if :got
INSERT INTO tenure SELECT token, :client_id, acquired_at, expiry FROM dist_lock
	WHERE name = 'r' AND owner = 'c' || :client_id
	ON CONFLICT (token) DO UPDATE SET over = excluded.over;
\endif
\if :dies = 1
COMMIT;
\elif :got
BEGIN;
UPDATE tenure SET over = clock_timestamp() WHERE token = lease_token('r', 'c' || :client_id);
SELECT 1/lease_release('r', 'c' || :client_id)::int;
COMMIT;
\endif
});
my ($tenures, $clients, $clashes, $unordered) = split /\|/,
  sql(q{
	SELECT count(*), count(DISTINCT client),
		count(*) FILTER (WHERE next_begun < over),
		count(*) FILTER (WHERE next_token <= token)
	FROM (SELECT *, lead(begun) OVER w AS next_begun, lead(token) OVER w AS next_token
		FROM tenure WINDOW w AS (ORDER BY begun, token)) t});
my ($grants, $takeovers) = split /\|/,
  sql(q{SELECT grants, takeovers FROM dist_lock WHERE name = 'r'});
cmp_ok($tenures, '>', 100, 'the lease went round');
note("$tenures tenures, $clients clients, $takeovers ended by themselves");
is($clashes, 0, 'at most one holder at each instant');
is($unordered, 0, 'tokens rise with the tenures');
is($grants, $tenures, 'and each grant was one tenure');

# Sixteen owners, sixteen slots, each one call
for my $round (1 .. 5)
{
	my $slots = sql(qq{SELECT array_agg('slot $round/' || n) FROM generate_series(1, 16) n});
	Lease::Node::pgbench_ok($node, '-t 1 -c 16 -j 16',
		'16 owners over 16 slots: each has one at its first call',
		qq{SELECT 1/(lease_try_any('$slots', 'o' || :client_id, '1 min') IS NOT NULL)::int;});
	is( sql(qq{SELECT count(*), count(DISTINCT owner) FROM dist_lock
			WHERE name ~ '^slot $round/' AND owner IS NOT NULL}),
		'16|16', 'and none has two');
	is(sql(qq{SELECT lease_try_any('$slots', 'o16', '1 min') IS NULL}),
		't', 'a seventeenth gets none');
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
