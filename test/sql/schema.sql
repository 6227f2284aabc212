-- The extension works in any schema, under any search_path, and calls nothing
-- that it finds there.

-- The first schema of search_path, or the one that is named.
CREATE SCHEMA lease_home;
SET search_path = lease_home, public;
CREATE EXTENSION lease;
SELECT extnamespace::regnamespace, extrelocatable FROM pg_extension WHERE extname = 'lease';
SELECT lease_try('job', 'a', '1 h');
SELECT count(*) FROM lease_home.dist_lock;
ALTER EXTENSION lease SET SCHEMA public;
RESET search_path;
SELECT lease_home.lease_try('job', 'b', '1 h'), lease_home.lease_try('job2', 'b', '1 h');

-- CREATE, call, DROP, CREATE again, call, with plans that stay.
PREPARE take AS SELECT lease_home.lease_try('job', 'a', '1 h');
EXECUTE take;
CREATE FUNCTION take() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN lease_home.lease_try('job', 'a', '1 h'); END $$;
SELECT take();
DROP EXTENSION lease;
\set VERBOSITY sqlstate
EXECUTE take;
SELECT take();
\set VERBOSITY default
CREATE EXTENSION lease SCHEMA lease_home;
EXECUTE take;
SELECT take();
SELECT name, owner, grants FROM lease_home.dist_lock;
DROP EXTENSION lease;
CREATE EXTENSION lease SCHEMA lease_home;
SELECT lease_home.lease_token('job', 'a'), lease_home.lease_renew('job', 'a', '1 h');
SELECT take();
DEALLOCATE take;
DROP FUNCTION take();

-- All in one transaction, which is rolled back.
DROP EXTENSION lease;
BEGIN;
CREATE EXTENSION lease SCHEMA lease_home;
SELECT lease_home.lease_try('job', 'a', '1 h'), lease_home.lease_renew('job', 'a', '1 h');
DROP EXTENSION lease;
CREATE EXTENSION lease SCHEMA public;
SELECT public.lease_try('job', 'b', '1 h'), public.lease_release('job', 'b');
ROLLBACK;
CREATE EXTENSION lease SCHEMA lease_home;
SELECT lease_home.lease_try('job', 'c', '1 h');

-- Dropped and made in one transaction, with calls on both sides.
BEGIN;
SELECT lease_home.lease_renew('job', 'c', '1 h');
DROP EXTENSION lease;
CREATE EXTENSION lease SCHEMA lease_home;
SELECT lease_home.lease_token('job', 'c'), lease_home.lease_try('job', 'd', '1 h');
ROLLBACK;
SELECT lease_home.lease_try('job', 'd', '1 h'), lease_home.lease_renew('job', 'c', '1 h');

-- The schema is renamed between calls.
ALTER SCHEMA lease_home RENAME TO lease_home2;
SELECT lease_home2.lease_renew('job', 'c', '1 h'), lease_home2.lease_try('job3', 'c', '1 h'), lease_home2.lease_try('job', 'd', '1 h');
CREATE SCHEMA lease_home;
CREATE TABLE lease_home.dist_lock (LIKE lease_home2.dist_lock INCLUDING ALL);
SELECT lease_home2.lease_try('job4', 'c', '1 h'), lease_home2.lease_release('job', 'c');
SELECT count(*) FROM lease_home.dist_lock;
DROP EXTENSION lease;
DROP TABLE lease_home.dist_lock;
DROP SCHEMA lease_home, lease_home2;

