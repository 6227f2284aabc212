# The maintenance script of doc/guide.md: held as long as it works, longer than its
# ttl; free for the next one as soon as it ends, well or not.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Keeper;
use Lease::Pages;
use Lease::Queue qw(acquire queued);
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('readme', deadlock_timeout => '50ms');
my $look = Lease::Session->connect($node);
my $log = new_log($node);
my $file = $node->basedir . '/maintenance.sql';

my ($script) = examples('doc/guide.md', 'Bound to a session', 'sql');
like($script, qr/lease_acquire.*lease_attach/s, 'the guide shows a maintenance script');
is($script =~ s/'30 s'/'1 s'/, 1, 'with a ttl, which is short here');
append_to_file($file, $script);

# Work that takes longer than the ttl
$look->must(q{
	CREATE FUNCTION slow(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN
		PERFORM pg_sleep(0.02);
		RETURN n;
	END $$;
	CREATE TABLE events (n int);
	CREATE INDEX ON events (slow(n));
	INSERT INTO events SELECT generate_series(1, 25)});

sub start
{
	my ($owner, @more) = @_;
	my $p = { out => '', err => '' };
	$p->{run} = IPC::Run::start([ 'psql', '-Xqf', $file, '-v', "owner=$owner", '-d', $node->connstr('postgres'), @more ],
		'<', \undef, '>', \$p->{out}, '2>', \$p->{err});
	return $p;
}

sub until_attached
{
	my ($owner) = @_;
	return eventually($look, "SELECT count(*) = 1 FROM leases WHERE state = 'held' AND owner = '$owner' AND session_pid IS NOT NULL", 10);
}

# Two nodes, one after the other
my $start = time;
my $one = start('one');
ok(until_attached('one'), 'the first has it, bound to its session');
my $two = start('two');
queued($look, 1);
$_->{run}->finish for $one, $two;
is("$one->{err}$two->{err}", '', 'both end without a word');
is(join(' ', map { $_->{run}->full_result >> 8 } $one, $two), '0 0', 'and well');
unlike("$one->{out}$two->{out}", qr/another node/, 'each had its turn');
is($look->must('SELECT grants, takeovers, min_margin > interval \'0\' FROM leases'), '2|0|t', 'two tenures, none of which lapsed, with renewals');
cmp_ok(time - $start, '>', 2, 'though the work took longer than the ttl');
ok(eventually($look, q{SELECT state = 'free' AND last_end = 'released' FROM leases}, 3), 'nothing is left to release');

# It fails; it is killed while the server would go on; it cannot wait.
$look->must('ALTER TABLE events RENAME TO elsewhere');
my $failing = start('failing');
$failing->{run}->finish;
is($failing->{run}->full_result >> 8, 3, 'an error ends it');
like($failing->{err}, qr/"events" does not exist/, 'with its message');
ok(eventually($look, q{SELECT state = 'free' AND last_end = 'released' FROM leases}, 3), 'and the lease is released');
$look->must('ALTER TABLE elsewhere RENAME TO events');
{
	local $ENV{PGOPTIONS} = '-c client_connection_check_interval=100ms';
	my $killed = start('killed');
	ok(until_attached('killed'), 'one is at work');
	my $next = Lease::Session->connect($node);
	acquire($next, 'maintenance', 'next', '1 h');
	queued($look, 1);
	$start = time;
	$killed->{run}->kill_kill(grace => 0);
	like($next->got(10), qr/^\d+$/, 'killed, with client_connection_check_interval: the next one has it');
	cmp_ok(time - $start, '<', 2, 'soon');
	$start = time;
	append_to_file("$file.short", $script =~ s/'1 h'/'200 ms'/r);
	$file = "$file.short";
	my $late = start('late');
	$late->{run}->finish;
	is($late->{out} =~ s/\n//r, 'another node was at it for an hour', 'one that waits in vain says so');
	is($late->{run}->full_result >> 8, 0, 'and ends well');
	$next->quit;
}
log_is_quiet($node, $log, 'maintenance', qr/"events" does not exist|connection to client lost/);

$node->stop;
done_testing();
