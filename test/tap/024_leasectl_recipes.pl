# leasectl on a terminal, in bash's completion, and in the recipes of README and guide for
# cron and systemd, which are taken from there and run.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Ctl;
use Lease::Node;
use Lease::Pages;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time sleep);

my $node = Lease::Node::make('recipes');
my $dir = $node->basedir;

sub sql { return $node->safe_psql('postgres', $_[0]) }

local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
local $ENV{PGDATABASE} = 'postgres';
delete @ENV{qw(PGUSER PGAPPNAME)};

# The program that the recipes run
mkdir "$dir/bin" or die $!;
append_to_file("$dir/bin/nightly-report", "#!/bin/sh\necho \"\$LEASE_NAME \$LEASE_TOKEN\" >>$dir/reports\n");
chmod 0755, "$dir/bin/nightly-report" or die $!;
my ($leasectl) = grep { -x } map { "$_/leasectl" } split /:/, $ENV{PATH};
symlink $leasectl, "$dir/bin/leasectl" or die $!;
sub reports { return -e "$dir/reports" ? split /\n/, slurp_file("$dir/reports") : () }

# Starts that command line on five machines, as root's cron or systemd would;
# (exit status of each), sorted
sub five
{
	my ($line, %env) = @_;
	my @pids;

	for (1 .. 5)
	{
		my $pid = fork // die $!;
		if ($pid == 0)
		{
			$ENV{$_} = $env{$_} for keys %env;
			open STDOUT, '>>', "$dir/mail" or die $!;
			open STDERR, '>&', \*STDOUT or die $!;
			exec '/bin/sh', '-c', $line or POSIX::_exit(99);
		}
		push @pids, $pid;
	}
	return join ' ', sort { $a <=> $b } map { waitpid $_, 0; $? >> 8 } @pids;
}

