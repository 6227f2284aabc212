# When a session ends, in whatever way, its leases are released at once and whoever
# waits has them; and a keeper that slept too long brings nothing back to life.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Keeper;
use Lease::Queue qw(acquire queued);
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('sessions', restart_after_crash => 'on');
my $look = Lease::Session->connect($node);
my $log = new_log($node);

sub until_released
{
	my ($name, $seconds) = @_;
	return eventually($look, "SELECT owner IS NULL AND last_end = 'released' AND session_pid IS NULL FROM dist_lock WHERE name = '$name'", $seconds // 10);
}

# The client of an idle session is killed with -9, while another waits.
my @times;
for my $round (1 .. 7)
{
	my ($out, $waiter) = ('', Lease::Session->connect($node));
	my $in = "SELECT lease_try('job', 'me', '1 h'), lease_attach('job', 'me');\n";
	my $client = IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ], '<', \$in, '>', \$out, '2>', \my $err);
	$client->pump until $out =~ /\n/;
	is($out, "t|t\n", "round $round: attached") if $round == 1;
	acquire($waiter, 'job', 'next', '1 h');
	queued($look, 1);
	my $start = time;
	$client->signal('KILL');
	$client->finish;
	like($waiter->got(30), qr/^\d+$/, "round $round: the waiter has it");
	push @times, time - $start;
	$waiter->must(q{SELECT lease_release('job', 'next')});
	$waiter->quit;
}
my $median = Lease::Node::median(@times);
cmp_ok($median, '<', 0.5, sprintf 'client killed with -9: the next one has the lease after %.1f ms (median)', 1000 * $median);

# Sessions that end well: until others see the lease free.
@times = ();
for my $round (1 .. 15)
{
	my $session = Lease::Session->connect($node);
	attached($session, '1 h', 'short');
	sleep 0.02;
	my $start = time;
	$session->quit;
	until_released('short');
	push @times, time - $start;
}
$median = Lease::Node::median(@times);
cmp_ok($median, '<', 0.1, sprintf 'released %.1f ms after the session ended (median)', 1000 * $median);
cmp_ok((sort { $a <=> $b } @times)[-1], '<', 3, 'and never much later');
log_is_quiet($node, $log, 'ends of sessions', qr/connection to client lost/);

# A thousand leases of one session
{
	my $session = Lease::Session->connect($node);
	is($session->must(q{SELECT count(*) FROM generate_series(1, 1000) n WHERE lease_try('many ' || n, 'me', '1 h') AND lease_attach('many ' || n, 'me')}),
		1000, 'a thousand attached in one transaction');
	my $start = time;
	$session->quit;
	ok(eventually($look, q{SELECT count(*) = 1000 FROM dist_lock WHERE name LIKE 'many %' AND last_end = 'released'}, 10), 'all are released');
	note(sprintf '1,000 released in %.0f ms', 1000 * (time - $start));
}

# A keeper that was started this moment does not overlook the first lease, however short its ttl.
{
	my @lost;
	for my $round (1 .. 2)
	{
		my $pid = (keepers($look))[0];
		$look->must("SELECT pg_terminate_backend($pid)") if $pid;
		my $session = Lease::Session->connect($node);
		attached($session, '700 ms', 'first');
		sleep 0.9;
		push @lost, $round if held($look, 'first') eq '';
		$session->quit;
		until_released('first');
	}
	is("@lost", '', 'the first lease of a keeper is kept');
}

# What a pooler sends between its clients, and what gives a session's locks back.
for my $how ('DISCARD ALL', 'SELECT pg_advisory_unlock_all()')
{
	my $session = Lease::Session->connect($node);
	attached($session, '1 h', 'pooled', 'next client');
	attached($session, '1 h', 'twice');
	my $other = Lease::Session->connect($node);
	attached($other, '1 h', 'of another');
	$session->must($how);
	# The next client of this server connection works on the same lease at once. (The keeper may be
	# about to release it, or have done so.)
	ok(eventually($session, q{SELECT lease_try('next client', 'me', '1 h') AND lease_attach('next client', 'me')}, 5),
		"$how: the session can attach again");
	ok(until_released('pooled', 5), "$how: what was attached before is released");
	ok(until_released('twice', 5), "$how: all of it");
	isnt(held($look, 'next client'), '', "$how: what was attached after is kept");
	isnt(held($look, 'of another'), '', "$how: other sessions' too");
	is($session->must(q{SELECT lease_detach('next client', 'me'), lease_release('next client', 'me')}), 't|t', "$how: detached as before");
	attached($session, '1 h', 'at the end');
	$_->quit for $session, $other;
	ok(until_released('at the end', 5), "$how: and it ends as any other");
	until_released('of another');
}
# Nobody does anything after it.
{
	my @sessions = map { Lease::Session->connect($node) } 1 .. 2;
	attached($sessions[$_], '1 h', "left $_") for 0, 1;
	sleep 0.1;
	$sessions[0]->must('DISCARD ALL');
	$sessions[1]->must('SELECT pg_advisory_unlock_all()');
	ok(until_released("left $_", 4), 'released two seconds later at the latest') for 0, 1;
	$_->quit for @sessions;
}

