-- What is an error stays an error, with its own SQLSTATE, and is never a false.
CREATE EXTENSION lease;
SELECT lease_try('held', 'a', '1 h'), lease_try('free', 'a', '1 h'), lease_release('free', 'a');
SET client_min_messages = error;
-- The view would keep the columns as they are.
\set without_view 'ALTER EXTENSION lease DROP VIEW leases; DROP VIEW leases;'

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/outcome.sql'
\i :include
CREATE FUNCTION outcomes() RETURNS TABLE (call text, outcome text) LANGUAGE sql AS $$
    SELECT call, outcome('SELECT ' || call) FROM (VALUES
        ('lease_try(''new'', ''a'', ''1 h'')'), ('lease_try(''free'', ''a'', ''1 h'')'), ('lease_try(''held'', ''a'', ''1 h'')'), ('lease_try(''held'', ''b'', ''1 h'')'),
        ('lease_try_any(ARRAY[''new''], ''b'', ''1 h'')'), ('lease_renew(''held'', ''a'', ''1 h'')'), ('lease_renew_all(ARRAY[''held''], ''a'', ''1 h'')'),
        ('lease_token(''held'', ''a'') > 0'), ('lease_release(''held'', ''a'')')) v (call)
$$;

-- The table is renamed, closed in another schema, or dropped.
ALTER TABLE dist_lock RENAME TO other_name;
SELECT * FROM outcomes();
ALTER TABLE other_name RENAME TO dist_lock;
SELECT lease_renew('held', 'a', '1 h');
CREATE SCHEMA elsewhere;
ALTER TABLE dist_lock SET SCHEMA elsewhere;
SELECT * FROM outcomes();
ALTER TABLE elsewhere.dist_lock SET SCHEMA public;
DROP SCHEMA elsewhere;
SELECT lease_renew('held', 'a', '1 h');
BEGIN;
:without_view
-- From 17 on a table leaves its extension only with its row type, which the script took out.
SELECT current_setting('server_version_num')::int >= 170000 AS with_type \gset
\if :with_type
    ALTER EXTENSION lease ADD TYPE dist_lock;
\endif
ALTER EXTENSION lease DROP TABLE dist_lock;
DROP TABLE dist_lock;
SELECT * FROM outcomes();
-- A view, a foreign or a partitioned table in its place is not it.
CREATE VIEW dist_lock AS SELECT 'held' AS name;
SELECT * FROM outcomes();
DROP VIEW dist_lock;
CREATE TABLE dist_lock (name text PRIMARY KEY) PARTITION BY LIST (name);
SELECT * FROM outcomes();
DROP TABLE dist_lock;
CREATE TABLE dist_lock (name text PRIMARY KEY, owner text, expiry timestamptz, token bigint);
SELECT * FROM outcomes();
ROLLBACK;

-- A column is dropped, renamed, has another type, or has moved.
BEGIN;
:without_view
ALTER TABLE dist_lock DROP COLUMN ttl;
SELECT * FROM outcomes();
ALTER TABLE dist_lock ADD COLUMN ttl interval;
SELECT * FROM outcomes();
ROLLBACK;
BEGIN;
:without_view
ALTER TABLE dist_lock DROP COLUMN last_end;
SELECT * FROM outcomes();
ROLLBACK;
BEGIN;
:without_view
ALTER TABLE dist_lock ALTER COLUMN grants TYPE integer;
SELECT * FROM outcomes();
ROLLBACK;
BEGIN;
:without_view
ALTER TABLE dist_lock ALTER COLUMN last_owner TYPE integer USING NULL;
SELECT * FROM outcomes();
ROLLBACK;
BEGIN;
ALTER TABLE dist_lock RENAME COLUMN expiry TO until;
SELECT * FROM outcomes();
ROLLBACK;
BEGIN;
:without_view
ALTER TABLE dist_lock ALTER COLUMN name TYPE text COLLATE "POSIX";
SELECT * FROM outcomes();
ROLLBACK;
SELECT lease_renew('held', 'a', '1 h');

-- A crash would empty it.
BEGIN;
ALTER TABLE dist_lock SET UNLOGGED;
SELECT * FROM outcomes();
ROLLBACK;
SELECT lease_renew('held', 'a', '1 h');

