-- lease_attach and lease_detach in one session and the next: what they answer, what
-- undoes them, whom they refuse.
CREATE EXTENSION lease;
CREATE ROLE regress_lease_holder;
CREATE ROLE regress_lease_other;
CREATE VIEW binding AS
SELECT d.name, d.owner, d.session_pid = pg_backend_pid() AS here, d.session_start IS NOT NULL AS start, l.state, l.session_pid IS NOT DISTINCT FROM d.session_pid AS shown
FROM dist_lock d JOIN leases l USING (name) ORDER BY name;

-- Only who holds it can attach it.
SELECT lease_attach('none', 'me');
SELECT lease_detach('none', 'me');
SELECT lease_try('job', 'me', '1 h');
SELECT lease_attach('job', 'other'), lease_detach('job', 'other'), lease_detach('job', 'me') AS not_attached;
SELECT lease_try('expired', 'me', '1 us'), lease_try('released', 'me', '1 h'), lease_release('released', 'me');
SELECT lease_attach('expired', 'me'), lease_attach('released', 'me');
SELECT * FROM binding;
-- No keeper was started for a no.
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'lease keeper' AND datname = current_database();

-- Twice
SELECT lease_attach('job', 'me'), lease_attach('job', 'me') AS again;
SELECT * FROM binding WHERE name = 'job';
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'lease keeper' AND datname = current_database();
SELECT lease_detach('job', 'me'), lease_detach('job', 'me') AS again;
SELECT * FROM binding WHERE name = 'job';

-- What ends a tenure ends the bond; what extends it does not.
SELECT lease_attach('job', 'me'), lease_renew('job', 'me', '2 h'), lease_try('job', 'me', '1 h'), lease_renew_all('{job}', 'me', '1 h');
CALL lease_acquire('job', 'me', '1 h', '0', NULL) \gset
SELECT * FROM binding WHERE name = 'job';
SELECT lease_release('job', 'me');
SELECT * FROM binding WHERE name = 'job';
SELECT lease_detach('job', 'me');
SELECT lease_try('job', 'me', '1 h'), lease_attach('job', 'me'), lease_break('job');
SELECT * FROM binding WHERE name = 'job';
SELECT lease_try('job', 'me', '1 h'), lease_attach('job', 'me'), lease_release('job', 'me', '1 h') AS kept;
SELECT * FROM binding WHERE name = 'job';
SELECT lease_break('job'), lease_try('job', 'me', '1 h');
SELECT * FROM binding WHERE name = 'job';

-- What is rolled back was never there.
BEGIN;
SELECT lease_attach('job', 'me');
SELECT * FROM binding WHERE name = 'job';
ROLLBACK;
SELECT * FROM binding WHERE name = 'job';
BEGIN;
SAVEPOINT s;
SELECT lease_attach('job', 'me');
ROLLBACK TO s;
SELECT lease_detach('job', 'me');
COMMIT;
BEGIN;
SELECT lease_try('new', 'me', '1 h'), lease_attach('new', 'me');
ROLLBACK;
SELECT count(*) FROM dist_lock WHERE name = 'new';
SELECT lease_attach('job', 'me');
BEGIN;
SELECT lease_detach('job', 'me');
ROLLBACK;
SELECT * FROM binding WHERE name = 'job';
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT lease_detach('job', 'me'), lease_attach('job', 'me');
COMMIT;
SELECT * FROM binding WHERE name = 'job';

-- Arguments, read-only transactions
\set VERBOSITY sqlstate
SELECT lease_attach(NULL, 'me');
SELECT lease_attach('job', NULL);
SELECT lease_detach(NULL, 'me');
SELECT lease_detach('job', NULL);
SELECT lease_attach('', 'me');
SELECT lease_attach('job', '');
SELECT lease_attach(repeat('x', 256), 'me');
SELECT lease_detach('job', repeat('x', 256));
BEGIN READ ONLY;
SELECT lease_attach('none', 'me');
ROLLBACK;
BEGIN READ ONLY;
SELECT lease_detach('none', 'me');
ROLLBACK;
SELECT lease_attach(repeat('n', 255), repeat('o', 255)), lease_try(repeat('n', 255), repeat('o', 255), '1 h'), lease_attach(repeat('n', 255), repeat('o', 255)), lease_detach(repeat('n', 255), repeat('o', 255));
\set VERBOSITY default
DELETE FROM dist_lock WHERE name ~ '^nn|expired|released';

-- The owner's name is not enough.
SET ROLE regress_lease_holder;
SELECT lease_try('of a role', 'me', '1 h'), lease_attach('of a role', 'me');
SET ROLE regress_lease_other;
SELECT lease_attach('of a role', 'me'), lease_detach('of a role', 'me');
SET ROLE regress_lease_holder;
SELECT lease_detach('of a role', 'me'), lease_attach('of a role', 'me');
RESET ROLE;

-- The next session: it can attach, which moves it, and cannot detach what it has not.
SELECT pg_backend_pid() AS first \gset
\c -
DO $$
BEGIN
    FOR i IN 1..1000 LOOP
        EXIT WHEN NOT EXISTS (SELECT FROM dist_lock WHERE owner IS NOT NULL AND session_pid IS NOT NULL);
        PERFORM pg_sleep(0.01);
        COMMIT;
    END LOOP;
END $$;
SELECT name, owner, here, state, last_owner, last_end FROM binding JOIN dist_lock USING (name, owner) UNION ALL
SELECT name, owner, NULL, NULL, last_owner, last_end FROM dist_lock WHERE owner IS NULL ORDER BY name;
SELECT lease_try('job', 'me', '1 h'), lease_detach('job', 'me');

-- DISCARD ALL is the end of a session.
SELECT lease_attach('job', 'me');
DISCARD ALL;
SELECT lease_try('after', 'me', '1 h'), lease_attach('after', 'me');
DO $$
BEGIN
    FOR i IN 1..1000 LOOP
        EXIT WHEN EXISTS (SELECT FROM dist_lock WHERE name = 'job' AND owner IS NULL);
        PERFORM pg_sleep(0.01);
        COMMIT;
    END LOOP;
END $$;
SELECT * FROM binding;

-- Made by hand: of no role
INSERT INTO dist_lock (name, token, owner, expiry) VALUES ('by hand', 1, 'me', 'infinity');
SELECT lease_attach('by hand', 'me'), lease_detach('by hand', 'me'), lease_break('by hand');

DROP VIEW binding;
DROP EXTENSION lease;
DROP ROLE regress_lease_holder, regress_lease_other;
