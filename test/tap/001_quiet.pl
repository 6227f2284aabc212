# A losing call costs nobody anything: it writes nothing, draws no token, keeps
# no lock and leaves no line in the log (but a release that ended nothing says why).
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make(
	'quiet',
	autovacuum         => 'off',
	checkpoint_timeout => '1h',
	log_min_messages   => 'info');
my $has_pgstattuple = $node->safe_psql('postgres',
	"SELECT count(*) FROM pg_available_extensions WHERE name = 'pgstattuple'");

$node->safe_psql('postgres', 'CREATE EXTENSION pgstattuple')
  if $has_pgstattuple;
$node->safe_psql(
	'postgres', q{
	SELECT lease_try('held', 'a', '1 hour');
	SELECT lease_try('cooling', 'a', '1 hour');
	SELECT lease_release('cooling', 'a', '1 hour');
	SELECT lease_try('expired', 'a', '1 ms');
});

my $dead = $has_pgstattuple
  ? q{(SELECT dead_tuple_count FROM pgstattuple('dist_lock'))}
  : 'NULL::bigint';
my %look = (
	'WAL position' => 'SELECT pg_current_wal_insert_lsn()',
	'next transaction id' => 'SELECT pg_snapshot_xmax(pg_current_snapshot())',
	'last token' => 'SELECT last_value, is_called FROM dist_lock_token',
	'dead tuples' => "SELECT $dead",
	# A row lock would show in xmax, a new version in ctid.
	'rows' => 'SELECT l.ctid, l.xmin, l.xmax, l.* FROM dist_lock l ORDER BY name');

sub look
{
	return { map { $_ => $node->safe_psql('postgres', $look{$_}) } keys %look };
}

# That calling does nothing but answer. The first round fills catalog caches
# and sets the hint bits.
sub costs_nothing
{
	my ($what, $call, $log) = @_;

	$call->() for 1 .. 2;
	look();
	my $before = look();
	my $log_before = slurp_file($node->logfile);
	$call->();
	my $log_after = slurp_file($node->logfile);
	my $after = look();
	is($after->{$_}, $before->{$_}, "$what: $_ as before") for sort keys %look;
	like(substr($log_after, length $log_before),
		$log // qr/\A\z/, "$what: the server log");
	return;
}

my %losing = (
	'try' => q{SELECT 1/(NOT lease_try('held', 'b', '1 min'))::int;
SELECT 1/(NOT lease_try('cooling', 'b', '1 min'))::int;
},
	'renew' => q{SELECT 1/(NOT lease_renew('held', 'b', '1 min'))::int;
SELECT 1/(NOT lease_renew('held', 'a', '1 min', 1))::int;
SELECT 1/(NOT lease_renew('expired', 'a', '1 min'))::int;
SELECT 1/(NOT lease_renew('none', 'a', '1 min'))::int;
SELECT 1/(lease_renew_all('{held,expired,none}', 'b', '1 min') = '{}')::int;
},
	'try_any' => q{SELECT 1/(lease_try_any('{held,cooling}', 'b', '1 min') IS NULL)::int;
},
	'token' => q{SELECT 1/(lease_token('held', 'b') IS NULL)::int;
SELECT 1/(lease_token('held', 'a') > 0)::int;
});

costs_nothing(
	"10,000 losing tries",
	sub {
		# Two tries a transaction of the script.
		Lease::Node::pgbench_ok($node, '-t 2500 -c 2 -M prepared',
			'losing tries are false', $losing{try});
	});

# A page full of dead versions is for writers to clear.
my $old = $node->background_psql('postgres', on_error_stop => 1);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$old->query_safe('SELECT count(*) FROM pg_class');
Lease::Node::pgbench_ok($node, '-t 100', 'a hundred dead versions',
	q{SELECT 1/lease_renew('held', 'a', '1 hour')::int;});
$old->query_safe('COMMIT');
$old->quit;
my $position = $node->safe_psql('postgres', $look{'WAL position'});
Lease::Node::pgbench_ok($node, '-t 10', 'losing calls after renewals',
	$losing{try} . $losing{token});
is($node->safe_psql('postgres', $look{'WAL position'}),
	$position, 'losing calls after renewals write nothing either');

for my $kind ('renew', 'try_any', 'token')
{
	costs_nothing(
		"losing $kind",
		sub {
			Lease::Node::pgbench_ok($node, '-t 200 -c 2',
				"losing $kind answers no", $losing{$kind});
		});
}

# A false release says why in the log, and does nothing else.
costs_nothing(
	'losing release',
	sub {
		Lease::Node::pgbench_ok(
			$node, '-t 10',
			'losing release answers no',
			q{SELECT 1/(NOT lease_release('held', 'b'))::int;
SELECT 1/(NOT lease_release('held', 'a', NULL, 1))::int;
SELECT 1/(NOT lease_release('expired', 'a'))::int;
SELECT 1/(NOT lease_release('none', 'a'))::int;
});
	},
	qr/\A(?:[^\n]* (?:WARNING|DETAIL|STATEMENT): [^\n]*\n){40,}\z/);

for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	my $loser = $node->background_psql('postgres', on_error_stop => 1);
	my $pid = $loser->query_safe('SELECT pg_backend_pid()');
	my $locks = "SELECT locktype, mode, relation::regclass FROM pg_locks
		WHERE pid = $pid AND locktype <> 'virtualxid'";

	costs_nothing(
		"losing tries in an open $level block",
		sub {
			$loser->query_safe("BEGIN ISOLATION LEVEL $level");
			is( $loser->query_safe(
					q{SELECT lease_try('held', 'b', '1 min')
					  FROM generate_series(1, 1000) GROUP BY 1}),
				'f',
				"$level block: false each time");
			is($loser->query_safe('SELECT pg_current_xact_id_if_assigned()'),
				'', "$level block: no transaction id");
			is($node->safe_psql('postgres', $locks),
				'', "$level block: no lock left while it stays open");
			$loser->query_safe('COMMIT');
		});

	# What a loser that idles in its block must not hold up.
	$loser->query_safe("BEGIN ISOLATION LEVEL $level");
	$loser->query_safe(q{SELECT lease_try('held', 'b', '1 min')});
	is_deeply(
		[ Lease::Node::answer($node, q{SET lock_timeout = '1s';
			SELECT lease_renew('held', 'a', '1 hour')}) ],
		[ 't', '' ],
		"$level: the holder renews beside an idle loser");
	is_deeply(
		[ Lease::Node::answer($node, q{SET lock_timeout = '1s';
			BEGIN; DROP EXTENSION lease; ROLLBACK}) ],
		[ '', '' ],
		"$level: DROP EXTENSION is not held up by an idle loser");
	is($loser->query_safe('SELECT 1'), '1', "$level: the block goes on");
	$loser->query_safe('COMMIT');
	$loser->quit;
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
