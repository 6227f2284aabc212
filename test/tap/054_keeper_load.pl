# Ten thousand attached leases among many other rows: none is lost, and the keeper
# is a small part of one core. LONG=1: for a minute, among a million.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Keeper;
use Test::More;

my ($others, $seconds) = $ENV{LONG} ? (1_000_000, 60) : (200_000, 12);
my $node = Lease::Node::make('load', max_wal_size => '4GB', checkpoint_timeout => '1h');
my $look = Lease::Session->connect($node);

$look->must(qq{
	INSERT INTO dist_lock(name, token, owner, expiry, granted_to, acquired_at, renewed_at, ttl, grants)
	SELECT 'other ' || n, n, CASE WHEN n % 2 = 0 THEN 'somebody' END, now() + random() * interval '1 h', current_user, now(), now(), '1 h', 1
	FROM generate_series(1, $others) n});
$look->must('VACUUM ANALYZE dist_lock');
my @sessions = map { Lease::Session->connect($node) } 1 .. 20;
my $start = time;
$sessions[$_]->send(qq{
	DO \$\$ BEGIN
		FOR i IN 1 .. 500 LOOP
			ASSERT lease_try('mine $_ ' || i, 'me', '10 s') AND lease_attach('mine $_ ' || i, 'me');
			IF i % 100 = 0 THEN COMMIT; END IF;
		END LOOP;
	END \$\$}) for 0 .. $#sessions;
is(join('', map { $_->got } @sessions), '', 'ten thousand are attached');
note(sprintf 'in %.1f s', time - $start);

sub figures
{
	my $keeper = keeper($look);
	return (time, cpu_seconds($keeper), split /\|/, $look->must(q{
		SELECT pg_current_wal_insert_lsn() - '0/0', n_tup_upd, n_tup_hot_upd, pg_relation_size('dist_lock')
		FROM pg_stat_user_tables WHERE relname = 'dist_lock'}));
}

$_->must('SELECT pg_stat_force_next_flush()') for @sessions;
my @before = figures();
my ($least, $until) = (10_000, time + $seconds);
while (time < $until)
{
	my $held = $look->must(q{SELECT count(*) FROM dist_lock WHERE session_pid IS NOT NULL AND owner = 'me' AND expiry > clock_timestamp() AND grants = 1});
	$least = $held if $held < $least;
	sleep 0.5;
}
my @spent = map { $_->[1] - $_->[0] } do { my @after = figures(); map { [ $before[$_], $after[$_] ] } 0 .. $#after };
my ($time, $cpu, $wal, $updates, $hot, $growth) = @spent;
diag(sprintf '%d attached leases, ttl 10 s, among %d rows, %.0f s: keeper %.1f %% of a core, %d renewals (%.1f %% HOT), %.2f MB of WAL (%.0f bytes a renewal), table grew by %.1f MB, least margin %s',
	10_000, $others, $time, 100 * $cpu / $time, $updates, 100 * $hot / ($updates || 1), $wal / 2**20, $wal / ($updates || 1), $growth / 2**20,
	$look->must('SELECT min(min_margin) FROM dist_lock'));
is($least, 10_000, 'none was lost at any time');
cmp_ok($cpu / $time, '<', 0.1, 'the keeper needs less than a tenth of one core');
cmp_ok($updates, '>', 10_000 * ($time / 3.4 - 1), 'each is renewed when a third of its ttl has gone by');
cmp_ok($updates, '<', 10_000 * ($time / 2.5 + 1), 'and not much more often');
cmp_ok($hot / $updates, '>', 0.9, 'most renewals are HOT');

# All sessions go at once.
$start = time;
$_->quit for @sessions;
ok(eventually($look, q{SELECT count(*) = 0 FROM dist_lock WHERE session_pid IS NOT NULL}, 20), 'all are released when their sessions go');
note(sprintf 'in %.0f ms', 1000 * (time - $start));
is($look->must(q{SELECT count(*) FROM dist_lock WHERE last_end = 'released'}), 10_000, 'each by its release');

$node->stop;
done_testing();
