-- A renewal extends the tenure that the owner holds now, and nothing else.
CREATE EXTENSION lease;

SELECT lease_try('job', 'a', '1 min');
SELECT token AS old_token, acquired_at AS old_acquired_at FROM dist_lock WHERE name = 'job' \gset
SELECT lease_renew('job', 'a', '1 h');
SELECT name, owner, token = :old_token AS token, expiry = renewed_at + interval '1 h' AS expiry,
       granted_to = current_user AS granted_to, acquired_at = :'old_acquired_at' AS acquired_at,
       renewed_at > acquired_at AS renewed_at, ttl, session_pid, session_start, grants, takeovers,
       min_margin BETWEEN '50 s' AND '1 min' AS min_margin, last_owner, last_end
  FROM dist_lock;

-- The expiry is that long from now, so it may also come sooner.
SELECT lease_renew('job', 'a', '1 s');
SELECT expiry = renewed_at + interval '1 s' AS expiry, ttl FROM dist_lock;

-- The margin is the least that there was.
SELECT lease_renew('job', 'a', '1 h');
SELECT lease_renew('job', 'a', '1 h');
SELECT min_margin BETWEEN '0' AND '1 s' AS min_margin FROM dist_lock;

-- With the token: that very tenure or none.
SELECT lease_renew('job', 'a', '1 min', :old_token);
SELECT lease_renew(name => 'job', owner => 'a', ttl => '1 min', token => :old_token);
SELECT lease_renew('job', 'a', '1 min', NULL);
SELECT md5(d::text) AS old_md5, ctid AS old_ctid FROM dist_lock d \gset
SELECT lease_renew('job', 'a', '1 min', :old_token - 1) AS older;
SELECT lease_renew('job', 'a', '1 min', :old_token + 1) AS newer;
SELECT lease_renew('job', 'a', '1 min', 0) AS zero;
SELECT lease_renew('job', 'b', '1 min', :old_token) AS another_owner;
SELECT lease_renew('job', 'b', '1 min') AS another_owner;
SELECT lease_renew('job', 'A', '1 min') AS another_case;
SELECT md5(d::text) = :'old_md5' AND ctid = :'old_ctid' AS unchanged FROM dist_lock d;

-- A renewal makes no row.
SELECT lease_renew('unknown', 'a', '1 min');
SELECT count(*) FROM dist_lock;

-- An expired tenure is lost, although nobody took it; a try begins a new one.
SELECT lease_try('job', 'a', '100 ms');
DO $$ BEGIN PERFORM pg_sleep_until((SELECT expiry FROM dist_lock WHERE name = 'job')); END $$;
SELECT md5(d::text) AS old_md5, ctid AS old_ctid FROM dist_lock d \gset
SELECT lease_renew('job', 'a', '1 min');
SELECT lease_renew('job', 'a', '1 min', :old_token);
SELECT md5(d::text) = :'old_md5' AND ctid = :'old_ctid' AS unchanged FROM dist_lock d;
SELECT lease_try('job', 'a', '1 min');
SELECT token > :old_token AS higher, grants, takeovers FROM dist_lock;

-- The token of the old tenure does nothing, though the owner is the same.
SELECT lease_renew('job', 'a', '1 min', :old_token);
SELECT lease_renew('job', 'a', '1 min');

-- Another took it: the row stays byte for byte the same.
UPDATE dist_lock SET expiry = clock_timestamp();
SELECT lease_try('job', 'b', '1 min');
SELECT md5(d::text) AS old_md5, ctid AS old_ctid FROM dist_lock d \gset
SELECT lease_renew('job', 'a', '1 min');
\set VERBOSITY terse
SELECT lease_release('job', 'a');
\set VERBOSITY default
SELECT lease_renew('job', 'a', '1 min', :old_token);
SELECT md5(d::text) = :'old_md5' AND ctid = :'old_ctid' AS unchanged FROM dist_lock d;

-- Released, with a time to cool and without.
SELECT lease_release('job', 'b', keep => '1 h');
SELECT lease_renew('job', 'b', '1 min') AS cooling;
SELECT lease_try('job', 'b', '1 min') AS cooling;
SELECT lease_try('job2', 'b', '1 min'), lease_release('job2', 'b'), lease_renew('job2', 'b', '1 min');

-- Five renewals, one token; each a new expiry.
SELECT lease_try('five', 'a', '1 min');
CREATE TABLE seen (token bigint, expiry timestamptz);
DO $$
BEGIN
    FOR i IN 1..5 LOOP
        IF NOT lease_renew('five', 'a', '1 min') THEN
            RAISE EXCEPTION 'lost';
        END IF;
        INSERT INTO seen SELECT token, expiry FROM dist_lock WHERE name = 'five';
    END LOOP;
END $$;
SELECT count(DISTINCT token) AS tokens, count(DISTINCT expiry) AS expiries FROM seen;
SELECT grants, takeovers FROM dist_lock WHERE name = 'five';

DROP TABLE seen;
DROP EXTENSION lease;
