-- The views leases and lease_waiters: what they show to whom, and that no row
-- breaks them.
CREATE EXTENSION lease;
CREATE ROLE regress_lease_a;
CREATE ROLE regress_lease_b;
CREATE ROLE regress_lease_member;
CREATE ROLE regress_lease_noinherit NOINHERIT;
CREATE ROLE regress_lease_stats;
GRANT regress_lease_a TO regress_lease_member, regress_lease_noinherit;
GRANT pg_read_all_stats TO regress_lease_stats;

\d leases
\d lease_waiters
-- A comment on every column, and on the views.
SELECT c.relname, count(*), count(col_description(attrelid, attnum)) AS described, obj_description(c.oid) IS NOT NULL AS view FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
 WHERE attnum > 0 AND c.oid IN ('leases'::regclass, 'lease_waiters'::regclass, 'dist_lock'::regclass) GROUP BY c.oid, c.relname ORDER BY 1;

-- Every state.
SET ROLE regress_lease_a;
SELECT lease_try('held', 'a1', '1 h'), lease_try('expired', 'a1', '1 us'), lease_try('cooling', 'a1', '1 h'), lease_release('cooling', 'a1', '2 h'), lease_try('free', 'a1', '1 h'), lease_release('free', 'a1'),
       lease_try('broken', 'a1', '1 h'), lease_try('taken over', 'a0', '1 us'), lease_try('taken over', 'a1', '1 h'), lease_renew('taken over', 'a1', '2 h');
RESET ROLE;
SELECT lease_break('broken');
SELECT name, owner, state, role, last_owner, last_end, session_pid, waiters, grants, takeovers, token > 0 AS token FROM leases ORDER BY name;
SELECT name, remaining > interval '0' AS some, remaining <= interval '2 h' AS in_bounds, acquired_at <= renewed_at AS order, expiry > clock_timestamp() AS future, min_margin > '59 min' AS margin FROM leases ORDER BY name;
SELECT name, remaining FROM leases WHERE state IN ('expired', 'free') ORDER BY name;

-- The owner is for who has the holder's role, for pg_read_all_stats and for superusers.
CREATE FUNCTION seen(role name) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %I', role);
    SELECT string_agg(concat_ws('/', name, coalesce(owner, '-'), coalesce(last_owner, '-'), leases.role), ' ' ORDER BY name) INTO answer FROM leases WHERE name IN ('held', 'expired', 'taken over', 'free', 'by b');
    RESET ROLE;
    RETURN answer;
END $$;
SET ROLE regress_lease_b;
SELECT lease_try('by b', 'b1', '1 h');
RESET ROLE;
SELECT role, seen(role) FROM unnest(ARRAY['regress_lease_a', 'regress_lease_b', 'regress_lease_member', 'regress_lease_noinherit', 'regress_lease_stats', current_user]) role (role) WHERE role <> current_user;
SELECT seen(current_user) = seen('regress_lease_stats') AS superuser;
-- No way round it: a condition of the reader's own sees what he sees.
CREATE FUNCTION leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$ BEGIN RAISE NOTICE 'saw %', $1; RETURN true; END $$;
SET ROLE regress_lease_b;
SELECT count(*) FROM leases WHERE name = 'held' AND leak(owner) AND leak(last_owner);
SELECT owner FROM leases WHERE owner IS NOT NULL ORDER BY owner;
\set VERBOSITY sqlstate
SELECT 1 FROM dist_lock;
UPDATE leases SET owner = 'x';
DELETE FROM leases;
\set VERBOSITY default
RESET ROLE;
DROP FUNCTION leak(text);
-- A role that was renamed, or dropped: its owners are for statistics and superusers only.
ALTER ROLE regress_lease_b RENAME TO regress_lease_c;
SELECT seen('regress_lease_c');
ALTER ROLE regress_lease_c RENAME TO regress_lease_b;
SELECT seen('regress_lease_b');
DROP ROLE regress_lease_b;
SELECT seen('regress_lease_stats');
-- A row of no role.
UPDATE dist_lock SET granted_to = NULL WHERE name = 'held';
SELECT seen('regress_lease_a'), seen('regress_lease_stats');

