-- Grants, renewals and releases are part of their transaction, and every call
-- sees what the calls before it did, at every isolation level.
CREATE EXTENSION lease;
\set VERBOSITY terse

-- ROLLBACK undoes a grant, on a new row and on an old one.
BEGIN;
SELECT lease_try('k', 'a', '1 h');
SELECT lease_try('k', 'b', '1 h') AS inside;
ROLLBACK;
SELECT count(*) FROM dist_lock;
SELECT lease_try('k', 'b', '1 h'), lease_release('k', 'b');
BEGIN;
SELECT lease_try('k', 'a', '1 h');
ROLLBACK;
SELECT owner FROM dist_lock;
SELECT lease_token('k', 'a');
SELECT lease_try('k', 'b', '1 h');

-- A release that is rolled back leaves the lease held, and a renewal its expiry.
BEGIN;
SELECT lease_release('k', 'b', '10 h');
SELECT lease_try('k', 'a', '1 h') AS inside, lease_release('k', 'b') AS twice;
ROLLBACK;
SELECT lease_token('k', 'b') IS NOT NULL AS held, lease_try('k', 'a', '1 h') AS other;
BEGIN;
SELECT lease_renew('k', 'b', '5 h');
ROLLBACK;
SELECT ttl, expiry = acquired_at + interval '1 h' AS expiry FROM dist_lock WHERE name = 'k';
SELECT lease_release('k', 'b');

-- ROLLBACK TO.
BEGIN;
SAVEPOINT s;
SELECT lease_try('k', 'a', '1 h'), lease_try('new', 'a', '1 h');
ROLLBACK TO s;
SELECT lease_token('k', 'a'), lease_token('new', 'a');
SELECT lease_try('k', 'b', '1 h'), lease_try('new', 'b', '1 h');
SAVEPOINT s;
SELECT lease_release('k', 'b'), lease_release('new', 'b'), lease_try('k', 'a', '1 h'), lease_try('new', 'c', '1 h');
ROLLBACK TO s;
SELECT lease_try('k', 'a', '1 h') AS other, lease_renew('k', 'b', '1 h') AS holder, lease_renew('new', 'b', '1 h') AS holder;
SAVEPOINT s;
SELECT lease_renew('k', 'b', '2 h'), lease_renew_all(ARRAY['k', 'new'], 'b', '3 h');
RELEASE s;
SAVEPOINT s;
SELECT lease_try('k', 'b', '4 h');
ROLLBACK TO s;
SELECT lease_renew('new', 'b', '5 h');
COMMIT;
SELECT name, owner, ttl, grants FROM dist_lock ORDER BY name;
SELECT lease_release('k', 'b'), lease_release('new', 'b');

-- An exception that plpgsql catches.
DO $$
BEGIN
    BEGIN
        PERFORM lease_try('k', 'a', '1 h'), lease_try('newer', 'a', '1 h');
        RAISE EXCEPTION 'undo';
    EXCEPTION WHEN raise_exception THEN
        NULL;
    END;
    IF lease_token('k', 'a') IS NOT NULL OR lease_token('newer', 'a') IS NOT NULL THEN
        RAISE WARNING 'not undone';
    END IF;
    IF NOT lease_try('k', 'b', '1 h') OR NOT lease_try('newer', 'b', '1 h') THEN
        RAISE WARNING 'not free';
    END IF;
    BEGIN
        PERFORM lease_release('k', 'b');
        PERFORM 1 / 0;
    EXCEPTION WHEN division_by_zero THEN
        NULL;
    END;
    IF NOT lease_renew('k', 'b', '1 h') THEN
        RAISE WARNING 'not held';
    END IF;
END $$;
SELECT name, owner FROM dist_lock ORDER BY name;

-- An error of ours that is caught leaves what came before.
DO $$
BEGIN
    PERFORM lease_try('caught', 'a', '1 h');
    BEGIN
        PERFORM lease_try('caught2', 'a', '1 h');
        PERFORM lease_try('caught', 'a', '0');
    EXCEPTION WHEN invalid_parameter_value THEN
        NULL;
    END;
END $$;
SELECT lease_token('caught', 'a') IS NOT NULL AS held, lease_token('caught2', 'a') AS undone;

-- Many calls on one lease in one statement, and on leases that the statement
-- itself makes.
SELECT lease_try('stmt', 'a', '1 h') AS a, lease_try('stmt', 'b', '1 h') AS b, lease_renew('stmt', 'a', '2 h') AS a,
       lease_release('stmt', 'a') AS a, lease_try('stmt', 'b', '1 h') AS b, lease_token('stmt', 'b') IS NOT NULL AS b,
       lease_token('stmt', 'a') AS a, lease_release('stmt', 'a') AS a;
SELECT owner, ttl, grants, takeovers, last_owner FROM dist_lock WHERE name = 'stmt';
SELECT count(*) FILTER (WHERE got), count(*) FROM (
    SELECT lease_try('twice' || i % 10, 'o' || i % 20, '1 h') AS got FROM generate_series(1, 100) i) s;
SELECT count(*), count(DISTINCT owner) AS owners FROM dist_lock WHERE name LIKE 'twice%';

-- Many grants, renewals and releases of one lease in one transaction.
BEGIN;
DO $$
BEGIN
    FOR i IN 1..500 LOOP
        IF NOT (lease_try('loop', 'o' || i, '1 h') AND lease_renew('loop', 'o' || i, '2 h')
                AND NOT lease_try('loop', 'x', '1 h') AND lease_release('loop', 'o' || i)) THEN
            RAISE EXCEPTION 'wrong in round %', i;
        END IF;
    END LOOP;
