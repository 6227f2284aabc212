# In a transaction block, in DO and in procedures lease_acquire and lease_watch
# work, commit nothing of the caller's, and leave nothing behind when they fail.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Queue;
use Test::More;

my $node = Lease::Node::make(
	'block',
	max_prepared_transactions => 5,
	deadlock_timeout          => '100ms');
my $look = Lease::Session->connect($node);
my @s = map { Lease::Session->connect($node) } 1 .. 3;

sub nothing_held
{
	my ($session) = @_;
	return $look->must("SELECT coalesce(backend_xmin::text, '') || '/' || coalesce(backend_xid::text, '')
		FROM pg_stat_activity WHERE pid = $session->{pid}");
}

$look->must(q{CREATE TABLE t (i int)});

# A READ COMMITTED block has no snapshot while it waits: as head, deep in the
# queue, behind a fence, behind an open change, and as a watcher.
{
	$look->must(q{SELECT lease_try('snap', 'x', '1 h')});
	for my $level ('READ COMMITTED')
	{
		$_->must("BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM pg_class") for @s;
		acquire($s[0], 'snap', 'a');
		asleep($look, $s[0]);
		acquire($s[1], 'snap', 'b');
		$s[2]->send("CALL lease_watch('snap', " . $look->must(q{SELECT lease_token('snap', 'x')}) . ')');
		asleep($look, @s);
		is(nothing_held($s[0]), '/', "$level block: the head has neither snapshot nor transaction ID");
		is(nothing_held($s[1]), '/', "$level block: nor has who is deep in the queue");
		is(nothing_held($s[2]), '/', "$level block: nor has a watcher");
		$look->must(q{SELECT lease_release('snap', 'x')});
		like($s[0]->got, qr/^\d+$/, "$level block: the head has it");
		is($s[0]->query('SELECT count(*) FROM t'), '0', "$level block: goes on with a snapshot");
		$s[0]->must(q{SELECT lease_release('snap', 'a'); COMMIT});
		like($s[1]->got, qr/^\d+$/, "$level block: the next one has it");
		like($s[2]->got, qr/^\d*$/, "$level block: the watcher is back");
		$s[1]->must(q{SELECT lease_release('snap', 'b'); COMMIT});
		$s[2]->must('COMMIT');
	}
	nothing_left($look, 'after blocks');
}

# Behind an open fence and an open grant.
{
	my $token = $look->must(q{SELECT lease_try('fence', 'x', '300 ms')}) && $look->must(q{SELECT lease_token('fence', 'x')});
	$s[2]->must(qq{BEGIN; SELECT lease_fence('fence', $token)});
	$s[0]->must('BEGIN');
	acquire($s[0], 'fence', 'a');
	ok(eventually($look, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $s[0]{pid}"),
		'waits behind the fence when the lease has expired');
	is(nothing_held($s[0]), '/', 'behind a fence: no snapshot');
	$s[2]->must('COMMIT');
	like($s[0]->got, qr/^\d+$/, 'has it when the fence ends');
	$s[1]->must('BEGIN');
	acquire($s[1], 'fence', 'b');
	asleep($look, $s[1]);
	is(nothing_held($s[1]), '/', 'behind an open grant: no snapshot');
	$s[0]->must('ROLLBACK');
	like($s[1]->got, qr/^\d+$/, 'has it when the grant rolls back');
	$s[1]->must('ROLLBACK');
	nothing_left($look, 'after fence');
}

# A block goes on after time ran out, with no warning, no lock, no transaction ID.
{
	$look->must(q{SELECT lease_try('held', 'x', '1 h')});
	for my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
	{
		$s[0]->must("BEGIN ISOLATION LEVEL $level; SELECT count(*) FROM pg_class");
		acquire($s[0], 'held', 'a', '1 min', '50 ms');
		is($s[0]->got, '', "$level: time is up");
		is_deeply($s[0]->answer->{notices}, [], "$level: no warning");
		is($s[0]->answer->{transaction}, 'T', "$level: the block goes on");
		is($s[0]->query('SELECT pg_current_xact_id_if_assigned()'), '', "$level: no transaction ID");
		nothing_left($look, $level);
		# Deep in the queue.
		acquire($s[1], 'held', 'b');
		queued($look, 1);
		acquire($s[0], 'held', 'a', '1 min', '50 ms');
		is($s[0]->got, '', "$level: time is up, deep in the queue");
		is_deeply($s[0]->answer->{notices}, [], "$level: no warning, deep in the queue");
		queued($look, 1);
		$look->must("SELECT pg_cancel_backend($s[1]{pid})");
		is($s[1]->got, '57014', "$level: cancelled");
		$s[0]->must('COMMIT');
		is_deeply($s[0]->answer->{notices}, [], "$level: no warning at commit");
	}
	nothing_left($look, 'after time ran out');
}
Lease::Node::unhurt($node);
done_testing();