-- Odd rows.
INSERT INTO dist_lock (name, token, owner, expiry, granted_to, acquired_at, renewed_at, ttl, session_pid, session_start, grants, takeovers, min_margin, last_owner, last_end) VALUES
    ('odd 01', 1, 'x', 'infinity', NULL, 'infinity', '-infinity', '178000000 years', 0, 'infinity', 9223372036854775807, -1, '-178000000 years', '', ''),
    ('odd 02', 1, 'x', '-infinity', '', NULL, NULL, '-1 day +25:00', -1, NULL, 0, 0, NULL, NULL, 'nonsense'),
    ('odd 03', 1, NULL, 'infinity', repeat('r', 1000), NULL, NULL, NULL, 2147483647, NULL, 0, 0, NULL, NULL, NULL),
    ('odd 04', 1, NULL, '-infinity', 'no such role', NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL),
    ('odd 05', 1, NULL, NULL, 'regress_lease_a', NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL),
    ('odd 06', 1, 'x', NULL, E'"\n\\', NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL),
    ('odd 07', 9223372036854775807, 'x', '294276-12-31 23:59:59.999999 UTC', NULL, '4713-01-01 BC', '4713-01-01 BC', '0', NULL, NULL, 0, 0, NULL, NULL, NULL),
    ('odd 08', -9223372036854775808, 'x', '4713-01-01 BC', NULL, '294276-12-31', NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL),
    (E'odd 09 \x01\x7f\n\t\r', 1, E'\x01\x02', now() + interval '1 h', NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL),
    (E'odd 10 \u00e9\U0001f512\u202e', 1, E'\u00e9', now() + interval '1 h', NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL),
    (rpad('odd 11 ', 255, '''"%s\'), 1, repeat('o', 255), now() + interval '1 h', NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL);
\pset format unaligned
SELECT left(name, 6) AS name, length(name) AS len, length(owner) AS owner, state, token, left(role, 12) AS role, remaining IS NULL AS no_end, remaining > '0' AS some, session_pid, waiters, grants, takeovers, min_margin, last_owner, last_end FROM leases WHERE name LIKE 'odd%' ORDER BY name;
\pset format aligned
SET ROLE regress_lease_a;
SELECT count(*), count(owner) AS owners FROM leases WHERE name LIKE 'odd%';
RESET ROLE;
SET timezone = 'Asia/Kathmandu'; SET intervalstyle = 'iso_8601'; SET datestyle = 'SQL, DMY';
SELECT count(leases::text) FROM leases WHERE name LIKE 'odd%';
RESET timezone; RESET intervalstyle; RESET datestyle;
-- And what their own rules let through when the checks are dropped: names and owners of any length.
ALTER TABLE dist_lock DROP CONSTRAINT dist_lock_name_check, DROP CONSTRAINT dist_lock_owner_check;
INSERT INTO dist_lock (name, token, owner, expiry) VALUES ('', 1, '', 'infinity'), ('odd 12' || repeat('n', 2000), 1, repeat('o', 100000), 'infinity');
SELECT length(name), length(owner), state FROM leases WHERE name = '' OR name LIKE 'odd 12%' ORDER BY 1;
-- The views in the midst of a transaction that has all of them locked.
BEGIN;
SELECT count(*) FROM (SELECT FROM dist_lock FOR UPDATE) l;
SELECT kind, count(*), count(name), count(*) FILTER (WHERE pid = pg_backend_pid()) AS mine, count(position) AS positions, count(since) AS since FROM lease_waiters GROUP BY kind;
SELECT count(*) FROM leases WHERE name LIKE 'odd%' AND waiters = 0;
ROLLBACK;
DELETE FROM dist_lock WHERE name LIKE 'odd%' OR name = '';

-- lease_waiters: nobody; a fence; busy by a try, a renewal, a release, a break; a name that has no row any more.
SELECT count(*) FROM lease_waiters;
CREATE FUNCTION uses() RETURNS SETOF text LANGUAGE sql AS $$ SELECT concat_ws('/', coalesce(name, '-'), kind, pid = pg_backend_pid(), position, since <= clock_timestamp()) FROM lease_waiters ORDER BY 1 $$;
SELECT lease_try('job', 'a', '1 h'), lease_try('job2', 'a', '1 h');
-- (A row that was made by hand, too.)
INSERT INTO dist_lock (name, token, owner, expiry) VALUES ('by hand', 7, 'a', 'infinity');
BEGIN; SELECT lease_renew('by hand', 'a', '1 h'); SELECT uses(); SELECT lease_renew('by hand', 'a', '1 h'); SELECT uses(); SAVEPOINT s; SELECT lease_renew('by hand', 'a', '1 h'); SELECT uses(); ROLLBACK;
DELETE FROM dist_lock WHERE name = 'by hand';
BEGIN; SELECT lease_fence('job', lease_token('job', 'a')), lease_fence('job2', lease_token('job2', 'a')); SELECT uses(); ROLLBACK;
BEGIN; SELECT lease_renew('job', 'a', '1 h'); SELECT uses(); ROLLBACK;
BEGIN; SELECT lease_renew('job', 'a', '1 h'), lease_fence('job', lease_token('job', 'a')); SELECT uses(); ROLLBACK;
BEGIN; SAVEPOINT s; SELECT lease_renew('job', 'a', '1 h'); RELEASE s; SELECT uses(); ROLLBACK;
BEGIN; SELECT lease_release('job', 'a'); SELECT uses(); ROLLBACK;
BEGIN; SELECT lease_break('job'); SELECT uses(); ROLLBACK;
BEGIN; SELECT lease_try('new', 'a', '1 h'), lease_try('free', 'a', '1 h'); SELECT uses(); SELECT name FROM leases WHERE name = 'new'; ROLLBACK;
BEGIN; SELECT lease_try('job', 'b', '1 h'), lease_renew('job', 'b', '1 h'), lease_token('job', 'a') > 0; SELECT uses() AS lost; ROLLBACK;
BEGIN; SELECT lease_renew_all(ARRAY['job', 'job2'], 'a', '1 h'); SELECT uses(); ROLLBACK;
BEGIN; SELECT lease_fence('job', lease_token('job', 'a')); DELETE FROM dist_lock WHERE name = 'job'; SELECT uses(); ROLLBACK;
BEGIN; SELECT 1 FROM dist_lock WHERE name = 'job' FOR UPDATE; SELECT uses(); ROLLBACK;
-- Advisory locks of users, and foreign keys, are not ours.
CREATE TABLE refers (name text COLLATE "C" REFERENCES dist_lock);
BEGIN; SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock_shared(1, 2); INSERT INTO refers VALUES ('job2'); SELECT uses();
SELECT lease_renew('job', 'a', '1 h'); SELECT uses(); ROLLBACK;
DROP TABLE refers;
-- Without rights on the function below, as with a REVOKE from PUBLIC: an error, no rows made up.
SET ROLE regress_lease_a;
SELECT count(*) FROM lease_waiters;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION lease_activity() FROM PUBLIC;
SET ROLE regress_lease_a;
\set VERBOSITY sqlstate
SELECT count(*) FROM lease_waiters;
SELECT waiters FROM leases;
\set VERBOSITY default
RESET ROLE;

-- A read-only transaction, and every isolation level, see what is there now.
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY;
SELECT count(*) FROM leases WHERE state = 'held' AND name LIKE 'job%';
SELECT count(*) FROM lease_waiters;
COMMIT;

DROP FUNCTION uses(), seen(name);
DROP EXTENSION lease;
DROP ROLE regress_lease_a, regress_lease_member, regress_lease_noinherit, regress_lease_stats;
