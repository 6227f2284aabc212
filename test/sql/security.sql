-- What a hostile role can do: one that has nothing, one with CREATE on the extension's schema, one
-- with EXECUTE only. Row by row the table in SECURITY.md.
CREATE ROLE regress_lease_holder;
CREATE ROLE regress_lease_nothing;
CREATE ROLE regress_lease_creator;
CREATE ROLE regress_lease_executor;
CREATE SCHEMA locks;
CREATE SCHEMA own AUTHORIZATION regress_lease_nothing;
GRANT USAGE ON SCHEMA own TO PUBLIC;
GRANT USAGE ON SCHEMA locks TO PUBLIC;
GRANT CREATE ON SCHEMA locks TO regress_lease_creator;
CREATE EXTENSION lease SCHEMA locks;
SET client_min_messages = error;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/outcome.sql'
\i :include
SET search_path = public, locks;
SET ROLE regress_lease_holder;
SELECT lease_try('job', 'secret', '1 h'), lease_try('job2', 'secret', '1 h'), lease_release('job2', 'secret', '1 h');
RESET ROLE;
SELECT token, md5(d::text) AS md5 FROM dist_lock d WHERE name = 'job' \gset

-- A role with nothing, which knows the owner and the token.
SET ROLE regress_lease_nothing;
SELECT call, outcome('SELECT ' || replace(call, 'TOKEN', :'token')) FROM (VALUES
    ('lease_try(''job'', ''secret'', ''1 h'')'), ('lease_try_any(''{job,job2}'', ''secret'', ''1 h'')'), ('lease_renew(''job'', ''secret'', ''1 us'')'),
    ('lease_renew(''job'', ''secret'', ''1 us'', TOKEN)'), ('lease_renew_all(''{job,job2}'', ''secret'', ''1 us'')'), ('lease_release(''job'', ''secret'')'),
    ('lease_release(''job'', ''secret'', NULL, TOKEN)'), ('lease_token(''job'', ''secret'')'), ('lease_fence(''job'', TOKEN)'), ('lease_attach(''job'', ''secret'')'),
    ('lease_detach(''job'', ''secret'')'), ('lease_break(''job'')'), ('lease_break(''job2'')'), ('lease_purge(''0'')'),
    ('set_config(''lease.max_ttl'', ''0'', false)'), ('set_config(''lease.keeper_databases'', ''postgres'', false)'),
    ('count(*) FROM pg_stats WHERE tablename = ''dist_lock'''), ('count(*) FROM locks.dist_lock'), ('nextval(''locks.dist_lock_token'')')) v (call);
-- What would be in the way of a later ALTER TABLE: its row type is not for others to use.
SELECT statement, outcome(statement) FROM (VALUES
    ('CREATE TABLE own.rows (v locks.dist_lock)'), ('CREATE TABLE own.rows (v locks.dist_lock[])'), ('CREATE TABLE own.rows AS SELECT NULL::locks.dist_lock AS v'),
    ('CREATE TYPE own.rows AS (v locks.dist_lock)'), ('CREATE DOMAIN own.rows AS locks.dist_lock'), ('CREATE FUNCTION own.rows(locks.dist_lock) RETURNS int LANGUAGE sql AS ''SELECT 1''')) v (statement);
CALL lease_acquire('job', 'secret', '1 h', '0');
-- What it is not told, by the views, by a cheap function that sees rows before they are masked, or by a warning.
SELECT name, owner, last_owner, state, role, token = :token AS token FROM leases ORDER BY name;
CREATE FUNCTION own.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS $$ BEGIN IF $1 = 'secret' THEN RAISE 'leaked %', $1; END IF; RETURN true; END $$;
SELECT count(*) FROM leases WHERE own.leak(owner) AND own.leak(last_owner) AND own.leak(name);
SELECT count(*) FROM lease_waiters WHERE own.leak(name);
SET client_min_messages = warning;
\set VERBOSITY terse
SELECT lease_release('job', 'guess') AS another, lease_release('job2', 'secret') AS cooling;
\set VERBOSITY default
SET client_min_messages = error;
-- What it is told: that there is a lease, until when, and its token, which is no right.
CALL lease_watch('job', NULL, '0') \gset seen_
SELECT :seen_token = :token AS token;
RESET ROLE;
SELECT md5(d::text) = :'md5' AS untouched FROM dist_lock d WHERE name = 'job';

