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

# Every client of a pgbench run went through all its transactions. In the
# scripts `SELECT 1/(condition)::int` ends a client whose condition is false.
sub pgbench_ok
{
	my ($node, $options, $test, %scripts) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	local $ENV{PGOPTIONS} =
	  ($ENV{PGOPTIONS} // '') . ' -c client_min_messages=error';
	my $nr = ++$Lease::Node::runs;
	my @files;

	for my $name (sort keys %scripts)
	{
		my $path = $node->basedir . "/$nr-$name.sql";
		append_to_file($path, $scripts{$name});
		push @files, '-f', $path;
	}
	my $out = '';
	my $err = '';
	my $fine = IPC::Run::run(
		[ 'pgbench', '-n', split(' ', $options), @files,
			$node->connstr('postgres') ],
		'>', \$out, '2>', \$err);
	$err =~ s/^pgbench \(.*\)\n//mg;
	ok($fine, $test) or diag("pgbench $options:\n$out$err");
	return $out;
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
