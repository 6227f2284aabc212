-- lease_watch tells the live token when it is another than the known one.
CREATE EXTENSION lease;
\set VERBOSITY terse

-- Nobody holds it, and that was known: the time is up.
CALL lease_watch('job', NULL, '10 ms');
CALL lease_watch('job', NULL, '0');
-- It was not known.
CALL lease_watch('job', 1);
CALL lease_watch('job', 1, '0');

SELECT lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a') AS live \gset
CALL lease_watch('job', NULL) \gset got_
SELECT :got_token = :live AS live;
CALL lease_watch('job', NULL, '1 h') \gset got_
SELECT :got_token = :live AS live;
CALL lease_watch(name => 'job', known => 1, wait => '0') \gset got_
SELECT :got_token = :live AS live;
-- The known one when the time is up.
CALL lease_watch('job', :live, '0') \gset got_
SELECT :got_token = :live AS known;
CALL lease_watch('job', :live, '10 ms', 5) \gset got_
SELECT :got_token = :live AS known;
CALL lease_watch('job', known => lease_token('job', 'a'), wait => '10 ms') \gset got_
SELECT :got_token = :live AS known;

-- Renewed is not changed; expiry is, and so are a cooling time and a broken one.
SELECT lease_renew('job', 'a', '50 ms');
CALL lease_watch('job', :live, '1 h');
SELECT lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a') AS live \gset
SELECT lease_release('job', 'a', keep => '1 h');
CALL lease_watch('job', :live);
CALL lease_watch('job', NULL, '10 ms');
SELECT lease_break('job');
CALL lease_watch('job', NULL, '10 ms');

-- Rows made by hand.
INSERT INTO dist_lock(name, owner, expiry, token) VALUES ('hand', 'h', 'infinity', 7), ('hand2', 'h', NULL, 7), ('hand3', 'h', '-infinity', 7);
CALL lease_watch('hand', NULL);
CALL lease_watch('hand', 7, '10 ms');
CALL lease_watch('hand2', 7);
CALL lease_watch('hand3', 7);

-- Arguments.
CALL lease_watch(NULL, 1);
CALL lease_watch('', 1);
CALL lease_watch(repeat('x', 256), 1);
CALL lease_watch('job', 1, '-1 s');
CALL lease_watch('job', NULL, '-1 month');
CALL lease_watch('job', 1, '100 years');
CALL lease_watch('job', 1, '170000 years');

-- Everywhere: read-only, in blocks, in plpgsql, and it leaves no lock.
CREATE VIEW ours AS SELECT objsubid - 27649 AS kind, mode, granted FROM pg_locks
 WHERE locktype = 'advisory' AND objsubid BETWEEN 27649 AND 27651 AND pid = pg_backend_pid();
BEGIN READ ONLY;
CALL lease_watch('hand', NULL);
CALL lease_watch('hand', 7, '10 ms');
SELECT * FROM ours;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM dist_lock;
CALL lease_watch('hand', 7, '10 ms');
SELECT * FROM ours;
-- What this transaction itself has done is seen.
SELECT lease_try('own', 'a', '1 h');
CALL lease_watch('own', NULL, '10 s') \gset got_
SELECT :got_token = lease_token('own', 'a') AS live;
SELECT lease_release('own', 'a');
CALL lease_watch('own', :got_token, '10 s');
ROLLBACK;
DO $$
DECLARE
    token bigint;
BEGIN
    CALL lease_watch('hand', NULL, '10 s', token);
    RAISE NOTICE 'live: %', token;
    CALL lease_watch('hand', token, '10 ms', token);
    RAISE NOTICE 'known: %', token;
    COMMIT;
    CALL lease_watch('nobody', token, NULL, token);
    RAISE NOTICE 'nobody: %', token;
END $$;
SELECT * FROM ours;

-- Anybody may, as far as EXECUTE goes.
CREATE ROLE regress_lease_nobody;
SET ROLE regress_lease_nobody;
CALL lease_watch('hand', NULL);
RESET ROLE;
REVOKE EXECUTE ON PROCEDURE lease_watch FROM PUBLIC;
SET ROLE regress_lease_nobody;
CALL lease_watch('hand', NULL);
RESET ROLE;
DROP ROLE regress_lease_nobody;

DROP VIEW ours;
DROP EXTENSION lease;