-- Casts and operators of its own, temporary objects of our names, a search_path with all of them in front.
SET ROLE regress_lease_nothing;
CREATE TYPE own.kind AS ENUM ('job', 'other');
CREATE TABLE own.ran (who name);
GRANT INSERT ON own.ran TO PUBLIC;
CREATE FUNCTION own.to_text(own.kind) RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO own.ran VALUES (current_user); RETURN 'cast'; END $$;
CREATE CAST (own.kind AS text) WITH FUNCTION own.to_text(own.kind) AS IMPLICIT;
CREATE FUNCTION own.trap(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN INSERT INTO own.ran VALUES (current_user); RETURN true; END $$;
CREATE FUNCTION own.trap(timestamptz, timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN INSERT INTO own.ran VALUES (current_user); RETURN true; END $$;
CREATE OPERATOR own.= (LEFTARG = text, RIGHTARG = text, FUNCTION = own.trap);
CREATE OPERATOR own.> (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = own.trap);
CREATE OPERATOR own.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = own.trap);
CREATE TEMP TABLE dist_lock (name text PRIMARY KEY, owner text, expiry timestamptz, token bigint);
INSERT INTO dist_lock VALUES ('job', 'secret', 'infinity', 1);
CREATE TEMP SEQUENCE dist_lock_token;
CREATE FUNCTION pg_temp.lease_activity(OUT name text, OUT pid integer, OUT kind text, OUT waits_since timestamptz) RETURNS SETOF record LANGUAGE sql AS $$ SELECT 'forged'::text, 1, 'acquire'::text, NULL::timestamptz $$;
SET search_path = pg_temp, own, locks, pg_catalog;
SELECT locks.lease_try('other'::own.kind, 'a', '1 h'), locks.lease_token('cast', 'a') IS NOT NULL AS taken_by_what_the_cast_says;
SELECT 'a'::text = 'b'::text AS trap_works;
TABLE own.ran;
TRUNCATE own.ran;
SELECT locks.lease_try('mine', 'a', '1 h'), locks.lease_try('job', 'b', '1 h'), locks.lease_renew('mine', 'a', '1 h');
SELECT locks.lease_token('mine', 'a') AS mine \gset
BEGIN;
SELECT locks.lease_fence('mine', :mine);
CREATE TABLE own.fenced (v int);
CREATE TRIGGER fenced BEFORE INSERT ON own.fenced FOR EACH STATEMENT EXECUTE FUNCTION locks.lease_fenced('mine');
INSERT INTO own.fenced VALUES (1);
COMMIT;
SELECT locks.lease_attach('mine', 'a'), locks.lease_detach('mine', 'a');
CALL locks.lease_acquire('mine2', 'a', '1 h', '0') \gset mine2_
CALL locks.lease_watch('job', 1, '0') \gset seen_
SELECT :mine2_token > :mine AS acquired, :seen_token = :token AS watched;
SELECT count(*) FROM locks.lease_waiters WHERE name OPERATOR(pg_catalog.=) 'forged';
SELECT name, state, waiters FROM locks.leases ORDER BY name;
RESET ROLE;
SELECT locks.lease_break('mine'), locks.lease_break('mine2'), locks.lease_purge('1 day');
SET search_path = public, locks;
SELECT count(*) AS traps_sprung FROM own.ran;
SELECT * FROM pg_temp.dist_lock;
DROP TABLE pg_temp.dist_lock;
DROP SEQUENCE pg_temp.dist_lock_token;
DROP FUNCTION pg_temp.lease_activity();

-- A role with CREATE on the schema: nothing of ours can be replaced, altered, or added to.
SET ROLE regress_lease_creator;
SELECT statement, outcome(statement) FROM (VALUES
    ('CREATE TABLE locks.dist_lock (name text)'), ('CREATE VIEW locks.leases AS SELECT 1'), ('CREATE OR REPLACE VIEW locks.leases AS SELECT 1 AS name'),
    ('CREATE OR REPLACE FUNCTION locks.lease_try(name text, owner text, ttl interval) RETURNS boolean LANGUAGE sql AS ''SELECT true'''),
    ('CREATE FUNCTION locks.try(text, text, interval) RETURNS boolean LANGUAGE c AS ''lease'', ''lease_try'''),
    ('CREATE FUNCTION locks.try(text, text, interval) RETURNS boolean LANGUAGE internal AS ''lease_try'''),
    ('ALTER FUNCTION locks.lease_try(text, text, interval) SET search_path = pg_temp'), ('ALTER FUNCTION locks.lease_try(text, text, interval) RENAME TO x'),
    ('ALTER TABLE locks.dist_lock RENAME TO x'), ('ALTER TABLE locks.dist_lock DISABLE TRIGGER ALL'), ('ALTER SEQUENCE locks.dist_lock_token RESTART 1'),
    ('CREATE TRIGGER t BEFORE INSERT ON locks.dist_lock EXECUTE FUNCTION locks.lease_fenced(''x'')'), ('CREATE RULE r AS ON INSERT TO locks.dist_lock DO INSTEAD NOTHING'),
    ('CREATE INDEX ON locks.dist_lock (expiry)'), ('CREATE STATISTICS locks.s ON name, owner FROM locks.dist_lock'), ('CREATE POLICY p ON locks.dist_lock'),
    ('CREATE TABLE locks.child () INHERITS (locks.dist_lock)'), ('CREATE TABLE locks.fk (name text REFERENCES locks.dist_lock)'),
    ('ALTER EXTENSION lease ADD SCHEMA locks'), ('ALTER EXTENSION lease DROP TABLE locks.dist_lock'), ('DROP EXTENSION lease'), ('DROP SCHEMA locks CASCADE'),
    ('GRANT EXECUTE ON FUNCTION locks.lease_break(text) TO regress_lease_creator'), ('SELECT locks.lease_break(''job'')')) v (statement);
-- What it can do, as documented: a function of our name with other arguments, which a call with untyped literals may prefer.
CREATE FUNCTION locks.lease_try(name text, owner text, ttl text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
RESET ROLE;
SELECT locks.lease_try('job', 'other', '1 h') AS forged, locks.lease_try('job', 'other', interval '1 h') AS ours, locks.lease_try('job', 'other', ttl => '1 h'::interval) AS ours;
SELECT md5(d::text) = :'md5' AS untouched FROM dist_lock d WHERE name = 'job';
DROP FUNCTION locks.lease_try(text, text, text);

-- A role with EXECUTE only, on all of them: others are told no before anything is done, and the table stays closed to it.
REVOKE EXECUTE ON ALL ROUTINES IN SCHEMA locks FROM PUBLIC;
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA locks TO regress_lease_executor;
SET ROLE regress_lease_nothing;
SELECT call, outcome('SELECT ' || call) FROM (VALUES
    ('lease_try(''job'', ''a'', ''1 h'')'), ('lease_try_any(''{job}'', ''a'', ''1 h'')'), ('lease_renew(''job'', ''a'', ''1 h'')'), ('lease_renew_all(''{job}'', ''a'', ''1 h'')'),
    ('lease_release(''job'', ''a'')'), ('lease_token(''job'', ''a'')'), ('lease_fence(''job'', 1)'), ('lease_attach(''job'', ''a'')'), ('lease_detach(''job'', ''a'')'),
    ('lease_break(''job'')'), ('lease_purge(''0'')'), ('lease_activity()'), ('max(waiters) FROM leases'), ('count(*) FROM lease_waiters')) v (call);
SELECT outcome('CALL lease_acquire(''job'', ''a'', ''1 h'', ''0'')'), outcome('CALL lease_watch(''job'', 1, ''0'')'),
       outcome('CREATE TRIGGER t BEFORE INSERT ON own.ran EXECUTE FUNCTION locks.lease_fenced(''x'')');
SET ROLE regress_lease_executor;
SELECT lease_try('e', 'a', '1 h'), lease_renew('e', 'a', '1 h'), lease_release('job', 'secret'), lease_break('job') AS broken, lease_try('job', 'a', '1 h');
-- (Who takes a lease is told who had it before.)
SELECT name, owner, last_owner, last_end FROM leases ORDER BY name;
SELECT lease_break('job2'), lease_release('e', 'a');
SELECT lease_purge('0') AS purged;
SELECT outcome('SELECT count(*) FROM locks.dist_lock'), outcome('DELETE FROM locks.dist_lock'), outcome('SELECT nextval(''locks.dist_lock_token'')');
RESET ROLE;
SELECT name, owner FROM dist_lock ORDER BY name;

-- Roles that may read or write every table.
GRANT pg_read_all_data TO regress_lease_nothing;
SET ROLE regress_lease_nothing;
SELECT outcome('SELECT owner FROM locks.dist_lock WHERE name = ''job'''), outcome('UPDATE locks.dist_lock SET owner = NULL'), outcome('SELECT nextval(''locks.dist_lock_token'')');
RESET ROLE;
REVOKE pg_read_all_data FROM regress_lease_nothing;
GRANT pg_write_all_data TO regress_lease_nothing;
SET ROLE regress_lease_nothing;
INSERT INTO locks.dist_lock (name, token) VALUES ('forged', 1);
SELECT outcome('SELECT owner FROM locks.dist_lock');
RESET ROLE;
SELECT token FROM dist_lock WHERE name = 'forged';

RESET search_path;
DROP FUNCTION outcome(text);
DROP SCHEMA own CASCADE;
DROP EXTENSION lease;
DROP SCHEMA locks;
DROP ROLE regress_lease_holder, regress_lease_nothing, regress_lease_creator, regress_lease_executor;
