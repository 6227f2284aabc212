-- A role without any grant uses every function; the table is closed to it; and
-- a tenure is bound to the role that it was granted to.
CREATE ROLE regress_lease_one;
CREATE ROLE regress_lease_two;
CREATE ROLE regress_lease_member;
CREATE ROLE regress_lease_outsider NOINHERIT;
CREATE ROLE regress_lease_login NOINHERIT;
GRANT regress_lease_one TO regress_lease_member, regress_lease_outsider;
CREATE EXTENSION lease;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/outcome.sql'
\i :include

SET ROLE regress_lease_one;
SELECT lease_try('job', 'a', '1 h'), lease_try('job', 'b', '1 h'), lease_try('job', 'a', '2 h'), lease_renew('job', 'a', '1 h'),
       lease_renew_all(ARRAY['job'], 'a', '1 h'), lease_token('job', 'a') IS NOT NULL AS token,
       lease_try_any(ARRAY['job', 'slot'], 'c', '1 h'), lease_release('slot', 'c', '1 h');
SELECT statement, outcome(statement) FROM (VALUES
    ('SELECT 1 FROM dist_lock'), ('SELECT name FROM dist_lock'), ('INSERT INTO dist_lock (name, token) VALUES (''x'', 1)'), ('UPDATE dist_lock SET owner = NULL'), ('DELETE FROM dist_lock'),
    ('TRUNCATE dist_lock'), ('LOCK TABLE dist_lock'), ('SELECT 1 FROM dist_lock FOR UPDATE'), ('CREATE TABLE mine (name text REFERENCES dist_lock (name))'),
    ('SELECT last_value FROM dist_lock_token'), ('SELECT nextval(''dist_lock_token'')'), ('SELECT setval(''dist_lock_token'', 1)'), ('SELECT currval(''dist_lock_token'')'),
    ('DROP TABLE dist_lock'), ('DROP FUNCTION lease_try(text, text, interval)'), ('DROP EXTENSION lease')) v (statement);
RESET ROLE;
SELECT name, owner, granted_to FROM dist_lock ORDER BY name;

-- Another role with the same owner, name and token: it holds nothing.
SELECT token AS token FROM dist_lock WHERE name = 'job' \gset
SELECT md5(d::text) AS old_md5, ctid AS old_ctid FROM dist_lock d WHERE name = 'job' \gset
SET ROLE regress_lease_two;
SELECT lease_try('job', 'a', '1 h'), lease_renew('job', 'a', '1 h'), lease_renew('job', 'a', '1 h', :token), lease_token('job', 'a'),
       lease_renew_all(ARRAY['job'], 'a', '1 h'), lease_try_any(ARRAY['job'], 'a', '1 h');
\set VERBOSITY terse
SELECT lease_release('job', 'a');
SELECT lease_release('job', 'a', token => :token);
\set VERBOSITY default
SET ROLE regress_lease_outsider;
SELECT lease_try('job', 'a', '1 h'), lease_renew('job', 'a', '1 h'), lease_token('job', 'a');
RESET ROLE;
SELECT md5(d::text) = :'old_md5' AND ctid = :'old_ctid' AS unchanged FROM dist_lock d WHERE name = 'job';

-- One that has the privileges of that role, and a superuser.
SET ROLE regress_lease_member;
SELECT lease_try('job', 'a', '1 h'), lease_renew('job', 'a', '1 h', :token), lease_token('job', 'a') = :token AS token;
RESET ROLE;
SELECT granted_to FROM dist_lock WHERE name = 'job';
SELECT lease_try('job', 'a', '1 h'), lease_renew('job', 'a', '1 h', :token), lease_token('job', 'a') = :token AS token;
SELECT granted_to FROM dist_lock WHERE name = 'job';
SET ROLE regress_lease_member;
SELECT lease_release('job', 'a'), lease_try('job', 'a', '1 h');
RESET ROLE;
SELECT granted_to FROM dist_lock WHERE name = 'job';
SET ROLE regress_lease_one;
SELECT lease_renew('job', 'a', '1 h'), lease_try('job', 'a', '1 h');
RESET ROLE;

-- What is free is free for everybody, with the same owner too.
UPDATE dist_lock SET expiry = clock_timestamp() WHERE name = 'job';
SET ROLE regress_lease_two;
SELECT lease_try('job', 'a', '1 h');
RESET ROLE;
SELECT granted_to, takeovers FROM dist_lock WHERE name = 'job';

-- The current user counts, so a SECURITY DEFINER function holds as its owner.
CREATE FUNCTION take(name text) RETURNS boolean LANGUAGE sql SECURITY DEFINER AS 'SELECT lease_try(name, ''definer'', ''1 h'')';
ALTER FUNCTION take(text) OWNER TO regress_lease_one;
SET ROLE regress_lease_two;
SELECT take('defined'), take('defined'), lease_try('defined', 'definer', '1 h'), lease_renew('defined', 'definer', '1 h');
RESET ROLE;
SELECT granted_to FROM dist_lock WHERE name = 'defined';
DROP FUNCTION take(text);

-- The session and its role are as they were after a call that made a row.
SET ROLE regress_lease_two;
SELECT lease_try('who', 'a', '1 h'), current_user, session_user <> current_user AS set_role;
SELECT outcome('SELECT lease_try(''who2'', ''a'', ''0'')'), current_user;
SELECT outcome('SELECT 1 FROM dist_lock');
RESET ROLE;

