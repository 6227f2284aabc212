-- What an administrator does to the table between two calls of a session.
CREATE EXTENSION lease;
CREATE FUNCTION all_right() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    -- A statement each, for what the first one made is seen from the second on.
    IF lease_token('job', 'a') IS NOT NULL AND lease_renew('job', 'a', '1 h') AND lease_try('job', 'a', '1 h') AND NOT lease_try('job', 'b', '1 h')
       AND lease_renew_all(ARRAY['job', 'n1'], 'a', '1 h') = ARRAY['job'] AND lease_try_any(ARRAY['job', 'n2'], 'a', '1 h') = 'job'
       AND lease_try('new', 'a', '1 h') AND lease_release('new', 'a') AND lease_try('new', 'b', '1 h') AND lease_release('new', 'b')
    THEN
        RETURN (SELECT count(*) = 2 FROM dist_lock WHERE name IN ('job', 'new'));
    END IF;
    RETURN false;
END $$;
SELECT lease_try('job', 'a', '1 h');
SELECT all_right();

VACUUM dist_lock;
SELECT all_right();
VACUUM (FREEZE, DISABLE_PAGE_SKIPPING) dist_lock;
SELECT all_right();
VACUUM FULL dist_lock;
SELECT all_right();
ANALYZE dist_lock;
SELECT all_right();
CLUSTER dist_lock USING dist_lock_pkey;
SELECT all_right();
REINDEX TABLE dist_lock;
SELECT all_right();
REINDEX INDEX dist_lock_pkey;
SELECT all_right();
REINDEX TABLE CONCURRENTLY dist_lock;
SELECT all_right();
ALTER INDEX dist_lock_pkey RENAME TO renamed;
SELECT all_right();
ALTER TABLE dist_lock SET (fillfactor = 100);
SELECT all_right();
ALTER TABLE dist_lock REPLICA IDENTITY FULL;
SELECT all_right();
CREATE INDEX CONCURRENTLY more ON dist_lock (expiry);
SELECT all_right();
DROP INDEX CONCURRENTLY more;
SELECT all_right();
CREATE STATISTICS correlated ON owner, token FROM dist_lock;
SELECT all_right();

DISCARD ALL;
SELECT all_right();
DISCARD PLANS;
SELECT all_right();

-- A column more: what stands in it stays, over renewals, releases and grants.
ALTER TABLE dist_lock ADD COLUMN note text DEFAULT 'default';
SELECT all_right();
UPDATE dist_lock SET note = 'by hand ' || repeat('long ', 500) WHERE name = 'job';
SELECT all_right();
SELECT lease_release('job', 'a'), lease_try('job', 'a', '1 h');
SELECT name, left(note, 8) AS note, length(note) FROM dist_lock ORDER BY name;
ALTER TABLE dist_lock ALTER COLUMN note SET STORAGE EXTERNAL;
UPDATE dist_lock SET note = repeat(note, 10) WHERE name = 'job';
SELECT all_right();
SELECT length(note) FROM dist_lock WHERE name = 'job';
ALTER TABLE dist_lock ADD COLUMN rewritten double precision DEFAULT random();
SELECT all_right();
SELECT count(rewritten) FROM dist_lock;
ALTER TABLE dist_lock DROP COLUMN note;
SELECT all_right();
ALTER TABLE dist_lock ADD COLUMN stored text GENERATED ALWAYS AS (lower(name)) STORED;
SELECT all_right();
SELECT name, stored FROM dist_lock ORDER BY name;
ALTER TABLE dist_lock DROP COLUMN stored, DROP COLUMN rewritten;
SELECT all_right();

-- Rows that are gone, together with the pages that they were on.
SELECT count(*) FROM generate_series(1, 1000) i WHERE lease_try('n' || i, 'many', '1 h');
DELETE FROM dist_lock WHERE name LIKE 'n%';
VACUUM (TRUNCATE on) dist_lock;
SELECT pg_relation_size('dist_lock') < 8 * 8192 AS truncated;
SELECT count(lease_token('n' || i, 'many')) FROM generate_series(1, 1000) i;
SELECT count(*) FROM generate_series(1, 1000) i WHERE lease_renew('n' || i, 'many', '1 h');
SELECT cardinality(lease_renew_all(array_agg('n' || i), 'many', '1 h')) FROM generate_series(1, 1000) i;
SELECT count(*) FROM generate_series(1, 1000) i WHERE lease_try('n' || i, 'others', '1 h');
SELECT all_right();
TRUNCATE dist_lock;
SELECT count(lease_token('n' || i, 'others')) FROM generate_series(1, 1000) i;
SELECT lease_try('job', 'a', '1 h'), all_right();

-- The place of a lease's row is taken by another's.
SELECT lease_try('here', 'a', '1 h');
SELECT ctid AS old_ctid FROM dist_lock WHERE name = 'here' \gset
DELETE FROM dist_lock WHERE name = 'here';
VACUUM dist_lock;
SELECT count(*) FROM generate_series(1, 200) i WHERE lease_try('m' || i, 'a', '1 h');
SELECT count(*) = 1 AS place_taken FROM dist_lock WHERE ctid = :'old_ctid' AND name <> 'here';
SELECT lease_token('here', 'a'), lease_renew('here', 'a', '1 h'), lease_renew_all(ARRAY['here'], 'a', '1 h');
SELECT lease_try('here', 'b', '1 h'), lease_token('here', 'b') IS NOT NULL AS token;
SELECT owner, grants FROM dist_lock WHERE name = 'here';

-- All that in a transaction that is undone.
BEGIN;
ALTER TABLE dist_lock ADD COLUMN undone int DEFAULT 1;
SELECT all_right();
TRUNCATE dist_lock;
SELECT lease_token('job', 'a'), lease_try('job', 'b', '1 h'), lease_try('new', 'c', '1 h');
ROLLBACK;
SELECT all_right();
BEGIN;
DELETE FROM dist_lock;
SELECT lease_token('job', 'a'), lease_try('job', 'b', '1 h'), lease_renew('job', 'b', '1 h');
ROLLBACK;
SELECT all_right();

DROP FUNCTION all_right();
DROP EXTENSION lease;
