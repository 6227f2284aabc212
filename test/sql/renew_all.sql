-- Many renewals in one call: the names renewed, in the order given, each once.
CREATE EXTENSION lease;

SELECT lease_try('z', 'a', '1 min'), lease_try('y', 'a', '1 min'), lease_try('x', 'a', '1 min'),
       lease_try('expired', 'a', '1 min'), lease_try('others', 'b', '1 min'),
       lease_try('free', 'a', '1 min'), lease_release('free', 'a'),
       lease_try('cooling', 'a', '1 min'), lease_release('cooling', 'a', '1 h');
UPDATE dist_lock SET expiry = clock_timestamp() WHERE name = 'expired';
CREATE TABLE before AS SELECT * FROM dist_lock;

SELECT lease_renew_all(ARRAY['y', 'expired', 'z', 'others', 'y', 'free', 'unknown', 'x', 'cooling', 'Z', 'y'], 'a', '1 h');
SELECT d.name, d.token = b.token AS token, d.acquired_at IS NOT DISTINCT FROM b.acquired_at AS acquired_at,
       d.expiry = d.renewed_at + interval '1 h' AS expiry, d.ttl,
       d.min_margin BETWEEN '50 s' AND '1 min' AS min_margin
  FROM dist_lock d JOIN before b USING (name) WHERE d.owner = 'a' AND d.name <> 'expired' ORDER BY name;
SELECT d.name FROM dist_lock d JOIN before b USING (name) WHERE d::text = b::text ORDER BY name;
SELECT count(*) FROM dist_lock;

-- None: an empty array, not NULL.
SELECT lease_renew_all(ARRAY['x', 'y'], 'nobody', '1 h');
SELECT lease_renew_all(ARRAY['unknown'], 'a', '1 h');
SELECT lease_renew_all('{}', 'a', '1 h');

-- An element that no lease can be called by is refused before anything is done.
SELECT lease_renew_all(ARRAY['x', NULL], 'a', '2 h');
SELECT lease_renew_all(ARRAY['x', ''], 'a', '2 h');
SELECT name, ttl FROM dist_lock WHERE name = 'x';

-- Rolled back: all of them as before.
BEGIN;
SELECT lease_renew_all(ARRAY['x', 'y', 'z'], 'a', '5 h');
SELECT DISTINCT ttl FROM dist_lock WHERE name IN ('x', 'y', 'z');
ROLLBACK;
SELECT DISTINCT ttl FROM dist_lock WHERE name IN ('x', 'y', 'z');

-- What the same transaction has done is seen.
BEGIN;
SELECT lease_try('new', 'a', '1 min');
SELECT lease_release('x', 'a');
SELECT lease_renew_all(ARRAY['new', 'x', 'y'], 'a', '1 h');
SELECT lease_renew_all(ARRAY['new', 'x', 'y'], 'a', '1 h');
COMMIT;
SELECT lease_renew_all(ARRAY['new', 'x', 'y'], 'a', '1 h');

-- 3,000 of them, given in an order that is not theirs.
SELECT count(*) FROM generate_series(1, 3000) i WHERE lease_try('n' || i, 'many', '1 min');
SELECT array_agg(n ORDER BY md5(n)) AS names FROM (SELECT 'n' || i AS n FROM generate_series(1, 3000) i) s \gset
SELECT lease_renew_all(:'names', 'many', '1 h') = :'names' AS all_in_order;
SELECT count(*), count(DISTINCT token) AS tokens FROM dist_lock
 WHERE owner = 'many' AND expiry = renewed_at + interval '1 h' AND grants = 1;
UPDATE dist_lock SET expiry = clock_timestamp() WHERE owner = 'many' AND name LIKE '%7';
SELECT lease_renew_all(:'names', 'many', '1 h')
     = (SELECT array_agg(n ORDER BY o) FROM unnest(:'names'::text[]) WITH ORDINALITY u (n, o) WHERE n NOT LIKE '%7') AS the_rest_in_order;

DROP TABLE before;
DROP EXTENSION lease;
