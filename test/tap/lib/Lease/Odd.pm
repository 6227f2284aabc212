# Calls that nobody would write: odd arguments for every function and procedure, in odd places. What
# comes out depends on srand() alone. Each statement comes with the SQLSTATEs that the server itself
# may answer with, because of the place; any other error is ours, and has to be in the reference.
package Lease::Odd;

use strict;
use warnings;

# The tables, functions and views that the places need. Nothing of them is called by other tests.
our $setup = q{
	SET client_min_messages = error;
	CREATE TABLE fenced (v int);
	CREATE TRIGGER fenced BEFORE INSERT OR UPDATE ON fenced FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('n1');
	CREATE TABLE plain (v text);
	CREATE TABLE big AS SELECT g AS v FROM generate_series(1, 300) g;
	CREATE FUNCTION on_row() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
	BEGIN
		PERFORM lease_try(coalesce(NEW.name, ''), coalesce(NEW.owner, ''), '1 s');
		RETURN NEW;
	END $$;
	CREATE TRIGGER on_row BEFORE INSERT ON dist_lock FOR EACH ROW WHEN (NEW.name = 'n4' AND pg_trigger_depth() < 2) EXECUTE FUNCTION on_row();
	CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
	CREATE TRIGGER refuse BEFORE INSERT ON dist_lock FOR EACH ROW WHEN (NEW.name = 'n5') EXECUTE FUNCTION refuse();
	ALTER TABLE dist_lock ADD CONSTRAINT no_n6 CHECK (name <> 'n6');
	CREATE FUNCTION labelled_safe(call text) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$ DECLARE v text; BEGIN EXECUTE call INTO v; RETURN v; END $$;
	CREATE TABLE guarded (v text);
	ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
	ANALYZE big};

sub _one_of { return $_[ rand @_ ] }

