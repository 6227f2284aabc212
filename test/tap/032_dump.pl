# Dump and restore into a new database: no error, live leases are live until
# their expiry, and the next token is higher than any before.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('dump');
sub sql { return $node->safe_psql(@_) }

sql('postgres', q{
	CREATE ROLE regress_lease_job;
	CREATE ROLE regress_lease_admin;
	GRANT EXECUTE ON FUNCTION lease_break(text) TO regress_lease_admin;
	REVOKE EXECUTE ON FUNCTION lease_try(text, text, interval) FROM PUBLIC;
	GRANT EXECUTE ON FUNCTION lease_try(text, text, interval) TO regress_lease_job;
	CREATE TABLE work (v int);
	INSERT INTO work VALUES (1);
	CREATE TRIGGER fenced BEFORE INSERT ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('live');
	CREATE VIEW report AS SELECT name, state FROM leases});
sql('postgres', q{SET ROLE regress_lease_job;
	SELECT lease_try('live', 'a', '1 h'), lease_try('released', 'a', '1 h'), lease_release('released', 'a'), lease_try('cooling', 'a', '1 h'), lease_release('cooling', 'a', '1 h')});
sql('postgres', q{SELECT lease_try(E'odd \' " \\\\ \t \u00e9', E'o\'\\\\', '1 h'), lease_try('short', 'a', '1 s'), lease_renew('live', 'a', '1 h');
	INSERT INTO dist_lock (name, token, owner, expiry) VALUES ('for ever', 5, 'x', 'infinity'), ('null', 5, NULL, NULL)});
sql('postgres', q{SELECT lease_try('many', 'a', '1 h'), lease_release('many', 'a')}) for 1 .. 20;
my $highest = sql('postgres', 'SELECT max(token) FROM dist_lock');
my $rows = sql('postgres', 'SELECT d::text FROM dist_lock d ORDER BY name');
my $dir = $node->basedir;
my @host = ('-h', $node->host, '-p', $node->port);

# What a restored database has to say. $data: rows came with it.
sub check
{
	my ($db, $what, $data) = @_;
	my $live = sql($db, q{SELECT lease_token('live', 'a')});

	is(sql($db, 'SELECT d::text FROM dist_lock d ORDER BY name'), $data ? $rows : '', "$what: " . ($data ? 'all rows, as they were' : 'no rows'));
	if ($data)
	{
		is($live, sql('postgres', q{SELECT lease_token('live', 'a')}), "$what: a live lease is live");
		is(sql($db, q{SELECT lease_try('live', 'b', '1 h'), lease_try('cooling', 'b', '1 h'), lease_try('for ever', 'b', '1 h')}), 'f|f|f', "$what: for others, too");
		is(sql($db, qq{SET ROLE regress_lease_job; SELECT lease_renew('live', 'a', '1 h'), lease_fence('live', $live) IS NOT NULL}), 't|t', "$what: its holder goes on");
		$node->poll_query_until($db, q{SELECT lease_try('short', 'b', '1 h')}) or die;
		is(sql($db, q{SELECT takeovers FROM leases WHERE name = 'short'}), 1, "$what: until its expiry");
	}
	cmp_ok(sql($db, qq{SELECT lease_token('$_', 'z') WHERE lease_try('$_', 'z', '1 h')}), '>', $highest, "$what: the next token of '$_' is higher than any before")
	  for 'released', 'many', 'new', 'null';
	return;
}

sub restored
{
	my ($db, @command) = @_;
	my ($out, $err) = ('', '');
	my $fine = IPC::Run::run(\@command, '>', \$out, '2>', \$err);
	ok($fine && $err eq '', "$db: restored without an error or a warning") or diag($err);
	return;
}

