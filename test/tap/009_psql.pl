# A job in a psql script, as the README shows it: of many that start it, one
# runs it; the lease is given back at the end, after an error, too.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('psql');
my $dir = $node->basedir;

# Stops at an error of its own, but goes on after one of the job's: psql looks
# at ON_ERROR_STOP once a line, so the \ir of a script that turns it on returns.
append_to_file("$dir/guarded.psql", <<'SCRIPT');
\set ON_ERROR_STOP on
SELECT lease_try('nightly', :'owner', '1 min') AS got \gset
\if :got
    \set ON_ERROR_STOP off
    \ir job.psql
    \set failed :ERROR
    \if :failed
        ROLLBACK;
    \endif
    SELECT lease_release('nightly', :'owner') AS released \gset
    \if :failed
        \warn 'the job failed'
        \set ON_ERROR_STOP on
        DO $$ BEGIN RAISE 'the job failed'; END $$;
    \endif
    \echo ran
\else
    INSERT INTO busy VALUES (:'owner');
    \echo 'somebody else runs it'
\endif
SCRIPT
# The job goes on until all the others were turned away.
append_to_file("$dir/job.psql", <<'SCRIPT');
\set ON_ERROR_STOP on
BEGIN;
INSERT INTO runs(owner, token) VALUES (:'owner', lease_token('nightly', :'owner'));
CALL wait_for_the_others();
SELECT 1 / :divisor;
SELECT 'the whole job was done' AS told \gset
\echo :told
COMMIT;
SCRIPT
$node->safe_psql(
	'postgres', q{
	CREATE TABLE runs (id int GENERATED ALWAYS AS IDENTITY, owner text, token bigint);
	CREATE TABLE busy (owner text);
	CREATE PROCEDURE wait_for_the_others() LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1..3000 LOOP
			EXIT WHEN (SELECT count(*) >= 5 FROM busy);
			PERFORM pg_sleep(0.01);
		END LOOP;
	END $$});

# Six start it at once: (exit code, output) of each.
sub start_six
{
	my ($divisor) = @_;
	my @started;

	$node->safe_psql('postgres', 'TRUNCATE busy, runs');
	for my $i (1 .. 6)
	{
		my $p = { out => '', err => '' };
		$p->{run} = IPC::Run::start(
			[ 'psql', '-X', '-q', '-f', "$dir/guarded.psql", '-v', "owner=worker $i",
				'-v', "divisor=$divisor", '-d', $node->connstr('postgres') ],
			'<', \undef, '>', \$p->{out}, '2>', \$p->{err});
		push @started, $p;
	}
	$_->{run}->finish for @started;
	return map { { code => $_->{run}->full_result >> 8, out => $_->{out}, err => $_->{err} } } @started;
}

my $last = 0;
for my $round (1 .. 2)
{
	my @all = start_six(1);
	is(scalar(grep { $_->{out} =~ /^ran$/m } @all), 1, "round $round: exactly one runs the job");
	is(scalar(grep { $_->{out} =~ /^somebody else runs it$/m } @all), 5, "round $round: the others are turned away");
	is(join(' ', map { $_->{code} } @all), '0 0 0 0 0 0', "round $round: all end well");
	is(join('', map { $_->{err} } @all), '', "round $round: without a word");
	my ($count, $token) = split /\|/, $node->safe_psql('postgres', 'SELECT count(*), max(token) FROM runs');
	is($count, 1, "round $round: the work is there once");
	cmp_ok($token, '>', $last, "round $round: under a higher token");
	$last = $token;
	is($node->safe_psql('postgres', q{SELECT owner IS NULL FROM dist_lock WHERE name = 'nightly'}),
		't', "round $round: the lease was given back");
}

# The job fails.
my @all = start_six(0);
is(join(' ', sort map { $_->{code} } @all), '0 0 0 0 0 3', 'after an error in the job, one script fails');
my ($failed) = grep { $_->{code} } @all;
like($failed->{err}, qr/division by zero.*the job failed/s, 'with the error of the job');
unlike($failed->{out}, qr/whole job/, 'which stopped there');
is($node->safe_psql('postgres', 'SELECT count(*) FROM runs'), 0, 'its work is undone');
is($node->safe_psql('postgres', q{SELECT lease_try('nightly', 'next', '1 min')}),
	't', 'and the lease was released: the next one gets it at once');

# From the shell: the answer of one statement decides.
my $out;
my $shell = q{if [ "$(psql -XAtqd "$DB" -c "SELECT lease_try('nightly', '$0', '1 min')")" = t ]; then echo ran; else echo busy; fi};
{
	local $ENV{DB} = $node->connstr('postgres');
	my @out;
	for my $owner ('other', 'next')
	{
		IPC::Run::run([ 'sh', '-c', $shell, $owner ], '>', \my $said);
		push @out, $said;
	}
	is(join('', @out), "busy\nran\n", 'a shell script sees who holds it');
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
