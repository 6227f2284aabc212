-- A read-only transaction: an error for whatever could write, whatever the
-- answer would have been; the token can be read.
CREATE EXTENSION lease;
SELECT lease_try('held', 'a', '1 h'), lease_try('free', 'a', '1 h'), lease_release('free', 'a');
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/outcome_in_words.sql'
\i :include
CREATE VIEW outcomes AS
    SELECT call, outcome('SELECT ' || call) FROM (VALUES
        ('lease_try(''new'', ''a'', ''1 h'')'), ('lease_try(''free'', ''a'', ''1 h'')'), ('lease_try(''held'', ''a'', ''1 h'')'), ('lease_try(''held'', ''b'', ''1 h'')'),
        ('lease_try_any(ARRAY[''new''], ''a'', ''1 h'')'), ('lease_try_any(ARRAY[''held''], ''b'', ''1 h'')'), ('lease_try_any(''{}'', ''b'', ''1 h'')'),
        ('lease_renew(''held'', ''a'', ''1 h'')'), ('lease_renew(''held'', ''b'', ''1 h'')'), ('lease_renew(''new'', ''b'', ''1 h'')'),
        ('lease_renew_all(ARRAY[''held''], ''a'', ''1 h'')'), ('lease_renew_all(ARRAY[''new''], ''a'', ''1 h'')'), ('lease_renew_all(''{}'', ''a'', ''1 h'')'),
        ('lease_release(''held'', ''a'')'), ('lease_release(''held'', ''b'')'), ('lease_release(''new'', ''a'')'),
        ('lease_token(''held'', ''a'') > 0'), ('lease_token(''held'', ''b'')'), ('lease_token(''new'', ''a'')')) v (call);
BEGIN READ ONLY;
SELECT * FROM outcomes;
COMMIT;
SET default_transaction_read_only = on;
SELECT lease_token('held', 'a') IS NOT NULL AS token;
\set VERBOSITY sqlstate
SELECT lease_try('new', 'a', '1 h');
\set VERBOSITY default
RESET default_transaction_read_only;

-- A transaction that turns read-only keeps what it took.
BEGIN;
SELECT lease_try('before', 'a', '1 h');
SET TRANSACTION READ ONLY;
SELECT lease_token('before', 'a') IS NOT NULL AS token, outcome('SELECT lease_renew(''before'', ''a'', ''1 h'')');
COMMIT;
SELECT lease_renew('before', 'a', '1 h'), lease_renew('held', 'a', '1 h'), lease_try('new', 'b', '1 h');

DROP VIEW outcomes;
DROP FUNCTION outcome(text);
DROP EXTENSION lease;