# The server ends it
{
	my $session = Lease::Session->connect($node, idle_session_timeout => '200ms');
	attached($session, '1 h', 'idle');
	ok(until_released('idle', 5), 'idle_session_timeout');
	$session = Lease::Session->connect($node);
	attached($session, '1 h', 'terminated');
	$look->must("SELECT pg_terminate_backend($session->{pid})");
	ok(until_released('terminated', 5), 'pg_terminate_backend of the session');
	$session = Lease::Session->connect($node, idle_in_transaction_session_timeout => '100ms');
	attached($session, '1 h', 'in a block');
	$session->must('BEGIN; SELECT lease_renew(\'in a block\', \'me\', \'2 h\')');
	ok(until_released('in a block', 5), 'idle_in_transaction_session_timeout');
	# Attached and then renewed by somebody else, who does not hold it up
	$session = Lease::Session->connect($node, client_connection_check_interval => '50ms');
	attached($session, '1 h', 'busy client');
	$session->send('SELECT pg_sleep(60)');
	sleep 0.1;
	$session->vanish;
	ok(until_released('busy client', 10), 'client_connection_check_interval: a client that goes in the middle of a statement');
}

# A session that took the lease over from the one that dies keeps it.
{
	my ($old, $new) = map { Lease::Session->connect($node) } 1 .. 2;
	attached($old, '1 h', 'moved');
	$new->must(q{SELECT lease_attach('moved', 'me')});
	$old->quit;
	sleep 0.2;
	isnt(held($look, 'moved'), '', 'the session that it was bound to before ends');
	$new->quit;
	ok(until_released('moved'), 'the one that it is bound to does');
}

# The keeper is stopped for more than the ttl.
{
	my $session = Lease::Session->connect($node);
	attached($session, '700 ms', 'stopped', 'stopped, taken');
	my $token = held($look, 'stopped');
	my $leaver = Lease::Session->connect($node);
	attached($leaver, '1 h', 'left meanwhile');
	my $keeper = stop_keeper($look);
	$leaver->quit;
	ok(eventually($look, q{SELECT count(*) = 2 FROM leases WHERE name LIKE 'stopped%' AND state = 'expired'}, 10), 'the keeper is stopped: leases lapse');
	is($session->query("SELECT lease_fence('stopped', $token)"), 'LEASE', "its owner's fence fails");
	is($look->must(q{SELECT lease_try('stopped, taken', 'other', '1 h')}), 't', 'another takes one');
	my $taken = held($look, 'stopped, taken', 'other');
	kill CONT => $keeper;
	ok(eventually($look, q{SELECT session_pid IS NULL FROM dist_lock WHERE name = 'stopped'}, 10), 'it goes on: the tenure is unbound');
	ok(until_released('left meanwhile'), 'and who left meanwhile is noticed');
	is(held($look, 'stopped'), '', 'it does not come back');
	is($session->query("SELECT lease_fence('stopped', $token)"), 'LEASE', 'the fence fails as before');
	is(held($look, 'stopped, taken', 'other'), $taken, "the other's is as it was");
	$session->quit;
}

# Stopped in the middle of work, again and again: nothing that lapsed comes back.
{
	my $session = Lease::Session->connect($node);
	my ($again, $lapsed) = (0, 0);
	for my $round (1 .. 12)
	{
		last if $lapsed > 900;
		$session->must(q{SELECT count(*) FROM generate_series(1, 300) n WHERE lease_try('work ' || n, 'me', '400 ms') AND lease_attach('work ' || n, 'me')});
		my $keeper = keeper($look);
		sleep 0.15 + rand 0.15;
		kill STOP => $keeper;
		sleep 0.5;
		$look->send(q{CREATE TEMP TABLE IF NOT EXISTS over (name text, token bigint); TRUNCATE over;
			INSERT INTO over SELECT name, token FROM dist_lock WHERE name LIKE 'work %' AND expiry <= clock_timestamp()});
		my $seen = $look->done(2);    # else it was stopped with a lock of the server's in its hands
		kill CONT => $keeper;
		$look->answer;
		next unless $seen;
		$lapsed += $look->must('SELECT count(*) FROM over');
		sleep 0.1;
		$again += $look->must(q{SELECT count(*) FROM over WHERE lease_token(name, 'me') = token});
	}
	cmp_ok($lapsed, '>', 300, "stopped in the middle of work: $lapsed tenures lapsed");
	is($again, 0, 'none of them came back to life');
	$session->quit;
}

# kill -9 of a backend: the server restarts, and its keeper does not come back.
{
	my $session = Lease::Session->connect($node);
	attached($session, '1500 ms', 'crash');
	my ($token, $expiry) = split /\|/, $look->must(q{SELECT token, expiry FROM dist_lock WHERE name = 'crash'});
	kill KILL => $session->{pid};
	$look->quit;
	$node->poll_query_until('postgres', 'SELECT true') or die 'no restart';
	$look = Lease::Session->connect($node);
	$expiry = $look->must(q{SELECT expiry FROM dist_lock WHERE name = 'crash'});
	my @tries;
	push @tries, $look->must(q{SELECT lease_try('crash', 'other', '1 min')}) and sleep 0.05 until @tries && $tries[-1] eq 't';
	is($look->must(qq{SELECT acquired_at >= '$expiry' OR last_end = 'released' FROM dist_lock WHERE name = 'crash'}), 't',
		'kill -9 of a backend: never two holders');
	cmp_ok(held($look, 'crash', 'other'), '>', $token, 'the next tenure has a higher token');
	is($look->must(qq{SELECT acquired_at < '$expiry'::timestamptz + interval '1 s' FROM dist_lock WHERE name = 'crash'}), 't', 'it is free at its ttl');
	is(scalar(keepers($look)), 0, 'no keeper');
	$session = Lease::Session->connect($node);
	attached($session, '1 s', 'after the crash');
	sleep 1.2;
	isnt(held($look, 'after the crash'), '', 'after the restart, leases are kept as before');
}

$node->stop;
done_testing();
