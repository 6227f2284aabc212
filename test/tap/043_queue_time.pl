# `wait` alone bounds a wait: whatever keeps the lease, wherever in the queue, and
# whatever lock_timeout says. An expired lease is taken at its expiry.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Queue;
use Test::More;

my $node = Lease::Node::make('time', max_prepared_transactions => 5);
my $look = Lease::Session->connect($node);

sub token { return $look->must("SELECT token FROM dist_lock WHERE name = '$_[0]'") }

sub expired
{
	my ($name) = @_;
	$look->must("SELECT lease_try('$name', 'x', '1 h')");
	$look->must("UPDATE dist_lock SET expiry = clock_timestamp() - interval '1 s' WHERE name = '$name'");
	return;
}

# What keeps a lease longer than anybody wants to wait.
my @keepers = map { Lease::Session->connect($node) } 1 .. 6;

$look->must(q{SELECT lease_try('held', 'x', '1 h'), lease_try('cooling', 'x', '1 h')});
$look->must(q{SELECT lease_release('cooling', 'x', '2 h')});

$look->must(q{SELECT lease_try('fenced', 'x', '200 ms')});
$keepers[0]->must(q{BEGIN; SELECT lease_fence('fenced', } . token('fenced') . ')');
ok(eventually($look, q{SELECT lease_token('fenced', 'x') IS NULL}), 'expired behind an open fence');

expired('row lock');
$keepers[1]->must(q{BEGIN; SELECT FROM dist_lock WHERE name = 'row lock' FOR UPDATE});

$keepers[2]->must(q{BEGIN; SELECT lease_try('open grant', 'x', '1 ms')});

$look->must(q{SELECT lease_try('open release', 'x', '1 h')});
$keepers[3]->must(q{BEGIN; SELECT lease_release('open release', 'x')});

$keepers[4]->must(q{BEGIN; SELECT lease_try('prepared', 'x', '1 h'); PREPARE TRANSACTION 'p'});

$keepers[4]->must(q{BEGIN; INSERT INTO dist_lock(name, token) VALUES ('open insert', 1)});

# Its own lease, but somebody has the row.
$look->must(q{SELECT lease_try('own', 'me', '1 h')});
$keepers[5]->must(q{BEGIN; SELECT FROM dist_lock WHERE name = 'own' FOR UPDATE});

my @names = ('held', 'cooling', 'fenced', 'row lock', 'open grant', 'open release', 'prepared', 'open insert', 'own');

for my $place ('head', 'deep in the queue')
{
	my @before;
	if ($place ne 'head')
	{
		@before = map { Lease::Session->connect($node) } @names;
		acquire($before[$_], $names[$_], 'before') for 0 .. $#names;
		queued($look, scalar @before);
	}
	my %settings = (lock_timeout => '20ms', deadlock_timeout => '10ms');
	my @waiters = map { Lease::Session->connect($node, %settings) } @names;
	acquire($waiters[$_], $names[$_], 'me', '1 min', '600 ms') for 0 .. $#names;
	for my $i (0 .. $#names)
	{
		my $answer = $waiters[$i]->answer(20);
		is($waiters[$i]->got, '', "$names[$i], $place: NULL, though lock_timeout is shorter");
		cmp_ok($answer->{seconds}, '>=', 0.59, "$names[$i], $place: waited that long");
		cmp_ok($answer->{seconds}, '<', 1.6, "$names[$i], $place: and not much longer");
		is_deeply($answer->{notices}, [], "$names[$i], $place: without a word");
	}
	is(join(' ', map { $_->must('SHOW lock_timeout') } @waiters),
		join(' ', ('20ms') x @waiters), "$place: lock_timeout is as it was");
	is($waiters[0]->must(q{SELECT count(*) FROM pg_settings WHERE setting IS DISTINCT FROM reset_val
			AND name IN ('lock_timeout', 'deadlock_timeout', 'statement_timeout', 'synchronous_commit', 'idle_in_transaction_session_timeout')}),
		'0', "$place: so are other settings");
	# '0': one look, and nothing is waited for.
	for my $i (0 .. $#names)
	{
		acquire($waiters[$i], $names[$i], 'me', '1 min', '0');
		my $answer = $waiters[$i]->answer(20);
		is($waiters[$i]->got, '', "$names[$i], $place: NULL at once");
		cmp_ok($answer->{seconds}, '<', 0.5, "$names[$i], $place: at once");
	}
	$_->quit for @waiters;
	$look->must("SELECT pg_terminate_backend($_->{pid})") for @before;
	queued($look, 0);
}

# The session's lock_timeout does not end a wait in a block either, and there
# still ends what it is for.
{
	my $waiter = Lease::Session->connect($node, lock_timeout => '50ms');
	$waiter->must('BEGIN');
	acquire($waiter, 'row lock', 'me', '1 min', '300 ms');
	is($waiter->got, '', 'in a block too');
	is($waiter->query(q{SELECT 1 FROM dist_lock WHERE name = 'row lock' FOR UPDATE}),
		'55P03', 'lock_timeout counts for the next statement');
	$waiter->must('ROLLBACK');
	$waiter->quit;
}

# Nor a wait that has no bound.
{
	my $waiter = Lease::Session->connect($node, lock_timeout => '50ms');
	acquire($waiter, 'row lock', 'me');
	sleep 0.3;
	ok(!$waiter->done, 'without a bound, lock_timeout does not count');
	$keepers[1]->must('COMMIT');
	like($waiter->got, qr/^\d+$/, 'and the lease comes as soon as its row is free');
	$waiter->quit;
}

# The owner whose row is busy gets its token as soon as that ends, past the queue.
{
	my ($queuing, $owner) = map { Lease::Session->connect($node) } 1 .. 2;
	acquire($queuing, 'own', 'other');
	asleep($look, $queuing);
	acquire($owner, 'own', 'me', '2 h', '1 min');
	asleep($look, $owner);
	$keepers[5]->must('COMMIT');
	is($owner->got, token('own'), 'the owner has its token as soon as its row is free, past the queue');
	is($look->must(q{SELECT ttl FROM dist_lock WHERE name = 'own'}), '02:00:00', 'and the lease is extended');
	ok(!$queuing->done, 'the one in the queue still waits');
	$queuing->vanish;
}
$_->quit for @keepers;
$look->must(q{ROLLBACK PREPARED 'p'});

# The holder makes it shorter, or somebody does by hand.
for my $how (q{SELECT lease_renew('shorter', 'x', '1 us')}, q{UPDATE dist_lock SET expiry = now() WHERE name = 'shorter'})
{
	my $waiter = Lease::Session->connect($node);
	$look->must(q{SELECT lease_try('shorter', 'x', '1 h')});
	acquire($waiter, 'shorter', 'me', '1 h');
	asleep($look, $waiter);
	my $start = time;
	$look->must($how);
	like($waiter->got(10), qr/^\d+$/, "$how: granted");
	cmp_ok(time - $start, '<', $how =~ /renew/ ? 0.9 : 2.5, "$how: soon");
	$look->must(q{DELETE FROM dist_lock WHERE name = 'shorter'});
	$waiter->quit;
}

# At the expiry of a tenure whose holder died: who waits has it.
{
	my ($rounds, @late) = ($Lease::Queue::long ? 200 : 20);
	my $waiter = Lease::Session->connect($node);
	for (1 .. $rounds)
	{
		$look->must(q{SELECT lease_try('dies', 'x', '60 ms')});
		acquire($waiter, 'dies', 'me', '1 ms');
		$waiter->got;
		push @late, $waiter->answer->{seconds} * 1000 - 60;
		$look->must(q{DELETE FROM dist_lock WHERE name = 'dies'});
	}
	my ($median, $worst) = (Lease::Node::median(@late), (sort { $a <=> $b } @late)[-1]);
	cmp_ok($median, '<', 50, 'median of takeovers: within 50 ms of the expiry');
	cmp_ok($worst, '<', 1000, 'the worst: within a second');
	note(sprintf 'taken over %.1f ms after expiry (median), %.1f ms at worst, of %d', $median, $worst, $rounds);
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
