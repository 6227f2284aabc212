# A server that stops, in whatever way, does not wait for who waits, and comes
# back with nothing left over. DROP EXTENSION does not hang. A standby refuses.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Queue;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('stopping', streaming => 1, max_connections => 40, hot_standby => 'on', restart_after_crash => 'on');
my $look = Lease::Session->connect($node);
my $token;

# Five waiters and two watchers, one of each in a block.
sub sleepers
{
	my @all = map { Lease::Session->connect($node) } 1 .. 7;
	$look->must(q{SELECT lease_try('held', 'x', '1 h')});
	$token = $look->must(q{SELECT lease_token('held', 'x')});
	$all[$_]->must('BEGIN') for 1, 6;
	for my $i (0 .. 4)
	{
		acquire($all[$i], 'held', "w$i");
		queued($look, $i + 1);
	}
	$_->send("CALL lease_watch('held', $token)") for @all[ 5, 6 ];
	asleep($look, @all);
	return @all;
}

sub as_before
{
	my ($test) = @_;
	$look = Lease::Session->connect($node);
	is($look->must(q{SELECT owner, token FROM dist_lock WHERE name = 'held'}), "x|$token", "$test: the lease is held as before");
	nothing_left($look, $test);
	is($look->must('SELECT count(*) FROM lease_waiters'), '0', "$test: nobody waits");
	acquire($look, 'fresh', 'me', '1 ms', '10 s');
	like($look->got, qr/^\d+$/, "$test: a fresh one is granted");
	return;
}

# DROP EXTENSION.
{
	my @all = sleepers();
	my $start = time;
	is($look->query(q{SET lock_timeout = '20s'; DROP EXTENSION lease}), '', 'DROP EXTENSION does not hang');
	cmp_ok(time - $start, '<', 5, 'nor wait');
	for my $one (@all)
	{
		my $answer = $one->answer(20);
		is("$answer->{state} $answer->{message}", '42P01 relation "dist_lock" of extension "lease" does not exist', 'a clear error');
	}
	cmp_ok(time - $start, '<', 10, 'they all end soon');
	is($all[0]->query('SELECT 1'), '1', 'the session goes on');
	$look->must('CREATE EXTENSION lease');
	acquire($all[0], 'fresh', 'me');
	like($all[0]->got, qr/^\d+$/, 'and uses the new one');
	$_->query('ROLLBACK') for @all;
	nothing_left($look, 'DROP EXTENSION');
	$_->quit for @all;
}

# pg_ctl stop, fast and immediate.
for my $mode ('fast', 'immediate')
{
	my @all = sleepers();
	my $start = time;
	$node->stop($mode);
	cmp_ok(time - $start, '<', 10, "$mode stop: at once");
	my %state = map { my $answer = $_->answer(10); ($answer->{state} => 1) } @all;
	# The last word of a server that is stopped at once may be lost.
	delete $state{''} if $mode eq 'immediate';
	is_deeply([ keys %state ], [ $mode eq 'fast' ? '57P01' : '57P02' ], "$mode stop: the reason is told") if %state || $mode eq 'fast';
	$node->start;
	as_before("$mode stop");
}

# kill -9 of the postmaster: nobody stays behind.
{
	my @all = sleepers();
	my @pids = map { $_->{pid} } @all;
	my $start = time;
	$node->kill9;
	$_->answer(20) for @all;
	my $gone = 0;
	for (1 .. 500)
	{
		$gone = !kill 0, @pids;
		last if $gone;
		sleep 0.02;
	}
	ok($gone, 'postmaster killed: all who slept have gone');
	cmp_ok(time - $start, '<', 5, 'at once');
	$node->start;
	as_before('postmaster killed');
}

# A waiter's process killed: the server restarts, the lease is as it was.
{
	my @all = sleepers();
	kill KILL => $all[0]{pid};
	$_->answer(20) for @all;
	$node->poll_query_until('postgres', 'SELECT NOT pg_is_in_recovery()') or die 'no restart';
	as_before('a waiter killed');
}

# Hot standby.
{
	$node->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($node, 'base', has_streaming => 1);
	$standby->start;
	my $there = Lease::Session->connect($standby);
	for my $call (
		q{CALL lease_acquire('held', 'me', '1 min')},
		q{CALL lease_acquire('held', 'me', '1 min', '0')},
		q{CALL lease_acquire('free', 'me', '1 min')},
		q{CALL lease_watch('held', NULL)},
		qq{CALL lease_watch('held', $token, '1 s')})
	{
		is($there->query($call), '25006', "on a standby: $call");
	}
	is($there->query('SELECT count(*) FROM lease_waiters'), '0', 'the view works there');
	$standby->stop;
}

my @hurt = grep { /PANIC:|TRAP:/ } split /\n/, slurp_file($node->logfile);
is("@hurt", '', 'no server process came to harm by itself');
$node->stop;
done_testing();