# Whole, as text.
command_checks_all([ 'pg_dump', @host, '-f', "$dir/plain.sql", 'postgres' ], 0, [qr/^$/], [qr/^$/], 'plain dump, without a warning');
my $text = slurp_file("$dir/plain.sql");
unlike($text, qr/setval|CREATE TABLE \S*dist_lock/, 'it sets no sequence back, and leaves the objects to CREATE EXTENSION');
sql('postgres', 'CREATE DATABASE plain');
restored('plain', 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', @host, '-o', File::Spec->devnull, '-f', "$dir/plain.sql", 'plain');
check('plain', 'plain', 1);
is(sql('plain', q{SELECT has_function_privilege('regress_lease_admin', 'lease_break(text)', 'EXECUTE'), has_function_privilege('regress_lease_admin', 'lease_try(text, text, interval)', 'EXECUTE'),
	has_function_privilege('regress_lease_job', 'lease_try(text, text, interval)', 'EXECUTE'), has_function_privilege('regress_lease_job', 'lease_purge(interval)', 'EXECUTE')}),
	't|f|t|f', 'rights that an administrator gave and took are there');
is_deeply([ Lease::Node::answer($node, 'INSERT INTO work VALUES (1)', 'plain') ], [ '', 'LEASE' ], 'fenced tables are fenced');
is(sql('plain', q{SELECT state FROM report WHERE name = 'live'}), 'held', 'views on our views are there');

# Custom format, in two jobs; and a dump of the restored one, which is the same again.
command_ok([ 'pg_dump', @host, '-Fc', '-f', "$dir/custom", 'postgres' ], 'custom dump');
sql('postgres', 'CREATE DATABASE custom');
restored('custom', 'pg_restore', @host, '-j', '2', '-e', '-d', 'custom', "$dir/custom");
check('custom', 'custom', 1);
command_ok([ 'pg_dump', @host, '-Fc', '-f', "$dir/custom2", 'custom' ], 'dump of the restored');
my $again = sql('custom', 'SELECT max(token) FROM dist_lock');
sql('postgres', 'CREATE DATABASE custom2');
restored('custom2', 'pg_restore', @host, '-e', '-d', 'custom2', "$dir/custom2");
cmp_ok(sql('custom2', q{SELECT lease_token('new2', 'z') WHERE lease_try('new2', 'z', '1 h')}), '>', $again, 'and tokens rise again');
# Over itself, with --clean.
restored('custom over itself', 'pg_restore', @host, '-e', '--clean', '--if-exists', '-d', 'custom2', "$dir/custom");
cmp_ok(sql('custom2', q{SELECT lease_token('new3', 'z') WHERE lease_try('new3', 'z', '1 h')}), '>', $again, 'an older dump put over a newer database: tokens rise');

# The schema only.
command_ok([ 'pg_dump', @host, '--schema-only', '-f', "$dir/schema.sql", 'postgres' ], 'dump of the schema');
sql('postgres', 'CREATE DATABASE schema_only');
restored('schema_only', 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', @host, '-o', File::Spec->devnull, '-f', "$dir/schema.sql", 'schema_only');
check('schema_only', 'schema only', 0);

# The table alone, into a database that has the extension.
command_ok([ 'pg_dump', @host, '-t', 'dist_lock', '-f', "$dir/table.sql", 'postgres' ], 'dump of the table');
sql('postgres', 'CREATE DATABASE table_only');
sql('table_only', 'CREATE EXTENSION lease');
restored('table_only', 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', @host, '-o', File::Spec->devnull, '-f', "$dir/table.sql", 'table_only');
check('table_only', 'table only', 1);

# The data of a fenced table, into one that is there.
my @data_of_work = ('pg_restore', @host, '-d', 'schema_only', '--data-only', '-t', 'work', "$dir/custom");
command_fails_like(\@data_of_work, qr/can only be written behind the fence/, 'data for a fenced table are refused');
restored('schema_only', @data_of_work, '--disable-triggers');
is(sql('schema_only', 'SELECT count(*) FROM work'), 1, 'unless its triggers are left out');

# The data alone; the extension alone.
command_ok([ 'pg_dump', @host, '--data-only', '-t', 'dist_lock', '-f', "$dir/data.sql", 'postgres' ], 'dump of the data');
sql('postgres', 'CREATE DATABASE data_only');
sql('data_only', 'CREATE EXTENSION lease');
restored('data_only', 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', @host, '-o', File::Spec->devnull, '-f', "$dir/data.sql", 'data_only');
check('data_only', 'data only', 1);
# A sequence that somebody dumped and restored by hand is set back: the row says how far its tokens came.
my $before = sql('data_only', q{SELECT token FROM dist_lock WHERE name = 'many'});
sql('data_only', q{SELECT lease_release('many', 'z'); SELECT setval('dist_lock_token', 1)});
cmp_ok(sql('data_only', q{SELECT lease_token('many', 'z') WHERE lease_try('many', 'z', '1 h')}), '>', $before, 'a sequence set back by hand: the next token of a lease is higher than its row says');
cmp_ok(sql('data_only', q{SELECT lease_token('new2', 'z') WHERE lease_try('new2', 'z', '1 h')}), '>', $before, 'and the sequence is moved up for the others');

# A whole cluster's dump has the role names, and the text of a role outlives its OID.
command_ok([ 'pg_dumpall', @host, '-f', "$dir/all.sql" ], 'pg_dumpall');
my $other = PostgreSQL::Test::Cluster->new('other');
$other->init(extra => [ '--encoding=UTF8', '--locale=C' ]);
$other->start;
my $user = $other->safe_psql('postgres', 'SELECT current_user');
my ($out, $err) = ('', '');
IPC::Run::run([ 'psql', '-X', '-q', '-h', $other->host, '-p', $other->port, '-o', File::Spec->devnull, '-f', "$dir/all.sql", 'postgres' ], '2>', \$err);
is(join("\n", grep { /ERROR/ && !/role "\Q$user\E" already exists/ } split /\n/, $err), '', 'restored into another cluster');
my $live = $other->safe_psql('postgres', q{SELECT lease_token('live', 'a')});
is($other->safe_psql('postgres', qq{SET ROLE regress_lease_job; SELECT lease_renew('live', 'a', '1 h', $live)}), 't', 'the holder goes on there');
cmp_ok($other->safe_psql('postgres', q{SELECT lease_token('new', 'z') WHERE lease_try('new', 'z', '1 h')}), '>', $highest, 'with higher tokens');
$other->stop;

Lease::Node::unhurt($node);
$node->stop;
done_testing();
