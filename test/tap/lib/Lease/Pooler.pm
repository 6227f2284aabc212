# A pgbouncer before a node: its databases `session` and `transaction` are the node's database
# postgres, pooled in that mode. Sessions connect to it as to a node.
package Lease::Pooler;

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Time::HiRes qw(sleep);

# start($node, transaction => server connections, session => server connections)
sub start
{
	my ($class, $node, %size) = @_;
	my $base = $node->basedir . '/pgbouncer';
	my $self = bless {
		host => $node->host,
		port => PostgreSQL::Test::Cluster::get_free_port(),
		base => $base,
	}, $class;
	my $user = getpwuid $>;

	append_to_file("$base.ini", "[databases]\n"
		  . join('', map { sprintf "%s = host=%s port=%s dbname=postgres user=%s pool_mode=%s pool_size=%d\n",
				$_, $node->host, $node->port, $user, $_, $size{$_} } sort keys %size)
		  . <<"SETTINGS");
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $self->{port}
unix_socket_dir = $self->{host}
auth_type = any
ignore_startup_parameters = extra_float_digits, options
logfile = $base.log
pidfile = $base.pid
SETTINGS
	my $out = '';
	$self->{run} = IPC::Run::start([ 'pgbouncer', '-q', "$base.ini" ], '<', \undef, '>&', \$out);
	for (1 .. 500)
	{
		return $self if -S "$self->{host}/.s.PGSQL.$self->{port}";
		$self->{run}->pump_nb;
		sleep 0.01;
	}
	die "pgbouncer did not start: $out";
}

sub host { return $_[0]{host} }
sub port { return $_[0]{port} }

sub stop
{
	my ($self) = @_;
	$self->{run}->kill_kill;
	return;
}

1;
