# A waiter whose client is gone never gets the lease, and does not hold those up
# who queue behind it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Queue;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('client', max_connections => 50);
my $look = Lease::Session->connect($node);

is($look->must('SHOW client_connection_check_interval'),
	'0', 'by default the server does not look after clients');

sub owner { return $look->must("SELECT coalesce(owner, '-') FROM dist_lock WHERE name = '$_[0]'") }

# Two psql processes, one the head and one deep in the queue, are killed with -9.
for my $round (1 .. 3)
{
	$look->must(q{SELECT lease_try('ghost', 'x', '1 h')});
	my @ghosts;
	for my $i (1 .. 2)
	{
		push @ghosts,
		  IPC::Run::start([ 'psql', '-Xq', '-d', $node->connstr('postgres'), '-c', "CALL lease_acquire('ghost', 'ghost $i', '1 h')" ],
			'<', \undef, '>', \my $out, '2>', \my $err);
		queued($look, $i);
	}
	my $living = Lease::Session->connect($node);
	acquire($living, 'ghost', 'living', '1 h');
	queued($look, 3);
	$_->signal('KILL') for @ghosts;
	$_->finish for @ghosts;
	$look->must(q{SELECT lease_release('ghost', 'x')});
	my $answer = $living->answer(10);
	is(owner('ghost'), 'living', "round $round: the living one has it");
	cmp_ok(time - $look->{waits}, '<', 1, "round $round: at once");
	is($look->must(q{SELECT grants FROM dist_lock WHERE name = 'ghost'}),
		2 * $round, "round $round: no ghost had it in between");
	$look->must(q{SELECT lease_release('ghost', 'living')});
	$living->quit;
	nothing_left($look, "round $round");
}
like(slurp_file($node->logfile), qr/FATAL:  connection to client lost/, 'the log says what became of them');

# The client goes while its waiter sees a change that has not committed: an open
# release, an open grant, an open fence on an expired lease, a row lock.
{
	my $busy = Lease::Session->connect($node);
	my %case = (
		'open release' => [ q{SELECT lease_try('late', 'x', '1 h')}, q{SELECT lease_release('late', 'x')}, 'COMMIT' ],
		'open grant' => [ 'SELECT 1', q{SELECT lease_try('late', 'x', '1 h')}, 'ROLLBACK' ],
		'open fence' => [ q{SELECT lease_try('late', 'x', '300 ms')}, q{SELECT lease_fence('late', lease_token('late', 'x')), pg_sleep(0.4)}, 'COMMIT' ],
		'row lock' => [ q{INSERT INTO dist_lock(name, token) VALUES ('late', 1)}, q{SELECT FROM dist_lock WHERE name = 'late' FOR UPDATE}, 'COMMIT' ]);
	for my $what (sort keys %case)
	{
		my ($before, $open, $end) = @{ $case{$what} };
		my ($ghost, $living) = map { Lease::Session->connect($node) } 1 .. 2;
		$look->must(q{DELETE FROM dist_lock});
		$look->must($before);
		$busy->must("BEGIN; $open");
		acquire($ghost, 'late', 'ghost');
		ok(eventually($look, "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $ghost->{pid}"),
			"$what: waits for its end");
		acquire($living, 'late', 'living');
		queued($look, 2);
		$ghost->vanish;
		$busy->must($end);
		$living->answer(10);
		is(owner('late'), 'living', "$what: the lease goes to who lives");
		is($look->must(q{SELECT count(*) FROM dist_lock WHERE last_owner = 'ghost'}), '0', "$what: and never went to the ghost");
		$look->must(q{SELECT lease_release('late', 'living')});
		$living->quit;
	}
	nothing_left($look, 'after changes that were open');
}

# Ghosts that watch go when they wake, and with client_connection_check_interval
# all go at once: deep in the queue, too.
{
	$look->must(q{SELECT lease_try('held', 'x', '1 h')});
	my $token = $look->must(q{SELECT lease_token('held', 'x')});
	my @watchers = map { Lease::Session->connect($node) } 1 .. 3;
	$_->send("CALL lease_watch('held', $token)") for @watchers;
	asleep($look, @watchers);
	$_->vanish for @watchers;
	nothing_left($look, 'watchers without a client');

	my @waiters = map { Lease::Session->connect($node, client_connection_check_interval => '50ms') } 1 .. 3;
	for my $i (0 .. 2)
	{
		acquire($waiters[$i], 'held', "w$i");
		queued($look, $i + 1);
	}
	my $last = Lease::Session->connect($node);
	acquire($last, 'held', 'last');
	queued($look, 4);
	$_->vanish for @waiters;
	my $start = time;
	queued($look, 1);
	cmp_ok(time - $start, '<', 2, 'with client_connection_check_interval they leave at once');
	$look->must(q{SELECT lease_release('held', 'x')});
	$last->answer(10);
	is(owner('held'), 'last', 'the living one has it');
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
