# The pages about fencing say what works: their examples are run as they are
# printed. And the reference knows every name of the extension.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use Lease::Pages;
use PostgreSQL::Test::Utils;
use Test::More;

my $top = "$FindBin::Bin/../..";
my $node = Lease::Node::make('pages');
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');

# Runs one in psql; what it wrote, and the SQLSTATE if it failed.
sub runs
{
	my ($db, $sql, %vars) = @_;
	my ($out, $err) = ('', '');

	$node->psql($db, $sql, stdout => \$out, stderr => \$err, on_error_stop => 0,
		extra_params => [ '-v', 'VERBOSITY=sqlstate', map { ('-v', "$_=$vars{$_}") } keys %vars ]);
	my ($state) = $err =~ /(?:ERROR|FATAL):\s+(\w{5})/;
	return $state // $out;
}

# README: a fenced table in the same database.
my @readme = examples('README.md', 'Fencing', 'sql');
is(scalar @readme, 2, 'README: two examples');
is(runs('postgres', $readme[0]), '', 'README: the table and its trigger');
unlike(runs('postgres', $readme[1]), qr/^(?!LEASE)[0-9A-Z]{5}$/, 'README: a write behind the fence');
is($node->safe_psql('postgres', 'SELECT count(*) FROM report'), 1, 'it is there');
(my $unfenced = $readme[1]) =~ s/^SELECT lease_fence.*\n//m;
is(runs('postgres', $unfenced), 'LEASE', 'without the fence it fails');
# The lease is lost between the grant and the write.
(my $late = $readme[1]) =~ s/^(?=SELECT lease_fence)/SELECT lease_break('nightly-report');\n/m;
is(runs('postgres', $late), 'LEASE', 'and so it does after the lease was lost');
is($node->safe_psql('postgres', 'SELECT count(*) FROM report'), 1, 'nothing came in');

# doc/fencing.md: the trigger.
my ($begin, $trigger) = examples('doc/fencing.md', 'Tables in the same database', 'sql');
$node->safe_psql('postgres', 'CREATE TABLE work (v int)');
is(runs('postgres', $trigger), '', 'doc/fencing.md: the trigger');
my $token = $node->safe_psql('postgres', q{SELECT lease_token('job', 'a') WHERE lease_try('job', 'a', '1 h')});
is(runs('postgres', 'UPDATE work SET v = 1'), 'LEASE', 'guards');
(my $filled = $begin) =~ s/UPDATE \.\.\./INSERT INTO work VALUES (1)/;
is(runs('postgres', $filled), 'LEASE', 'a token that was made up is refused');
$filled =~ s/\b41\b/$token/;
is(runs('postgres', "$filled SELECT count(*) FROM work"), "\n1", 'the real one passes');

# A table in another database.
my ($ddl, $write, $row) = examples('doc/fencing.md', 'A table in another database', 'sql');
is(runs('elsewhere', $ddl), '', 'the other side is made');
$node->safe_psql('elsewhere', 'CREATE TABLE result (token bigint, body text); CREATE TABLE state (id int PRIMARY KEY, body text, token bigint)');
sub next_token
{
	my ($owner) = @_;
	return $node->safe_psql('postgres', qq{SELECT lease_token('ext', '$owner') WHERE lease_try('ext', '$owner', '1 h')});
}
my $old = next_token('a');
is(runs('elsewhere', $write, token => $old), '', 'a first token is admitted');
is(runs('elsewhere', $write, token => $old), '', 'and again');
$node->safe_psql('postgres', q{SELECT lease_break('ext')});
my $new = next_token('b');
is(runs('elsewhere', $write, token => $old), '', 'the old one, before the new holder has written');
is(runs('elsewhere', $write, token => $new), '', 'a larger one is admitted');
is(runs('elsewhere', $write, token => $old), 'LEASE', 'from then on the old one is refused');
is(runs('elsewhere', $write, token => $new), '', 'and the new one is not');
is($node->safe_psql('elsewhere', "SELECT string_agg(CASE token WHEN $old THEN 'old' ELSE 'new' END, ' ') FROM result"),
	'old old old new new', 'what came in, in this order');
# Another lease is another row.
(my $other = $write) =~ s/'job'/'job2'/;
is(runs('elsewhere', $other, token => $old), '', "the token of another lease is no matter");
# Beside each other: the later one waits for the earlier one, and who is late is refused.
my $first = $node->background_psql('elsewhere', on_error_stop => 0);
$first->query_safe("BEGIN; SELECT admit('race', $old)");
is(runs('elsewhere', "SET lock_timeout = '100 ms'; SELECT admit('race', $new)"), '55P03', 'a write in the middle keeps the next tenure waiting');
$first->query_safe('COMMIT');
$first->query_safe("BEGIN; SELECT admit('race', $new)");
my ($out, $err) = ('', '');
my $late_one = IPC::Run::start([ 'psql', '-XAtq', '-v', 'VERBOSITY=sqlstate', $node->connstr('elsewhere'), '-c', "SELECT admit('race', $old)" ], '>', \$out, '2>', \$err);
$node->poll_query_until('elsewhere', q{SELECT count(*) > 0 FROM pg_locks WHERE NOT granted}) or die;
$first->query_safe('COMMIT');
$late_one->finish;
like($err, qr/LEASE/, 'who comes too late waits, and is refused');
$first->quit;

