-- Tokens stay with a tenure and rise with the next one, whatever comes between.
CREATE EXTENSION lease;
CREATE TABLE token_seen (step text, token bigint);

-- NULL unless that owner holds it now.
SELECT lease_token('job', 'a');
SELECT lease_try('job', 'a', '1 min');
SELECT lease_token('job', 'a') = (SELECT token FROM dist_lock WHERE name = 'job') AS of_the_row,
       lease_token('job', 'b') AS another, lease_token('job', 'A') AS another_case,
       lease_token('Job', 'a') AS another_name;
INSERT INTO token_seen VALUES ('first', lease_token('job', 'a'));

-- Larger than the microseconds since 1970 at CREATE EXTENSION, and no larger
-- than a double holds exactly.
SELECT lease_token('job', 'a') BETWEEN extract(epoch FROM now() - interval '1 min') * 1000000 AND 2::bigint ^ 53;

-- The same over renewals and extensions.
SELECT count(DISTINCT t) FROM (
    SELECT lease_token('job', 'a') AS t, lease_renew('job', 'a', '1 min') FROM generate_series(1, 5)) s;
SELECT lease_try('job', 'a', '1 min'), lease_renew_all(ARRAY['job'], 'a', '1 min'), lease_try_any(ARRAY['job'], 'a', '1 min');
SELECT lease_token('job', 'a') = token AS same FROM token_seen WHERE step = 'first';

-- Higher after a release.
SELECT lease_release('job', 'a');
SELECT lease_token('job', 'a');
SELECT lease_try('job', 'a', '1 min');
INSERT INTO token_seen VALUES ('after a release', lease_token('job', 'a'));

-- After a release with a time to keep.
SELECT lease_release('job', 'a', '1 ms');
DO $$ BEGIN PERFORM pg_sleep(0.002); END $$;
SELECT lease_token('job', 'a');
SELECT lease_try('job', 'b', '1 min');
INSERT INTO token_seen VALUES ('after cooling', lease_token('job', 'b'));

-- After an expiry.
SELECT lease_try('job', 'b', '50 ms');
DO $$ BEGIN PERFORM pg_sleep_until((SELECT expiry FROM dist_lock WHERE name = 'job')); END $$;
SELECT lease_token('job', 'b');
SELECT lease_try('job', 'b', '1 min');
INSERT INTO token_seen VALUES ('after an expiry', lease_token('job', 'b'));

-- After the row was deleted.
DELETE FROM dist_lock;
SELECT lease_token('job', 'b');
SELECT lease_try('job', 'a', '1 min');
INSERT INTO token_seen VALUES ('after a DELETE', lease_token('job', 'a'));

-- After TRUNCATE.
TRUNCATE dist_lock;
SELECT lease_token('job', 'a');
SELECT lease_try('job', 'a', '1 min');
INSERT INTO token_seen VALUES ('after a TRUNCATE', lease_token('job', 'a'));

-- After a grant that was rolled back, on a row and on none.
UPDATE dist_lock SET expiry = NULL;
BEGIN;
SELECT lease_try('job', 'b', '1 min');
SELECT lease_token('job', 'b') AS rolled_back \gset
ROLLBACK;
SELECT lease_token('job', 'b');
INSERT INTO token_seen VALUES ('rolled back', :rolled_back);
SELECT lease_try('job', 'a', '1 min');
INSERT INTO token_seen VALUES ('after a rolled back grant', lease_token('job', 'a'));
DELETE FROM dist_lock;
BEGIN;
SELECT lease_try('job', 'b', '1 min');
SELECT lease_token('job', 'b') AS rolled_back \gset
ROLLBACK;
INSERT INTO token_seen VALUES ('rolled back, new', :rolled_back);
SELECT lease_try('job', 'a', '1 min');
INSERT INTO token_seen VALUES ('after a rolled back insert', lease_token('job', 'a'));

-- After the extension was dropped and made again.
DROP EXTENSION lease;
CREATE EXTENSION lease;
SELECT lease_token('job', 'a');
SELECT lease_try('job', 'a', '1 min');
INSERT INTO token_seen VALUES ('after DROP and CREATE EXTENSION', lease_token('job', 'a'));

-- After a row made by hand with a huge token. Other leases go on, too.
SELECT lease_release('job', 'a');
UPDATE dist_lock SET token = 4000000000000000000;
SELECT lease_try('job', 'a', '1 min');
INSERT INTO token_seen VALUES ('by hand', 4000000000000000000), ('after a token by hand', lease_token('job', 'a'));
DELETE FROM dist_lock;
SELECT lease_try('job', 'a', '1 min');
INSERT INTO token_seen VALUES ('after a token by hand and a DELETE', lease_token('job', 'a'));

-- After the sequence was set back by hand, the row's token is still the floor.
SELECT lease_release('job', 'a');
SELECT setval('dist_lock_token', 1) \gset ignored_
SELECT lease_try('job', 'a', '1 min');
INSERT INTO token_seen VALUES ('after the sequence was set back', lease_token('job', 'a'));

SELECT step, token > lag(token) OVER (ORDER BY n) AS higher
  FROM (SELECT *, row_number() OVER () AS n FROM token_seen) s ORDER BY n;

-- Tokens of one session's many leases all differ.
SELECT count(DISTINCT lease_token(n, 'a')) FROM (SELECT 'many' || i AS n FROM generate_series(1, 300) i) s
 WHERE lease_try(n, 'a', '1 min');

-- Token and answer in one round trip.
SELECT lease_token('once', 'me') AS got WHERE lease_try('once', 'me', '30 s') \gset
SELECT :got = token AS of_the_row FROM dist_lock WHERE name = 'once';
SELECT lease_token('once', 'me') = :got AS same WHERE lease_try('once', 'me', '30 s');
SELECT lease_token('once', 'you') IS NOT NULL AS got WHERE lease_try('once', 'you', '30 s');

DROP TABLE token_seen;
DROP EXTENSION lease;