-- It adopts nothing that it finds.
\set VERBOSITY sqlstate
CREATE SCHEMA taken;
CREATE TABLE taken.dist_lock (name text PRIMARY KEY);
CREATE EXTENSION lease SCHEMA taken;
DROP TABLE taken.dist_lock;
CREATE SEQUENCE taken.dist_lock_token;
CREATE EXTENSION lease SCHEMA taken;
DROP SEQUENCE taken.dist_lock_token;
CREATE FUNCTION taken.lease_try(text, text, interval) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE EXTENSION lease SCHEMA taken;
DROP FUNCTION taken.lease_try(text, text, interval);
CREATE FUNCTION taken.lease_token(text, text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
CREATE EXTENSION lease SCHEMA taken;
DROP FUNCTION taken.lease_token(text, text);
\set VERBOSITY default
SELECT count(*) FROM pg_class WHERE relnamespace = 'taken'::regnamespace;
DROP SCHEMA taken;

-- Odd names of schemas.
CREATE FUNCTION in_schema(schema text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE
    q text := quote_ident(schema);
    answer text;
BEGIN
    EXECUTE format('CREATE SCHEMA %s', q);
    EXECUTE format('CREATE EXTENSION lease SCHEMA %s', q);
    EXECUTE format($$SELECT concat_ws(' ', %1$s.lease_try('j', 'a', '1 h'), %1$s.lease_try('j', 'b', '1 h'),
        %1$s.lease_renew('j', 'a', '1 h'), %1$s.lease_renew_all(ARRAY['j'], 'a', '1 h'), %1$s.lease_try_any(ARRAY['j', 'i'], 'b', '1 h'),
        %1$s.lease_token('j', 'a') IS NOT NULL, %1$s.lease_release('j', 'a'), %1$s.lease_try('j', 'b', '1 h'))$$, q) INTO answer;
    EXECUTE format('SELECT $1 || '' '' || count(*) FROM %s.dist_lock', q) INTO answer USING answer;
    DROP EXTENSION lease;
    EXECUTE format('DROP SCHEMA %s', q);
    RETURN answer;
END $f$;
SELECT schema, in_schema(schema) FROM (VALUES ('lease'), ('with blanks '), ('it''s "quoted"'), ('$dollar$'), ('$$'), ('a.b'), ('Select'), ('%s'), ('\'), ('@extschema@'), (repeat('x', 63))) v (schema);
DROP FUNCTION in_schema(text);

-- An empty search_path.
CREATE SCHEMA lease_home;
CREATE EXTENSION lease SCHEMA lease_home;
SET search_path = '';
SELECT lease_home.lease_try('job', 'a', '1 h'), lease_home.lease_try('job', 'b', '1 h'), lease_home.lease_renew('job', 'a', '1 h'),
       lease_home.lease_renew_all(ARRAY['job'], 'a', '1 h'), lease_home.lease_try_any(ARRAY['job', 'slot'], 'c', '1 h'),
       lease_home.lease_token('job', 'a') IS NOT NULL AS token, lease_home.lease_release('job', 'a');
RESET search_path;

-- A hostile one: every function, operator, type and table that the module or
-- its script could name, in front of pg_catalog; each of them raises an error.
CREATE SCHEMA hostile;
CREATE FUNCTION hostile.trap() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hostile code was called'; END $$;
DO $do$
DECLARE
    op text;
    type regtype;
    body text := 'LANGUAGE plpgsql AS $$ BEGIN PERFORM hostile.trap(); RETURN NULL; END $$';
BEGIN
    FOREACH type IN ARRAY ARRAY['text', 'bigint', 'integer', 'timestamptz', 'interval', 'boolean', 'name', 'oid', 'regclass', 'double precision', 'text[]']::regtype[] LOOP
        EXECUTE format('CREATE FUNCTION hostile.compare(%s, %1$s) RETURNS boolean %s', type, body);
        EXECUTE format('CREATE FUNCTION hostile.combine(%s, %1$s) RETURNS %1$s %s', type, body);
        FOREACH op IN ARRAY ARRAY['=', '<>', '<', '<=', '>', '>='] LOOP
            EXECUTE format('CREATE OPERATOR hostile.%s (LEFTARG = %s, RIGHTARG = %2$s, FUNCTION = hostile.compare)', op, type);
        END LOOP;
        FOREACH op IN ARRAY ARRAY['+', '-', '*', '/', '||'] LOOP
            EXECUTE format('CREATE OPERATOR hostile.%s (LEFTARG = %s, RIGHTARG = %2$s, FUNCTION = hostile.combine)', op, type);
        END LOOP;
    END LOOP;
    EXECUTE 'CREATE FUNCTION hostile.add(timestamptz, interval) RETURNS timestamptz ' || body;
    EXECUTE 'CREATE OPERATOR hostile.+ (LEFTARG = timestamptz, RIGHTARG = interval, FUNCTION = hostile.add)';
    EXECUTE 'CREATE OPERATOR hostile.- (LEFTARG = timestamptz, RIGHTARG = interval, FUNCTION = hostile.add)';
    EXECUTE 'CREATE FUNCTION hostile.now() RETURNS timestamptz ' || body;
    EXECUTE 'CREATE FUNCTION hostile.clock_timestamp() RETURNS timestamptz ' || body;
    EXECUTE 'CREATE FUNCTION hostile.octet_length(text) RETURNS integer ' || body;
    EXECUTE 'CREATE FUNCTION hostile.length(text) RETURNS integer ' || body;
    EXECUTE 'CREATE FUNCTION hostile.nextval(regclass) RETURNS bigint ' || body;
    EXECUTE 'CREATE FUNCTION hostile.setval(regclass, bigint) RETURNS bigint ' || body;
    EXECUTE 'CREATE FUNCTION hostile.lastval() RETURNS bigint ' || body;
    EXECUTE 'CREATE FUNCTION hostile.current_setting(text) RETURNS text ' || body;
    EXECUTE 'CREATE FUNCTION hostile.set_config(text, text, boolean) RETURNS text ' || body;
    EXECUTE 'CREATE FUNCTION hostile.date_part(text, timestamptz) RETURNS double precision ' || body;
    EXECUTE 'CREATE FUNCTION hostile.int8(double precision) RETURNS bigint ' || body;
    EXECUTE 'CREATE FUNCTION hostile.pg_extension_config_dump(regclass, text) RETURNS void LANGUAGE sql AS ''SELECT hostile.trap()''';
    EXECUTE 'CREATE FUNCTION hostile.hashtextextended(text, bigint) RETURNS bigint ' || body;
    EXECUTE 'CREATE FUNCTION hostile.pg_try_advisory_xact_lock(bigint) RETURNS boolean ' || body;
    EXECUTE 'CREATE FUNCTION hostile.pg_advisory_xact_lock(bigint) RETURNS void LANGUAGE sql AS ''SELECT hostile.trap()''';
    EXECUTE 'CREATE FUNCTION hostile."unnest"(text[]) RETURNS SETOF text LANGUAGE sql AS ''SELECT NULL::text FROM (SELECT hostile.trap()) t''';
    FOREACH op IN ARRAY ARRAY['text', 'timestamptz', 'interval', 'int8', 'int4', 'bool', 'name', 'regclass', 'float8'] LOOP
        EXECUTE format('CREATE DOMAIN hostile.%I AS pg_catalog.%1$I CHECK (hostile.trap() IS NULL)', op);
    END LOOP;
    CREATE TABLE hostile.dist_lock (LIKE lease_home.dist_lock);
    CREATE TABLE hostile.pg_class (LIKE pg_catalog.pg_class);
    CREATE SEQUENCE hostile.dist_lock_token;
END $do$;
CREATE TEMP TABLE dist_lock (LIKE lease_home.dist_lock);
CREATE TEMP SEQUENCE dist_lock_token;
CREATE TEMP TABLE pg_class (LIKE pg_catalog.pg_class);
CREATE TEMP TABLE pg_extension (LIKE pg_catalog.pg_extension);

SET search_path = pg_temp, hostile, pg_catalog, lease_home;
-- The trap works.
\set VERBOSITY terse
SELECT 'a'::pg_catalog.text = 'b'::pg_catalog.text;
\set VERBOSITY default
SELECT lease_home.lease_try('path', 'a', '1 h') AS a, lease_home.lease_try('path', 'b', '1 h') AS b,
       lease_home.lease_try('path', 'a', '1 h') AS a;
SELECT lease_home.lease_renew('path', 'a', '2 h'), lease_home.lease_renew('path', 'a', '2 h', 1) AS wrong_token,
       lease_home.lease_token('path', 'a') IS NOT NULL AS token;
SELECT lease_home.lease_try_any(ARRAY['path', 'path2'], 'b', '1 h'), lease_home.lease_try_any(ARRAY['path', 'path2'], 'c', '1 h') AS busy;
SELECT lease_home.lease_renew_all(ARRAY['path2', 'path'], 'a', '1 h');
SELECT lease_home.lease_release('path', 'a', '1 ms', lease_home.lease_token('path', 'a'));
SELECT lease_home.lease_release('path', 'a');
SELECT lease_home.lease_release('path2', 'b');
SELECT lease_home.lease_try('path', 'a', '0');
-- With a token that has to be higher than one made by hand.
RESET search_path;
UPDATE lease_home.dist_lock SET token = 4000000000000000000 WHERE name = 'path2';
SET search_path = pg_temp, hostile, pg_catalog, lease_home;
SELECT lease_home.lease_try('path2', 'd', '1 h');
RESET search_path;
SELECT name, owner, grants, token > 4000000000000000000 AS huge FROM lease_home.dist_lock WHERE name LIKE 'path%' ORDER BY name;
SELECT (SELECT count(*) FROM hostile.dist_lock) + (SELECT count(*) FROM pg_temp.dist_lock) AS elsewhere;
SELECT is_called AS hostile FROM hostile.dist_lock_token;
SELECT is_called AS temporary FROM pg_temp.dist_lock_token;

-- CREATE EXTENSION under the same search_path, and into the hostile schema.
DROP EXTENSION lease;
SET search_path = pg_temp, hostile, pg_catalog;
CREATE EXTENSION lease SCHEMA lease_home;
SELECT lease_home.lease_try('path', 'a', '1 h');
DROP EXTENSION lease;
DROP TABLE hostile.dist_lock;
DROP SEQUENCE hostile.dist_lock_token;
CREATE EXTENSION lease SCHEMA hostile;
SELECT hostile.lease_try('path'::pg_catalog.text, 'a'::pg_catalog.text, '1 h'::pg_catalog.interval),
       hostile.lease_release('path'::pg_catalog.text, 'a'::pg_catalog.text);
RESET search_path;
SELECT atttypid::regtype, count(*) FROM pg_attribute WHERE attrelid = 'hostile.dist_lock'::regclass AND attnum > 0 GROUP BY 1 ORDER BY 1::text;
DROP EXTENSION lease;
DROP TABLE pg_temp.dist_lock, pg_temp.pg_class, pg_temp.pg_extension;
DROP SEQUENCE pg_temp.dist_lock_token;
SET client_min_messages = warning;
DROP SCHEMA hostile CASCADE;
RESET client_min_messages;

-- Odd settings of the session.
CREATE EXTENSION lease SCHEMA lease_home;
SET standard_conforming_strings = off;
SET escape_string_warning = off;
SET backslash_quote = on;
SET quote_all_identifiers = on;
SET transform_null_equals = on;
SET array_nulls = off;
SET row_security = off;
SET datestyle = 'SQL, DMY';
SET intervalstyle = 'iso_8601';
SET timezone = 'Asia/Kathmandu';
SET default_table_access_method = heap;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
SET enable_bitmapscan = off;
SET check_function_bodies = off;
SET plan_cache_mode = force_custom_plan;
SET session_replication_role = replica;
SELECT lease_home.lease_try('settings', E'a\\''b', '1 h'), lease_home.lease_try('settings', 'b', '1 h'),
       lease_home.lease_renew('settings', E'a\\''b', '1 h'), lease_home.lease_release('settings', E'a\\''b', 'PT0S'),
       lease_home.lease_try('settings', 'c', 'PT1H');
RESET ALL;
SELECT owner, last_owner FROM lease_home.dist_lock;
DROP EXTENSION lease;
DROP SCHEMA lease_home;
