-- lease.max_ttl bounds the ttl and keep that anybody may ask for; only a
-- superuser sets it.
CREATE EXTENSION lease;
CREATE ROLE regress_lease_user;
SET client_min_messages = error;

CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE statement INTO answer;
    RETURN coalesce(answer, 'NULL');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS answer = PG_EXCEPTION_DETAIL;
    RETURN concat_ws(' ', SQLSTATE, SQLERRM, answer);
END $$;

-- The library defines it; no limit.
SELECT lease_try('job', 'a', '36500 days');
SHOW lease.max_ttl;
SELECT context, vartype, unit, min_val, max_val, boot_val, short_desc, extra_desc FROM pg_settings WHERE name = 'lease.max_ttl';

SET lease.max_ttl = '1 min';
\pset format unaligned
SELECT call, outcome('SELECT ' || call) FROM (VALUES
    ('lease_try(''n1'', ''a'', ''1 min'')'), ('lease_try(''n2'', ''a'', ''60.000001 s'')'), ('lease_try(''job'', ''a'', ''1 h'')'), ('lease_try(''job'', ''b'', ''1 h'')'),
    ('lease_try_any(ARRAY[''n1''], ''a'', ''60 s'')'), ('lease_try_any(ARRAY[''n1''], ''a'', ''61 s'')'), ('lease_renew(''job'', ''a'', ''61 s'')'), ('lease_renew(''job'', ''a'', ''60 s'')'),
    ('lease_renew_all(ARRAY[''job''], ''a'', ''61 s'')'), ('lease_renew_all(ARRAY[]::text[], ''a'', ''61 s'')'), ('lease_renew_all(ARRAY[''job''], ''a'', ''59.9 s'')'),
    ('lease_release(''n1'', ''a'', ''61 s'')'), ('lease_release(''unknown'', ''a'', ''61 s'')'), ('lease_release(''n1'', ''a'', ''60 s'')'),
    ('lease_try(''n3'', ''a'', ''106000000 days'')'), ('lease_try(''n3'', ''a'', ''1 month'')'), ('lease_purge(''1 year'')')) v (call);
CREATE FUNCTION acquire(ttl interval) RETURNS boolean LANGUAGE plpgsql AS $$ DECLARE t bigint; BEGIN CALL lease_acquire('acquired', 'a', ttl, '0', t); RETURN t > 0; END $$;
SELECT outcome('SELECT acquire(''61 s'')'), outcome('SELECT acquire(''60 s'')');
\pset format aligned
-- Waiting is not holding.
CALL lease_acquire('job', 'b', '1 s', '0');
DO $$ DECLARE t bigint; BEGIN CALL lease_acquire('other', 'b', '1 s', '300 days', t); IF t IS NULL THEN RAISE EXCEPTION 'not acquired'; END IF; END $$;
-- What was held for longer before stays.
SET lease.max_ttl = 0;
SELECT lease_try('long', 'a', '1 h');
SET lease.max_ttl = '1 ms';
SELECT lease_token('long', 'a') > 0 AS held;
SELECT outcome('SELECT lease_renew(''long'', ''a'', ''1 s'')');
-- Odd values.
\set VERBOSITY sqlstate
SET lease.max_ttl = -1;
SET lease.max_ttl = '1 month';
SET lease.max_ttl = 1e11;
SET lease.max_ttl = 'infinity';
SET lease.max_ttl = 'NaN';
SET lease.max_ttl = '0.001 ms';
SELECT outcome('SELECT lease_try(''us'', ''a'', ''1 us'')'), outcome('SELECT lease_try(''us'', ''a'', ''2 us'')');
SET lease.max_ttl = 1e10;
SELECT outcome('SELECT lease_try(''long'', ''a'', ''100000 days'')');
SET lease.max_ttl = '0.1 us';
SELECT setting FROM pg_settings WHERE name = 'lease.max_ttl';
SELECT outcome('SELECT lease_try(''us'', ''a'', ''2 us'')') LIKE '22023%' AS still_a_limit;
SET lease.nonsense = 1;
\set VERBOSITY default

-- Others may not set it, in no way.
SET lease.max_ttl = '1 min';
SET ROLE regress_lease_user;
\set VERBOSITY sqlstate
SET lease.max_ttl = 0;
SET LOCAL lease.max_ttl = 0;
RESET lease.max_ttl;
SELECT set_config('lease.max_ttl', '0', false);
ALTER ROLE regress_lease_user SET lease.max_ttl = 0;
CREATE FUNCTION pg_temp.try() RETURNS boolean LANGUAGE sql SET lease.max_ttl = 0 AS 'SELECT lease_try(''job'', ''x'', ''1 h'')';
\set VERBOSITY default
SHOW lease.max_ttl;
SELECT outcome('SELECT lease_try(''n4'', ''u'', ''61 s'')');
RESET ROLE;

-- Nor before the library is loaded: what the session said then is taken back when it is.
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET lease.max_ttl = ''1 min''', current_database()); END $$;
\c -
SET client_min_messages = error;
SET SESSION AUTHORIZATION regress_lease_user;
SET lease.max_ttl = 0;
SELECT outcome('SELECT lease_try(''n5'', ''u'', ''61 s'')'), outcome('SELECT lease_try(''n5'', ''u'', ''60 s'')');
SHOW lease.max_ttl;
\c -
SET client_min_messages = error;
SET SESSION AUTHORIZATION regress_lease_user;
BEGIN;
SET LOCAL lease.max_ttl = 0;
SELECT outcome('SELECT lease_try(''n6'', ''u'', ''61 s'')'), outcome('SELECT lease_try(''n6'', ''u'', ''60 s'')');
COMMIT;
SHOW lease.max_ttl;
\c -
DO $$ BEGIN EXECUTE format('ALTER DATABASE %I RESET lease.max_ttl', current_database()); END $$;
-- A function of an administrator's may carry its own limit; what was granted stays.
CREATE FUNCTION long_try(name text) RETURNS boolean LANGUAGE sql SECURITY DEFINER SET lease.max_ttl = 0 AS 'SELECT lease_try(name, ''a'', ''10 h'')';
SELECT lease_token('job', 'x');
SET lease.max_ttl = '1 min';
SET ROLE regress_lease_user;
SELECT long_try('definer');
SHOW lease.max_ttl;
RESET ROLE;

DROP FUNCTION outcome(text), acquire(interval), long_try(text);
DROP EXTENSION lease;
DROP ROLE regress_lease_user;
