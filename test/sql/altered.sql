-- dist_lock is not as the extension made it: calls fail with 55000 and say what it is.
\set VERBOSITY default
CREATE EXTENSION lease;
SELECT lease_try('job', 'a', '1 h');

-- Another access method, if only by name.
CREATE ACCESS METHOD regress_lease_heap TYPE TABLE HANDLER heap_tableam_handler;
ALTER TABLE dist_lock SET ACCESS METHOD regress_lease_heap;
SELECT lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a');
ALTER TABLE dist_lock SET ACCESS METHOD heap;
DROP ACCESS METHOD regress_lease_heap;
SELECT lease_token('job', 'a') IS NOT NULL AS held;

-- A sequence that would give tokens which do not rise, session by session.
ALTER SEQUENCE dist_lock_token INCREMENT 2;
SELECT lease_token('job', 'a');
ALTER SEQUENCE dist_lock_token INCREMENT 1 CYCLE;
SELECT lease_token('job', 'a');
ALTER SEQUENCE dist_lock_token NO CYCLE CACHE 10;
SELECT lease_token('job', 'a');
ALTER SEQUENCE dist_lock_token CACHE 1;
SELECT lease_token('job', 'a') IS NOT NULL AS held;

-- A token a little higher than the sequence is: it is drawn up to there.
SELECT token AS before FROM dist_lock WHERE name = 'job' \gset
UPDATE dist_lock SET owner = NULL, expiry = NULL, token = :before + 5 WHERE name = 'job';
SELECT lease_try('job', 'a', '1 h'), lease_try('next', 'a', '1 h');
SELECT name, token - :before AS risen FROM dist_lock ORDER BY name;

-- Without the index of bound leases all goes on that binds none.
BEGIN;
DROP INDEX dist_lock_session;
SELECT lease_renew('job', 'a', '1 h'), lease_token('job', 'a') IS NOT NULL AS held;
SELECT lease_renew('job', 'a', '1 h'), lease_release('next', 'a');
SAVEPOINT s;
SELECT lease_attach('job', 'a');
ROLLBACK;

-- A call of a function that is dropped by the same statement.
CREATE FUNCTION drop_lease() RETURNS void LANGUAGE sql AS 'DROP EXTENSION lease';
SELECT drop_lease(), lease_token('job', 'a');
SELECT drop_lease(), lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a') IS NOT NULL AS held;

-- A call in the statement that has just changed the row.
UPDATE dist_lock SET ttl = ttl WHERE name = 'job' RETURNING lease_renew(name, owner, '2 h');
UPDATE dist_lock SET ttl = ttl WHERE name = 'job' RETURNING lease_release(name, owner);
SELECT lease_renew('job', 'a', '1 h');

DROP FUNCTION drop_lease();
DROP EXTENSION lease;
