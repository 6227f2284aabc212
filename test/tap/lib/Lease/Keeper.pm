# What the tests of attached leases share: leases that a session holds and is bound
# to, the keeper's process, and what it leaves in the log.
package Lease::Keeper;

use strict;
use warnings;

use Exporter 'import';
use Lease::Node;
use Lease::Queue qw(eventually);
use Lease::Session;
use POSIX ();
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(attached cpu_seconds eventually keeper keepers gone held log_is_quiet new_log rounds_in sleep stop_keeper time until_held);

# The session takes these leases and binds them to itself.
sub attached
{
	my ($session, $ttl, @names) = @_;
	for my $name (@names)
	{
		$session->must("SELECT 1/lease_try('$name', 'me', '$ttl')::int");
		$session->must("SELECT 1/lease_attach('$name', 'me')::int");
	}
	return;
}

# The owner's token, or '': it does not hold it.
sub held
{
	my ($look, $name, $owner) = @_;
	return $look->must(sprintf "SELECT lease_token('%s', '%s')", $name, $owner // 'me');
}

our $keepers = q{pg_stat_activity WHERE backend_type = 'lease keeper' AND datname = current_database()};

# Process IDs of the keepers in the session's database.
sub keepers
{
	my ($look) = @_;
	return split /\n/, $look->must("SELECT pid FROM $keepers ORDER BY backend_start");
}

# The one that is there, waiting for it.
sub keeper
{
	my ($look) = @_;
	my $until = time + 20;
	while (time < $until)
	{
		my @pids = keepers($look);
		return $pids[0] if @pids == 1;
		sleep 0.01;
	}
	die 'there is not one keeper';
}

# Stops it (SIGSTOP) while it sleeps, and gives its process ID. Stopped at work, any process of the
# server may have a lock in shared memory in its hands, for which all others would wait.
sub stop_keeper
{
	my ($look) = @_;
	for (1 .. 100)
	{
		my $pid = keeper($look);
		kill STOP => $pid;
		$look->send("SELECT wait_event IN ('LeaseKeeper', 'Extension') FROM $keepers");
		return $pid if $look->done(1) && $look->got eq 't';
		kill CONT => $pid;
		$look->answer;
		sleep 0.005;
	}
	die 'the keeper never sleeps';
}

# Whether the last one goes in time.
sub gone
{
	my ($look, $seconds) = @_;
	return eventually($look, "SELECT count(*) = 0 FROM $keepers", $seconds);
}

# User and system time of a process so far.
sub cpu_seconds
{
	my ($pid) = @_;
	my ($stat) = slurp_file("/proc/$pid/stat") =~ /\) (.*)/;
	my @fields = split ' ', $stat;
	return ($fields[11] + $fields[12]) / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# How often the keeper fell asleep in that time.
sub rounds_in
{
	my ($look, $seconds) = @_;
	my ($until, %times) = (time + $seconds);
	while (time < $until)
	{
		$times{$_}++ for split /\n/, $look->must("SELECT state_change FROM $keepers AND state = 'idle'");
		sleep 0.005;
	}
	return keys(%times) - 1;
}

# Where the log ends by now.
sub new_log
{
	my ($node) = @_;
	return -s $node->logfile;
}

# Nothing that an administrator would have to look at, but for what is expected.
sub log_is_quiet
{
	my ($node, $from, $test, $expected) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @noise = grep { /(?:WARNING|ERROR|FATAL|PANIC|TRAP):|exited with exit code|was terminated/ && !($expected && /$expected/) }
	  split /\n/, slurp_file($node->logfile, $from);
	is(join("\n", @noise), '', "$test: nothing in the log");
	return;
}

1;
