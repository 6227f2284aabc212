-- The scenario of `expected`, with psql: psql -XAtq -v name=NAME -f psql.sql 2>/dev/null
-- What psql has no way to keep (a warning) is read from a second psql's output.
\pset null null
\set job job- :name
\set me :name -1
\set other :name -2
\set work work_ :name
\set slots '{' slot- :name '-1,' slot- :name '-2}'
\set turn turn- :name

SELECT 'try: ' || lease_try(:'job', :'me', '30 s');
SELECT 'another''s try: ' || lease_try(:'job', :'other', '30 s');
SELECT 'renew: ' || lease_renew(:'job', :'me', interval '30 s');
SELECT lease_token(:'job', :'me') AS token \gset
SELECT 'token: ' || (:token > 0);
SELECT lease_token(:'job', :'me') AS again WHERE lease_try(:'job', :'me', '30 s') \gset
SELECT 'token and answer in one round trip: ' || (:again = :token);
SELECT 'renew that tenure: ' || lease_renew(:'job', :'me', '30 s', :token);
SELECT 'renew ten times: ' || count(*) FILTER (WHERE lease_renew(:'job', :'me', '30 s'))
  FROM generate_series(1, 10);
SELECT 'another''s token: ' || coalesce(lease_token(:'job', :'other')::text, 'null');

BEGIN;
SELECT lease_fence(:'job', :token) \g /dev/null
INSERT INTO :work (token) VALUES (:token);
\set rows :ROW_COUNT
COMMIT;
\echo write behind the fence: :rows
INSERT INTO :work (token) VALUES (NULL);
\echo write without it: :SQLSTATE

SELECT 'a slot: ' || (lease_try_any(:'slots', :'me', '30 s') = ANY (:'slots'));
SELECT lease_try(name, :'me', '30 s') FROM unnest(:'slots'::text[]) AS name \g /dev/null
SELECT 'renew all: ' || cardinality(lease_renew_all(:'slots', :'me', '30 s'));

SELECT 'release: ' || lease_release(:'job', :'me');
\set said `psql -XAtq -c "SELECT lease_release('job-:name', ':name-1', token => :token)" 2>&1`
SELECT 'release again: ' || (:'said' !~ 'f$');
SELECT 'with a warning: ' || (:'said' ~ 'WARNING.*is not held');
BEGIN;
SELECT lease_fence(:'job', :token);
\echo fence too late: :SQLSTATE
ROLLBACK;
SELECT lease_try(:'job', :'me', NULL);
\echo no ttl: :SQLSTATE

\set first :token
CALL lease_acquire(:'job', :'me', '30 s') \gset
SELECT 'acquire: ' || (:token > :first);
\set later :token
\echo -n 'acquire in vain: '
CALL lease_acquire(:'job', :'other', '30 s', '50 ms');
CALL lease_acquire(:'turn', :'me', '30 s', '30 s') \gset
SELECT 'acquire in turn: ' || (:token > 0);
CALL lease_watch(:'job', :later, '50 ms') \gset
SELECT 'watch in vain: ' || (:token = :later);
SELECT lease_release(:'job', :'me') \g /dev/null
\echo -n 'watch: '
CALL lease_watch(:'job', :later, '30 s');
