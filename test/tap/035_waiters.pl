# The view lease_waiters beside a queue, a watcher, a fence, a break that waits and
# a prepared transaction: who, what, in which order and since when.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Session;
use Test::More;

my $node = Lease::Node::make('waiters', max_prepared_transactions => 5);
sub session { return Lease::Session->connect($node, client_min_messages => 'error', @_) }

my $look = session();
my $token = $look->must(q{SELECT lease_token('k', 'a') WHERE lease_try('k', 'a', '1 h')});
my @waiters;
for my $i (0 .. 4)
{
	push @waiters, session();
	$waiters[$i]->send(qq{CALL lease_acquire('k', 'w$i', '1 h', '60 s')});
	Lease::Session::asleep($waiters[$i]) or die 'does not wait';
}
my $watcher = session();
$watcher->send(qq{CALL lease_watch('k', $token, '60 s')});
Lease::Session::asleep($watcher) or die 'does not watch';
my $nobody = session();
$nobody->send(q{BEGIN; CALL lease_watch('no such lease', NULL, '60 s')});
Lease::Session::asleep($nobody) or die 'does not watch';

my $shown = q{SELECT pid, kind, coalesce(position::text, ''), since <= clock_timestamp() FROM lease_waiters WHERE name = 'k' ORDER BY kind, position, pid};
my @expected = ((map { "$waiters[$_]{pid}|acquire|" . ($_ + 1) . '|t' } 0 .. 4), "$watcher->{pid}|watch||t");
is($look->must($shown), join("\n", @expected), 'the queue in its order, and a watcher');
is($look->must(q{SELECT waiters FROM leases WHERE name = 'k'}), 5, 'the view of leases counts the queue');
is($look->must(qq{SELECT name, kind FROM lease_waiters WHERE pid = $nobody->{pid}}), '|watch', 'a lease that has no row has no name');
is($look->must(q{SELECT count(*) FROM lease_waiters WHERE kind = 'acquire' AND since > (SELECT min(since) FROM lease_waiters WHERE kind = 'acquire')}),
	4, 'those behind the head came later');

# Fences: of a session, one that waits, of a prepared transaction; and a break that waits.
my ($holder, $breaker, $late) = (session(), session(), session());
$holder->must("BEGIN; SELECT lease_fence('k', $token)");
$look->must("BEGIN; SELECT lease_fence('k', $token); PREPARE TRANSACTION 'p'");
$breaker->send(q{SELECT lease_break('k')});
Lease::Session::asleep($breaker) or die 'does not wait';
$late->send("SELECT lease_fence('k', $token)");
Lease::Session::asleep($late) or die 'does not wait';
is($look->must(q{SELECT coalesce(pid, 0), kind FROM lease_waiters WHERE name = 'k' AND kind IN ('fence', 'busy') ORDER BY 2, 1}),
	join("\n", "$breaker->{pid}|busy", '0|fence', map { "$_|fence" } sort { $a <=> $b } $holder->{pid}, $late->{pid}),
	'fences, and a break that waits for them');
# Others see as much, but not since when a transaction is open.
$look->must('CREATE ROLE regress_lease_peasant; SET ROLE regress_lease_peasant');
is($look->must(qq{SELECT kind, since IS NULL FROM lease_waiters WHERE pid IN ($holder->{pid}, $watcher->{pid}) ORDER BY 1}), "fence|t\nwatch|t",
	'since when a transaction of another role is open is not shown')
  or diag($look->must('SELECT * FROM lease_waiters'));
$look->must('RESET ROLE');

# All is over: the break is first, the late fence refused, the first of the queue has it.
$holder->must('COMMIT');
ok(!$breaker->done(0.2), 'the break still waits for the prepared transaction');
$look->must("ROLLBACK PREPARED 'p'");
is($breaker->got, 't', 'then it is done');
is($late->got, 'LEASE', 'the fence behind it is refused');
cmp_ok($waiters[0]->got, '>', $token, 'the head of the queue has the lease');
my $seen = $watcher->got;
ok($seen eq '' || $seen > $token, 'the watcher saw it');
is($look->must($shown), join("\n", map { "$waiters[$_]{pid}|acquire|$_|t" } 1 .. 4), 'everybody has come one place closer');
$_->vanish for @waiters[ 1 .. 4 ];
$look->must(q{SELECT pg_terminate_backend(pid, 10000) FROM lease_waiters WHERE kind = 'acquire'});
$nobody->quit;
$node->poll_query_until('postgres', 'SELECT count(*) = 0 FROM lease_waiters') or die;
pass('and then there is nobody');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
