-- lease_break: an administrator ends what others hold.
CREATE EXTENSION lease;
CREATE ROLE regress_lease_holder;
CREATE ROLE regress_lease_admin;

-- EXECUTE is not for everybody; who has it needs nothing else.
SET ROLE regress_lease_holder;
SELECT lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a') AS token \gset
\set VERBOSITY sqlstate
SELECT lease_break('job');
\set VERBOSITY default
RESET ROLE;
GRANT EXECUTE ON FUNCTION lease_break(text) TO regress_lease_admin;
SET ROLE regress_lease_admin;
SELECT lease_break('job'), lease_break('job') AS again, lease_break('unknown') AS unknown;
RESET ROLE;

-- The holder learns it at once.
SET ROLE regress_lease_holder;
SELECT lease_renew('job', 'a', '1 h'), lease_renew('job', 'a', '1 h', :token), lease_token('job', 'a'), lease_renew_all(ARRAY['job'], 'a', '1 h');
SELECT lease_release('job', 'a');
\set VERBOSITY terse
SELECT lease_fence('job', 1);
\set VERBOSITY default
RESET ROLE;
SELECT owner, last_owner, last_end, granted_to, grants, takeovers, token = :token AS same_token, expiry <= clock_timestamp() AS over FROM dist_lock;
-- The next one gets a higher token, and nobody's takeover is counted.
SELECT lease_try('job', 'b', '1 h'), lease_token('job', 'b') > :token AS higher;
SELECT grants, takeovers, last_owner, last_end FROM dist_lock;

-- Cooling: free at once. Free, expired, unknown: nothing to end, and nothing changed.
SELECT lease_release('job', 'b', '1 h'), lease_try('job', 'c', '1 h') AS cooling;
SELECT lease_break('job'), lease_break('job') AS again, lease_try('job', 'c', '1 h');
SELECT last_owner, last_end FROM dist_lock;
SELECT lease_try('expired', 'a', '1 us'), lease_try('free', 'a', '1 h'), lease_release('free', 'a');
SELECT md5(string_agg(d::text || ctid, ',' ORDER BY name)) AS before FROM dist_lock d WHERE name <> 'job' \gset
SELECT lease_break('expired'), lease_break('free');
SELECT md5(string_agg(d::text || ctid, ',' ORDER BY name)) = :'before' AS untouched FROM dist_lock d WHERE name <> 'job';

-- Rows made by hand.
INSERT INTO dist_lock (name, token, owner, expiry) VALUES ('for ever', 7, 'x', 'infinity'), ('closed', 7, NULL, 'infinity'), ('no expiry', 7, 'x', NULL), ('never', 7, 'x', '-infinity'),
    ('farthest', 7, 'x', '294276-12-31 23:59:59.999999 UTC'), ('last', 9223372036854775807, 'x', 'infinity');
SELECT name, lease_break(name), lease_break(name) AS again FROM unnest(ARRAY['for ever', 'closed', 'no expiry', 'never', 'farthest', 'last']) name;
SELECT name, owner, isfinite(expiry) AS finite, last_owner, last_end FROM dist_lock WHERE token IN (7, 9223372036854775807) ORDER BY name;

-- Arguments, read-only.
\set VERBOSITY sqlstate
SELECT lease_break(NULL);
SELECT lease_break('');
SELECT lease_break(repeat('n', 256));
BEGIN READ ONLY;
SELECT lease_break('unknown');
ROLLBACK;
\set VERBOSITY default

-- In a transaction: rolled back, it never was. Its own fence is no hindrance.
SELECT lease_token('job', 'c') AS token \gset
BEGIN;
SELECT lease_fence('job', :token), lease_break('job'), lease_renew('job', 'c', '1 h');
ROLLBACK;
SELECT lease_token('job', 'c') = :token AS still;
BEGIN;
SAVEPOINT s;
SELECT lease_break('job'), lease_try('job', 'd', '1 h');
ROLLBACK TO s;
SELECT lease_token('job', 'c') = :token AS still;
COMMIT;
-- One that had nothing to end keeps no lock.
BEGIN;
SELECT lease_break('unknown'), lease_break('free');
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory';
COMMIT;

-- It is in no hurry to lose it: as durable as a grant. And no session's synchronous_commit is changed.
SET synchronous_commit = off;
SELECT lease_break('job');
SHOW synchronous_commit;
RESET synchronous_commit;

REVOKE ALL ON FUNCTION lease_break(text) FROM regress_lease_admin;
DROP ROLE regress_lease_holder, regress_lease_admin;
DROP EXTENSION lease;
