-- A release ends the owner's live tenure; where there is none it says why.
CREATE EXTENSION lease;

SELECT lease_try('job', 'a', '1 h');
SELECT md5(ROW(token, granted_to, acquired_at, renewed_at, ttl, grants, takeovers, min_margin)::text) AS old_md5
  FROM dist_lock \gset
SELECT clock_timestamp() AS called \gset
SELECT lease_release('job', 'a');
SELECT name, owner, expiry BETWEEN :'called' AND clock_timestamp() AS expiry,
       md5(ROW(token, granted_to, acquired_at, renewed_at, ttl, grants, takeovers, min_margin)::text) = :'old_md5' AS rest,
       session_pid, session_start, last_owner, last_end
  FROM dist_lock;

-- Twice; by somebody else; of a free lease; of one that never was. No row is
-- made, and none changes.
SELECT md5(d::text) AS old_md5, ctid AS old_ctid FROM dist_lock d \gset
SELECT lease_release('job', 'a') AS twice;
SELECT lease_release('job', 'b') AS free;
SELECT lease_release('unknown', 'a') AS unknown;
SELECT lease_release('job', 'a', '1 h') AS with_keep;
SELECT lease_release('job', 'a', token => 1) AS with_token;
SELECT md5(d::text) = :'old_md5' AND ctid = :'old_ctid' AS unchanged FROM dist_lock d;

-- Another's.
SELECT lease_try('job', 'b', '1 h');
SELECT md5(d::text) AS old_md5, ctid AS old_ctid, token AS old_token FROM dist_lock d \gset
\set VERBOSITY terse
SELECT lease_release('job', 'c') AS of_another;
SELECT lease_release('job', 'B') AS of_another;
SELECT lease_release('job', 'c', token => :old_token) AS of_another;
\set VERBOSITY default

-- Another tenure's, although the owner is the same.
\set VERBOSITY terse
SELECT lease_release('job', 'b', token => 1) AS of_another_tenure;
SELECT lease_release('job', 'b', NULL, :old_token + 1) AS of_another_tenure;
\set VERBOSITY default
SELECT md5(d::text) = :'old_md5' AND ctid = :'old_ctid' AS unchanged FROM dist_lock d;

-- With its token.
SELECT lease_release('job', 'b', token => :old_token);
SELECT owner, last_owner, last_end FROM dist_lock;

-- Its own, expired.
SELECT lease_try('job', 'a', '100 ms');
DO $$ BEGIN PERFORM pg_sleep_until((SELECT expiry FROM dist_lock WHERE name = 'job')); END $$;
SELECT md5(d::text) AS old_md5, ctid AS old_ctid FROM dist_lock d \gset
\set VERBOSITY terse
SELECT lease_release('job', 'a') AS expired;
\set VERBOSITY default
SELECT md5(d::text) = :'old_md5' AND ctid = :'old_ctid' AS unchanged FROM dist_lock d;

-- Its own, expired and taken over.
SELECT lease_try('job', 'b', '1 h');
SELECT md5(d::text) AS old_md5, ctid AS old_ctid FROM dist_lock d \gset
\set VERBOSITY terse
SELECT lease_release('job', 'a') AS taken_over;
\set VERBOSITY default
SELECT md5(d::text) = :'old_md5' AND ctid = :'old_ctid' AS unchanged FROM dist_lock d;
SELECT lease_release('job', 'b');

-- After a release anybody may take it at once, the releaser too: a new tenure.
SELECT token AS old_token FROM dist_lock \gset
SELECT lease_try('job', 'b', '1 h');
SELECT token > :old_token AS higher, last_owner, last_end FROM dist_lock;

-- With a time to keep, counted from when the tenure began: nobody gets it
-- before, the releaser included, and nobody holds it.
SELECT lease_try('kept', 'a', '10 s');
SELECT lease_release('kept', 'a', keep => '500 ms');
SELECT lease_try('kept', 'a', '1 h') AS releaser, lease_try('kept', 'b', '1 h') AS another,
       lease_token('kept', 'a') AS token, lease_renew('kept', 'a', '1 h') AS renewal,
       clock_timestamp() < expiry AS in_time
  FROM dist_lock WHERE name = 'kept';
SELECT owner, expiry = acquired_at + interval '500 ms' AS expiry, last_owner, last_end, ttl
  FROM dist_lock WHERE name = 'kept';
DO $$ BEGIN PERFORM pg_sleep_until((SELECT expiry FROM dist_lock WHERE name = 'kept')); END $$;
SELECT lease_try('kept', 'b', '1 h');
SELECT owner, takeovers, last_owner, last_end FROM dist_lock WHERE name = 'kept';

-- A renewal does not move the instant that the time to keep counts from.
SELECT lease_try('kept2', 'a', '10 s');
DO $$ BEGIN PERFORM pg_sleep(0.01); END $$;
SELECT lease_renew('kept2', 'a', '10 s');
SELECT lease_release('kept2', 'a', '1 h');
SELECT expiry = acquired_at + interval '1 h' AS expiry, renewed_at > acquired_at AS renewed FROM dist_lock WHERE name = 'kept2';

-- A release of a lease that is cooling.
SELECT lease_release('kept2', 'a') AS cooling;
SELECT lease_release('kept2', 'a', '0') AS cooling;
SELECT expiry = acquired_at + interval '1 h' AS expiry FROM dist_lock WHERE name = 'kept2';

-- A time to keep that is over, or none at all: free at once.
SELECT lease_try('kept3', 'a', '10 s');
DO $$ BEGIN PERFORM pg_sleep(0.02); END $$;
SELECT lease_release('kept3', 'a', '10 ms');
SELECT expiry > acquired_at + interval '10 ms' AND expiry <= clock_timestamp() AS expiry FROM dist_lock WHERE name = 'kept3';
SELECT lease_try('kept3', 'b', '10 s');
SELECT lease_release('kept3', 'b', '0'), lease_try('kept3', 'c', '10 s');

-- Shorter or longer than what was left of the tenure.
SELECT lease_try('kept4', 'a', '10 h'), lease_release('kept4', 'a', '1 h'),
       lease_try('kept5', 'a', '1 h'), lease_release('kept5', 'a', '10 h');
SELECT name, expiry - acquired_at AS kept FROM dist_lock WHERE name IN ('kept4', 'kept5') ORDER BY name;

-- What it says of rows that were made by hand: whatever is known.
INSERT INTO dist_lock (name, owner, expiry, token, last_owner, last_end) VALUES
    ('for ever', 'x', 'infinity', 7, NULL, NULL), ('past', 'x', '-infinity', 7, NULL, NULL), ('no expiry', 'x', NULL, 7, NULL, NULL),
    ('nobody', NULL, NULL, 7, NULL, NULL), ('broken', NULL, now(), 7, 'x', 'broken'), ('taken over', 'x', 'infinity', 7, 'y', 'expired');
SELECT name, lease_release(name, 'y'), lease_release(name, 'x', token => 8) FROM dist_lock WHERE token = 7 ORDER BY name;
SELECT lease_release('past', 'x');

DROP EXTENSION lease;