# cron
my ($crontab) = grep { /leasectl/ } examples('README.md', 'leasectl', 'cron');
my (%env, @jobs);
for my $line (split /\n/, $crontab)
{
	if ($line =~ /^#/) { next }
	elsif ($line =~ /^(\w+)=(.*)$/) { $env{$1} = $2 }
	elsif ($line =~ /^(?:\S+\s+){5}\w+\s+(.*)$/) { push @jobs, $1 }
	else { fail("a line that cron would not understand: $line") }
}
is(scalar @jobs, 1, 'cron: one job in the README');
like($env{PGHOST}, qr/\w/, 'cron: which says where the database is');
$jobs[0] =~ s{/usr/local/bin/}{$dir/bin/}g;
is(five($jobs[0], PATH => "$dir/bin:$env{PATH}"), '0 75 75 75 75', 'cron: of five machines one runs it');
is(scalar reports(), 1, 'cron: once');
is(slurp_file("$dir/mail"), '', 'cron: and nobody gets mail');
is(five($jobs[0], PATH => "$dir/bin:$env{PATH}"), '75 75 75 75 75', 'cron: machines that are late do not run it again');
is(sql(q{SELECT name, state FROM leases}), 'nightly-report|cooling', 'cron: the lease is kept for a while');
sql(q{SELECT lease_break('nightly-report')});

# By hand
my ($line) = examples('README.md', 'leasectl', 'sh');
$line =~ s{/usr/local/bin/}{$dir/bin/};
unlink "$dir/reports";
is(system($line), 0, 'by hand: it runs');
is(scalar reports(), 1, 'by hand: once');

# systemd
my %unit = map { /^# \/etc\/systemd\/system\/(\S+)/ ? ($1 => $_) : () } examples('doc/guide.md', 'By a timer of systemd', 'ini');
is_deeply([ sort keys %unit ], [ 'nightly-report.service', 'nightly-report.timer' ], 'systemd: two units in the guide');
s{/usr/local/bin/}{$dir/bin/}g, s{^User=.*\n}{}m for values %unit;
append_to_file("$dir/$_", $unit{$_}) for keys %unit;
SKIP:
{
	skip 'no systemd-analyze', 2 if system('systemd-analyze --version >/dev/null 2>&1');
	for my $name (sort keys %unit)
	{
		my $out = qx(systemd-analyze verify --man=no '$dir/$name' 2>&1);
		# What is wrong with other units of the machine is not our business.
		is(join('', grep { /nightly-report/ } split /^/, $out), '', "systemd: $name is accepted");
	}
}
my ($exec) = $unit{'nightly-report.service'} =~ /^ExecStart=(.*)$/m;
unlink "$dir/reports";
is(five($exec), '0 75 75 75 75', 'systemd: of five machines one runs it');
is(scalar reports(), 1, 'systemd: once');
like($unit{'nightly-report.service'}, qr/^SuccessExitStatus=75$/m, 'systemd: the others did well, too');

# Completion
sub complete
{
	my (@words) = @_;
	my $file = "$FindBin::Bin/../../src/leasectl/completion.bash";
	my $n = $#words;
	my $out = '';
	IPC::Run::run([ 'bash', '-c', 'source "$1"; shift; COMP_CWORD=$1; shift; COMP_WORDS=("$@"); _leasectl; printf "%s\n" "${COMPREPLY[@]}"',
			'bash', $file, $n, @words ], '>', \$out) or die;
	return join ' ', split /\n/, $out;
}
is(complete('leasectl', ''), 'run ls waiters watch break doctor --help --version', 'completion: commands');
is(complete('leasectl', 'wa'), 'waiters watch', 'completion: of a part');
is(complete('leasectl', 'break', ''), 'nightly-report', 'completion: names of leases');
is(complete('leasectl', 'run', '--k'), '--keep', 'completion: options');
like(complete('leasectl', 'run', '--ttl', '1min', 'x', 'slee'), qr/\bsleep\b/, 'completion: the command');
my (%shown) = map { $_ => 1 } qx(leasectl --help) =~ /(--[a-z]+)/g;
my $completion = slurp_file("$FindBin::Bin/../../src/leasectl/completion.bash");
my $manual = slurp_file("$FindBin::Bin/../../doc/leasectl.1.scd");
is_deeply([ grep { $completion !~ /\Q$_\E\b/ } keys %shown ], [], 'completion: has every option of --help');
is_deeply([ grep { !/--(?:help|version)/ && $manual !~ /\Q$_\E\b/ } keys %shown ], [], 'the manual: has every option of --help');

# A terminal
SKIP:
{
	skip 'no IO::Pty', 21 if !eval { require IO::Pty; 1 };
	my $pty = IO::Pty->new;
	my $pid = fork // die $!;
	if ($pid == 0)
	{
		$pty->make_slave_controlling_terminal;
		my $slave = $pty->slave;
		open STDIN, '<&', $slave or die $!;
		open STDOUT, '>&', $slave or die $!;
		open STDERR, '>&', $slave or die $!;
		$SIG{$_} = 'DEFAULT' for qw(INT QUIT TSTP TTIN TTOU);
		$ENV{PS1} = 'ready> ';
		exec 'bash', '--norc', '--noprofile', '-i' or POSIX::_exit(99);
	}
	$pty->blocking(0);
	my $seen = '';
	my $sees = sub {
		my ($pattern, $test) = @_;
		my $fine = Lease::Ctl::wait_for(sub { sysread $pty, $seen, 4096, length $seen; $seen =~ /$pattern/ }, 20);
		ok($fine, "terminal: $test") or diag($seen);
		$seen = '';
	};
	my $type = sub { syswrite $pty, $_[0] };

	$sees->(qr/ready> /, 'a shell');
	$type->("leasectl run tty --ttl 20s cat\n");
	Lease::Ctl::wait_for(sub { sql(q{SELECT count(*) FROM leases WHERE name = 'tty' AND state = 'held'}) });
	sleep 0.3;
	$type->("hello\n");
	$sees->(qr/hello\r\nhello\r\n/, 'the command reads from it');
	$type->("\cZ");
	$sees->(qr/Stopped.*ready> /s, '^Z stops command and leasectl, and the shell is back');
	$type->("fg\n");
	$sees->(qr/leasectl run tty/, 'fg');
	sleep 0.3;
	$type->("again\n");
	$sees->(qr/again\r\nagain\r\n/, 'the command reads from it again');
	$type->("\cC");
	$sees->(qr/ready> /, '^C ends it');
	$type->("echo status \$?\n");
	$sees->(qr/status 130/, 'with status 130');
	is(sql(q{SELECT state FROM leases WHERE name = 'tty'}), 'free', 'terminal: the lease is released');
	# A script that it is a part of ends, too.
	sql(q{SELECT lease_try('tty_held', 'me', '1 hour')});
	for my $shell ('bash', 'sh')
	{
		$type->("$shell -c 'leasectl run tty --ttl 20s sh -c \"echo \\\$((6*7)); sleep 20\"; echo it goes on'\n");
		$sees->(qr/^42/m, "a script of $shell");
		$type->("\cC");
		$sees->(qr/\A(?!.*it goes on).*ready> /s, '^C ends it');
	}
	$type->("bash -c 'leasectl run tty_held --wait 1min true; echo it goes on'\n");
	$node->poll_query_until('postgres', q{SELECT count(*) = 1 FROM lease_waiters});
	$seen = '';
	sysread $pty, my $echo, 4096;
	$type->("\cC");
	$sees->(qr/\A(?!.*it goes on).*ready> /s, 'also one that waits for a lease');
	# A pager beside it reads from the terminal, too.
	$type->("leasectl run tty --ttl 20s sh -c 'echo page; sleep 1' | sh -c 'read x; echo got \$x; read y </dev/tty; echo key \$y'\n");
	$sees->(qr/^got page/m, 'a pipe');
	$type->("k\n");
	$sees->(qr/key k\r\n.*ready> /s, 'whose other end may read from the terminal');
	$type->("cat | leasectl run tty --ttl 20s tr a-z A-Z\n");
	sleep 0.3;
	$type->("piped\n\cD");
	$sees->(qr/PIPED\r\n.*ready> /s, 'or this one');
	$type->("leasectl run tty -W true\n");
	$sees->(qr/Password: /, 'a password is asked for');
	$type->("\cC");
	$sees->(qr/no password was given.*ready> /s, '^C gives none');
	$type->("leasectl run tty --ttl 20s cat &\n");
	$sees->(qr/Stopped|ready> /, 'in the background');
	$type->("\nfg\n");
	sleep 0.3;
	$type->("there\n");
	$sees->(qr/there\r\nthere\r\n/, 'fg of a background job that wanted to read');
	$type->("\cD");
	$type->("echo status \$?\n");
	$sees->(qr/status 0/, '^D ends it');
	$type->("exit\n");
	kill HUP => $pid;
	waitpid $pid, 0;
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
