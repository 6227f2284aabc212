# Renewals are cheap: they stay on their page, and many of them in one call
# cost a fraction of as many calls and take no lock for each.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('hot');

sub updates
{
	$node->safe_psql('postgres', 'SELECT pg_stat_force_next_flush()')
	  if $node->pg_version >= 15;
	return split /\|/,
	  $node->safe_psql('postgres',
		q{SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'dist_lock'});
}

# At least 95 % of what $call updates, $count rows, is HOT.
sub hot
{
	my ($what, $count, $call) = @_;
	my ($all, $hot) = updates();

	$call->();
	$node->poll_query_until('postgres',
		"SELECT n_tup_upd >= $all + $count FROM pg_stat_user_tables WHERE relname = 'dist_lock'")
	  or die 'the statistics do not arrive';
	my ($all_after, $hot_after) = updates();
	my $percent = 100 * ($hot_after - $hot) / ($all_after - $all);
	cmp_ok($percent, '>', 95, "$what: more than 95 % of the updates are HOT");
	note(sprintf '%s: %.1f %% of %d updates', $what, $percent, $all_after - $all);
	return;
}

$node->safe_psql('postgres', q{SELECT lease_try('one', 'a', '1 hour')});
hot('10,000 renewals of one lease',
	10_000,
	sub {
		Lease::Node::pgbench_ok($node, '-t 10000 -M prepared', 'renewed',
			q{SELECT 1/lease_renew('one', 'a', '1 hour')::int;});
	});

# 10,000 names, granted through the function.
$node->safe_psql(
	'postgres', q{
	DO $$
	BEGIN
		FOR i IN 0..9 LOOP
			PERFORM lease_try('n' || n, 'a', '1 hour')
			FROM generate_series(i * 1000 + 1, i * 1000 + 1000) n;
			COMMIT;
		END LOOP;
	END $$;
	VACUUM ANALYZE dist_lock});
is( $node->safe_psql('postgres',
		q{SELECT count(lease_token('n' || n, 'a')) FROM generate_series(1, 10000) n}),
	'10000', '10,000 leases are held');

# fsync on, as in service: a call of its own pays for its own commit.
$node->safe_psql('postgres', 'ALTER SYSTEM SET fsync = on');
$node->reload;
$node->poll_query_until('postgres', 'SHOW fsync', 'on') or die 'not reloaded';
my $out;
hot('renewals one by one', 3000,
	sub {
		$out = Lease::Node::pgbench_ok($node, '-t 3000 -M prepared -D n=0',
			'renewed one by one',
			q{\set n :n + 1
SELECT 1/lease_renew('n' || :n, 'a', '1 hour')::int;});
	});
my ($ms_each) = $out =~ /latency average = ([\d.]+) ms/;
my $session = $node->background_psql('postgres', on_error_stop => 1);

$session->query_safe(
	q{SELECT array_agg('n' || n ORDER BY n) AS names FROM generate_series(1, 10000) n \gset});
my @all;
hot('lease_renew_all', 30_000,
	sub {
		for (1 .. 3)
		{
			my ($seconds, $got) = Lease::Node::timed($session,
				q{SELECT lease_renew_all(:'names', 'a', '1 hour') = :'names'::text[]});
			is($got, 't', 'lease_renew_all gives the 10,000 names as they came');
			push @all, $seconds;
		}
		$session->quit;
	});
my $one_by_one = $ms_each * 10;    # seconds for 10,000
my $at_once = Lease::Node::median(@all);
cmp_ok($one_by_one / $at_once, '>=', 15,
	'lease_renew_all of 10,000 names is at least 15 times as fast as one by one');
diag(sprintf '10,000 renewals: %.2f s one by one (of 3,000), %.3f s in one call, %.0f times as fast',
	$one_by_one, $at_once, $one_by_one / $at_once);

# 100,000 names at once: more than the lock table has room for.
is($node->safe_psql('postgres', 'SHOW max_locks_per_transaction'),
	'64', 'the lock table has its default size');
$node->safe_psql('postgres',
	q{INSERT INTO dist_lock(name, owner, expiry, token)
	  SELECT 'm' || n, 'a', now() + '1 hour', n FROM generate_series(1, 100000) n});
is( $node->safe_psql('postgres',
		q{WITH r AS MATERIALIZED (
			SELECT lease_renew_all(array_agg('m' || n ORDER BY n DESC), 'a', '2 hours') AS names
			FROM generate_series(1, 100000) n)
		  SELECT cardinality(names), names[1], names[100000] FROM r}),
	'100000|m100000|m1',
	'100,000 names in one call on default settings');
is( $node->safe_psql('postgres',
		q{SELECT count(*) FROM dist_lock WHERE name ~ '^m' AND expiry > now() + '90 min'}),
	'100000', 'and all 100,000 have their new expiry');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
