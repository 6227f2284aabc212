-- What every node starts at the same time, by cron for instance; one of them runs the job.
--   JOB='command' psql -XAtq -v node=NAME -v round=N -f job.sql
-- psql goes on after an error, so the lease is released whatever happened before.
SELECT lease_try('nightly-report', :'node', '3 s') AS got \gset
\if :got
    SELECT lease_token('nightly-report', :'node') AS token \gset
    INSERT INTO ran (round, node, token) VALUES (:round, :'node', :token);
    \echo got the lease (token :token), runs the job
    \! $JOB
    -- Nobody gets it within 2 s of the start: nodes whose clocks differ come late.
    SELECT lease_release('nightly-report', :'node', keep => '2 s') AS released \gset
    \echo done, released it
\else
    \echo another node has the lease, nothing to do
\endif
