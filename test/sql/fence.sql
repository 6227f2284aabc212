-- lease_fence in one session: whom it lets through, whom it refuses and with
-- which reason, and that it writes nothing.
CREATE EXTENSION lease;
SET client_min_messages = error;

-- What a fence says, with instants and tokens made comparable.
CREATE FUNCTION fence(name text, token bigint) RETURNS TABLE (state text, said text, reason text, hint text) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lease_fence($1, $2);
    RETURN QUERY SELECT 'passed', '', '', '';
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS reason = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN QUERY SELECT SQLSTATE, regexp_replace(SQLERRM, '\d{10,}', 'T'),
        regexp_replace(regexp_replace(fence.reason, '\d{10,}', 'T', 'g'), '\d+\.\d s', 'N s'), fence.hint;
END $$;

-- The live token passes, as often as one likes; the result is void.
SELECT lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a') AS token \gset
BEGIN;
SELECT lease_fence('job', :token);
SELECT lease_fence('job', :token), lease_fence('job', :token), pg_typeof(lease_fence(name => 'job', token => :token));
COMMIT;

-- Unknown name.
SELECT * FROM fence('unknown', 1);
-- Expired, and nobody took it.
SELECT lease_try('expired', 'a', '1 us');
SELECT token AS expired FROM dist_lock WHERE name = 'expired' \gset
SELECT * FROM fence('expired', :expired);
SELECT reason FROM fence('expired', :expired - 1);
-- How long ago.
UPDATE dist_lock SET expiry = clock_timestamp() - interval '3.2 s' WHERE name = 'expired';
DO $$
DECLARE
    reason text;
BEGIN
    PERFORM lease_fence('expired', (SELECT token FROM dist_lock d WHERE d.name = 'expired'));
EXCEPTION WHEN SQLSTATE 'LEASE' THEN
    GET STACKED DIAGNOSTICS reason = PG_EXCEPTION_DETAIL;
    IF reason !~ '^Its last tenure expired 3\.\d s ago\.$' THEN
        RAISE WARNING '%', reason;
    END IF;
END $$;
-- Taken over: that token ended, the live one is another.
SELECT lease_try('expired', 'b', '1 h'), lease_token('expired', 'b') > :expired AS higher;
SELECT * FROM fence('expired', :expired);
SELECT detail = format('Token %s ended, the live one is %s.', :expired, lease_token('expired', 'b')) AS names_both
  FROM (SELECT (SELECT token FROM dist_lock WHERE name = 'expired')) t,
       LATERAL (SELECT format('Token %s ended, the live one is %s.', :expired, t.token) AS detail) d;
SELECT state FROM fence('expired', lease_token('expired', 'b'));
-- The same owner again, another tenure.
SELECT lease_release('job', 'a'), lease_try('job', 'a', '1 h');
SELECT * FROM fence('job', :token);
-- Released; cooling; broken; kept by nobody.
SELECT lease_token('job', 'a') AS token \gset
SELECT lease_release('job', 'a');
SELECT * FROM fence('job', :token);
SELECT lease_try('job', 'a', '1 h'), lease_release('job', 'a', '1 h');
SELECT token AS token FROM dist_lock WHERE name = 'job' \gset
SELECT reason FROM fence('job', :token);
SELECT lease_break('job'), lease_try('job', 'a', '1 h'), lease_break('job');
SELECT token AS token FROM dist_lock WHERE name = 'job' \gset
SELECT reason FROM fence('job', :token);
INSERT INTO dist_lock (name, token, owner, expiry) VALUES ('by hand', 7, NULL, NULL), ('no expiry', 7, 'x', NULL), ('for ever', 7, 'x', 'infinity'), ('never', 7, 'x', '-infinity'), ('closed', 7, NULL, 'infinity');
SELECT d.name, f.state, f.reason FROM dist_lock d, fence(d.name, 7) f WHERE d.token = 7 ORDER BY d.name;
-- A token that is higher than any, nought and below.
SELECT lease_try('job', 'a', '1 h');
SELECT f.state, f.reason FROM (VALUES (9223372036854775807), (0), (-1), (-9223372036854775808)) v (token), fence('job', v.token) f;
-- The lease of another name, with the token of this one.
SELECT lease_try('job2', 'a', '1 h');
SELECT state, reason LIKE 'Token % was never given, the live one is %' AS reason FROM fence('job', lease_token('job2', 'a'));
SELECT state, reason LIKE 'Token % ended, the live one is %' AS reason FROM fence('job2', lease_token('job', 'a'));

-- Arguments.
\pset format unaligned
SELECT left(v.name, 3) AS name, length(v.name), v.token, f.state, left(f.said, 30) AS said FROM (VALUES (1, NULL, 1::bigint), (2, 'job', NULL), (3, NULL, NULL), (4, '', 1), (5, repeat('n', 255), 1), (6, repeat('n', 256), 1),
    (7, repeat(E'\u00e9', 128), 1), (8, repeat('n', 1000000), 1)) v (i, name, token), fence(v.name, v.token) f ORDER BY i;
\pset format aligned

