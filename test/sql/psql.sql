-- A job in a psql script, guarded by a lease.
CREATE EXTENSION lease;
CREATE TABLE done (who text);

-- Got: the job runs, and the lease is released.
SELECT lease_try('nightly', 'node-1', '10 min') AS got \gset
\if :got
    INSERT INTO done VALUES ('node-1');
    SELECT lease_release('nightly', 'node-1');
\else
    \echo another node runs it
\endif

-- Another has it.
SELECT lease_try('nightly', 'node-2', '10 min') AS got \gset
SELECT lease_try('nightly', 'node-1', '10 min') AS got \gset
\if :got
    INSERT INTO done VALUES ('node-1, too');
\else
    \echo another node runs it
\endif
SELECT lease_release('nightly', 'node-2');

-- The job fails: the release at the end of the script comes all the same.
SELECT lease_try('nightly', 'node-1', '10 min') AS got \gset
\if :got
    SELECT 1 / 0;
    SELECT lease_release('nightly', 'node-1') AS released;
\endif
SELECT lease_token('nightly', 'node-1');

-- The same with the job in a block of its own.
SELECT lease_try('nightly', 'node-1', '10 min') AS got \gset
\if :got
    BEGIN;
    INSERT INTO done VALUES ('undone');
    SELECT 1 / 0;
    COMMIT;
    SELECT lease_release('nightly', 'node-1') AS released;
\endif
SELECT lease_try('nightly', 'node-2', '10 min');
SELECT lease_release('nightly', 'node-2');

-- The lease was lost meanwhile: the script is told.
SELECT lease_try('nightly', 'node-1', '50 ms') AS got \gset
\if :got
    DO $$ BEGIN PERFORM pg_sleep(0.06); END $$;
    SELECT lease_renew('nightly', 'node-1', '10 min') AS still \gset
    \if :still
        INSERT INTO done VALUES ('without a lease');
    \else
        \echo the lease is lost, the rest is not done
    \endif
\endif

-- With the token, in one round trip: no row, no variable.
\unset token
SELECT lease_token('nightly', 'node-1') AS token WHERE lease_try('nightly', 'node-1', '10 min') \gset
\if :{?token}
    SELECT :token = token AS right_token FROM dist_lock WHERE name = 'nightly';
\endif
\unset token
SELECT lease_token('nightly', 'node-2') AS token WHERE lease_try('nightly', 'node-2', '10 min') \gset
\if :{?token}
    \echo wrong
\else
    \echo another node runs it
\endif

-- Names that come from a variable.
\set name 'it''s "odd"; DROP TABLE dist_lock;--'
\set owner 'o''1'
SELECT lease_try(:'name', :'owner', '10 min') AS got \gset
\echo :got
SELECT name = :'name' AND owner = :'owner' AS as_given FROM dist_lock WHERE name <> 'nightly';

SELECT * FROM done;
DROP TABLE done;
DROP EXTENSION lease;
