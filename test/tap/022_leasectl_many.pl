# leasectl run many times: nothing leaks, and of all that start at about the same
# time exactly one runs.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Ctl;
use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

# LONG=1 make test TAP=... for the long version
my $rounds = $ENV{LONG} ? 200 : 20;
my $runs = 500;
my $node = Lease::Node::make('many');
my $dir = $node->basedir;

sub sql { return $node->safe_psql('postgres', $_[0]) }

# 500 short commands in a row, each of which must find the lease released
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
local $ENV{PGDATABASE} = 'postgres';

# (They run beside the rest of this test.)
my $short = fork // die $!;
if ($short == 0)
{
	$ENV{PGAPPNAME} = 'short';
	my $began = time;
	my %ended;
	$ended{ system('leasectl', 'run', 'short', '--', 'true') >> 8 }++ for 1 .. $runs;
	diag(sprintf '%.1f ms for each', (time - $began) / $runs * 1000);
	diag(join ', ', map { "$ended{$_} ended with $_" } sort keys %ended);
	POSIX::_exit(($ended{0} // 0) == $runs ? 0 : 1);
}

# A long run, renewing all the time
my $long = Lease::Ctl::start($node, 'run', 'long', '--ttl', '2s', 'sleep', '600');
my $rss = sub { return slurp_file("/proc/$long->{pid}/status") =~ /VmRSS:\s+(\d+)/ && $1 };
$node->poll_query_until('postgres', q{SELECT renewed_at > acquired_at FROM leases WHERE name = 'long'});
my $rss_before = $rss->();

# Five processes on one schedule, 0-300 ms apart
my $script = 'echo "$1 $LEASE_TOKEN" >>"$0"; sleep 0.02';
for my $round (1 .. $rounds)
{
	my @delays = map { rand 0.3 } 1 .. 5;
	my @pids;
	for my $delay (@delays)
	{
		my $pid = fork // die $!;
		if ($pid == 0)
		{
			sleep $delay;
			exec 'leasectl', 'run', 'schedule', '--keep', '1h', '--', 'sh', '-c', $script, "$dir/runs", $round
			  or POSIX::_exit(99);
		}
		push @pids, $pid;
	}
	my @status = map { waitpid $_, 0; $? >> 8 } @pids;
	# A time that has been kept from all; the next round is for everybody again.
	sql(q{SELECT lease_break('schedule')});
	is("@{[ sort { $a <=> $b } @status ]}", '0 75 75 75 75', "round $round: one runs, four are told");
}
my @ran = split /\n/, slurp_file("$dir/runs");
is(join(' ', map { (split)[0] } @ran), join(' ', 1 .. $rounds), "exactly one run in each of $rounds rounds");

waitpid $short, 0;
is($? >> 8, 0, "$runs short commands in a row");
is(sql(q{SELECT grants, takeovers, state FROM leases WHERE name = 'short'}), "$runs|0|free",
	'each had the lease, and none left it behind');
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'short'}),
	'nor any session');

cmp_ok($rss->(), '<=', $rss_before + 512, 'meanwhile, a long run has not grown');
$long->signal('TERM');
is($long->status, 143, 'the long run ends');
is_deeply([ Lease::Ctl::processes($node) ], [], 'no process of leasectl is left');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
