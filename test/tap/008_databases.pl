# Leases in other encodings, in a dump and in what is restored from it, and
# beside an extension that was dropped and made again.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Lease::Node;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = Lease::Node::make('databases');

# LATIN1
$node->safe_psql('postgres',
	"CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'");
$node->safe_psql('latin', 'CREATE EXTENSION lease');
# All that one byte can be, as the name of a lease and of its owner.
my $each = q{FROM (SELECT 'x' || convert_from(set_byte('\x00', 0, i), 'LATIN1') AS name
	FROM generate_series(1, 255) i) n};
is( $node->safe_psql('latin', qq{SELECT count(*), count(DISTINCT name) $each
		WHERE lease_try(name, 'o' || name, '1 hour')}),
	'255|255', 'LATIN1: 255 names, each one taken');
is( $node->safe_psql('latin', qq{SELECT count(*), count(DISTINCT token)
		FROM (SELECT lease_token(name, 'o' || name) AS token $each) t}),
	'255|255', 'LATIN1: distinct names are distinct leases');
is( $node->safe_psql('latin', qq{
		SELECT count(*) $each WHERE (SELECT octet_length(l.name) = 2 AND l.owner = 'o' || l.name
			FROM dist_lock l WHERE l.name = n.name)}),
	'255', 'LATIN1: names and owners come back byte for byte');
is( $node->safe_psql('latin', qq{
		WITH a AS MATERIALIZED (SELECT array_agg(name) AS names $each)
		SELECT lease_renew_all(names || 'none'::text, 'ox' || chr(233), '1 hour') = ARRAY['x' || chr(233)],
			lease_try_any(names, 'ox' || chr(232), '1 hour') = 'x' || chr(232) FROM a}),
	't|t', 'LATIN1: arrays, too');
my $e = "\xc3\xa9";    # e with acute, as a client that speaks UTF8 sends it
my $utf8 = q{SET client_encoding = 'UTF8';};
is( $node->safe_psql('latin', qq{$utf8
		SELECT lease_try('caf$e', 'Ren$e', '1 hour'), lease_try('cafe', 'b', '1 hour'),
			lease_token('caf$e', 'Ren$e') = token, octet_length(name), name
		FROM dist_lock WHERE name = 'x$e'}) =~ s/\|f?\|/|?|/r,
	"t|t|?|2|x$e", 'LATIN1: a client that speaks UTF8');
is_deeply(
	[ Lease::Node::answer($node, qq{$utf8 SELECT lease_try('cafe\xcc\x81', 'a', '1 hour')}, 'latin') ],
	[ '', '22P05' ], 'LATIN1: a decomposed accent has no place there');
for my $case ([ 'latin', 255, 't', '' ], [ 'latin', 256, '', '22023' ],
	[ 'postgres', 127, 't', '' ], [ 'postgres', 128, '', '22023' ])
{
	my ($db, $length, @answer) = @$case;
	is_deeply(
		[ Lease::Node::answer($node, qq{$utf8 SELECT lease_try(repeat('$e', $length), 'a', '1 hour')}, $db) ],
		\@answer, "$db: a name of $length accented letters");
}
is( $node->safe_psql('postgres', qq{$utf8
		SELECT lease_try('caf$e', 'a', '1 hour'), lease_try('cafe\xcc\x81', 'b', '1 hour'),
			lease_try('CAF$e', 'c', '1 hour'), lease_try('cafe', 'd', '1 hour'),
			lease_try('cafe ', 'e', '1 hour')}),
	't|t|t|t|t', 'UTF8: composed, decomposed, upper case, blank: other leases');

# Dump and restore
sub dump_of
{
	my ($db, @options) = @_;
	my $file = $node->basedir . "/$db.dump";

	$node->command_ok([ 'pg_dump', @options, '-f', $file, '-d', $node->connstr($db) ],
		"pg_dump @options of $db");
	return $file;
}

sub next_token
{
	my ($db, $name) = @_;
	return $node->safe_psql($db,
		"SELECT lease_token('$name', 'next') WHERE lease_try('$name', 'next', '1 hour')");
}

$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', q{
	CREATE SCHEMA "Odd $1 schema"; CREATE EXTENSION lease SCHEMA "Odd $1 schema";
	ALTER DATABASE source SET search_path = "Odd $1 schema", public});
$node->safe_psql('source', q{
	SELECT lease_try('live', 'a', '1 hour');
	SELECT lease_try('over', 'a', '1 ms');
	SELECT lease_try('kept', 'a', '1 hour'), lease_release('kept', 'a', '1 hour');
	SELECT lease_try('given back', 'a', '1 hour'), lease_release('given back', 'a')});
my $rows = 'SELECT * FROM dist_lock ORDER BY name';
my $before = $node->safe_psql('source', $rows);
my ($live, $highest) = split /\|/, $node->safe_psql('source',
	q{SELECT lease_token('live', 'a'), last_value FROM dist_lock_token});
my $plain = dump_of('source');

unlike(slurp_file($plain), qr/setval/, 'the dump does not set the tokens back');
for my $how ('psql', 'pg_restore')
{
	my $db = "by_$how";
	$node->safe_psql('postgres', "CREATE DATABASE $db");
	if ($how eq 'psql')
	{
		$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $plain, '-d', $node->connstr($db) ],
			'restored by psql');
	}
	else
	{
		$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', $node->connstr($db), dump_of('source', '-Fc') ],
			'restored by pg_restore');
	}
	$node->safe_psql('postgres', qq{ALTER DATABASE $db SET search_path = "Odd \$1 schema", public});
	is($node->safe_psql($db, $rows), $before, "$how: the rows as they were");
	is($node->safe_psql($db, q{SELECT lease_token('live', 'a')}), $live,
		"$how: a live lease is live, with its token");
	is($node->safe_psql($db, q{SELECT lease_try('live', 'b', '1 h'), lease_try('kept', 'b', '1 h'), lease_renew('live', 'a', '1 h')}),
		'f|f|t', "$how: its holder renews it, others do not get it, nor what is kept from them");
	for my $name ('over', 'given back', 'new')
	{
		cmp_ok(next_token($db, $name), '>', $highest, "$how: next token of '$name' is higher than all before the dump");
	}
}

# DROP and CREATE EXTENSION
($highest) = $node->safe_psql('source', 'SELECT last_value FROM dist_lock_token');
$node->safe_psql('source', 'DROP EXTENSION lease; CREATE EXTENSION lease');
cmp_ok(next_token('source', 'live'), '>', $highest, 'DROP and CREATE EXTENSION: the next token is higher');

# Rows of an old dump put back into the same database
$highest = next_token('source', 'again');
my $data = dump_of('by_psql', '--data-only');
$node->safe_psql('source', 'DELETE FROM dist_lock');
$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $data, '-d', $node->connstr('source') ],
	'rows of another database restored');
cmp_ok(next_token('source', 'again'), '>', $highest, 'the next token is higher');
$node->safe_psql('source', q{UPDATE dist_lock SET token = 9000000000000000000 WHERE name = 'over';
	UPDATE dist_lock SET owner = NULL, expiry = NULL});
cmp_ok(next_token('source', 'over'), '>', 9000000000000000000, 'higher than a hand-made token, too');
cmp_ok(next_token('source', 'later'), '>', 9000000000000000000, 'and so is the next of any other lease');

Lease::Node::unhurt($node);
$node->stop;
done_testing();
