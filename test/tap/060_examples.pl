# Every example of README and doc/ is run by some test; those that no other one runs, by this one. What
# doc/recipes.md says of other tools' calls is run, too.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Pages;
use Lease::Session;
use PostgreSQL::Test::Utils;
use Test::More;

# Section, its examples, and who runs them.
my %run_by = (
	'README.md' => [
		[ 'Ten lines', 'sql', 'test/tap/060_examples.pl' ],
		[ 'Two commands', 'sh', '.ci/run' ],
		[ 'Install', 'sh', 'test/pgxs/build.sh' ],
		[ 'Waiting, psql, sessions', 'sql', 'test/tap/060_examples.pl' ],
		[ 'leasectl', 'sh cron', 'test/tap/024_leasectl_recipes.pl' ],
		[ 'Fencing', 'sql sql', 'test/tap/033_pages.pl' ] ],
	'doc/fencing.md' => [
		[ 'Tables in the same database', 'sql sql', 'test/tap/033_pages.pl' ],
		[ 'A table in another database', 'sql sql sql', 'test/tap/033_pages.pl' ],
		[ 'A file', 'sh', 'test/tap/033_pages.pl' ] ],
	'doc/guide.md' => [
		[ 'Waiting', 'sql', 'test/tap/060_examples.pl' ],
		[ 'From psql', 'sql', 'test/tap/009_psql.pl' ],
		[ 'Bound to a session', 'sql', 'test/tap/055_keeper_guide.pl' ],
		[ 'By a timer of systemd', 'ini ini', 'test/tap/024_leasectl_recipes.pl' ] ],
	'doc/monitoring.md' => [
		[ 'Set up', 'sql sh sql yaml', 'test/clients/030_monitoring.pl' ],
		[ 'A job does not run', 'sql sql', 'test/tap/060_examples.pl' ] ],
	'doc/reference.md' => [
		[ 'dist_lock', 'sql', 'test/tap/066_database_owner.pl' ],
		[ 'Failover, restore, move', 'sql', 'test/tap/012_backup.pl' ] ],
	'doc/recipes.md' => [
		[ 'A migration on one of all nodes', 'sh sh sql', 'test/tap/061_recipes.pl' ],
		[ 'A leader, and who follows', 'sh sh sql', 'test/tap/061_recipes.pl' ],
		[ 'Worker slots', 'sql', 'test/tap/061_recipes.pl' ],
		[ 'Once a minute', 'sql', 'test/tap/061_recipes.pl' ],
		[ 'A batch job that cannot write late', 'sql sh sh', 'test/tap/061_recipes.pl' ],
		[ 'Maintenance by psql', 'sh', 'test/tap/061_recipes.pl' ],
		[ 'How long a ttl', 'sql', 'test/tap/060_examples.pl' ],
		[ 'Who may lock', 'sql', 'test/tap/060_examples.pl' ] ]);

