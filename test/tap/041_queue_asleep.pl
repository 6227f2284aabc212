# Who waits costs nothing: no CPU, no snapshot, no transaction ID, no memory, and
# no lock that others queue for.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Queue;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('asleep', max_connections => 100, autovacuum => 'off');
my $look = Lease::Session->connect($node);
my $holder = Lease::Session->connect($node);

# Fifty waiters: at each isolation level, and by the extended protocol.
my @waiters;
$holder->must(q{SELECT lease_try('night', 'holder', '1 d')});
for my $i (1 .. 50)
{
	my $level = ('read committed', 'repeatable read', 'serializable')[ $i % 3 ];
	my $waiter = Lease::Session->connect($node, default_transaction_isolation => $level);
	if ($i % 2)
	{
		$waiter->send_pipeline([ 'CALL lease_acquire($1, $2, $3, $4)', 'night', "w$i", '1 min', $i % 4 == 1 ? undef : '1 day' ]);
	}
	else
	{
		acquire($waiter, 'night', "w$i", '1 min', $i % 4 ? undef : '100 years');
	}
	queued($look, $i);
	push @waiters, $waiter;
}
# A watcher, too.
my $watcher = Lease::Session->connect($node, default_transaction_isolation => 'serializable');
$watcher->send("CALL lease_watch('night', " . $look->must(q{SELECT token FROM dist_lock WHERE name = 'night'}) . ')');
asleep($look, @waiters, $watcher);

my $pids = join ',', map { $_->{pid} } @waiters, $watcher;

# Nanoseconds on a CPU so far.
sub on_cpu
{
	my $sum = 0;
	for my $pid (split /,/, $pids)
	{
		my ($ran) = slurp_file("/proc/$pid/schedstat") =~ /^(\d+)/;
		$sum += $ran;
	}
	return $sum;
}

SKIP:
{
	skip 'no /proc to read CPU time from', 1 unless -r "/proc/$$/schedstat";
	my $seconds = $Lease::Queue::long ? 10 : 2;
	sleep 1;
	my $before = on_cpu();
	sleep $seconds;
	my $share = (on_cpu() - $before) / 1e9 / $seconds;
	cmp_ok($share, '<', 0.02, '50 waiters and a watcher use less than 2 % of a core');
	note(sprintf '50 waiters and a watcher: %.3f %% of a core', 100 * $share);
}

is( $look->must("SELECT count(*), count(backend_xmin), count(backend_xid) FROM pg_stat_activity WHERE pid IN ($pids)"),
	'51|0|0', 'none of them has a snapshot or a transaction ID, at any isolation level, deep in the queue either');
is( $look->must("SELECT count(*) FROM pg_locks WHERE pid IN ($pids) AND relation IS NOT NULL"),
	'0', 'nor a lock on any table');

# What died meanwhile can be removed.
$look->must('CREATE TABLE dying AS SELECT n FROM generate_series(1, 10000) n');
$look->must('DELETE FROM dying');
$look->must('VACUUM dying');
is($look->must(q{SELECT pg_relation_size('dying')}), '0', 'VACUUM removes the rows that died meanwhile');

$holder->must('CREATE TABLE work AS SELECT n FROM generate_series(1, 10000) n');
is($holder->query('CREATE INDEX CONCURRENTLY work_n ON work (n)'), '', 'CREATE INDEX CONCURRENTLY by the holder does not wait for them');
cmp_ok($holder->answer->{seconds}, '<', 5, 'it takes as long as ever');
is($holder->query('REINDEX TABLE CONCURRENTLY dist_lock'), '', 'REINDEX CONCURRENTLY of the table of leases does not, either');
is($holder->query('CREATE INDEX CONCURRENTLY ON dist_lock (owner)'), '', 'nor CREATE INDEX CONCURRENTLY on it');
is($look->query('BEGIN; LOCK TABLE dist_lock; COMMIT'), '', 'nor who locks it');
ok(!(grep { $_->done } @waiters, $watcher), 'all the while they waited');

