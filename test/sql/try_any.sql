-- Interchangeable leases: the one that the owner holds, else one that is free.
CREATE EXTENSION lease;

-- 16 owners, 16 slots: each gets its own in one call, and keeps it.
CREATE TABLE slot (owner text PRIMARY KEY, name text, token bigint);
SELECT array_agg('slot' || i ORDER BY i) AS slots FROM generate_series(1, 16) i \gset
INSERT INTO slot SELECT 'o' || i, lease_try_any(:'slots', 'o' || i, '1 h') FROM generate_series(1, 16) i;
UPDATE slot SET token = lease_token(name, owner);
SELECT count(*), count(DISTINCT name) AS names, count(DISTINCT token) AS tokens,
       bool_and(name = ANY (:'slots')) AS among_them FROM slot;
SELECT lease_try_any(:'slots', 'o17', '1 h') AS seventeenth;
SELECT bool_and(lease_try_any(:'slots', owner, '2 h') = name) AS same_slot,
       bool_and(lease_token(name, owner) = token) AS same_token FROM slot;
SELECT count(*), count(DISTINCT token) AS tokens, max(grants) AS grants, min(ttl) AS ttl FROM dist_lock;

-- The one that comes free goes to who asks next.
SELECT name AS freed FROM slot WHERE owner = 'o7' \gset
SELECT lease_release(:'freed', 'o7');
SELECT lease_try_any(:'slots', 'o17', '1 h') = :'freed' AS got_it;
SELECT lease_try_any(:'slots', 'o7', '1 h') AS too_late;

-- One that expired, too.
UPDATE dist_lock SET expiry = clock_timestamp() WHERE name = :'freed';
SELECT lease_try_any(:'slots', 'o18', '1 h') = :'freed' AS got_it;
SELECT grants, takeovers, last_owner, last_end FROM dist_lock WHERE name = :'freed';

-- One that cools is not free.
SELECT lease_release(:'freed', 'o18', '1 h');
SELECT lease_try_any(:'slots', 'o18', '1 h') AS cooling;

-- Where to look first depends on the owner, so that owners spread.
CREATE TABLE first_slot (owner text, name text);
TRUNCATE dist_lock;
DO $$
DECLARE
    slots text[] := (SELECT array_agg('slot' || i) FROM generate_series(1, 16) i);
BEGIN
    FOR i IN 1..40 LOOP
        INSERT INTO first_slot SELECT 'o' || i, lease_try_any(slots, 'o' || i, '1 h');
        PERFORM lease_release(name, owner) FROM first_slot WHERE owner = 'o' || i;
    END LOOP;
END $$;
SELECT count(name) AS granted, count(DISTINCT name) >= 4 AS spread FROM first_slot;
DROP TABLE first_slot;

-- What the owner holds comes before any that is free, wherever it stands.
DELETE FROM dist_lock;
SELECT lease_try('slot16', 'last', '1 h'), lease_try('slot1', 'first', '1 h'), lease_try('slot9', 'middle', '1 h');
SELECT lease_try_any(:'slots', 'last', '1 h'), lease_try_any(:'slots', 'first', '1 h'), lease_try_any(:'slots', 'middle', '1 h');
SELECT count(*) FROM dist_lock;

-- An owner that holds a lease which is not in the list gets another.
SELECT lease_try('elsewhere', 'x', '1 h');
SELECT lease_try_any(:'slots', 'x', '1 h') = ANY (:'slots') AS got_one;

-- Its own expired slot is as free as any.
DELETE FROM dist_lock;
SELECT lease_try('only', 'x', '1 h');
SELECT token AS old_token FROM dist_lock \gset
UPDATE dist_lock SET expiry = clock_timestamp();
SELECT lease_try_any(ARRAY['only'], 'x', '1 h');
SELECT token > :old_token AS higher, takeovers FROM dist_lock;

-- One, twice the same, none.
SELECT lease_try_any(ARRAY['one'], 'x', '1 h'), lease_try_any(ARRAY['one', 'one'], 'x', '1 h'),
       lease_try_any(ARRAY['one', 'one'], 'y', '1 h'), lease_try_any(ARRAY[]::text[], 'y', '1 h');
SELECT lease_try_any(ARRAY['two', 'two'], 'y', '1 h');

-- It makes no rows but the one that it takes.
SELECT count(*) FROM dist_lock WHERE name LIKE 'slot%';
SELECT lease_try_any(:'slots', 'z', '1 h') IS NOT NULL AS got_one;
SELECT count(*) FROM dist_lock WHERE name LIKE 'slot%';

-- An element that no lease can be called by is refused before anything is taken.
SELECT lease_try_any(ARRAY['n1', NULL], 'x', '1 h');
SELECT lease_try_any(ARRAY['n1', ''], 'x', '1 h');
SELECT count(*) FROM dist_lock WHERE name = 'n1';

-- A grant that is undone leaves the slot free.
BEGIN;
SELECT lease_try_any(ARRAY['undone'], 'x', '1 h');
SELECT lease_try_any(ARRAY['undone'], 'y', '1 h');
ROLLBACK;
SELECT lease_try_any(ARRAY['undone'], 'y', '1 h');

DROP TABLE slot;
DROP EXTENSION lease;
