# An old snapshot held by somebody keeps every dead version of a lease's row:
# renewals must not slow down for it, and no reader may miss the row for it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use List::Util qw(min);
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('snapshot');

sub old_snapshot
{
	my $session = $node->background_psql('postgres', on_error_stop => 1);

	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$session->query_safe('SELECT count(*) FROM pg_class');
	return $session;
}

# How long each thousand of so many renewals by one client took, in order, in
# milliseconds.
sub thousands
{
	my ($count) = @_;
	my $prefix = $node->basedir . '/renewals';

	unlink glob "$prefix.*";
	Lease::Node::pgbench_ok($node, "-t $count -M prepared -l --log-prefix=$prefix",
		"$count renewals", q{SELECT 1/lease_renew('k', 'a', '1 hour')::int;});
	my ($log) = glob "$prefix.*";
	# Not by the latencies: pgbench notes zero for an answer that came at once.
	my @ended = map { my @f = split; $f[4] * 1000 + $f[5] / 1000 } split /\n/, slurp_file($log);
	return map { $ended[ 1000 * $_ + 999 ] - $ended[ 1000 * $_ ] } 0 .. $count / 1000 - 1;
}

# 60,000 renewals. Somebody else on this machine may have disturbed one thousand;
# what grows with the dead versions is there in the next one, too. So the best of
# the first five is compared with the best of the last five and of more after them.
$node->safe_psql('postgres', q{SELECT lease_try('k', 'a', '1 hour')});
my $holder = old_snapshot();
my @all = thousands(60_000);
my $first = min(@all[ 0 .. 4 ]);
my $last = min(@all[ -5 .. -1 ]);

for (1 .. 20)
{
	last if $last <= 1.5 * $first;
	$last = min($last, thousands(2000));
}
cmp_ok($last, '<=', 1.5 * $first,
	'60,000 renewals under an old snapshot: the last thousand at most 1.5 times as slow as the first');
diag(sprintf 'renewals under an old snapshot: first thousand %.1f ms, last %.1f ms', $first, $last);

# A session without hints must find the row among all those versions.
is( $node->safe_psql('postgres',
		q{SELECT lease_token('k', 'a') > 0, lease_try('k', 'b', '1 min'), lease_renew('k', 'a', '1 hour')}),
	't|f|t', 'a new session finds the lease');
$holder->query_safe('COMMIT');
$holder->quit;

# Non-HOT updates all the time, and readers
my $script = q{\if :client_id < 2
SELECT 1/lease_renew('moving', 'a', '1 hour')::int;
\elif :client_id = 2
SELECT 1/(NOT lease_try('moving', 'b', '1 hour'))::int;
\else
SELECT 1/(lease_token('moving', 'a') = :token)::int;
\endif
};

sub never_missing
{
	my ($what) = @_;
	my $token = $node->safe_psql('postgres', q{
		SELECT lease_try('moving', 'a', '1 hour');
		SELECT lease_token('moving', 'a')});
	$token =~ s/.*\n//;

	Lease::Node::pgbench_ok($node, "-T 3 -c 5 -j 2 -M prepared -D token=$token",
		"$what: the lease is never seen as missing", $script);
	# Every transaction a new session, which has no hints.
	my $writer = Lease::Node::pgbench_start($node, '-M prepared',
		q{SELECT 1/lease_renew('moving', 'a', '1 hour')::int;});
	Lease::Node::pgbench_ok($node, "-T 2 -c 2 -C -D token=$token",
		"$what: nor by new sessions",
		q{SELECT 1/(lease_token('moving', 'a') = :token)::int;
SELECT 1/(NOT lease_try('moving', 'b', '1 hour'))::int;
});
	Lease::Node::pgbench_stop($writer, "$what: the writer was at it all the time");
	is($node->safe_psql('postgres',
			q{SELECT token FROM dist_lock WHERE name = 'moving' AND owner = 'a'}),
		$token, "$what: the same tenure at the end");
	return;
}

$holder = old_snapshot();
never_missing('page full, old snapshot held');
# An index on what every renewal changes leaves no HOT update at all.
$node->safe_psql('postgres', 'CREATE INDEX ON dist_lock (renewed_at)');
never_missing('every update non-HOT, old snapshot held');
$holder->query_safe('COMMIT');
$holder->quit;
never_missing('every update non-HOT, versions pruned');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