-- The primary key is gone, deferrable, or on something else.
BEGIN;
ALTER TABLE dist_lock DROP CONSTRAINT dist_lock_pkey;
SELECT * FROM outcomes();
ROLLBACK;
BEGIN;
ALTER TABLE dist_lock DROP CONSTRAINT dist_lock_pkey;
ALTER TABLE dist_lock ADD PRIMARY KEY (name) DEFERRABLE INITIALLY DEFERRED;
SELECT * FROM outcomes();
ROLLBACK;
BEGIN;
ALTER TABLE dist_lock DROP CONSTRAINT dist_lock_pkey;
ALTER TABLE dist_lock ADD PRIMARY KEY (token);
SELECT * FROM outcomes();
ROLLBACK;

-- The sequence is gone or used up.
BEGIN;
ALTER SEQUENCE dist_lock_token RENAME TO other_sequence;
SELECT * FROM outcomes();
ROLLBACK;
BEGIN;
SELECT setval('dist_lock_token', 9223372036854775807) > 0 AS used_up;
SELECT * FROM outcomes();
ROLLBACK;
SELECT setval('dist_lock_token', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) > 0 AS set;

-- A constraint refuses the new row; a caller's own lease is not touched.
ALTER TABLE dist_lock ADD CONSTRAINT no_bad CHECK (name NOT LIKE 'bad%');
SELECT outcome('SELECT lease_try(''bad'', ''a'', ''1 h'')'), outcome('SELECT lease_try_any(ARRAY[''bad'', ''bad2''], ''a'', ''1 h'')'),
       outcome('SELECT lease_try(''good'', ''a'', ''1 h'')'), outcome('SELECT lease_renew(''bad'', ''a'', ''1 h'')'), outcome('SELECT lease_release(''bad'', ''a'')');
ALTER TABLE dist_lock DROP CONSTRAINT no_bad;
ALTER TABLE dist_lock ADD COLUMN must text;
ALTER TABLE dist_lock ADD CONSTRAINT must_have CHECK (must IS NOT NULL) NOT VALID;
SELECT outcome('SELECT lease_try(''bad'', ''a'', ''1 h'')');
ALTER TABLE dist_lock DROP COLUMN must;
ALTER TABLE dist_lock ADD COLUMN must text NOT NULL DEFAULT 'x';
ALTER TABLE dist_lock ALTER COLUMN must DROP DEFAULT;
SELECT outcome('SELECT lease_try(''bad'', ''a'', ''1 h'')'), outcome('SELECT lease_renew(''held'', ''a'', ''1 h'')');
SELECT must FROM dist_lock WHERE name = 'held';
ALTER TABLE dist_lock DROP COLUMN must;

-- A domain's, a foreign key's.
CREATE TABLE allowed (name text COLLATE "C" PRIMARY KEY);
INSERT INTO allowed SELECT name FROM dist_lock;
ALTER TABLE dist_lock ADD CONSTRAINT allowed FOREIGN KEY (name) REFERENCES allowed;
SELECT outcome('SELECT lease_try(''bad'', ''a'', ''1 h'')'), outcome('SELECT lease_try(''free'', ''a'', ''1 h'')'), outcome('SELECT lease_release(''free'', ''a'')');
ALTER TABLE dist_lock DROP CONSTRAINT allowed;
DROP TABLE allowed;

-- A deferrable constraint: nobody gets by it, neither at once nor at COMMIT.
DELETE FROM dist_lock WHERE name <> 'held';
ALTER TABLE dist_lock ADD CONSTRAINT one_each UNIQUE (owner) DEFERRABLE INITIALLY IMMEDIATE;
SELECT outcome('SELECT lease_try(''second'', ''a'', ''1 h'')'), outcome('SELECT lease_try(''second'', ''b'', ''1 h'')'), outcome('SELECT lease_renew(''second'', ''b'', ''2 h'')'), outcome('SELECT lease_release(''second'', ''b'')');
SELECT outcome('SELECT lease_try(''second'', ''a'', ''1 h'')'), outcome('SELECT lease_try(''second'', ''b'', ''1 h'')');
SELECT count(*) FROM dist_lock WHERE name = 'second' AND owner = 'b';
ALTER TABLE dist_lock DROP CONSTRAINT one_each;
ALTER TABLE dist_lock ADD CONSTRAINT one_each UNIQUE (owner) DEFERRABLE INITIALLY DEFERRED;
\set VERBOSITY sqlstate
BEGIN;
SELECT lease_try('third', 'a', '1 h');
COMMIT;
BEGIN;
SELECT lease_try('third', 'a', '1 h'), lease_release('third', 'a');
COMMIT;
BEGIN;
SELECT lease_try('third', 'a', '1 h');
COMMIT;
\set VERBOSITY default
SELECT name, owner FROM dist_lock ORDER BY name;
ALTER TABLE dist_lock DROP CONSTRAINT one_each;

