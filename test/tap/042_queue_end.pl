# What ends a wait ends it at once and leaves nothing behind, for the head of the
# queue, deep in it, and for a watcher; the session goes on where it survives.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Queue;
use Test::More;

my $node = Lease::Node::make('ending', max_connections => 40);
my $look = Lease::Session->connect($node);
my $token;

$look->must(q{SELECT lease_try('held', 'x', '1 h')});
$token = $look->must(q{SELECT lease_token('held', 'x')});

my %settings = (statement_timeout => { statement_timeout => '200ms' });
my %end = (
	cancel            => [ '57014', sub { $look->must("SELECT pg_cancel_backend($_[0]{pid})") } ],
	statement_timeout => [ '57014', sub { } ],
	terminate         => [ '57P01', sub { $look->must("SELECT pg_terminate_backend($_[0]{pid})") } ]);

for my $what (sort keys %end)
{
	my ($state, $do) = @{ $end{$what} };
	for my $place ('head', 'deep', 'watcher', 'head in a block', 'deep in a block', 'watcher in a block')
	{
		my $before = Lease::Session->connect($node);
		my $one = Lease::Session->connect($node, %{ $settings{$what} // {} });
		if ($place =~ /deep/)
		{
			acquire($before, 'held', 'before');
			queued($look, 1);
		}
		$one->must('BEGIN') if $place =~ /block/;
		if ($place =~ /watcher/) { $one->send("CALL lease_watch('held', $token)") }
		else                     { acquire($one, 'held', 'one') }
		asleep($look, $one) unless $what eq 'statement_timeout';
		my $start = time;
		$do->($one);
		is($one->got(10), $state, "$what, $place: SQLSTATE");
		cmp_ok(time - $start, '<', 1, "$what, $place: at once");
		if ($what ne 'terminate')
		{
			$one->must('SET statement_timeout = 0; SELECT 1') unless $place =~ /block/;
			is($one->query('ROLLBACK'), '', "$what, $place: the session goes on");
			is($one->query('SET statement_timeout = 0; SELECT 1'), '1', "$what, $place: with the next statement");
			acquire($one, 'other', 'one', '1 min', '1 s');
			like($one->got, qr/^\d+$/, "$what, $place: and takes another lease");
			is($one->must(q{SELECT lease_release('other', 'one')}), 't', "$what, $place: and releases it");
		}
		if ($place =~ /deep/)
		{
			$look->must("SELECT pg_terminate_backend($before->{pid})");
			$before->answer;
		}
		nothing_left($look, "$what, $place");
		is($look->must(q{SELECT owner, token = } . $token . q{ FROM dist_lock WHERE name = 'held'}), 'x|t', "$what, $place: the lease is as it was");
	}
}

# Again in the same session, outside and inside of a block, and in a savepoint.
{
	my $one = Lease::Session->connect($node);
	my $before = Lease::Session->connect($node);
	for my $deep (0, 1)
	{
		my $place = $deep ? 'deep' : 'head';
		if ($deep)
		{
			acquire($before, 'held', 'before');
			queued($look, 1);
		}
		my $pid = $one->must('SELECT pg_backend_pid()');
		for (1 .. 2)
		{
			acquire($one, 'held', 'one');
			asleep($look, $one);
			$look->must("SELECT pg_cancel_backend($pid)");
			is($one->got, '57014', "$place: cancelled");
			acquire($one, 'held', 'one', '1 min', '20 ms');
			is($one->got, '', "$place: waits again, until its time is up");
		}
		$one->must('BEGIN; SAVEPOINT s');
		for (1 .. 2)
		{
			acquire($one, 'held', 'one');
			asleep($look, $one);
			$look->must("SELECT pg_cancel_backend($pid)");
			is($one->got, '57014', "$place, in a savepoint: cancelled");
			$one->must('ROLLBACK TO s');
			is($look->must(q{SELECT count(*) FROM lease_waiters WHERE pid = } . $pid), '0', "$place: ROLLBACK TO leaves no place in the queue");
			acquire($one, 'held', 'one', '1 min', '20 ms');
			is($one->got, '', "$place, in a savepoint: waits again, until its time is up");
			is_deeply($one->answer->{notices}, [], "$place, in a savepoint: without a word");
			acquire($one, 'free', 'one', '1 min');
			like($one->got, qr/^\d+$/, "$place, in a savepoint: takes a free one");
			$one->must('ROLLBACK TO s');
		}
		$one->must('COMMIT');
		is($look->must(q{SELECT count(*) FROM dist_lock WHERE name = 'free'}), '0', "$place: what was rolled back is not there");
	}
	acquire($one, 'held', 'one');
	queued($look, 2);
	$look->must("SELECT pg_terminate_backend($before->{pid})");
	$look->must(q{SELECT lease_release('held', 'x')});
	like($one->got(10), qr/^\d+$/, 'and gets the lease in the end');
	$one->must(q{SELECT lease_release('held', 'one')});
	nothing_left($look, 'again and again');
}

# A cancel within two milliseconds of the release: granted and true, or 57014 and not granted.
{
	my $rounds = $Lease::Queue::long ? 2000 : 250;
	my ($one, $holder) = map { Lease::Session->connect($node) } 1 .. 2;
	my %count = (granted => 0, cancelled => 0);
	my @wrong;
	for my $round (1 .. $rounds)
	{
		$holder->must(q{SELECT 1/lease_try('race', 'x', '1 h')::int});
		acquire($one, 'race', 'one', '1 h');
		queued($look, 1);
		# Half of them by one that comes before the release.
		$holder->send(q{SELECT lease_release('race', 'x')}) if $round % 2;
		$look->send("SELECT pg_sleep(0.002 * random()), pg_cancel_backend($one->{pid})");
		$holder->send(q{SELECT pg_sleep(0.003 * random()), lease_release('race', 'x')}) unless $round % 2;
		$look->got;
		$holder->got;
		my $answer = $one->answer(10);
		my $got = $one->got;
		# A cancel that was too late must not hit the next statement.
		my $held = $holder->must(q{SELECT lease_token('race', 'one')});
		if    ($got eq '57014' && $held eq '')          { $count{cancelled}++ }
		elsif ($got =~ /^\d{6,}$/ && $got eq $held)     { $count{granted}++ }
		else                                            { push @wrong, "answered '$got', holds '$held'" }
		$holder->must(q{SELECT lease_release('race', 'one')}) if $held ne '';
		$one->query('SELECT 1');
		last if @wrong;
	}
	is("@wrong", '', "$rounds cancels beside a release: granted and true, or cancelled and not granted");
	cmp_ok($count{granted}, '>', 0, 'some were granted');
	cmp_ok($count{cancelled}, '>', 0, 'some were cancelled');
	note("$count{granted} granted, $count{cancelled} cancelled");
	nothing_left($look, 'after the race');
}

# The same with the end of the wait beside the release.
{
	my $rounds = $Lease::Queue::long ? 2000 : 100;
	my ($one, $holder) = map { Lease::Session->connect($node) } 1 .. 2;
	my (%count, @wrong);
	for my $round (1 .. $rounds)
	{
		$holder->must(q{SELECT 1/lease_try('race', 'x', '1 h')::int});
		acquire($one, 'race', 'one', '1 h', '10 ms');
		$holder->must(q{SELECT pg_sleep(0.008 + 0.004 * random()), lease_release('race', 'x')});
		my $got = $one->got(10);
		my $held = $holder->must(q{SELECT lease_token('race', 'one')});
		push @wrong, "answered '$got', holds '$held'" unless $got eq $held;
		$count{ $got eq '' ? 'late' : 'granted' }++;
		$holder->must(q{SELECT lease_release('race', 'one')}) if $held ne '';
	}
	is("@wrong", '', "$rounds waits that end beside a release: granted and true, or NULL and not granted");
	note(join ', ', map { "$count{$_} $_" } sort keys %count);
	nothing_left($look, 'after the second race');
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
