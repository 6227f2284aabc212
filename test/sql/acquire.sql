-- lease_acquire takes what is free at once, waits no longer than it was told, and
-- behaves in blocks, in DO, in functions and in procedures.
CREATE EXTENSION lease;
\set VERBOSITY terse

-- A free lease: its token, at once; a new tenure like that of a try.
CALL lease_acquire('job', 'a', '1 min') \gset got_
SELECT name, owner, expiry = acquired_at + interval '1 min' AS expiry, token = :got_token AS token,
       granted_to = current_user AS granted_to, ttl, grants, takeovers
  FROM dist_lock;
SELECT lease_token('job', 'a') = :got_token AS token;

-- Its owner's: the same token, and extended, shorter too.
CALL lease_acquire('job', 'a', '1 h', '10 s') \gset again_
SELECT :again_token = :got_token AS same, ttl, grants FROM dist_lock;
CALL lease_acquire('job', 'a', '2 min', '0') \gset again_
SELECT :again_token = :got_token AS same, ttl, grants FROM dist_lock;

-- Another's: NULL when the time is up.
CALL lease_acquire('job', 'b', '1 min', '0');
CALL lease_acquire('job', 'b', '1 min', '10 ms');
CALL lease_acquire('job', 'b', '1 min', '1 us');
CALL lease_acquire(name => 'job', owner => 'b', ttl => '1 min', wait => '10 ms');
CALL lease_acquire('job', 'b', '1 min', '10 ms', token => 5);
SELECT owner, grants FROM dist_lock;

-- A cooling one, then an expired one.
SELECT lease_release('job', 'a', keep => '1 h');
CALL lease_acquire('job', 'a', '1 min', '10 ms');
UPDATE dist_lock SET expiry = clock_timestamp() + interval '100 ms';
CALL lease_acquire('job', 'b', '1 min', '1 min') \gset got_
SELECT owner, token = :got_token AS token, acquired_at > now() - interval '10 s' AS acquired_at, grants, takeovers FROM dist_lock;
UPDATE dist_lock SET expiry = clock_timestamp() + interval '100 ms';
CALL lease_acquire('job', 'c', '1 min', '100 years') \gset next_
SELECT owner, :next_token > :got_token AS token, grants, takeovers, last_owner, last_end FROM dist_lock;
UPDATE dist_lock SET expiry = clock_timestamp() + interval '100 ms';
CALL lease_acquire('job', 'd', '1 min', '170000 years') \gset
CALL lease_acquire('job', 'd', '1 min', NULL) \gset
SELECT owner FROM dist_lock;

-- Arguments. A wait is checked where nothing is waited for, too.
CALL lease_acquire(NULL, 'a', '1 min');
CALL lease_acquire('job', NULL, '1 min');
CALL lease_acquire('job', 'a', NULL);
CALL lease_acquire('', 'a', '1 min');
CALL lease_acquire('job', '', '1 min');
CALL lease_acquire(repeat('x', 256), 'a', '1 min');
CALL lease_acquire('job', repeat('x', 256), '1 min');
CALL lease_acquire('job', 'a', '0');
CALL lease_acquire('job', 'a', '-1 s');
CALL lease_acquire('job', 'a', '1 month');
CALL lease_acquire('job', 'a', '1 min', '-1 s');
CALL lease_acquire('job', 'd', '1 min', '-1 us');
CALL lease_acquire('free', 'a', '1 min', '-1 month');
CALL lease_acquire('free', 'a', '106750000 days', '1 s');
SELECT count(*) FROM dist_lock;
CALL lease_acquire(repeat('x', 255), repeat('y', 255), '1 min', '0 months') \gset
SELECT octet_length(name), octet_length(owner) FROM dist_lock WHERE name <> 'job';
SET lease.max_ttl = '1 h';
CALL lease_acquire('free', 'a', '2 h');
RESET lease.max_ttl;
SELECT lease_acquire('job', 'a', '1 min');

