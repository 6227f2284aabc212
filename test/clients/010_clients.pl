# Every client of PostgreSQL that users have: the same scenario, in each one's own words, directly and
# through pgbouncer, where all of them share the server's connections.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/../tap/lib";

use Lease::Clients;
use Lease::Node;
use Lease::Pages;
use Lease::Pooler;
use Lease::Session;
use Test::More;

my ($table) = map { $_->[1] } grep { $_->[0] eq 'From your client' } sections('doc/recipes.md');
my @programs = grep { !/\.pl$|expected$/ } glob "$FindBin::Bin/*.* $FindBin::Bin/*/main.go";
is_deeply([ grep { $table !~ m{^\| \[[^]]+\]\(\.\./test/clients/\Q$_\E\) \| }m } map { s{^\Q$FindBin::Bin/}{}r } @programs ], [],
	'each program is in the table of doc/recipes.md');

my $node = Lease::Node::make('clients', listen_addresses => '127.0.0.1');
my $look = Lease::Session->connect($node);
my @clients = clients();
build($node->basedir . '/built', @clients);

my %env = (PGHOST => '127.0.0.1', PGPORT => $node->port, PGDATABASE => 'postgres', PGUSER => scalar getpwuid $>);
run_all($look, 'directly', \%env, @clients);

SKIP:
{
	if (!Lease::Clients::works('pgbouncer', '--version'))
	{
		diag('!!! pgbouncer CANNOT BE HAD HERE, and is not tested.');
		skip 'pgbouncer cannot be had here', 1;
	}
	my $pooler = Lease::Pooler->start($node, session => 3, transaction => 1);
	# The last round meets what the one before has left on the server's connection.
	for my $mode (qw(session transaction transaction))
	{
		run_all($look, "in $mode mode", { %env, PGPORT => $pooler->port, PGDATABASE => $mode, POOLED => 1 }, @clients);
	}
	$pooler->stop;
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