-- Names compare as a whole, byte by byte.
SELECT lease_try(n, 'a', '1 h') FROM unnest(ARRAY['Job', 'job ', ' job', repeat('n', 255), E'j\u00f6b', E'jo\u0308b', E'a\nb', '''"\']) n;
SELECT n, f.state FROM unnest(ARRAY['Job', 'job ', ' job', E'j\u00f6b', E'jo\u0308b', E'a\nb', '''"\', 'JOB', E'job\t']) n, fence(n, (SELECT token FROM dist_lock WHERE name = n)) f WHERE f.state <> '22004';
SELECT count(DISTINCT token) FROM dist_lock WHERE lower(trim(name)) = 'job';

-- Two leases in one transaction; a try in it, too.
BEGIN;
SELECT lease_fence('job', lease_token('job', 'a')), lease_fence('job2', lease_token('job2', 'a'));
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'RowShareLock';
SELECT lease_try('job3', 'a', '1 h'), lease_fence('job3', lease_token('job3', 'a'));
SELECT lease_renew('job', 'a', '2 h'), lease_renew_all(ARRAY['job', 'job2'], 'a', '2 h'), lease_try('job', 'a', '1 h');
COMMIT;
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
-- Token, try and fence in one statement.
SELECT lease_fence('job4', lease_token('job4', 'a')) WHERE lease_try('job4', 'a', '1 h');
-- Fence, then release, in one transaction: that ends the tenure behind its own fence.
BEGIN;
SELECT lease_fence('job4', lease_token('job4', 'a')), lease_release('job4', 'a'), lease_token('job4', 'a');
SELECT state, reason FROM fence('job4', (SELECT token FROM dist_lock WHERE name = 'job4'));
ROLLBACK;
BEGIN;
SELECT lease_fence('job4', lease_token('job4', 'a')), lease_break('job4'), lease_try('job4', 'b', '1 h'), lease_fence('job4', lease_token('job4', 'b'));
COMMIT;

-- It writes nothing: no row version and no transaction ID; a read-only transaction may.
SELECT md5(string_agg(d::text || ctid || xmin || xmax, ',' ORDER BY name)) AS before FROM dist_lock d \gset
SELECT lease_token('job', 'a') AS token \gset
BEGIN READ ONLY;
SELECT lease_fence('job', :token), pg_current_xact_id_if_assigned() IS NULL AS no_xid;
SELECT state FROM fence('job', 1);
SELECT lease_fence('job', :token), lease_token('job', 'a') = :token AS token;
COMMIT;
BEGIN;
SELECT lease_fence('job', :token);
SELECT pg_current_xact_id_if_assigned() IS NULL AS no_xid;
COMMIT;
SELECT md5(string_agg(d::text || ctid || xmin || xmax, ',' ORDER BY name)) = :'before' AS untouched FROM dist_lock d;

-- In the isolation levels, with the grant long committed.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT lease_fence('job', :token), lease_renew('job', 'a', '1 h'), lease_fence('job', :token);
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT lease_fence('job', :token);
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'RowShareLock';
SELECT count(*) AS predicate_locks FROM pg_locks WHERE mode = 'SIReadLock' AND relation IN ('dist_lock'::regclass, 'dist_lock_pkey'::regclass);
COMMIT;
-- Granted in the same transaction: after nothing, a release, an expiry.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT lease_try('rr', 'a', '1 h');
SELECT state FROM fence('rr', lease_token('rr', 'a'));
COMMIT;
SELECT lease_release('rr', 'a'), lease_try('rr2', 'a', '1 us');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT lease_try('rr', 'a', '1 h'), lease_try('rr2', 'b', '1 h');
SELECT f1.state, f2.state FROM fence('rr', lease_token('rr', 'a')) f1, fence('rr2', lease_token('rr2', 'b')) f2;
SELECT lease_release('rr2', 'b'), lease_try('rr2', 'c', '1 h');
SELECT f2.state FROM fence('rr2', lease_token('rr2', 'c')) f2;
COMMIT;

-- A fence that was passed in a savepoint or in a block with an exception ends with it.
BEGIN;
SAVEPOINT s;
SELECT lease_fence('job', :token);
ROLLBACK TO s;
SELECT count(*) AS gates FROM pg_locks WHERE locktype = 'advisory';
SELECT lease_fence('job', :token);
SAVEPOINT s;
SELECT lease_fence('job', :token);
ROLLBACK TO s;
SELECT count(*) AS gates FROM pg_locks WHERE locktype = 'advisory';
SAVEPOINT s;
SELECT lease_fence('job2', lease_token('job2', 'a'));
RELEASE s;
SELECT count(*) AS gates FROM pg_locks WHERE locktype = 'advisory';
-- One that is refused leaves nothing.
SELECT state FROM fence('rr', 1);
SELECT count(*) AS gates FROM pg_locks WHERE locktype = 'advisory';
COMMIT;

-- Users' advisory locks are something else.
BEGIN;
SELECT lease_fence('job', :token);
DO $$ BEGIN PERFORM pg_advisory_unlock_all(); END $$;
SELECT count(*) AS gates FROM pg_locks WHERE locktype = 'advisory';
COMMIT;

-- In a cursor, a function, a prepared statement, and after DROP and CREATE EXTENSION.
PREPARE f (text, bigint) AS SELECT lease_fence($1, $2);
EXECUTE f ('job', :token);
EXECUTE f ('job', :token);
DROP EXTENSION lease;
CREATE EXTENSION lease;
SELECT lease_try('job', 'a', '1 h'), lease_token('job', 'a') > :token AS higher;
SELECT lease_token('job', 'a') AS token \gset
EXECUTE f ('job', :token);
SELECT state, reason FROM fence('job2', :token);
DEALLOCATE f;

DROP FUNCTION fence(text, bigint);
DROP EXTENSION lease;
