# First come, first served; nobody overtakes who queues, and who leaves the queue
# is not waited for.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use IO::Select;
use Lease::Node;
use Lease::Queue;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('order', max_connections => 60);
my $look = Lease::Session->connect($node);
my $holder = Lease::Session->connect($node);
my @waiters = map { Lease::Session->connect($node) } 1 .. 20;

# Twenty queue up one after the other; each holds it a while and releases. (More
# slowly than in service: the queue is looked at after each.)
{
	my $hold = $Lease::Queue::long ? 0.010 : 0;
	my $wrong = 0;
	for my $round (1 .. 50)
	{
		$holder->must(q{SELECT lease_try('order', 'holder', '1 h')});
		for my $i (0 .. $#waiters)
		{
			acquire($waiters[$i], 'order', "w$i", '1 h');
			queued($look, $i + 1);
		}
		$holder->must(q{SELECT lease_release('order', 'holder')});
		my (%token, @came);
		while (@came < @waiters)
		{
			my $ready = IO::Select->new(map { $waiters[$_]{socket} } grep { !exists $token{$_} } 0 .. $#waiters);
			$ready->can_read($Lease::Session::patience) or die 'nobody is granted';
			for my $i (grep { !exists $token{$_} && $waiters[$_]->done } 0 .. $#waiters)
			{
				push @came, $i;
				$token{$i} = $waiters[$i]->got;
				sleep $hold if $hold;
				$waiters[$i]->must(qq{SELECT lease_release('order', 'w$i')});
			}
		}
		my @by_token = sort { $token{$a} <=> $token{$b} } 0 .. $#waiters;
		$wrong++ unless "@came" eq "@{[0 .. $#waiters]}" && "@by_token" eq "@{[0 .. $#waiters]}";
	}
	is($wrong, 0, '50 runs of 50: 20 waiters were granted in the order they came');
	nothing_left($look, 'twenty waiters');
}

# The views show the queue.
{
	$holder->must(q{SELECT lease_try('seen', 'holder', '1 h')});
	for my $i (0 .. 4)
	{
		acquire($waiters[$i], 'seen', "w$i");
		queued($look, $i + 1);
	}
	is( $look->must(q{SELECT string_agg(pid::text, ' ' ORDER BY position) FROM lease_waiters WHERE name = 'seen' AND kind = 'acquire'}),
		join(' ', map { $_->{pid} } @waiters[ 0 .. 4 ]), 'lease_waiters: in the order they came');
	is($look->must(q{SELECT array_agg(position ORDER BY position), bool_and(since <= clock_timestamp() AND since > now() - interval '1 min'),
			array_agg(since ORDER BY position) = array_agg(since ORDER BY since) FROM lease_waiters WHERE name = 'seen'}),
		'{1,2,3,4,5}|t|t', 'positions, and since when');
	is($look->must(q{SELECT waiters, state FROM leases WHERE name = 'seen'}), '5|held', 'leases counts them');
	is($look->must(q{SELECT DISTINCT wait_event_type FROM pg_stat_activity WHERE pid = } . $waiters[0]{pid}), 'Extension', 'the head sleeps in an event of its own');

	# The holder goes on as before, and its own try is no newcomer's.
	is($holder->must(q{SELECT lease_try('seen', 'holder', '2 h'), lease_renew('seen', 'holder', '3 h')}), 't|t', 'the holder extends beside waiters');
	is($holder->must(q{SELECT ttl FROM dist_lock WHERE name = 'seen'}), '03:00:00', 'it is extended');
	acquire($holder, 'seen', 'holder', '4 h');
	is($holder->got(5), $look->must(q{SELECT token FROM dist_lock WHERE name = 'seen'}), 'its own acquire gives its token, past the queue');
	is($holder->must(q{SELECT ttl FROM dist_lock WHERE name = 'seen'}), '04:00:00', 'and extends');
	is($look->must(q{SELECT lease_try('seen', 'other', '1 h'), lease_try_any('{seen}', 'other', '1 h')}), 'f|', 'another try is false');

	# The first of them killed, the second cancelled: the third is next, at once.
	$look->must("SELECT pg_terminate_backend($waiters[0]{pid}), pg_cancel_backend($waiters[1]{pid})");
	is($waiters[0]->got, '57P01', 'the first was killed');
	is($waiters[1]->got, '57014', 'the second was cancelled');
	is($look->must(q{SELECT lease_try('seen', 'other', '1 h')}), 'f', 'still nobody overtakes');
	my $start = time;
	$holder->must(q{SELECT lease_release('seen', 'holder')});
	like($waiters[2]->got(10), qr/^\d+$/, 'the third has it');
	cmp_ok(time - $start, '<', 0.9, 'at once');
	is($look->must(q{SELECT owner FROM dist_lock WHERE name = 'seen'}), 'w2', 'it is the holder');
	ok(!$waiters[3]->done, 'the fourth waits');
	$look->must("SELECT pg_cancel_backend(pid) FROM lease_waiters WHERE kind = 'acquire'");
	is($waiters[$_]->got, '57014', 'cancelled') for 3, 4;
	$waiters[0] = Lease::Session->connect($node);
	nothing_left($look, 'five waiters');
}

# TTL is counted from the grant, not from when it queued up.
{
	my $queuing = $Lease::Queue::long ? 3 : 1.2;
	$holder->must(q{SELECT lease_try('ttl', 'holder', '1 h')});
	acquire($waiters[0], 'ttl', 'w', '1 s');
	asleep($look, $waiters[0]);
	sleep $queuing;
	$holder->must(q{SELECT lease_release('ttl', 'holder')});
	my $token = $waiters[0]->got;
	my ($ttl, $left) = split /\|/, $waiters[0]->must(q{SELECT expiry - acquired_at, extract(epoch FROM expiry - clock_timestamp()) FROM dist_lock WHERE name = 'ttl'});
	is($ttl, '00:00:01', 'a ttl of a second after more than that in the queue');
	cmp_ok($left, '>', 0.5, "all of it is left");
	cmp_ok($left, '<=', 1, "and no more");
	note("$left s of 1 s are left");
}

# A thousand waits that time out leave nothing that a later one would wait for.
{
	my $rounds = 50;    # of 20 sessions
	$holder->must(q{SELECT lease_try('thousand', 'holder', '1 h')});
	my $granted = 0;
	my %round = map { $_ => 1 } 0 .. $#waiters;
	my $start = time;
	acquire($waiters[$_], 'thousand', "w$_", '1 h', '50 ms') for keys %round;
	while (%round)
	{
		IO::Select->new(map { $waiters[$_]{socket} } keys %round)->can_read($Lease::Session::patience) or die 'no answer';
		for my $i (grep { $waiters[$_]->done } keys %round)
		{
			$granted++ if $waiters[$i]->got ne '';
			if ($round{$i}++ < $rounds) { acquire($waiters[$i], 'thousand', "w$i", '1 h', '50 ms') }
			else { delete $round{$i} }
		}
	}
	is($granted, 0, 'a thousand waits of 50 ms: none was granted');
	note(sprintf 'a thousand waits of 50 ms by 20 sessions: %.1f s', time - $start);
	nothing_left($look, 'a thousand waits');
	$holder->must(q{SELECT lease_release('thousand', 'holder')});
	acquire($waiters[0], 'thousand', 'fresh', '1 h');
	like($waiters[0]->got, qr/^\d+$/, 'a fresh one on the free lease has it');
	cmp_ok($waiters[0]->answer->{seconds}, '<', 0.5, 'at once');
	is($look->must(q{SELECT lease_token('thousand', 'fresh') IS NOT NULL}), 't', 'and holds it');
}

# Tries at full speed beside ten waiters: they get it when nobody queues, and
# never before who does.
{
	my $thief = Lease::Node::pgbench_start($node, '-c 2 -M prepared', q{SELECT lease_try('full', 'thief', '2 ms');});
	my ($wrong, $rounds) = (0, $Lease::Queue::long ? 100 : 10);
	for (1 .. $rounds)
	{
		acquire($holder, 'full', 'holder', '1 h');
		my $first = $holder->got(20);
		acquire($waiters[$_], 'full', "w$_", '1 h') for 0 .. 9;
		queued($look, 10);
		$holder->must(q{SELECT lease_release('full', 'holder')});
		my $left = 10;
		my @token;
		while ($left > 0)
		{
			for my $i (grep { !$token[$_] && $waiters[$_]->done(0.001) } 0 .. 9)
			{
				$token[$i] = $waiters[$i]->got;
				$left--;
				$waiters[$i]->must("SELECT lease_release('full', 'w$i')");
			}
		}
		# A grant to the thief would have drawn a token.
		$wrong++ unless join(' ', sort { $a <=> $b } @token) eq join(' ', map { $first + $_ } 1 .. 10);
		sleep 0.01;
	}
	is($wrong, 0, "tries at full speed never overtook, in $rounds rounds of ten waiters");
	cmp_ok($look->must(q{SELECT grants FROM dist_lock WHERE name = 'full'}), '>', 11 * $rounds, 'they had it when nobody queued');
	Lease::Node::pgbench_stop($thief, 'and went on all the time');
}

# The same name in another database is another lease.
{
	$look->must('CREATE DATABASE other');
	my $other = Lease::Session->connect($node, database => 'other');
	$other->must('CREATE EXTENSION lease');
	$holder->must(q{SELECT lease_try('both', 'holder', '1 h')});
	acquire($waiters[0], 'both', 'w');
	asleep($look, $waiters[0]);
	acquire($other, 'both', 'w', '1 h');
	like($other->got(5), qr/^\d+$/, 'another database: nobody waits there');
	$other->must(q{SELECT lease_release('both', 'w')});
	ok(!$waiters[0]->done(0.1), 'and a release there wakes nobody here');
	$holder->must(q{SELECT lease_release('both', 'holder')});
	like($waiters[0]->got, qr/^\d+$/, 'one here does');
	$other->quit;
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
