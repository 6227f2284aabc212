-- A try takes a lease that nobody holds, extends the one that its owner holds,
-- and answers false, with no trace, where another holds it.
CREATE EXTENSION lease;

-- A new name: every column of the row.
SELECT lease_try('job', 'a', '1 min');
SELECT name, owner, expiry = acquired_at + interval '1 min' AS expiry,
       token = last_value AS token, granted_to = current_user AS granted_to,
       acquired_at BETWEEN now() - interval '5 s' AND now() AS acquired_at,
       renewed_at = acquired_at AS renewed_at, ttl, session_pid, session_start,
       grants, takeovers, min_margin, last_owner, last_end
  FROM dist_lock, dist_lock_token;

-- Another owner gets false, and the row stays byte for byte as it is.
SELECT ctid AS old_ctid, md5(d::text) AS old_md5 FROM dist_lock d WHERE name = 'job' \gset
SELECT lease_try('job', 'b', '1 min');
SELECT lease_try('job', 'A', '1 min');
SELECT lease_try('job', 'a ', '1 min');
SELECT ctid = :'old_ctid' AND md5(d::text) = :'old_md5' AS unchanged FROM dist_lock d WHERE name = 'job';

-- The holder's own try sets the expiry, later or sooner, and keeps the token.
SELECT token, acquired_at FROM dist_lock WHERE name = 'job' \gset old_
SELECT lease_try('job', 'a', '1 h');
SELECT lease_try('job', 'a', '2 min');
SELECT owner, token = :old_token AS token, expiry = renewed_at + interval '2 min' AS expiry,
       acquired_at = :'old_acquired_at' AS acquired_at, renewed_at > acquired_at AS renewed_at,
       ttl, grants, takeovers, min_margin BETWEEN '50 s' AND '1 min' AS min_margin,
       last_owner, last_end
  FROM dist_lock WHERE name = 'job';

-- Other names are other leases.
SELECT lease_try('job2', 'b', '1 min');
SELECT lease_try('Job', 'b', '1 min');

-- At its expiry a lease is free, and the next tenure is a takeover.
SELECT lease_try('short', 'a', '300 ms');
SELECT lease_try('short', 'b', '1 min') AS too_early;
SELECT token AS old_token FROM dist_lock WHERE name = 'short' \gset
DO $$ BEGIN PERFORM pg_sleep_until((SELECT expiry FROM dist_lock WHERE name = 'short')); END $$;
SELECT lease_try('short', 'b', '1 min');
SELECT owner, token > :old_token AS token, expiry = acquired_at + interval '1 min' AS expiry,
       renewed_at = acquired_at AS renewed_at, ttl, grants, takeovers, min_margin,
       last_owner, last_end
  FROM dist_lock WHERE name = 'short';

-- So it is for the owner that let it expire: a new tenure.
SELECT token AS old_token FROM dist_lock WHERE name = 'short' \gset
UPDATE dist_lock SET expiry = clock_timestamp() WHERE name = 'short';
SELECT lease_try('short', 'b', '1 min');
SELECT owner, token > :old_token AS token, grants, takeovers, last_owner, last_end
  FROM dist_lock WHERE name = 'short';

-- The clock is that of the call, not that of the transaction's begin.
BEGIN;
SELECT now() IS NOT NULL AS began;
DO $$ BEGIN PERFORM pg_sleep(0.6); END $$;
SELECT clock_timestamp() AS called \gset
SELECT lease_try('k', 'a', '0.5 s');
COMMIT;
SELECT lease_try('k', 'b', '1 min') AS too_early;
SELECT expiry - interval '0.5 s' - :'called' BETWEEN '0' AND '5 s' AS counted_from_the_call
  FROM dist_lock WHERE name = 'k';

-- The same for an extension.
SELECT lease_try('k2', 'a', '1 min');
BEGIN;
SELECT now() IS NOT NULL AS began;
DO $$ BEGIN PERFORM pg_sleep(0.2); END $$;
SELECT clock_timestamp() AS called \gset
SELECT lease_try('k2', 'a', '1 min');
COMMIT;
SELECT expiry - interval '1 min' - :'called' BETWEEN '0' AND '5 s' AS counted_from_the_call
  FROM dist_lock WHERE name = 'k2';

-- Losing tries leave nothing: no transaction ID, no token drawn, no lock, also
-- inside a block that goes on.
SELECT last_value AS old_last_value FROM dist_lock_token \gset
BEGIN;
DO $$
BEGIN
    FOR i IN 1..1000 LOOP
        IF lease_try('job', 'b', '1 min') OR lease_try_any(ARRAY['job', 'job2'], 'c', '1 min') IS NOT NULL
           OR lease_renew('job', 'b', '1 min') OR lease_renew('unknown', 'b', '1 min')
           OR lease_renew_all(ARRAY['job', 'unknown'], 'b', '1 min') <> '{}'
           OR lease_token('job', 'b') IS NOT NULL OR lease_token('unknown', 'b') IS NOT NULL THEN
            RAISE EXCEPTION 'not lost';
        END IF;
    END LOOP;
END $$;
SELECT pg_current_xact_id_if_assigned() AS xid;
SELECT locktype, mode FROM pg_locks
 WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND relation IS DISTINCT FROM 'pg_locks'::regclass;
SELECT last_value = :old_last_value AS no_token_drawn FROM dist_lock_token;
COMMIT;
SELECT count(*) FROM dist_lock WHERE name = 'unknown';

DROP EXTENSION lease;