for my $page (pages())
{
	my @found = map {
		my ($title, $text) = @$_;
		my @languages = $text =~ /^```(\w+)\n/mg;
		@languages ? [ $title, "@languages" ] : ()
	} sections($page);
	is_deeply(\@found, [ map { [ @$_[ 0, 1 ] ] } @{ $run_by{$page} } ], "$page: each example is run by a test");
	for my $section (@{ $run_by{$page} })
	{
		ok(-e "$FindBin::Bin/../../$_", "$page, $section->[0]: by $_") for split / /, $section->[2];
	}
}
# Those that are no test's business are what the project itself runs.
my ($commands) = examples('README.md', 'Two commands', 'sh');
my $ci = text_of('.ci/run');
is_deeply([ grep { $ci !~ /^\Q$_\E\b/m } $commands =~ /^(make \w+)/mg ], [], 'README: the two commands are run before a change goes in');
my ($install) = examples('README.md', 'Install', 'sh');
my $build = text_of('test/pgxs/build.sh');
is_deeply([ grep { $build !~ /^ok .*\b$_\b/m } $install =~ /^(?:sudo )?(make(?: [a-z]+\b(?!=))?)/mg ], [], 'README: installing is what its test does');
is_deeply([ grep { $build !~ /\b$_=/ } $install =~ /\b([a-z]+)=/g ], [], 'by these variables');
my $deps = text_of('test/harness/deps');
is_deeply([ grep { $deps !~ /echo "?\Q$_\E/ } map { s/-15$//r } grep { !/^make$/ } split ' ', ($install =~ /apt-get install ([^#]*)/)[0] ], [], 'with the packages that the tests install');

my $node = Lease::Node::make('examples');
$node->safe_psql('postgres', 'DROP EXTENSION lease');

sub runs { my ($sql) = @_; return $node->safe_psql('postgres', $sql); }

# README
is(runs(examples('README.md', 'Ten lines', 'sql')), "t\nt\nt", 'README: the ten lines');
my @waiting = split /\n/, runs(examples('doc/guide.md', 'Waiting', 'sql'));
is(scalar @waiting, 3, 'guide: three calls that may wait');
like($waiting[0], qr/^\d{16}$/, 'a token');
is("@waiting[1, 2]", "$waiting[0] $waiting[0]", 'which is still live in the second, and is another one for the third');

# Rights, of both pages
runs(examples('doc/recipes.md', 'Who may lock', 'sql'));
sub as_jobs
{
	my ($sql) = @_;
	$node->psql('postgres', $sql, stderr => \my $err, extra_params => [ '-U', 'jobs', '-v', 'VERBOSITY=sqlstate' ]);
	return $err =~ /(\w{5})$/ ? $1 : '';
}
is(as_jobs(q{SELECT lease_try('hour', 'me', '1 h')}), '', 'recipes: the longest ttl of a role');
is(as_jobs(q{SELECT lease_try('hour', 'me', '61 min')}), '22023', 'and nothing longer');
{
	local $ENV{PGOPTIONS} = '-c lease.max_ttl=0';
	is(as_jobs(q{SELECT lease_try('hour', 'me', '61 min')}), '42501', 'nor by the options of its connection');
	is(as_jobs(q{RESET lease.max_ttl; SELECT lease_try('hour', 'me', '61 min')}), '42501', 'taken back or not');
	is((Lease::Node::answer($node, q{SELECT lease_try('long', 'me', '61 min')}))[0], 't', 'an administrator may say it there');
}
is(as_jobs(q{SELECT lease_break('hour')}), '42501', 'nor may it break');
is((Lease::Node::answer($node, q{SET ROLE operators; SELECT lease_break('hour'), lease_purge('1 h')}))[0], 't|0', 'operators may');

runs('CREATE ROLE anybody');
for my $call (q{SELECT lease_try('job', 'me', '1 s')}, q{SELECT lease_try_any('{job}', 'me', '1 s')}, q{CALL lease_acquire('job', 'me', '1 s', '0')})
{
	is((Lease::Node::answer($node, "SET ROLE anybody; $call"))[1], '42501', "recipes: who may not: $call");
	is((Lease::Node::answer($node, "SET ROLE jobs; $call"))[1], '', "recipes: who may: $call");
}

# doc/recipes.md: how long a ttl
runs(q{SELECT lease_break(name) FROM leases});
runs(q{SELECT lease_try(name, 'me', '30 s') FROM unnest('{calm,late,new}'::text[]) AS name});
runs(q{UPDATE dist_lock SET min_margin = CASE name WHEN 'calm' THEN interval '20 s' WHEN 'late' THEN interval '5 s' END});
is(runs(examples('doc/recipes.md', 'How long a ttl', 'sql')),
	"late|00:00:30|00:00:05|0\ncalm|00:00:30|00:00:20|0\nnew|00:00:30||0", 'recipes: the smallest margins come first');

# doc/recipes.md: what to call instead of another tool's calls
for my $tool ('ShedLock', 'pg_advisory_lock', 'Redis: SET NX', 'etcd')
{
	my ($table) = map { $_->[1] } grep { $_->[0] eq $tool } sections('doc/recipes.md');
	my @calls = $table =~ /^\| .* \| `([^`|]+)` \|$/mg;
	is(scalar @calls, scalar(() = $table =~ /^\| /mg) - 2, "$tool: a call in each row");
	runs(q{SELECT lease_break('report')});
	runs(q{CALL lease_watch('report', 0, '0')});
	my ($out, $state) = Lease::Node::answer($node, join '', map { /\\gset$/ ? "$_\n" : "$_;\n" } @calls);
	is($state, '', "$tool: they work one after the other");
	unlike($out, qr/^f$/m, "$tool: and do what they should");
}

# doc/monitoring.md: a job that does not run
my ($look, $end) = examples('doc/monitoring.md', 'A job does not run', 'sql');
my $forgotten = Lease::Session->connect($node);
my $pid = $forgotten->must('SELECT pg_backend_pid()');
$forgotten->must('BEGIN');
$forgotten->must(q{SELECT lease_try('nightly-report', 'node-a', '1 h')});
like(runs($look), qr/^free\|[^\n]*\nbusy\|$pid\|\d[^\n]*$/, 'monitoring: a forgotten transaction is seen');
is(runs($end), "$pid|t", 'and ended');
$node->poll_query_until('postgres', q{SELECT lease_try('nightly-report', 'node-b', '1 h')}) or die;
like(runs($look), qr/^held\|node-b\|00:59:5\d[^\n]*$/, 'the next one has the lease');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
