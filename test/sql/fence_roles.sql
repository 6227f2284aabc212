-- A stolen owner or token is not enough: fence, attach and detach need the
-- holder's role too. What becomes of leases whose role is renamed or dropped,
-- and of the extension whose owner is.
CREATE EXTENSION lease;
CREATE ROLE regress_lease_a;
CREATE ROLE regress_lease_b;
CREATE ROLE regress_lease_member;
CREATE ROLE regress_lease_noinherit NOINHERIT;
GRANT regress_lease_a TO regress_lease_member, regress_lease_noinherit;

CREATE FUNCTION answers(role name, token bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text := '';
    call text;
    one text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    FOREACH call IN ARRAY ARRAY['lease_try(''job'', ''a'', ''1 h'')', 'lease_renew(''job'', ''a'', ''1 h'')', 'lease_renew(''job'', ''a'', ''1 h'', $1)', 'lease_renew_all(ARRAY[''job''], ''a'', ''1 h'')',
        'lease_token(''job'', ''a'') = $1', 'lease_try_any(ARRAY[''job''], ''a'', ''1 h'')', 'coalesce(lease_fence(''job'', $1)::text, '''') = ''''', 'lease_attach(''job'', ''a'')', 'lease_detach(''job'', ''a'')', 'lease_release(''job'', ''a'')'] LOOP
        BEGIN
            EXECUTE 'SELECT ' || call INTO one USING token;
            RAISE EXCEPTION USING ERRCODE = 'LQ001';
        EXCEPTION WHEN SQLSTATE 'LQ001' THEN answer := concat_ws(' ', answer, coalesce(one, 'NULL'));
                  WHEN OTHERS THEN answer := concat_ws(' ', answer, SQLSTATE);
        END;
    END LOOP;
    CALL lease_acquire('job', 'a', '1 h', '0', token);
    RESET ROLE;
    RETURN concat_ws(' ', answer, coalesce(token::text, 'NULL') ~ '^\d+$');
END $$;
SET client_min_messages = error;

-- Fence, attach and the rest: the holder's role, one that has its privileges, a superuser; and nobody else.
SET ROLE regress_lease_a;
SELECT lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a') AS token \gset
RESET ROLE;
SELECT role, answers(role, :token) FROM unnest(ARRAY['regress_lease_a', 'regress_lease_member', 'regress_lease_b', 'regress_lease_noinherit']) role;
SELECT answers(current_user, :token) AS superuser;
-- What the refusal says.
SET client_min_messages = warning;
SET ROLE regress_lease_b;
DO $$
DECLARE
    detail text;
BEGIN
    PERFORM lease_fence('job', (SELECT l.token FROM leases l WHERE l.name = 'job'));
EXCEPTION WHEN SQLSTATE 'LEASE' THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RAISE WARNING '% %', regexp_replace(SQLERRM, '\d{10,}', 'T'), detail;
END $$;
\set VERBOSITY terse
SELECT lease_release('job', 'a');
\set VERBOSITY default
RESET ROLE;
-- Stolen, it does not hold anybody up either: no lock is kept.
BEGIN;
SET LOCAL ROLE regress_lease_b;
SELECT lease_try('job', 'a', '1 h'), lease_renew('job', 'a', '1 h');
SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND (locktype = 'transactionid' OR locktype = 'advisory' AND mode = 'RowShareLock');
ROLLBACK;
SET client_min_messages = error;

-- The current user counts: SECURITY DEFINER holds and fences as its owner.
CREATE FUNCTION fence_as_owner(token bigint) RETURNS void LANGUAGE sql SECURITY DEFINER AS 'SELECT lease_fence(''job'', token)';
ALTER FUNCTION fence_as_owner(bigint) OWNER TO regress_lease_a;
SET ROLE regress_lease_b;
SELECT fence_as_owner(:token);
RESET ROLE;
DROP FUNCTION fence_as_owner(bigint);
-- What was granted to a superuser is a superuser's.
SELECT lease_try('root', 'a', '1 h'), granted_to = current_user AS mine FROM dist_lock WHERE name = 'job';
SET ROLE regress_lease_a;
SELECT lease_renew('root', 'a', '1 h'), lease_token('root', 'a');
RESET ROLE;

-- RENAME: the tenure stays with the old name, so the holder has lost it, and gets it back with its name.
ALTER ROLE regress_lease_a RENAME TO regress_lease_a2;
SELECT role, answers(role, :token) FROM unnest(ARRAY['regress_lease_a2', 'regress_lease_member']) role;
SELECT lease_renew('job', 'a', '1 h') AS superuser;
SELECT role, state FROM leases WHERE name = 'job';
ALTER ROLE regress_lease_a2 RENAME TO regress_lease_a;
SELECT answers('regress_lease_a', :token);
-- An administrator can give it to another role.
UPDATE dist_lock SET granted_to = 'regress_lease_b' WHERE name = 'job';
SELECT role, answers(role, :token) FROM unnest(ARRAY['regress_lease_a', 'regress_lease_b']) role;
UPDATE dist_lock SET granted_to = 'regress_lease_a' WHERE name = 'job';

-- DROP ROLE is not held up; the lease lasts until its expiry, views work, then anybody takes it.
SET ROLE regress_lease_a;
SELECT lease_try('short', 'a', '1 h');
RESET ROLE;
DROP OWNED BY regress_lease_a;
SELECT answers('regress_lease_a', :token) AS after_drop_owned;
DROP ROLE regress_lease_a;
SELECT role, answers(role, :token) FROM unnest(ARRAY['regress_lease_member', 'regress_lease_b']) role;
SET ROLE regress_lease_b;
SELECT name, owner, state, role FROM leases WHERE role = 'regress_lease_a' ORDER BY name;
RESET ROLE;
SELECT lease_renew('job', 'a', '1 h') AS superuser, lease_fence('job', :token);
UPDATE dist_lock SET expiry = clock_timestamp() WHERE name = 'short';
SET ROLE regress_lease_b;
SELECT lease_try('short', 'b', '1 h');
RESET ROLE;
SELECT lease_break('job');
SET ROLE regress_lease_b;
SELECT lease_try('job', 'b', '1 h');
RESET ROLE;
SELECT name, role, last_owner, last_end FROM leases WHERE role = 'regress_lease_b' ORDER BY name;
-- A new role of the old name is the old one, as far as leases know.
UPDATE dist_lock SET granted_to = 'regress_lease_a' WHERE name = 'job';
CREATE ROLE regress_lease_a;
SET ROLE regress_lease_a;
SELECT lease_token('job', 'b') IS NOT NULL AS inherited;
RESET ROLE;
-- Role names that have to be quoted.
CREATE ROLE "regress_lease_it's ""q"" \ é";
SET ROLE "regress_lease_it's ""q"" \ é";
SELECT lease_try('quoted', 'a', '1 h'), lease_renew('quoted', 'a', '1 h'), lease_fence('quoted', lease_token('quoted', 'a'));
SELECT owner, role FROM leases WHERE name = 'quoted';
RESET ROLE;
DROP ROLE "regress_lease_it's ""q"" \ é";

-- REASSIGN OWNED: the objects get another owner, who is no superuser, and everything goes on.
ALTER TABLE dist_lock OWNER TO regress_lease_a;
ALTER SEQUENCE dist_lock_token OWNER TO regress_lease_a;
ALTER VIEW leases OWNER TO regress_lease_a;
ALTER VIEW lease_waiters OWNER TO regress_lease_a;
ALTER FUNCTION lease_activity() OWNER TO regress_lease_a;
REASSIGN OWNED BY regress_lease_a TO regress_lease_member;
SELECT relname, relowner::regrole FROM pg_class WHERE relname IN ('dist_lock', 'dist_lock_token', 'leases', 'lease_waiters') ORDER BY 1;
SET ROLE regress_lease_b;
SELECT lease_try('after', 'b', '1 h'), lease_fence('after', lease_token('after', 'b')), lease_release('after', 'b'), lease_try('after', 'c', '1 h');
SELECT owner, state, waiters FROM leases WHERE name = 'after';
RESET ROLE;
SELECT lease_break('after'), lease_purge('0') > 0 AS purged;
-- An owner of the table that lost his rights on it, or on the sequence: clear errors, no false.
REVOKE ALL ON dist_lock FROM regress_lease_member;
SET ROLE regress_lease_b;
\set VERBOSITY sqlstate
SELECT lease_try('no rights', 'b', '1 h');
SELECT lease_try('job', 'x', '1 h'), lease_try('quoted', 'b', '1 h');
SELECT count(*) FROM leases;
RESET ROLE;
SELECT lease_purge('0');
\set VERBOSITY default
-- DROP OWNED of the table's owner is refused: the extension needs it.
\set VERBOSITY sqlstate
DROP OWNED BY regress_lease_member;
\set VERBOSITY default
ALTER TABLE dist_lock OWNER TO current_user;
DROP FUNCTION answers(name, bigint);
DROP EXTENSION lease;
DROP ROLE regress_lease_a, regress_lease_b, regress_lease_member, regress_lease_noinherit;