END $$;
COMMIT;
SELECT grants, takeovers, last_owner, last_end FROM dist_lock WHERE name = 'loop';

-- Transactions that a DO block ends by itself.
DO $$
BEGIN
    FOR i IN 1..20 LOOP
        IF NOT lease_try('commit', 'o' || i, '1 h') THEN
            RAISE EXCEPTION 'busy in round %', i;
        END IF;
        IF i % 3 = 0 THEN
            ROLLBACK;
        ELSE
            COMMIT;
            PERFORM lease_release('commit', 'o' || i);
            COMMIT;
        END IF;
    END LOOP;
END $$;
SELECT grants, owner, last_owner FROM dist_lock WHERE name = 'commit';

-- In a trigger that is fired at COMMIT.
CREATE TABLE at_commit (name text);
CREATE FUNCTION take_at_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT lease_try(NEW.name, 'trigger', '1 h') THEN
        RAISE EXCEPTION 'busy';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER take AFTER INSERT ON at_commit DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION take_at_commit();
BEGIN;
INSERT INTO at_commit VALUES ('deferred'), ('deferred');
SELECT lease_token('deferred', 'trigger') AS not_yet;
COMMIT;
SELECT owner, grants FROM dist_lock WHERE name = 'deferred';
BEGIN;
INSERT INTO at_commit VALUES ('deferred2'), ('stmt');
COMMIT;
SELECT count(*) FROM dist_lock WHERE name = 'deferred2';
DROP TABLE at_commit;
DROP FUNCTION take_at_commit();

-- REPEATABLE READ and SERIALIZABLE: the truth of this moment, with a snapshot
-- from before it all.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) > 0 AS snapshot FROM pg_class;
SELECT lease_try('rr', 'a', '1 h'), lease_try('rr', 'b', '1 h'), lease_renew('rr', 'a', '1 h');
SELECT lease_release('rr', 'a');
SELECT lease_try('rr', 'b', '1 h');
SELECT lease_renew_all(ARRAY['rr'], 'b', '1 h'), lease_try_any(ARRAY['rr'], 'b', '1 h'), lease_token('rr', 'b') IS NOT NULL;
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT count(*) > 0 AS snapshot FROM pg_class;
SELECT lease_try('ser', 'a', '1 h'), lease_try('ser', 'b', '1 h'), lease_renew('ser', 'a', '1 h');
SELECT lease_release('ser', 'a');
SELECT lease_try('ser', 'b', '1 h');
SELECT lease_renew_all(ARRAY['ser'], 'b', '1 h'), lease_try_any(ARRAY['ser'], 'b', '1 h'), lease_token('ser', 'b') IS NOT NULL;
COMMIT;
SELECT name, owner, grants FROM dist_lock WHERE name IN ('rr', 'ser') ORDER BY name;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT lease_try('first statement', 'a', '1 h');
COMMIT;

-- The session's own setting of synchronous_commit is as it was after every call.
SET synchronous_commit = off;
SELECT lease_try('sync', 'a', '1 h'), lease_renew('sync', 'a', '1 h');
SHOW synchronous_commit;
BEGIN;
SET LOCAL synchronous_commit = local;
SELECT lease_release('sync', 'a', '2 h');
SHOW synchronous_commit;
COMMIT;
SHOW synchronous_commit;
RESET synchronous_commit;
SELECT lease_try('sync2', 'a', '1 h');
SELECT lease_release('sync2', 'a');
SHOW synchronous_commit;
BEGIN;
SELECT lease_try('sync2', 'a', '1 h');
ROLLBACK;
SHOW synchronous_commit;

-- A row that the transaction itself has locked.
SELECT lease_try('locked', 'a', '1 h'), lease_try('locked free', 'a', '1 h'), lease_release('locked free', 'a');
BEGIN;
SELECT name FROM dist_lock WHERE name LIKE 'locked%' ORDER BY name FOR UPDATE;
SELECT lease_renew('locked', 'a', '1 h'), lease_try('locked', 'a', '1 h'), lease_try('locked free', 'b', '1 h'), lease_release('locked', 'a'), lease_try('locked', 'b', '1 h');
COMMIT;
BEGIN;
SELECT name FROM dist_lock WHERE name = 'locked' FOR KEY SHARE;
SAVEPOINT s;
SELECT name FROM dist_lock WHERE name = 'locked' FOR UPDATE;
SELECT lease_renew('locked', 'b', '2 h');
ROLLBACK TO s;
SELECT lease_renew('locked', 'b', '3 h');
SAVEPOINT s;
SELECT name FROM dist_lock WHERE name = 'locked' FOR SHARE;
RELEASE s;
SELECT lease_renew('locked', 'b', '4 h'), lease_release('locked', 'b'), lease_try('locked', 'a', '5 h');
COMMIT;
SELECT owner, ttl, grants FROM dist_lock WHERE name = 'locked';

-- A cursor that goes on.
BEGIN;
DECLARE c CURSOR FOR SELECT lease_try('cursor' || i, 'a', '1 h') FROM generate_series(1, 100) i;
FETCH 3 FROM c;
COMMIT;
SELECT count(*) FROM dist_lock WHERE name LIKE 'cursor%';

\set VERBOSITY default
DROP EXTENSION lease;