sub _quoted { my ($text) = @_; return "'" . $text =~ s/'/''/gr . "'" }

# Bytes beyond ASCII, which may be text in that encoding or not.
sub _high_bytes
{
	my ($encoding) = @_;
	my $hex = join '', map { sprintf '%02x%02x', 0xb0 + int rand 0x40, 0xa1 + int rand 0x5d } 1 .. 1 + rand 130;
	$hex = unpack 'H*', join '', map { chr(0xc3) . chr(0x80 + int rand 0x40) } 1 .. 1 + rand 130 if $encoding eq 'UTF8';
	return "convert_from(decode('$hex', 'hex'), '$encoding')";
}

sub text
{
	my ($encoding) = @_;
	return _quoted('n' . int(1 + rand 6)) if rand() < 0.55;
	return _one_of(
		'NULL', "''", "' '", q{E'\\\\'''}, q{E'\\x01\\t\\n'}, '$x$"; DROP$x$', q{'%s%n'}, "repeat('x', 255)", "repeat('x', 256)",
		"repeat('x', 300000)", "repeat(' ', 255)", "lpad('', 254, 'ab')", q{'n1'::varchar(1)}, q{'n1'::name}, q{'n1 '::char(9)},
		q{CAST('n1' AS text) COLLATE "POSIX"}, '(SELECT max(v::text) FROM big)', _high_bytes($encoding), _high_bytes($encoding));
}

sub interval
{
	return _quoted(_one_of('1 s', '1 h', '10 ms', '1 us')) . '::interval' if rand() < 0.5;
	return _one_of(
		'NULL', map { _quoted($_) . '::interval' } '0', '-1 us', '1 month', '-1 month', '1 month -30 days', '178000000 years', '-178000000 years',
		'2147483647 days', '-2147483648 days', '2562047788 hours', '106751991 days', '1 day -24 hours', '36500 days', sprintf('%d us', rand 2**40),
		sprintf('%d months %d days %d us', map { int rand(2**31) - 2**30 } 1 .. 3));
}

sub bigint
{
	return _one_of(
		'NULL', '0', '-1', '9223372036854775807', '(-9223372036854775808)', int(rand 2**50), q{lease_token('n1', 'n2')}, q{lease_token('n2', 'n1')},
		q{(SELECT token FROM dist_lock WHERE name = 'n1')}, q{(SELECT max(token) FROM leases)});
}

sub texts
{
	my ($encoding) = @_;
	my $list = join ', ', map { text($encoding) } 0 .. rand 5;
	return _one_of(
		"ARRAY[$list]::text[]", "ARRAY[$list]::text[]", "ARRAY[$list]::text[]", 'NULL', q{'{}'}, q{'{NULL}'}, q{'{{n1,n2},{n3,n1}}'}, q{'{{{{{{n1}}}}}}'},
		q{'[-5:-4]={n1,n2}'}, q{'[0:1][3:3]={{n1},{n1}}'}, "array_fill('n1'::text, ARRAY[3, 3, 3])", "array_fill('n2'::text, ARRAY[0])",
		q{(SELECT array_agg('m' || g) FROM generate_series(1, 300) g)}, q{array_fill('n3'::text, ARRAY[5000])}, "ARRAY[$list, repeat('x', 100000)]");
}

# Answered to what is in the arguments themselves, before any call: bytes that are no text.
our @of_arguments = qw(22021);

# A call as an expression, whatever its type.
sub call
{
	my ($encoding) = @_;
	my ($name, $owner) = (text($encoding), text($encoding));
	return _one_of(
		sub { "lease_try($name, $owner, " . interval() . ')' },
		sub { "lease_try_any(" . texts($encoding) . ", $owner, " . interval() . ')' },
		sub { "lease_renew($name, $owner, " . interval() . _one_of('', ', ' . bigint(), ', token => ' . bigint()) . ')' },
		sub { "lease_renew_all(" . texts($encoding) . ", $owner, " . interval() . ')' },
		sub { "lease_release($name, $owner" . _one_of('', ', ' . interval(), ', token => ' . bigint(), ', ' . interval() . ', ' . bigint()) . ')' },
		sub { "lease_token($name, $owner)" },
		sub { "lease_attach($name, $owner)" },
		sub { "lease_detach($name, $owner)" },
		sub { "lease_fence($name, " . bigint() . ')' },
		sub { "lease_break($name)" },
		sub { 'lease_purge(' . interval() . ')' },
		sub { '(SELECT count(*) FROM lease_activity())' })->();
}

# One call inside another's arguments.
sub _nested
{
	my ($encoding) = @_;
	return sprintf 'lease_try(%s, coalesce((%s)::text, %s), %s)', text($encoding), call($encoding), text($encoding), interval();
}

# The server lets no subquery be an argument of these.
sub _procedure
{
	my ($encoding) = @_;
	my $call;
	do
	{
		$call = _one_of(
			sprintf('CALL lease_acquire(%s, %s, %s, %s)', text($encoding), text($encoding), interval(), interval()),
			sprintf('CALL lease_watch(%s, %s, %s)', text($encoding), bigint(), interval()));
	} while $call =~ /SELECT/;
	return $call;
}

# [statement, SQLSTATEs of the server's own]. %s is a call. A message of several statements is one
# transaction; what begins a block ends it.
my @places = (
	['SELECT %s'],
	['SELECT %s'],
	['SELECT %s'],
	['SELECT %s WHERE (%s) IS NOT NULL'],
	['BEGIN; SELECT %s; SELECT %s; COMMIT'],
	['BEGIN; SELECT %s; SAVEPOINT s; SELECT %s; ROLLBACK TO s; SELECT %s; ROLLBACK'],
	['BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT %s; SELECT %s; COMMIT'],
	['BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT %s; SELECT %s; COMMIT'],
	['BEGIN READ ONLY; SELECT %s; COMMIT'],
	['WITH c AS MATERIALIZED (SELECT (%s)::text AS v), d AS (SELECT (%s)::text AS v FROM c) SELECT * FROM c, d'],
	['WITH RECURSIVE r (n, v) AS (SELECT 1, (%s)::text COLLATE "C" UNION ALL SELECT n + 1, (%s)::text COLLATE "C" FROM r WHERE n < 3) TABLE r'],
	['WITH w AS (INSERT INTO plain VALUES ((%s)::text) RETURNING v, (%s)::text) SELECT * FROM w'],
	['UPDATE plain SET v = (%s)::text RETURNING (%s)::text'],
	['MERGE INTO plain USING (SELECT (%s)::text AS v) s ON plain.v = s.v WHEN NOT MATCHED THEN INSERT VALUES ((%s)::text) WHEN MATCHED THEN DELETE'],
	['INSERT INTO fenced SELECT 1 WHERE (%s) IS NOT NULL'],
	['BEGIN; SELECT %s; INSERT INTO fenced VALUES (1); COMMIT'],
	['BEGIN; DECLARE c CURSOR FOR SELECT v, %s FROM big; FETCH 3 FROM c; CLOSE c; COMMIT'],
	['BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT %s; COMMIT; FETCH c; CLOSE c'],
	['DEALLOCATE ALL; PREPARE p AS SELECT %s; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p; EXECUTE p'],
	['SELECT v, (%s)::text FROM big WHERE v < 4 ORDER BY 2'],
	['SELECT count(*) FILTER (WHERE (%s) IS NOT NULL), max((%s)::text) FROM big WHERE v < 5'],
	['SELECT row_number() OVER (ORDER BY (%s)::text) FROM big WHERE v < 4'],
	['SELECT * FROM (VALUES (1), (2)) t (v), LATERAL (SELECT (%s)::text OFFSET 0) s'],
	['EXPLAIN (ANALYZE, TIMING OFF) SELECT %s'],
	['SET LOCAL force_parallel = on; SELECT %s'],
	['SET LOCAL force_parallel = on; SELECT labelled_safe($call$ SELECT %s $call$)'],
	['CREATE TEMP TABLE made AS SELECT (%s)::text AS v; DROP TABLE made'],
	['CREATE TEMP VIEW made AS SELECT (%s)::text AS v; SELECT * FROM made; DROP VIEW made'],
	['CREATE MATERIALIZED VIEW made AS SELECT (%s)::text AS v; DROP MATERIALIZED VIEW made'],
	['CREATE TEMP TABLE made (v int, CHECK ((%s) IS NOT NULL)); INSERT INTO made VALUES (1); DROP TABLE made', '0A000'],
	['CREATE TEMP TABLE made (v text DEFAULT (%s)::text, w int); INSERT INTO made (w) VALUES (1); DROP TABLE made', '0A000'],
	['CREATE TEMP TABLE made (v int, w text GENERATED ALWAYS AS ((%s)::text) STORED)', qw(42P17 0A000)],
	['CREATE INDEX made ON plain ((coalesce((%s)::text, v)))', qw(42P17 0A000)],
	['CREATE INDEX made ON plain (v) WHERE (%s) IS NOT NULL', qw(42P17 0A000)],
	['CREATE POLICY made ON guarded USING ((%s) IS NOT NULL); SELECT * FROM guarded; DROP POLICY made ON guarded'],
	['CREATE TEMP TABLE made (v int); CREATE RULE r AS ON INSERT TO made DO ALSO SELECT %s; INSERT INTO made VALUES (1); DROP TABLE made'],
	['DO $do$ BEGIN PERFORM %s; PERFORM %s; END $do$'],
	['DO $do$ BEGIN PERFORM %s; EXCEPTION WHEN OTHERS THEN PERFORM %s; END $do$'],
	['DO $do$ BEGIN PERFORM %s; ROLLBACK; PERFORM %s; COMMIT; END $do$'],
	['DO $do$ DECLARE r record; BEGIN FOR r IN SELECT v, (%s)::text FROM big WHERE v < 4 LOOP PERFORM %s; END LOOP; END $do$'],
	['CREATE FUNCTION made() RETURNS text LANGUAGE sql SECURITY DEFINER BEGIN ATOMIC SELECT (%s)::text; END; SELECT made(); DROP FUNCTION made()'],
	['SELECT lease_fenced()', '0A000'],
	['SELECT name, state, waiters FROM leases WHERE (%s) IS NOT NULL'],
	['SELECT * FROM lease_waiters, LATERAL (SELECT %s) s'],
	['TABLE dist_lock']);

# (statement, the server's own SQLSTATEs)
sub statement
{
	my ($encoding, $parallel) = @_;
	return (_procedure($encoding), @of_arguments) if rand() < 0.08;
	return ('BEGIN; ' . _procedure($encoding) . '; ' . _procedure($encoding) . '; COMMIT', @of_arguments) if rand() < 0.03;
	return ('DO $do$ DECLARE t bigint; BEGIN ' . _procedure($encoding) =~ s/\)$/, t)/r . '; END $do$', @of_arguments) if rand() < 0.03;
	my ($place, @states) = @{ _one_of(@places) };
	$place =~ s/force_parallel\b/$parallel/;
	$place =~ s/%s/rand() < 0.1 ? _nested($encoding) : call($encoding)/ge;
	return ($place, @states, @of_arguments);
}

1;
