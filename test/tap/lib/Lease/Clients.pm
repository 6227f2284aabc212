# The programs in test/clients: one scenario, told by each client of PostgreSQL in its own way.
# A client that is not on this machine is left out, and that is said aloud.
package Lease::Clients;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
use IPC::Run;
use Lease::Queue qw(eventually);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

our @EXPORT = qw(build clients prepare run_all);

my $dir = "$FindBin::Bin";
my $built;
my $python = '/usr/bin/python3';    # Debian's, whose modules they are
my $jdbc = '/usr/share/java/postgresql.jar';
my @go = ('env', 'GOPATH=/usr/share/gocode', 'GO111MODULE=off', 'GOFLAGS=', 'go', 'build', '-o');

# Of each: what has to be there, what builds it, what runs it.
my %clients = (
	psql => { has => sub { 1 }, run => sub { ('psql', '-XAtq', '-v', "name=$_[0]", '-f', "$dir/psql.sql") } },
	psycopg2 => {
		has => sub { works($python, '-c', 'import psycopg2') },
		run => sub { ($python, "$dir/dbapi.py", $_[0], 2) } },
	psycopg3 => {
		has => sub { works($python, '-c', 'import psycopg') },
		run => sub { ($python, "$dir/dbapi.py", $_[0], 3) } },
	node => {
		has => sub { works('node', '-e', 'require("pg")') },
		run => sub { ('node', "$dir/postgres.js", $_[0]) } },
	jdbc => {
		has => sub { -e $jdbc && works('javac', '-J-XX:-UsePerfData', '-version') },
		build => sub { ('javac', '-J-XX:-UsePerfData', '-cp', $jdbc, '-d', $built, "$dir/Jdbc.java") },
		run => sub { ('java', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData', '-cp', "$built:$jdbc", 'Jdbc', $_[0]) } },
	pqxx => {
		has => sub { -e '/usr/include/pqxx/pqxx' },
		build => sub { ('g++', '-std=c++17', '-O0', '-o', "$built/pqxx", "$dir/pqxx.cpp", '-lpqxx', '-lpq') },
		run => sub { ("$built/pqxx", $_[0]) } },
	pgx => {
		has => sub { -d '/usr/share/gocode/src/github.com/jackc/pgx' && works('go', 'version') },
		build => sub { (@go, "$built/pgx", "$dir/pgx/main.go") },
		run => sub { ("$built/pgx", $_[0]) } },
	pq => {
		has => sub { -d '/usr/share/gocode/src/github.com/lib/pq' && works('go', 'version') },
		build => sub { (@go, "$built/pq", "$dir/pq/main.go") },
		run => sub { ("$built/pq", $_[0]) } });

sub works
{
	my @command = @_;
	return eval { IPC::Run::run(\@command, '<', \undef, '>', \my $out, '2>', \my $err) };
}

# The clients that are here. Of those that are not, the names are shown and skipped.
sub clients
{
	my @here;

	chomp(my $global = qx(npm root -g 2>/dev/null) // '');
	$ENV{NODE_PATH} = join ':', '/usr/share/nodejs', $global || ();
	for my $client (sort keys %clients)
	{
		if ($clients{$client}{has}->()) { push @here, $client; next }
		diag("!!! $client CANNOT BE HAD HERE, and is not tested.");
	  SKIP: { skip "$client cannot be had here", 1 }
	}
	return @here;
}

# Builds their programs in that directory, all at once.
sub build
{
	my ($where, @clients) = @_;
	my @builds;

	$built = $where;
	mkdir $built or die "$built: $!";
	$ENV{GOCACHE} = "$built/go";
	for my $client (grep { $clients{$_}{build} } @clients)
	{
		my $log = '';
		push @builds, { client => $client, log => \$log,
			run => IPC::Run::start([ $clients{$client}{build}->() ], '<', \undef, '>&', \$log) };
	}
	for (@builds)
	{
		ok($_->{run}->finish, "$_->{client}: builds") or diag(${ $_->{log} });
	}
	return;
}

# What the scenario wants there: for each client a table behind the fence of its lease, and somebody
# who holds another lease until the client has queued for it.
sub prepare
{
	my ($look, @clients) = @_;

	for my $client (@clients)
	{
		$look->must(qq{
			DROP TABLE IF EXISTS work_$client;
			CREATE TABLE work_$client (token bigint);
			CREATE TRIGGER fenced BEFORE INSERT ON work_$client
				FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job-$client');
			SELECT lease_break(name) FROM leases WHERE name LIKE '%-$client%';
			SELECT 1/lease_try('turn-$client', 'before', '10 min')::int});
	}
	return;
}

# Lets each of them have its turn once it waits; whether it then held up nothing that others clean up.
sub serve_turn
{
	my ($look, $client) = @_;
	my $waiter = "SELECT pid FROM lease_waiters WHERE name = 'turn-$client' AND kind = 'acquire'";

	return if $look->must($waiter) eq '';
	my $idle = eventually($look,
		"SELECT bool_and(backend_xmin IS NULL AND backend_xid IS NULL) FROM pg_stat_activity WHERE pid IN ($waiter)", 5);
	$look->must("SELECT 1/lease_release('turn-$client', 'before')::int");
	return $idle ? 'free' : 'in the way';
}

# Runs the programs at the same time; the environment says where the server is.
sub run_all
{
	my ($look, $how, $env, @clients) = @_;
	my %program;
	my $expected = slurp_file("$dir/expected");

	prepare($look, @clients);
	local @ENV{ keys %$env } = values %$env;
	for my $client (@clients)
	{
		my $p = $program{$client} = { out => '', err => '' };
		$p->{run} = IPC::Run::start([ $clients{$client}{run}->($client) ],
			'<', \undef, '>', \$p->{out}, '2>', \$p->{err}, IPC::Run::timeout(60));
	}
	my @busy = @clients;
	while (@busy = grep { $program{$_}{run}->pumpable } @busy)
	{
		$program{$_}{run}->pump_nb for @busy;
		$program{$_}{waited} //= serve_turn($look, $_) for @busy;
		sleep 0.01;
	}
	for my $client (@clients)
	{
		my $p = $program{$client};
		my $fine = $p->{run}->finish;
		is($p->{out}, $expected, "$client $how: the whole scenario") or diag($p->{err});
		ok($fine, "$client $how: ends well");
		is($p->{waited}, 'free', "$client $how: held no snapshot while it waited its turn");
		is($look->must("SELECT count(*) FROM work_$client"), 1, "$client $how: what was written behind the fence is there, and nothing else");
	}
	return;
}

1;
