# What the tests of waiting share: sessions in a queue, and whether they left anything.
package Lease::Queue;

use strict;
use warnings;

use Exporter 'import';
use Lease::Session;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(acquire asleep eventually nothing_left queued sleep time waiting);

# By hand, with LONG=1, as many rounds as the promise is about.
our $long = $ENV{LONG};

# An SQL value.
sub _quoted { return map { defined $_ ? "'" . s/'/''/gr . "'" : 'NULL' } @_ }

# Sends CALL lease_acquire and does not wait for the answer.
sub acquire
{
	my ($session, $name, $owner, $ttl, $wait) = @_;
	return $session->send(sprintf 'CALL lease_acquire(%s, %s, %s, %s)',
		_quoted($name, $owner, $ttl // '1 min', $wait));
}

# Waits until a query of that session gives 't', at most so many seconds; whether it did.
sub eventually
{
	my ($session, $sql, $seconds) = @_;
	my $until = time + ($seconds // $Lease::Session::patience);
	my $pause = 0.0005;

	while ($session->must($sql) ne 't')
	{
		return 0 if time > $until;
		sleep $pause;
		$pause *= 1.5 if $pause < 0.02;
	}
	return 1;
}

# Condition on l (pg_locks): a lock of ours, of a gate, a queue or a watch.
our $ours = q{l.locktype = 'advisory' AND l.objsubid BETWEEN 27649 AND 27651};

# Until so many sessions hold or want the place in some queue.
sub queued
{
	my ($look, $count) = @_;
	eventually($look, "SELECT count(*) = $count FROM pg_locks l WHERE $ours AND l.objsubid = 27650")
	  or die "there are not $count in the queue";
	return;
}

# Until these sessions sleep, on a latch or in the lock manager.
sub asleep
{
	my ($look, @sessions) = @_;
	my $pids = join ',', map { $_->{pid} } @sessions;
	my $count = @sessions;

	eventually($look,
		"SELECT count(*) = $count FROM pg_stat_activity WHERE pid IN ($pids)
		 AND state = 'active' AND wait_event_type IN ('Extension', 'Lock')", 20)
	  or die 'they do not sleep';
	return;
}

# Sends, and comes back when the session waits.
sub waiting
{
	my ($look, $session, $sql) = @_;
	$session->send($sql);
	asleep($look, $session);
	return $session;
}

# No lock of ours is left in the lock manager, and none on the table. (Who was
# terminated says so before it lets go.)
sub nothing_left
{
	my ($look, $test) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $left = "FROM pg_locks l WHERE (($ours) OR l.relation = 'dist_lock'::regclass) AND pid IS DISTINCT FROM pg_backend_pid()";

	ok(eventually($look, "SELECT count(*) = 0 $left", 5), "$test: no lock left")
	  or diag($look->must("SELECT l.* $left"));
	return;
}

1;
