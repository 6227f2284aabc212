# lease_watch comes back as soon as the live token is another than the known one.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Queue;
use Test::More;

my $node = Lease::Node::make('watch', max_connections => 120);
my $look = Lease::Session->connect($node);
my $watcher = Lease::Session->connect($node);

sub token { return $look->must("SELECT coalesce(max(token)::text, '') FROM dist_lock WHERE name = '$_[0]' AND owner IS NOT NULL AND expiry > clock_timestamp()") }

sub watch
{
	my ($session, $name, $known, $wait) = @_;
	$known = 'NULL' if $known eq '';
	$wait = defined $wait ? "'$wait'" : 'NULL';
	return $session->send("CALL lease_watch('$name', $known, $wait)");
}

# The watcher sleeps, something happens, it is back with the new token.
sub comes_back
{
	my ($test, $name, $change, $seconds) = @_;
	my $known = token($name);

	watch($watcher, $name, $known);
	asleep($look, $watcher);
	my $start = time;
	$look->must($change) if $change;
	my $got = $watcher->got(20);
	is($got, token($name), "$test: the live token");
	isnt($got, $known, "$test: another than it knew");
	cmp_ok(time - $start, '<', $seconds // 0.9, "$test: at once");
	nothing_left($look, $test);
	return;
}

comes_back('first grant', 'l', q{SELECT lease_try('l', 'a', '1 h')});
comes_back('release', 'l', q{SELECT lease_release('l', 'a')});
comes_back('grant', 'l', q{SELECT lease_try('l', 'a', '1 h')});
comes_back('break', 'l', q{SELECT lease_break('l')});
comes_back('grant after a break', 'l', q{SELECT lease_try('l', 'a', '1 h')});
comes_back('release and grant at once', 'l', q{SELECT lease_release('l', 'a'), lease_try('l', 'b', '1 h')});
comes_back('shorter', 'l', q{SELECT lease_renew('l', 'b', '1 us')});
comes_back('grant', 'l', q{SELECT lease_try('l', 'a', '700 ms')});
comes_back('expiry', 'l', undef, 1.9);

# A takeover while it sleeps: by who waits for the expiry, which both see at once.
{
	my $heir = Lease::Session->connect($node);
	$look->must(q{SELECT lease_try('heir', 'a', '700 ms')});
	my $known = token('heir');
	acquire($heir, 'heir', 'b', '1 h');
	watch($watcher, 'heir', $known);
	$heir->answer(10);
	my $got = $watcher->got(10);
	like($got, $got eq '' ? qr// : qr/^${\token('heir')}$/, 'takeover: nobody, or the heir');
	isnt($got, $known, 'takeover: another than it knew');
	watch($watcher, 'heir', '');
	is($watcher->got(10), token('heir'), 'takeover: the heir, at the latest when it watches again');
}

# At once when it is another already; the known one when the time is up.
{
	$look->must(q{SELECT lease_try('now', 'a', '1 h')});
	my $live = token('now');
	for my $known ('', '0', '-1', $live - 1, $live + 1)
	{
		watch($watcher, 'now', $known);
		is($watcher->got(10), $live, "known '$known': at once");
		cmp_ok($watcher->answer->{seconds}, '<', 0.9, "known '$known': at once");
		watch($watcher, 'now', $known, '0');
		is($watcher->got(10), $live, "known '$known', wait 0: the live one");
	}
	watch($watcher, 'now', $live, '300 ms');
	is($watcher->got(10), $live, 'the known one when the time is up');
	cmp_ok($watcher->answer->{seconds}, '>=', 0.29, 'not earlier');
	cmp_ok($watcher->answer->{seconds}, '<', 1.3, 'not much later');
	watch($watcher, 'now', $live, '0');
	is($watcher->got(10), $live, 'wait 0: the known one');
	watch($watcher, 'nobody', '', '50 ms');
	is($watcher->got(10), '', 'nobody holds it, and the time is up');
	watch($watcher, 'nobody', 5);
	is($watcher->got(10), '', 'nobody holds it, and that is news');
}

# What has not committed has not happened, and keeps nobody from seeing what has.
{
	my $busy = Lease::Session->connect($node);
	$look->must(q{SELECT lease_try('open', 'a', '1 h')});
	my $live = token('open');
	$busy->must(q{BEGIN; SELECT lease_release('open', 'a'), lease_try('open', 'b', '1 h')});
	watch($watcher, 'open', '', '1 min');
	is($watcher->got(10), $live, 'beside an open release: what is live is news at once');
	watch($watcher, 'open', '', '0');
	is($watcher->got(10), $live, 'and with wait 0');
	watch($watcher, 'open', $live, '300 ms');
	is($watcher->got(10), $live, 'beside an open release: nothing new, and the time is up');
	cmp_ok($watcher->answer->{seconds}, '<', 1.3, 'not much later');
	watch($watcher, 'open', $live);
	asleep($look, $watcher);
	ok(!$watcher->done(0.1), 'waits for its end');
	my $start = time;
	$busy->must('COMMIT');
	is($watcher->got(10), token('open'), 'and sees it then');
	cmp_ok(time - $start, '<', 0.9, 'at once');

	$live = token('open');
	$busy->must(q{BEGIN; SELECT lease_release('open', 'b')});
	watch($watcher, 'open', $live);
	asleep($look, $watcher);
	$busy->must('ROLLBACK');
	ok(!$watcher->done(0.3), 'a release that rolls back is no news');
	$look->must(q{SELECT lease_release('open', 'b')});
	is($watcher->got(10), '', 'one that commits is');

	$look->must(q{SELECT lease_try('open', 'c', '500 ms')});
	$live = token('open');
	$busy->must(q{BEGIN; SELECT lease_release('open', 'c')});
	watch($watcher, 'open', $live, '20 s');
	is($watcher->got(30), '', 'it expires beside an open release');
	cmp_ok($watcher->answer->{seconds}, '<', 3, 'and that is seen at once');
	$busy->must('ROLLBACK');

	$look->must(q{SELECT lease_try('open', 'd', '1 h')});
	$live = token('open');
	$busy->must(q{BEGIN; SAVEPOINT s; SELECT lease_release('open', 'd')});
	watch($watcher, 'open', $live);
	asleep($look, $watcher);
	$busy->must('ROLLBACK TO s');
	$look->must(q{SELECT lease_release('open', 'd')});
	is($watcher->got(10), '', 'a change is seen though who rolled one back to a savepoint is still open');
	cmp_ok($watcher->answer->{seconds}, '<', 3, 'soon');
	$busy->must('ROLLBACK');
	$busy->quit;
}

# A watcher keeps nobody from the lease, a read-only session may watch, and a
# REPEATABLE READ block sees the present.
{
	my $reader = Lease::Session->connect($node, default_transaction_read_only => 'on', default_transaction_isolation => 'repeatable read');
	$look->must(q{SELECT lease_try('read', 'a', '1 h')});
	my $live = token('read');
	$reader->must('BEGIN');
	is($reader->query(q{SELECT count(*) FROM dist_lock WHERE name = 'read'}), '1', 'a snapshot');
	watch($reader, 'read', $live);
	asleep($look, $reader);
	is($look->must(q{SELECT lease_release('read', 'a'), lease_try('read', 'b', '1 h')}), 't|t', 'watched, and free at once');
	is($reader->got(10), token('read'), 'a read-only REPEATABLE READ block sees what came after its snapshot');
	is($reader->must('COMMIT'), '', 'and goes on');
	$reader->quit;
}

# A hundred of them.
{
	my @many = map { Lease::Session->connect($node) } 1 .. 100;
	$look->must(q{SELECT lease_try('many', 'a', '1 h')});
	my $known = token('many');
	watch($_, 'many', $known) for @many;
	asleep($look, @many);
	is($look->must(q{SELECT count(*) FROM lease_waiters WHERE name = 'many' AND kind = 'watch' AND position IS NULL AND since <= now()}),
		scalar @many, 'the view shows all who watch');
	is($look->must(q{SELECT waiters FROM leases WHERE name = 'many'}), '0', 'none of them waits for the lease');
	my $start = time;
	is($look->must(q{SELECT lease_release('many', 'a'), lease_try('many', 'b', '1 h')}), 't|t', 'the first try is true');
	my $new = token('many');
	is(scalar(grep { $_->got(20) eq $new } @many), scalar @many, 'all ' . @many . ' watchers are back with the new token');
	cmp_ok(time - $start, '<', 5, 'soon');
	nothing_left($look, 'a hundred watchers');

	# 60 of them watch on while the lease changes hands as fast as it can.
	my @watching = @many[ 0 .. 59 ];
	my (%known, $back);
	watch($_, 'many', $known{$_} = $new) for @watching;
	my $script = q{SELECT 1/lease_release('many', 'b')::int;
SELECT 1/lease_try('many', 'b', '1 h')::int;
};
	local $ENV{PGOPTIONS} = '-c client_min_messages=error';
	my $path = $node->basedir . '/rounds.sql';
	PostgreSQL::Test::Utils::append_to_file($path, $script);
	my $bench = IPC::Run::start([ 'pgbench', '-n', '-t', $Lease::Queue::long ? 2000 : 200, '-f', $path, $node->connstr('postgres') ],
		'<', \undef, '>', \my $out, '2>', \my $err);
	while ($bench->pumpable)
	{
		$bench->pump_nb;
		for my $one (grep { $_->done } @watching)
		{
			$back++;
			my $got = $one->got;
			die "it came back with what it knew: $got" if $got eq $known{$one};
			watch($one, 'many', $known{$one} = $got);
		}
		sleep 0.001;
	}
	ok($bench->finish, '60 watchers: every release and every first try is true') or diag("$out$err");
	cmp_ok($back // 0, '>=', 60, 'and the watchers saw it change hands');
	note("they came back $back times");
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