-- After an error in the midst of it, too.
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'LQ001'; END $$;
CREATE TRIGGER refuse BEFORE INSERT ON dist_lock FOR EACH ROW EXECUTE FUNCTION refuse();
SET ROLE regress_lease_two;
SELECT outcome('SELECT lease_try(''who2'', ''a'', ''1 h'')'), current_user, outcome('SELECT 1 FROM dist_lock');
SELECT lease_try('who', 'a', '1 h'), current_user;
RESET ROLE;
DROP TRIGGER refuse ON dist_lock;
DROP FUNCTION refuse();

-- A trigger on the insert runs as the owner of the table, and may not get out.
CREATE TABLE inserted (who name, allowed boolean);
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    BEGIN
        SET ROLE regress_lease_two;
        INSERT INTO inserted VALUES (current_user, true);
    EXCEPTION WHEN insufficient_privilege THEN
        INSERT INTO inserted VALUES (current_user, false);
    END;
    RETURN NEW;
END $$;
CREATE TRIGGER note BEFORE INSERT ON dist_lock FOR EACH ROW EXECUTE FUNCTION note();
SET ROLE regress_lease_one;
SELECT lease_try('triggered', 'a', '1 h'), current_user;
RESET ROLE;
SELECT who = (SELECT rolname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE c.oid = 'dist_lock'::regclass) AS as_owner, allowed FROM inserted;
SELECT owner, granted_to FROM dist_lock WHERE name = 'triggered';
DROP TRIGGER note ON dist_lock;
DROP FUNCTION note();
DROP TABLE inserted;

-- Row security, forced on the owner too, takes no part in updates.
ALTER TABLE dist_lock ENABLE ROW LEVEL SECURITY;
SET ROLE regress_lease_one;
SELECT lease_try('rls', 'a', '1 h'), lease_renew('rls', 'a', '1 h'), lease_try('rls', 'b', '1 h'), lease_token('rls', 'a') IS NOT NULL AS token,
       lease_release('rls', 'a'), lease_try('rls', 'b', '1 h');
RESET ROLE;
ALTER TABLE dist_lock DISABLE ROW LEVEL SECURITY;

-- The table belongs to a role that is no superuser.
ALTER TABLE dist_lock OWNER TO regress_lease_two;
ALTER SEQUENCE dist_lock_token OWNER TO regress_lease_two;
SET ROLE regress_lease_one;
SELECT lease_try('owned', 'a', '1 h'), lease_renew('owned', 'a', '1 h'), lease_release('owned', 'a'), lease_try('owned', 'b', '1 h');
RESET ROLE;
-- Row security that is forced on it: updates go on, and an insert either goes on
-- or is an error.
ALTER TABLE dist_lock ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SET ROLE regress_lease_one;
SELECT lease_renew('owned', 'b', '1 h'), lease_token('owned', 'b') IS NOT NULL AS token, lease_try('owned', 'a', '1 h'),
       outcome('SELECT lease_try(''forced'', ''a'', ''1 h'')') IN ('true', '42501') AS insert;
RESET ROLE;
ALTER TABLE dist_lock DISABLE ROW LEVEL SECURITY, NO FORCE ROW LEVEL SECURITY;

-- A role that is renamed or dropped while it holds.
SET ROLE regress_lease_login;
SELECT lease_try('renamed', 'a', '1 h'), lease_try('dropped', 'a', '1 h');
RESET ROLE;
ALTER ROLE regress_lease_login RENAME TO regress_lease_renamed;
SET ROLE regress_lease_renamed;
SELECT lease_renew('renamed', 'a', '1 h'), lease_try('renamed', 'a', '1 h'), lease_try('renamed', 'b', '1 h'), lease_token('renamed', 'a');
\set VERBOSITY terse
SELECT lease_release('renamed', 'a');
\set VERBOSITY default
RESET ROLE;
DROP ROLE regress_lease_renamed;
SET ROLE regress_lease_one;
SELECT lease_renew('dropped', 'a', '1 h'), lease_try('dropped', 'b', '1 h'), lease_token('dropped', 'a');
RESET ROLE;
UPDATE dist_lock SET granted_to = NULL WHERE name = 'renamed';
SET ROLE regress_lease_one;
SELECT lease_renew('renamed', 'a', '1 h') AS bound_to_no_role;
RESET ROLE;
UPDATE dist_lock SET expiry = clock_timestamp() WHERE name = 'dropped';
SET ROLE regress_lease_one;
SELECT lease_try('dropped', 'b', '1 h');
RESET ROLE;

-- Closed to everybody but one role.
REVOKE EXECUTE ON FUNCTION lease_try(text, text, interval) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lease_try(text, text, interval) TO regress_lease_one;
SET ROLE regress_lease_one;
SELECT outcome('SELECT lease_try(''closed'', ''a'', ''1 h'')');
SET ROLE regress_lease_two;
SELECT outcome('SELECT lease_try(''closed'', ''a'', ''1 h'')');
RESET ROLE;

DROP FUNCTION outcome(text);
DROP EXTENSION lease;
DROP ROLE regress_lease_one, regress_lease_two, regress_lease_member, regress_lease_outsider;