# A row with the token in it.
is(runs('elsewhere', "$row; SELECT body FROM state WHERE token = $old", token => $old), 'new', 'a row with its token');
$node->safe_psql('elsewhere', "UPDATE state SET token = $new, body = 'newer'");
is(runs('elsewhere', "$row; SELECT body FROM state", token => $old), 'newer', 'a smaller one changes nothing');

# A file.
my ($script) = examples('doc/fencing.md', 'A file', 'sh');
SKIP:
{
	skip 'no flock', 6 if system('flock --version >/dev/null 2>&1') != 0;
	my $file = $node->basedir . '/file';
	my $put = sub { return system('sh', '-c', "$script\nprintf %s \"\$3\" | put \"\$1\" \"\$2\"", 'sh', $file, @_) >> 8; };
	is($put->($old, 'old'), 0, 'a file: the first token');
	is($put->($new, 'new'), 0, 'a larger one');
	is($put->($old, 'late'), 75, 'a smaller one is refused');
	is(slurp_file($file), 'new', 'and has changed nothing');
	is($put->($new, 'newer'), 0, 'the same again');
	is(slurp_file($file), 'newer', 'is in the file');
}

# The reference: every name that SQL can call or read, with its arguments, and every setting.
my $reference = text_of('doc/reference.md');
my @functions = split /\n/, $node->safe_psql('postgres', q{
	SELECT proname || '|' || CASE WHEN proname = 'lease_fenced' THEN '() → trigger' WHEN proname = 'lease_activity' THEN '()'
		ELSE '(' || replace(replace(regexp_replace(pg_get_function_arguments(p.oid), '\mIN ', '', 'g'), '::interval', ''), '::bigint', '') || ')' END
	FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND d.deptype = 'e'
	WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'lease') ORDER BY 1});
is(scalar @functions, 15, 'fifteen functions and procedures');
for my $function (@functions)
{
	my ($name, $arguments) = split /\|/, $function;
	like($reference, qr/^### \Q$name\E$/m, "$name has its place in the reference");
	like($reference, qr/`(?:CALL )?\Q$name$arguments\E/, 'with its arguments as they are');
	like($reference, qr/\(#\Q$name\E\)/, 'and in its table of contents');
}
for my $relation (split /\n/, $node->safe_psql('postgres', q{
	SELECT relname FROM pg_class c JOIN pg_depend d ON d.objid = c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e'
	WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'lease')}))
{
	like($reference, qr/^### \Q$relation\E$|`\Q$relation\E`/m, "$relation is in the reference");
}
for my $column (split /\n/, $node->safe_psql('postgres', q{SELECT attrelid::regclass || '.' || attname FROM pg_attribute WHERE attrelid IN ('leases'::regclass, 'lease_waiters'::regclass) AND attnum > 0}))
{
	my ($view, $name) = split /\./, $column;
	my ($section) = $reference =~ /^### \Q$view\E\n(.*?)^###/ms;
	like($section, qr/^\|.*`\Q$name\E`/m, "$column is in the reference");
}
my %settings = map { $_ => 1 } slurp_file("$top/src/settings.cpp") =~ /"(lease\.\w+)"/g;
is(scalar keys %settings, 2, 'two settings');
for my $setting (sort keys %settings)
{
	like($reference, qr/^\| `\Q$setting\E`/m, "$setting is in the reference");
}
# Links in it, and in the other pages, lead somewhere.
sub anchors { return map { lc($_->[0]) =~ s/[^a-z0-9 _-]//gr =~ s/ /-/gr } sections($_[0]); }

my %anchors = map { my $page = $_; $page => { map { $_ => 1 } anchors($page) } } pages();
for my $page (sort keys %anchors)
{
	my $dir = $page =~ s{[^/]*$}{}r;
	my @broken;
	for my $link (grep { !/^https?:/ } text_of($page) =~ /\]\(([^)\s]+)\)/g)
	{
		my ($file, $anchor) = $link =~ /^([^#]*)#?(.*)$/;
		my $target = $file eq '' ? $page : "$dir$file" =~ s{^doc/\.\./}{}r;
		push @broken, $link if !-e "$top/$target" || $anchor ne '' && !$anchors{$target}{$anchor};
	}
	is("@broken", '', "$page: links lead somewhere");
}

Lease::Node::unhurt($node);
$node->stop;
done_testing();
