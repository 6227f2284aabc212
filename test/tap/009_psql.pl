# The psql script that doc/guide.md shows: of many that start it, one runs the
# job; the lease is given back at the end, after an error, too.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Pages;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $node = Lease::Node::make('psql');
my $dir = $node->basedir;

sub sql { return $node->safe_psql('postgres', @_) }

my ($script) = examples('doc/guide.md', 'From psql', 'sql');
like($script, qr/\\gset\n\\if :got\n/, 'the guide shows a psql script');
append_to_file("$dir/nightly.sql", $script);
# This job goes on until the test has seen all the others turned away.
append_to_file("$dir/report.sql", <<'SCRIPT');
\set ON_ERROR_STOP on
BEGIN;
INSERT INTO runs VALUES (:'owner', lease_token('nightly-report', :'owner'));
CALL wait_for_go();
SELECT 1 / divisor FROM go;
COMMIT;
\echo 'the whole job was done'
SCRIPT
sql(q{
	CREATE TABLE runs (owner text, token bigint);
	CREATE TABLE go (divisor int);
	CREATE PROCEDURE wait_for_go() LANGUAGE plpgsql AS $$
	BEGIN
		FOR i IN 1..3000 LOOP
			EXIT WHEN EXISTS (SELECT FROM go);
			PERFORM pg_sleep(0.01);
		END LOOP;
	END $$});

# Six start it at once: (exit code, output) of each.
sub start_six
{
	my ($divisor) = @_;
	my @all;

	sql('TRUNCATE go, runs');
	for my $i (1 .. 6)
	{
		my $p = { out => '', err => '' };
		$p->{run} = IPC::Run::start(
			[ 'psql', '-Xqf', "$dir/nightly.sql", '-v', "owner=worker $i", '-d', $node->connstr('postgres') ],
			'<', \undef, '>', \$p->{out}, '2>', \$p->{err});
		push @all, $p;
	}
	for (1 .. 3000)
	{
		my @busy = grep { $_->{run}->pumpable } @all;
		last if @busy <= 1;
		$_->{run}->pump_nb for @busy;
		sleep 0.01;
	}
	sql("INSERT INTO go VALUES ($divisor)");
	$_->{run}->finish for @all;
	return map { { code => $_->{run}->full_result >> 8, out => $_->{out}, err => $_->{err} } } @all;
}

my $last = 0;
for my $round (1 .. 2)
{
	my @all = start_six(1);
	is(scalar(grep { $_->{out} =~ /^the whole job was done$/m } @all), 1, "round $round: exactly one runs the job");
	is(scalar(grep { $_->{out} =~ /^another node has it$/m } @all), 5, "round $round: the others are turned away");
	is(join(' ', map { $_->{code} } @all), '0 0 0 0 0 0', "round $round: all end well");
	is(join('', map { $_->{err} } @all), '', "round $round: without a word");
	my ($count, $token) = split /\|/, sql('SELECT count(*), max(token) FROM runs');
	is($count, 1, "round $round: the work is there once");
	cmp_ok($token, '>', $last, "round $round: under a higher token");
	$last = $token;
	is(sql(q{SELECT owner IS NULL FROM dist_lock}), 't', "round $round: the lease was given back");
}

# The job fails.
my @all = start_six(0);
is(join(' ', sort map { $_->{code} } @all), '0 0 0 0 0 3', 'after an error in the job, one script fails');
my ($failed) = grep { $_->{code} } @all;
like($failed->{err}, qr/division by zero.*the report failed/s, 'with the error of the job');
unlike($failed->{out}, qr/whole job/, 'which stopped there');
is(sql('SELECT count(*) FROM runs'), 0, 'its work is undone');
is(sql(q{SELECT lease_try('nightly-report', 'next', '1 min')}),
	't', 'and the lease was released: the next one gets it at once');

# From a shell: the answer of one statement decides.
{
	local $ENV{DB} = $node->connstr('postgres');
	my $shell = q{if [ "$(psql -XAtqd "$DB" -c "SELECT lease_try('nightly-report', '$0', '1 min')")" = t ]; then echo ran; else echo busy; fi};
	my @said;
	for my $owner ('other', 'next')
	{
		IPC::Run::run([ 'sh', '-c', $shell, $owner ], '>', \my $said);
		push @said, $said;
	}
	is(join('', @said), "busy\nran\n", 'a shell script sees who holds it');
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
