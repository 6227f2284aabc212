# What a pooler does to leases: nothing, as long as they are not bound to a session. Three clients
# share one server connection, DISCARD ALL comes between them, one vanishes while it waits.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../tap/lib";

use Lease::Clients;
use Lease::Node;
use Lease::Pooler;
use Lease::Queue;
use Lease::Session;
use Test::More;

plan skip_all => '!!! pgbouncer CANNOT BE HAD HERE' if !Lease::Clients::works('pgbouncer', '--version');

my $node = Lease::Node::make('pooled');
my $pooler = Lease::Pooler->start($node, session => 1, transaction => 1);
my $look = Lease::Session->connect($node);

sub client { return Lease::Session->connect($pooler, database => $_[0]) }

# Three clients, one server connection
{
	my @clients = map { client('transaction') } 1 .. 3;
	my %pids = map { $_->must('SELECT pg_backend_pid()') => 1 } @clients;
	is(keys %pids, 1, 'transaction mode: three clients share one server connection');
	$look->must('CREATE TABLE work (client int, token bigint)');
	my (@tokens, %owner);
	for my $i (1 .. 3)
	{
		is($clients[ $i - 1 ]->must("SELECT lease_try('lease-$i', 'client-$i', '1 min')"), 't', "client $i takes a lease");
		$tokens[$i] = $clients[ $i - 1 ]->must("SELECT lease_token('lease-$i', 'client-$i')");
		$clients[ $_ - 1 ]->must('DISCARD ALL') for 1 .. 3;
	}
	for my $i (1 .. 3)
	{
		my $client = $clients[ $i - 1 ];
		my $next = $i % 3 + 1;
		is($client->must("SELECT lease_try('lease-$next', 'client-$i', '1 min'), lease_token('lease-$next', 'client-$i') IS NULL"),
			'f|t', "after DISCARD ALL: client $i does not get another's");
		is($client->must("SELECT lease_renew('lease-$i', 'client-$i', '1 min', $tokens[$i])"), 't', 'it renews its own');
		$client->must("BEGIN; SELECT lease_fence('lease-$i', $tokens[$i]); INSERT INTO work VALUES ($i, $tokens[$i]); COMMIT");
		is($client->query("SELECT lease_fence('lease-$i', $tokens[$next])"), 'LEASE', "another's token does not pass its fence");
	}
	is($look->must('SELECT string_agg(client::text, \' \' ORDER BY client) FROM work'), '1 2 3', 'all three wrote behind their fences');
	is($look->must('SELECT count(*) FROM pg_locks l WHERE ' . $Lease::Queue::ours), 0, 'no lock stays on the server connection');
	for my $i (1 .. 3)
	{
		is($clients[ $i % 3 ]->must("SELECT lease_release('lease-$i', 'client-$i')"), 't', "the owner counts, not the connection: $i is released");
	}
	$_->quit for @clients;
}

# One that waits its turn vanishes: the pooler's server connection does not get the lease for it.
{
	my $last = client('transaction');
	$look->must("SELECT 1/lease_try('turn', 'holder', '1 min')::int");
	my $gone = client('transaction');
	acquire($gone, 'turn', 'gone');
	queued($look, 1);
	$gone->vanish;
	$last->send("SELECT 'through'");
	is($last->got(10), 'through', 'behind one that vanished: the next client has a connection');
	# So the pooler has noticed, and closed the one before. Until then nobody can tell the server.
	$look->must("SELECT 1/lease_release('turn', 'holder')::int");
	ok(eventually($look, q{SELECT count(*) = 0 FROM lease_waiters}, 10), 'nobody waits any more');
	is($look->must(q{SELECT state FROM leases WHERE name = 'turn'}), 'free', 'and the lease is free');
	is($last->must(q{SELECT lease_try('turn', 'next', '1 min')}), 't', 'for the next one');
	$last->quit;
}

# As many waiters as the pool has connections: the holder renews behind them, too late. If they wait
# through another pool, it renews.
{
	my $holder = client('transaction');
	for my $pool ('transaction', 'session')
	{
		my $waiter = client($pool);
		$holder->must("SELECT 1/lease_try('$pool pool', 'holder', '2 s')::int");
		acquire($waiter, "$pool pool", 'waiter');
		queued($look, 1);
		$holder->send("SELECT lease_renew('$pool pool', 'holder', '1 min')");
		is($holder->got, $pool eq 'session' ? 't' : 'f',
			"the holder's renewal, where the only connection of the $pool pool waits: " . ($pool eq 'session' ? 'in time' : 'too late'));
		$look->must("SELECT lease_break('$pool pool')") if $pool eq 'session';
		like($waiter->got, qr/^\d+$/, 'then it is the turn of who waited');
		$waiter->quit;
	}
	$holder->quit;
}

# Session mode: DISCARD ALL between clients ends what was attached, and that only.
{
	my $first = client('session');
	my $pid = $first->must('SELECT pg_backend_pid()');
	$first->must("SELECT 1/lease_try('$_', 'first', '1 min')::int") for 'plain', 'attached';
	$first->must("SELECT 1/lease_attach('attached', 'first')::int");
	$first->quit;
	my $second = client('session');
	is($second->must('SELECT pg_backend_pid()'), $pid, 'session mode: the next client has the same server connection');
	ok(eventually($look, q{SELECT state = 'free' AND last_end = 'released' FROM leases WHERE name = 'attached'}, 10),
		'what the one before had attached is released');
	is($second->must("SELECT lease_renew('plain', 'first', '1 min')"), 't', 'what it only held is held');
	is($second->must("SELECT lease_try('attached', 'second', '1 min'), lease_attach('attached', 'second')"), 't|t', 'the next client attaches it');
	is($second->must("SELECT session_pid = $pid FROM leases WHERE name = 'attached'"), 't', 'to the same server connection');
	$second->quit;
	ok(eventually($look, q{SELECT state = 'free' FROM leases WHERE name = 'attached'}, 10), 'until it goes, too');
}

$pooler->stop;
Lease::Node::unhurt($node);
$node->stop;
done_testing();
