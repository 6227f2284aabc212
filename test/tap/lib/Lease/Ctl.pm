# leasectl as tests run it: beside a node, in the background, and commands that
# leave a trace of how long they were alive.
package Lease::Ctl;

use strict;
use warnings;

use POSIX qw(:sys_wait_h setpgid);
use PostgreSQL::Test::Utils;
use Time::HiRes qw(time sleep);

our $count = 0;

# start($node, argument, ...): leasectl in a process group of its own. A hash
# as the last argument sets variables of its environment.
sub start
{
	my ($node, @args) = @_;
	my %env = (
		PGHOST     => $node->host,
		PGPORT     => $node->port,
		PGDATABASE => 'postgres',
		%{ ref $args[-1] ? pop @args : {} });
	my $base = $node->basedir . '/leasectl' . ++$count;
	my $self = { base => $base, began => time };

	append_to_file("$base.$_", '') for 'out', 'err';
	$self->{pid} = fork // die $!;
	if ($self->{pid} == 0)
	{
		$ENV{$_} = $env{$_} for keys %env;
		setpgid(0, 0);
		# A harness in the background of a shell has these ignored.
		$SIG{$_} = 'DEFAULT' for qw(INT QUIT);
		POSIX::close($_) for 3 .. 1023;
		open STDIN, '<', '/dev/null' or die $!;
		open STDOUT, '>', "$base.out" or die $!;
		open STDERR, '>', "$base.err" or die $!;
		exec 'leasectl', @args or POSIX::_exit(99);
	}
	setpgid($self->{pid}, $self->{pid});
	return bless $self;
}

# Whether it ends within so many seconds.
sub ends
{
	my ($self, $seconds) = @_;
	my $until = time + $seconds;

	while (!defined $self->{status})
	{
		if (waitpid($self->{pid}, WNOHANG) == $self->{pid})
		{
			$self->{status} = $?;
			$self->{took} = time - $self->{began};
		}
		elsif (time > $until) { return 0 }
		else { sleep 0.01 }
	}
	return 1;
}

# Its exit status, as a shell tells it.
sub status
{
	my ($self, $seconds) = @_;

	if (!$self->ends($seconds // 30))
	{
		kill KILL => -$self->{pid};
		waitpid $self->{pid}, 0;
		return 'did not end';
	}
	my $status = $self->{status};
	return $status & 127 ? 'killed by ' . ($status & 127) : $status >> 8;
}

sub signal { my ($self, $signal) = @_; return kill $signal => $self->{pid}; }
sub out { return slurp_file($_[0]->{base} . '.out') }
sub err { return slurp_file($_[0]->{base} . '.err') }

# (status, stdout, stderr)
sub run
{
	my $self = start(@_);
	my $status = $self->status(60);
	return ($status, $self->out, $self->err);
}

# ticker($file, option, ...): a command that writes its pid, and then every 10 ms
# the time. Options: deaf (ignores TERM), fork (has a child that does the same, in
# "$file.child"), quit_on_term (tells the time of the TERM, too).
sub ticker
{
	my ($file, @options) = @_;
	my %is = map { $_ => 1 } @options;
	my $deaf = $is{deaf} ? '$SIG{TERM} = "IGNORE";' : '';
	my $fork = $is{fork} ? '$file .= ".child" if fork == 0;' : '';
	my $script = "use Time::HiRes qw(time sleep); my \$file = shift; $deaf $fork"
	  . 'open my $out, ">", $file or die; $out->autoflush; print $out "$$\n";'
	  . 'while (1) { print $out time, "\n"; sleep 0.01 }';

	return ('perl', '-MIO::Handle', '-e', $script, $file);
}

sub wait_for
{
	my ($condition, $seconds) = @_;
	my $until = time + ($seconds // 30);

	while (!$condition->())
	{
		return 0 if time > $until;
		sleep 0.01;
	}
	return 1;
}

# The ticker runs.
sub ticks
{
	my ($file) = @_;
	return wait_for(sub { -e $file && slurp_file($file) =~ /\n.*\n/ });
}

# When the ticker was last alive; its process has to be gone.
sub last_tick
{
	my ($file) = @_;
	my @lines = split /\n/, slurp_file($file);
	my $pid = $lines[0];

	wait_for(sub { !is_alive($pid) }, 10);
	@lines = split /\n/, slurp_file($file);
	# The last line may have been cut.
	return is_alive($pid) ? 9e99 : $lines[-2];
}

# Zombies do not count.
sub is_alive
{
	my ($pid) = @_;
	open my $stat, '<', "/proc/$pid/stat" or return 0;
	my $line = <$stat> // '';
	return $line =~ /\) [^ZX]/ ? 1 : 0;
}

# Processes called leasectl or leasectl-guard that work with this node.
sub processes
{
	my ($node) = @_;
	my $host = 'PGHOST=' . $node->host;
	my @found;

	for my $dir (glob '/proc/[0-9]*')
	{
		open my $comm, '<', "$dir/comm" or next;
		next if (<$comm> // '') !~ /^leasectl/;
		open my $environ, '<', "$dir/environ" or next;
		push @found, $dir =~ /(\d+)/ if grep { $_ eq $host } split /\0/, <$environ> // '';
	}
	return @found;
}

1;