# Woken many times: memory stays. Each renewal is shorter than the one before it.
my $log = -s $node->logfile;

sub memory
{
	$look->must("SELECT pg_log_backend_memory_contexts($_[0]{pid})");
	for (1 .. 300)
	{
		my @totals = slurp_file($node->logfile, $log) =~ /\[$_[0]{pid}\].*Grand total: (\d+) bytes/g;
		if (@totals > ($_[0]{totals} // 0))
		{
			$_[0]{totals} = @totals;
			return $totals[-1];
		}
		sleep 0.05;
	}
	die 'no memory contexts in the log';
}

sub wake
{
	my ($rounds) = @_;
	Lease::Node::pgbench_ok($node, "-t $rounds -M prepared", "$rounds renewals that wake the head and a watcher",
		q{SELECT 1/lease_renew('night', 'holder', '2 d')::int;
SELECT 1/lease_renew('night', 'holder', '1 d')::int;
});
	return;
}

wake(200);
my @before = map { memory($_) } $waiters[0], $watcher;
wake($Lease::Queue::long ? 50_000 : 2000);
my @after = map { memory($_) } $waiters[0], $watcher;
cmp_ok($after[0] - $before[0], '<=', 16384, 'the head has as much memory as before');
cmp_ok($after[1] - $before[1], '<=', 16384, 'and so has the watcher');
note("head: $before[0] bytes, then $after[0]; watcher: $before[1], then $after[1]");
ok(!(grep { $_->done } @waiters, $watcher), 'and they still wait');

# Their turn, one by one.
$holder->must(q{SELECT lease_release('night', 'holder')});
my $first = shift @waiters;
like($first->got, qr/^\d+$/, 'the first has it');
like($watcher->got, qr/^\d*$/, 'the watcher is back');
$_->quit for @waiters, $watcher;
nothing_left($look, 'all clients gone');

# A session that waits again and again has as much memory as before.
{
	my $one = Lease::Session->connect($node);
	my $total = q{SELECT sum(total_bytes) FROM pg_backend_memory_contexts};
	my $rounds = sub {
		for (1 .. $_[0])
		{
			$one->must(q{CALL lease_acquire('night', 'one', '1 min', '1 us')});
			$one->must(q{CALL lease_acquire('day', 'one', '1 min', '1 s')});
			$one->must(q{CALL lease_watch('day', NULL, '1 s')});
			$one->must(q{SELECT lease_release('day', 'one')});
			$one->query(q{BEGIN; CALL lease_acquire('night', 'one', '1 min', '1 us'); CALL lease_acquire('day', 'one', '-1 s')});
			$one->must('ROLLBACK');
		}
	};
	$rounds->(20);
	$one->must($total);
	my $before = $one->must($total);
	$rounds->($Lease::Queue::long ? 10_000 : 300);
	my $after = $one->must($total);
	cmp_ok($after - $before, '<=', 65536, 'a session that waits again and again has as much memory as before');
	note("$before bytes, then $after");
	$one->quit;
}

# Nobody waiting: no session ever waits for the lock that NOTIFY takes.
{
	my $bench = Lease::Node::pgbench_start($node, '-c 30 -j 2 -M prepared',
		q{SELECT lease_try('n' || :client_id, 'me', '1 min');
SELECT lease_release('n' || :client_id, 'me');
});
	my (%waits, $looks);
	my $until = time + ($Lease::Queue::long ? 20 : 2);
	while (time < $until)
	{
		$waits{$_}++ for split /\n/, $look->must(q{SELECT wait_event FROM pg_stat_activity WHERE wait_event_type = 'Lock'});
		$looks++;
	}
	# (Where thirty new rows want a new page, they wait for that.)
	delete $waits{extend};
	is(join(' ', %waits), '', '30 clients that take and release leases of their own never wait for a heavyweight lock');
	note("$looks looks");
	Lease::Node::pgbench_stop($bench, 'the clients went on all the time');
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
