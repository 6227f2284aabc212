# A throw-away server that has the extension, and what several tests ask of one.
#
# Where the server finds the extension is told by the settings in the file that
# TEMP_CONFIG names, if it is not in the server's own directories.
package Lease::Node;

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes;

# make($name, setting => value, ...): a running server with the extension in
# the database postgres. streaming => 1 makes it one that standbys can follow.
sub make
{
	my ($name, %conf) = @_;
	my $streaming = delete $conf{streaming};
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(
		allows_streaming => $streaming,
		extra            => [ '--encoding=UTF8', '--locale=C' ]);
	%conf = (log_statement => 'none', %conf);
	$node->append_conf('postgresql.conf', "$_ = '$conf{$_}'")
	  for sort keys %conf;
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION lease');
	return $node;
}

# (answer, SQLSTATE or '') of one statement in a session of its own.
sub answer
{
	my ($node, $sql, $db) = @_;
	my ($out, $err) = ('', '');

	$node->psql($db // 'postgres', $sql,
		stdout => \$out, stderr => \$err,
		extra_params => [ '-v', 'VERBOSITY=sqlstate' ]);
	my ($state) = $err =~ /(?:ERROR|FATAL):\s+(\w{5})/;
	return ($out, $state // '');
}

# Seconds that a query takes in a background session, and its answer.
sub timed
{
	my ($session, $sql) = @_;
	my $start = Time::HiRes::time();
	my $out = $session->query_safe($sql);
	return (Time::HiRes::time() - $start, $out);
}

sub median
{
	my @sorted = sort { $a <=> $b } @_;
	return $sorted[ $#sorted / 2 ];
}

sub _pgbench
{
	my ($node, $options, @scripts) = @_;
	my @files;

	for my $script (@scripts)
	{
		my $path = $node->basedir . '/script' . ++$Lease::Node::scripts . '.sql';
		append_to_file($path, $script);
		push @files, '-f', $path;
	}
	return [ 'pgbench', '-n', split(' ', $options), @files,
		$node->connstr('postgres') ];
}

# Every client of a pgbench run went through all its transactions. In the
# script `SELECT 1/(condition)::int` ends a client whose condition is false.
sub pgbench_ok
{
	my ($node, $options, $test, $script) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	local $ENV{PGOPTIONS} = '-c client_min_messages=error';
	my ($out, $err) = ('', '');

	my $fine = IPC::Run::run(_pgbench($node, $options, $script),
		'>', \$out, '2>', \$err);
	# Deadlocks and serialization failures do not end a client.
	ok($fine && $out !~ /failed transactions: [1-9]/, $test)
	  or diag("pgbench $options:\n$out$err");
	return $out;
}

# The same in the background, until pgbench_stop(), by when the server's log
# must not have any error.
sub pgbench_start
{
	my ($node, $options, $script) = @_;
	local $ENV{PGOPTIONS} = '-c client_min_messages=error';
	my $bench =
	  { node => $node, log => -s $node->logfile, out => '', err => '' };

	$bench->{run} = IPC::Run::start(_pgbench($node, "-T 120 $options", $script),
		'>', \$bench->{out}, '2>', \$bench->{err});
	return $bench;
}

sub pgbench_stop
{
	my ($bench, $test) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;

	$bench->{run}->pump_nb;
	my $busy = $bench->{run}->pumpable;
	$bench->{run}->kill_kill;
	my @errors = grep { /ERROR:/ } split /\n/,
	  slurp_file($bench->{node}->logfile, $bench->{log});
	ok($busy && $bench->{err} !~ /error:/ && !@errors, $test)
	  or diag(join "\n", $bench->{err}, @errors);
	return;
}

# No server process of this node died or tripped over an assertion.
sub unhurt
{
	my ($node) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @hurt = grep { /PANIC:|TRAP:|was terminated by signal/ }
	  split /\n/, slurp_file($node->logfile);

	is("@hurt", '', 'no server process came to harm');
}

1;