-- Triggers, rules and policies take no part in an update.
CREATE FUNCTION interfere() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'interfered' USING ERRCODE = 'LQ002'; END $$;
CREATE TRIGGER interfere BEFORE UPDATE OR DELETE ON dist_lock FOR EACH ROW EXECUTE FUNCTION interfere();
CREATE TRIGGER interfere2 AFTER UPDATE ON dist_lock FOR EACH STATEMENT EXECUTE FUNCTION interfere();
SELECT * FROM outcomes();
DROP TRIGGER interfere ON dist_lock;
DROP TRIGGER interfere2 ON dist_lock;
CREATE RULE interfere AS ON UPDATE TO dist_lock DO INSTEAD NOTHING;
SELECT lease_try('held', 'a', '1 h'), lease_try('held', 'b', '1 h'), lease_renew('held', 'a', '1 h'), lease_release('held', 'a'), lease_try('held', 'b', '1 h');
DROP RULE interfere ON dist_lock;
SELECT owner FROM dist_lock WHERE name = 'held';

-- In the insert of a new row they do: an error of theirs is the call's, and a
-- row that they swallowed or changed is no grant.
CREATE TRIGGER interfere BEFORE INSERT ON dist_lock FOR EACH ROW EXECUTE FUNCTION interfere();
SELECT outcome('SELECT lease_try(''interfered'', ''a'', ''1 h'')'), outcome('SELECT lease_try_any(ARRAY[''interfered''], ''a'', ''1 h'')');
DROP TRIGGER interfere ON dist_lock;
CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE TRIGGER swallow BEFORE INSERT ON dist_lock FOR EACH ROW EXECUTE FUNCTION swallow();
SELECT outcome('SELECT lease_try(''swallowed'', ''a'', ''1 h'')');
SELECT count(*) FROM dist_lock WHERE name = 'swallowed';
DROP TRIGGER swallow ON dist_lock;
CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.owner := 'somebody else'; RETURN NEW; END $$;
CREATE TRIGGER change BEFORE INSERT ON dist_lock FOR EACH ROW EXECUTE FUNCTION change();
SELECT outcome('SELECT lease_try(''changed'', ''a'', ''1 h'')');
SELECT lease_token('changed', 'a');
DROP TRIGGER change ON dist_lock;
CREATE RULE interfere AS ON INSERT TO dist_lock DO INSTEAD NOTHING;
SELECT outcome('SELECT lease_try(''ruled'', ''a'', ''1 h'')');
SELECT count(*) FROM dist_lock WHERE name = 'ruled';
DROP RULE interfere ON dist_lock;
SELECT lease_try('at last', 'a', '1 h');

-- A trigger on the insert that takes the same lease, for another.
CREATE FUNCTION recurse() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$ BEGIN PERFORM lease_try(NEW.name, 'inner', '1 h'); RETURN NEW; END $$;
CREATE TRIGGER recurse BEFORE INSERT ON dist_lock FOR EACH ROW WHEN (NEW.owner = 'outer') EXECUTE FUNCTION recurse();
SELECT outcome('SELECT lease_try(''recursive'', ''outer'', ''1 h'')');
SELECT owner, lease_token('recursive', 'outer') FROM dist_lock WHERE name = 'recursive';

DROP FUNCTION outcome(text), outcomes();
DROP EXTENSION lease CASCADE;
DROP FUNCTION interfere(), swallow(), change(), recurse();
