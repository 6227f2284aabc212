-- lease_purge: deletes the rows of leases that nobody has held for long enough.
CREATE EXTENSION lease;
CREATE ROLE regress_lease_admin;

CREATE FUNCTION purged(idle interval) RETURNS TABLE (deleted bigint, gone text) LANGUAGE plpgsql AS $$
DECLARE
    before text[] := (SELECT array_agg(name) FROM dist_lock);
BEGIN
    deleted := lease_purge(idle);
    gone := (SELECT string_agg(n, ', ' ORDER BY n) FROM unnest(before) n WHERE NOT EXISTS (SELECT FROM dist_lock WHERE name = n));
    RETURN NEXT;
END $$;

-- Rows in every state. What counts is how long nobody could have held it.
INSERT INTO dist_lock (name, token, owner, expiry) VALUES
    ('live', 1, 'a', now() + interval '1 h'), ('live for ever', 1, 'a', 'infinity'), ('cooling', 1, NULL, now() + interval '1 h'), ('closed', 1, NULL, 'infinity'),
    ('expired 10 s', 1, 'a', now() - interval '10 s'), ('expired 2 h', 1, 'a', now() - interval '2 h'), ('expired 3 days', 1, 'a', now() - interval '3 days'),
    ('released 10 s', 1, NULL, now() - interval '10 s'), ('released 2 h', 1, NULL, now() - interval '2 h'), ('released 40 days', 1, NULL, now() - interval '40 days'),
    ('no expiry', 1, NULL, NULL), ('no expiry, owner', 1, 'a', NULL), ('since ever', 1, 'a', '-infinity'), ('ancient', 1, 'a', '4713-01-02 BC');
BEGIN;
SELECT * FROM purged('10 days');
SELECT * FROM purged('1 day');
SELECT * FROM purged('1 h');
SELECT * FROM purged('10 min');
SELECT * FROM purged('1 s');
SELECT * FROM purged('0');
SELECT name FROM dist_lock ORDER BY name;
ROLLBACK;
-- Months count 30 days; what is huge is for ever.
BEGIN;
SELECT * FROM purged('300000 years');
SELECT * FROM purged('170000000 years');
SELECT * FROM purged('1 month 9 days');
SELECT * FROM purged('1 month 11 days') AS nothing_more;
ROLLBACK;
\set VERBOSITY sqlstate
SELECT lease_purge(NULL);
SELECT lease_purge('-1 us');
SELECT lease_purge('-1 month');
BEGIN READ ONLY;
SELECT lease_purge('1 h');
ROLLBACK;
SET ROLE regress_lease_admin;
SELECT lease_purge('0');
RESET ROLE;
\set VERBOSITY default
GRANT EXECUTE ON FUNCTION lease_purge(interval) TO regress_lease_admin;
SET ROLE regress_lease_admin;
SELECT lease_purge('1 day'), current_user;
RESET ROLE;
REVOKE ALL ON FUNCTION lease_purge(interval) FROM regress_lease_admin;
DROP ROLE regress_lease_admin;

-- A token never comes back.
SELECT lease_try('job', 'a', '1 h');
SELECT lease_token('job', 'a') AS token \gset
SELECT lease_release('job', 'a'), lease_purge('0') > 0 AS purged;
SELECT count(*) FROM dist_lock WHERE name = 'job';
SELECT lease_try('job', 'a', '1 h'), lease_token('job', 'a') > :token AS higher, lease_purge('0');
-- Also when the row that goes said more than the sequence does: that is what a row made by hand costs.
SELECT grants, takeovers FROM dist_lock WHERE name = 'job';

-- Fifty thousand, on default settings, in one call; the live, cooling and young ones stay.
DELETE FROM dist_lock;
INSERT INTO dist_lock (name, token, owner, expiry)
SELECT 'n' || i, i, CASE WHEN i % 2 = 0 THEN 'a' END, CASE i % 1000 WHEN 0 THEN now() + interval '1 h' WHEN 1 THEN now() + interval '1 h' WHEN 2 THEN now() - interval '10 min' ELSE now() - interval '2 h' END
  FROM generate_series(1, 50150) i;
SHOW max_locks_per_transaction;
SELECT clock_timestamp() AS began \gset
SELECT lease_purge('1 h');
SELECT clock_timestamp() - :'began' < '15 s' AS in_time;
SELECT count(*), count(*) FILTER (WHERE expiry > now()) AS kept FROM dist_lock;
SELECT lease_purge('1 h') AS nothing_more;
SELECT lease_token('n1000', 'a'), lease_renew('n2000', 'a', '1 h'), lease_try('n1001', 'b', '1 h') AS cooling, lease_try('n3', 'b', '1 h') AS gone, lease_try('n2', 'b', '1 h') AS expired;
-- Rolled back, it never was; in a savepoint, too.
BEGIN;
SELECT lease_purge('0');
ROLLBACK;
BEGIN;
SAVEPOINT s;
SELECT lease_purge('0');
ROLLBACK TO s;
SELECT lease_purge('0');
SELECT lease_try('n1002', 'b', '1 h'), lease_try('n1002', 'c', '1 h');
COMMIT;
SELECT count(*) FROM dist_lock;
-- In the other isolation levels, with rows that are younger than the snapshot.
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) FROM dist_lock;
SELECT lease_try('young', 'a', '1 us');
SELECT lease_purge('0');
COMMIT;
SELECT lease_purge('0');

DROP FUNCTION purged(interval);
DROP EXTENSION lease;