-- Read-only: an error, also where the answer would have been NULL.
BEGIN READ ONLY;
CALL lease_acquire('job', 'a', '1 min', '0');
ROLLBACK;
SET default_transaction_read_only = on;
CALL lease_acquire('free', 'a', '1 min');
RESET default_transaction_read_only;

-- In a block: what it got goes with the block, and the time that was up does not end it.
DELETE FROM dist_lock;
SELECT lease_try('held', 'x', '1 h');
BEGIN;
CREATE TEMP TABLE kept ON COMMIT DROP AS SELECT 1 AS one;
SET LOCAL lock_timeout = '5ms';
CALL lease_acquire('held', 'a', '1 min', '20 ms');
CALL lease_acquire('new', 'a', '1 min', '20 ms') \gset
SELECT owner FROM dist_lock ORDER BY name;
SAVEPOINT s;
CALL lease_acquire('newer', 'a', '1 min', '20 ms') \gset
ROLLBACK TO s;
CALL lease_acquire('held', 'a', '1 min', '20 ms');
SELECT one, current_setting('lock_timeout') FROM kept;
SELECT name, owner FROM dist_lock ORDER BY name;
ROLLBACK;
SELECT name, owner FROM dist_lock ORDER BY name;
SHOW lock_timeout;

-- No lock of ours stays after the time was up; that of a grant stays with its block.
CREATE VIEW ours AS SELECT objsubid - 27649 AS kind, mode, granted FROM pg_locks
 WHERE locktype = 'advisory' AND objsubid BETWEEN 27649 AND 27651 AND pid = pg_backend_pid();
BEGIN;
CALL lease_acquire('held', 'a', '1 min', '20 ms');
SELECT * FROM ours;
CALL lease_acquire('new', 'a', '1 min', '20 ms') \gset
SELECT * FROM ours;
COMMIT;
SELECT * FROM ours;
BEGIN ISOLATION LEVEL SERIALIZABLE;
CALL lease_acquire('held', 'a', '1 min', '20 ms');
SELECT * FROM ours;
SELECT pg_current_xact_id_if_assigned();
COMMIT;

-- REPEATABLE READ sees the present, its own grants included.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) FROM dist_lock;
CALL lease_acquire('repeatable', 'a', '1 min', '20 ms') \gset got_
SELECT lease_token('repeatable', 'a') = :got_token AS token;
CALL lease_acquire('repeatable', 'a', '2 min', '20 ms') \gset again_
SELECT :again_token = :got_token AS same;
CALL lease_acquire('repeatable', 'b', '2 min', '20 ms');
SELECT lease_release('repeatable', 'a');
CALL lease_acquire('repeatable', 'b', '2 min', '20 ms') \gset again_
SELECT :again_token > :got_token AS higher;
COMMIT;
SELECT owner, ttl FROM dist_lock WHERE name = 'repeatable';

-- Its own tenure in the same transaction expires, and it waits for that.
BEGIN;
SELECT lease_try('mine', 'a', '50 ms');
CALL lease_acquire('mine', 'b', '1 min', '10 s') \gset
SELECT owner, takeovers FROM dist_lock WHERE name = 'mine';
COMMIT;

-- plpgsql wants a variable for the token.
DO $$
DECLARE
    token bigint;
