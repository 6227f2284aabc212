-- Somebody made an object of one of our names in the schema before: CREATE
-- EXTENSION fails, adopts nothing and leaves nothing behind.
CREATE ROLE regress_lease_hostile;
CREATE SCHEMA target;
GRANT ALL ON SCHEMA target TO regress_lease_hostile;

-- Our names.
CREATE EXTENSION lease SCHEMA target;
CREATE TABLE ours AS
    SELECT 'function' AS kind, p.proname::text AS name, pg_get_function_identity_arguments(p.oid) AS arguments, p.prokind
      FROM pg_proc p WHERE p.pronamespace = 'target'::regnamespace
    UNION ALL SELECT 'relation', relname, NULL, NULL FROM pg_class WHERE relnamespace = 'target'::regnamespace AND relname <> 'dist_lock_pkey'
    UNION ALL SELECT 'type', relname, NULL, NULL FROM pg_class WHERE relnamespace = 'target'::regnamespace AND relkind IN ('r', 'v');
DROP EXTENSION lease;
SELECT kind, count(*) FROM ours GROUP BY 1 ORDER BY 1;

-- What somebody made, if CREATE EXTENSION went wrong beside it; NULL if it did not.
CREATE FUNCTION refused(hostile text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    state text;
    before oid[];
    objects CONSTANT text := 'SELECT array_agg(oid ORDER BY oid) FROM (SELECT oid FROM pg_class WHERE relnamespace = ''target''::regnamespace UNION ALL SELECT oid FROM pg_proc WHERE pronamespace = ''target''::regnamespace UNION ALL SELECT oid FROM pg_type WHERE typnamespace = ''target''::regnamespace) o';
    after oid[];
BEGIN
    SET LOCAL ROLE regress_lease_hostile;
    EXECUTE hostile;
    RESET ROLE;
    EXECUTE objects INTO before;
    BEGIN
        CREATE EXTENSION lease SCHEMA target;
        state := NULL;
    EXCEPTION WHEN OTHERS THEN
        state := SQLSTATE;
    END;
    EXECUTE objects INTO after;
    IF state IS NOT NULL AND (after IS DISTINCT FROM before OR EXISTS (SELECT FROM pg_extension WHERE extname = 'lease')) THEN
        RAISE WARNING '% left something behind', hostile;
    END IF;
    IF EXISTS (SELECT FROM pg_depend WHERE deptype = 'e' AND objid = ANY (before)) THEN
        RAISE WARNING '% was adopted', hostile;
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'LQ001', MESSAGE = coalesce(state, 'none');
EXCEPTION WHEN SQLSTATE 'LQ001' THEN
    RETURN SQLERRM;
END $$;

-- Functions and procedures of our very names and arguments, and with other results.
SELECT name, refused(format('CREATE %s target.%I(%s) %s LANGUAGE sql AS ''SELECT NULL::%s''', CASE prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, name, arguments,
       CASE WHEN prokind = 'p' OR arguments LIKE '%OUT %' THEN '' ELSE 'RETURNS ' || r END, CASE WHEN prokind = 'p' THEN 'bigint' ELSE r END)) AS refused
  FROM ours, (VALUES ('text')) r (r) WHERE kind = 'function' AND name NOT IN ('lease_activity', 'lease_fenced') ORDER BY name;
SELECT refused('CREATE FUNCTION target.lease_activity() RETURNS int LANGUAGE sql AS ''SELECT 1'''),
       refused('CREATE FUNCTION target.lease_activity(OUT name text, OUT pid integer, OUT kind text, OUT waits_since timestamptz) RETURNS SETOF record LANGUAGE sql AS ''SELECT NULL::text, 1, NULL::text, NULL::timestamptz'''),
       refused('CREATE FUNCTION target.lease_fenced() RETURNS trigger LANGUAGE plpgsql AS ''BEGIN RETURN NEW; END'''),
       refused('CREATE FUNCTION target.lease_acquire(name text, owner text, ttl interval, wait interval, token bigint) RETURNS int LANGUAGE sql AS ''SELECT 1'''),
       refused('CREATE AGGREGATE target.lease_break(text) (SFUNC = textcat, STYPE = text)');
-- Tables, views, sequences, indexes and types of our relations' names.
SELECT name, refused(format('CREATE TABLE target.%I (name text, owner text, expiry timestamptz, token bigint)', name)) AS "table",
       refused(format('CREATE VIEW target.%I AS SELECT ''x''::text AS name', name)) AS view,
       refused(format('CREATE SEQUENCE target.%I', name)) AS sequence,
       refused(format('CREATE TABLE target.other (v int); CREATE INDEX %I ON target.other (v)', name)) AS index,
       refused(format('CREATE MATERIALIZED VIEW target.%I AS SELECT 1 AS v', name)) AS matview
  FROM ours WHERE kind = 'relation' ORDER BY name;
SELECT name, refused(format('CREATE TYPE target.%I AS (name text)', name)) AS composite, refused(format('CREATE DOMAIN target.%I AS text', name)) AS domain,
       refused(format('CREATE TYPE target.%I AS ENUM ()', name)) AS enum
  FROM ours WHERE kind = 'type' ORDER BY name;
-- The name that the server would choose for the key: it chooses another.
SELECT refused('CREATE TABLE target.dist_lock_pkey (v int)');

-- One that makes a call of ours ambiguous.
SELECT refused('CREATE FUNCTION target.lease_activity(i int DEFAULT 1) RETURNS TABLE (name text, pid int, kind text, waits_since timestamptz) LANGUAGE sql AS ''SELECT NULL::text, 1, NULL::text, NULL::timestamptz''') AS "default",
       refused('CREATE FUNCTION target.lease_activity(VARIADIC i int[]) RETURNS TABLE (name text, pid int, kind text, waits_since timestamptz) LANGUAGE sql AS ''SELECT NULL::text, 1, NULL::text, NULL::timestamptz''') AS "variadic";

-- Traps that do not stop it, since they have other arguments or are not ours to name: nothing of them is called or used by it.
CREATE TABLE traps (statement text);
INSERT INTO traps VALUES
    ('CREATE FUNCTION target.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION $x$trap$x$; END'''),
    ('CREATE FUNCTION target.setval(text, bigint) RETURNS bigint LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION $x$trap$x$; END'''),
    ('CREATE FUNCTION target.count(text) RETURNS bigint LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION $x$trap$x$; END'''),
    ('CREATE FUNCTION target.octet_length(text) RETURNS int LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION $x$trap$x$; END'''),
    ('CREATE FUNCTION target.pg_has_role(text, text) RETURNS boolean LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION $x$trap$x$; END'''),
    ('CREATE FUNCTION target.compare(text, text) RETURNS boolean LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION $x$trap$x$; END'''),
    ('CREATE OPERATOR target.= (LEFTARG = text, RIGHTARG = text, FUNCTION = target.compare)'),
    ('CREATE TABLE target.pg_stat_activity (pid int, xact_start timestamptz)'),
    ('CREATE TABLE target.pg_roles (rolname name, oid oid)'),
    ('CREATE DOMAIN target.text AS pg_catalog.int4'), ('CREATE DOMAIN target.timestamptz AS pg_catalog.int4'), ('CREATE DOMAIN target.name AS pg_catalog.int4');
DO $$
DECLARE
    s text;
BEGIN
    FOR s IN SELECT statement FROM traps LOOP
        EXECUTE 'SET ROLE regress_lease_hostile';
        EXECUTE s;
        EXECUTE 'RESET ROLE';
    END LOOP;
END $$;
SET search_path = target, public;
CREATE EXTENSION lease SCHEMA target;
RESET search_path;
SELECT target.lease_try('job'::text, 'a'::text, '1 h'::interval);
SELECT name, owner, state, waiters FROM target.leases;
SELECT count(*) FROM target.lease_waiters;
SELECT target.lease_break('job'::text);
SELECT count(*) AS adopted FROM pg_depend d WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'lease')
   AND EXISTS (SELECT FROM pg_shdepend s WHERE s.objid = d.objid AND s.classid = d.classid AND s.refobjid = 'regress_lease_hostile'::regrole);
SELECT format_type(atttypid, atttypmod), count(*) FROM pg_attribute WHERE attrelid = 'target.dist_lock'::regclass AND attnum > 0 GROUP BY 1 ORDER BY 1;
DROP EXTENSION lease;

-- The extension cannot be made twice, nor by who is no superuser.
CREATE EXTENSION lease;
\set VERBOSITY sqlstate
CREATE EXTENSION lease SCHEMA target;
DROP EXTENSION lease;
SET ROLE regress_lease_hostile;
CREATE EXTENSION lease SCHEMA target;
RESET ROLE;
\set VERBOSITY default

SET client_min_messages = warning;
DROP SCHEMA target CASCADE;
DROP FUNCTION refused(text);
DROP TABLE ours, traps;
DROP ROLE regress_lease_hostile;