BEGIN
    CALL lease_acquire('do', 'a', '1 min', '1 s', token);
    RAISE NOTICE 'granted: %', token = lease_token('do', 'a');
    CALL lease_acquire('do', 'b', '1 min', '10 ms', token);
    RAISE NOTICE 'granted: %', token IS NOT NULL;
    CALL lease_acquire('do', 'b', '1 min', wait => '10 ms', token => token);
    RAISE NOTICE 'granted: %', token IS NOT NULL;
    ROLLBACK;
    RAISE NOTICE 'after ROLLBACK: %', lease_token('do', 'a');
    CALL lease_acquire('do', 'a', '1 min', '1 s', token);
    COMMIT;
    RAISE NOTICE 'after COMMIT: %', lease_token('do', 'a') = token;
    BEGIN
        CALL lease_acquire('do', 'b', '1 min', '10 ms', token);
        RAISE NOTICE 'in an exception block: %', token IS NOT NULL;
        CALL lease_acquire('do not', 'b', '1 min', '10 ms', token);
        CALL lease_acquire('do', 'b', '1 min', '-1 s', token);
    EXCEPTION WHEN invalid_parameter_value THEN
        RAISE NOTICE 'caught: %, %', SQLERRM, lease_token('do not', 'b');
    END;
END $$;
DO $$ BEGIN CALL lease_acquire('do', 'a', '1 min'); END $$;
SELECT * FROM ours;

-- A function; a wrapper with the rights of its owner and a search_path of its own.
CREATE FUNCTION acquired(name text, wait interval) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    token bigint;
BEGIN
    CALL lease_acquire(name, 'f', '1 min', wait, token);
    RETURN token IS NOT NULL;
END $$;
SELECT acquired('f', '1 s'), acquired('held', '10 ms');
SELECT n, acquired(n, '10 ms') FROM unnest(ARRAY['f1', 'held', 'f2']) n;
CREATE PROCEDURE wrapper(name text, INOUT token bigint DEFAULT NULL) LANGUAGE plpgsql
SECURITY DEFINER SET search_path = '' AS $$
BEGIN
    CALL public.lease_acquire(name, 'w', '1 min', '10 ms', token);
END $$;
CALL wrapper('held');
CALL wrapper('w') \gset
SELECT owner FROM dist_lock WHERE name = 'w';

-- Any search_path, any role that may; rights are checked before anything is done.
CREATE SCHEMA empty;
SET search_path = empty;
CALL public.lease_acquire('path', 'a', '1 min', '1 s') \gset
CALL public.lease_acquire('held', 'a', '1 min', '10 ms');
RESET search_path;
DROP SCHEMA empty;
CREATE ROLE regress_lease_nobody;
SET ROLE regress_lease_nobody;
CALL lease_acquire('role', 'a', '1 min', '1 s') \gset
CALL lease_acquire('held', 'x', '1 min', '10 ms');
RESET ROLE;
SELECT granted_to FROM dist_lock WHERE name = 'role';
REVOKE EXECUTE ON PROCEDURE lease_acquire FROM PUBLIC;
SET ROLE regress_lease_nobody;
CALL lease_acquire('role', 'a', '1 min', '1 s');
RESET ROLE;

-- Beside a token that belongs to another role's tenure, the owner's text is not enough.
GRANT EXECUTE ON PROCEDURE lease_acquire TO PUBLIC;
SET ROLE regress_lease_nobody;
CALL lease_acquire('held', 'x', '1 min', '10 ms');
RESET ROLE;
SELECT owner, granted_to = current_user AS granted_to FROM dist_lock WHERE name = 'held';

-- Rows made by hand.
INSERT INTO dist_lock(name, owner, expiry, token) VALUES ('hand', 'h', 'infinity', 7), ('hand2', 'h', NULL, 7), ('hand3', NULL, NULL, 7), ('hand4', 'h', '-infinity', 7);
CALL lease_acquire('hand', 'a', '1 min', '10 ms');
CALL lease_acquire('hand2', 'a', '1 min', '10 ms') \gset
CALL lease_acquire('hand3', 'a', '1 min', '10 ms') \gset
CALL lease_acquire('hand4', 'a', '1 min', '10 ms') \gset
SELECT name, owner FROM dist_lock WHERE name ~ 'hand' ORDER BY name;

DROP ROLE regress_lease_nobody;
DROP FUNCTION acquired;
DROP PROCEDURE wrapper;
DROP VIEW ours;
DROP EXTENSION lease;
