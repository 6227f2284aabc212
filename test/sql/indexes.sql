-- Indexes that an administrator added are kept right by every call.
CREATE EXTENSION lease;
SET client_min_messages = error;

CREATE INDEX by_lower ON dist_lock (lower(name));
CREATE INDEX by_upper_owner ON dist_lock (upper(owner)) WHERE owner IS NOT NULL;
CREATE INDEX by_expiry ON dist_lock (expiry);
CREATE INDEX by_expiry_brin ON dist_lock USING brin (expiry) WITH (pages_per_range = 1, autosummarize = off);
CREATE UNIQUE INDEX by_token ON dist_lock (token);
CREATE UNIQUE INDEX by_owner_and_name ON dist_lock (owner, name) INCLUDE (expiry);
CREATE INDEX by_owner_hash ON dist_lock USING hash (owner);
CREATE INDEX by_ttl_partial ON dist_lock (ttl) WHERE grants > 1;
CREATE INDEX by_grants_gin ON dist_lock USING gin ((ARRAY[grants]));

-- What an index finds is what the table has.
CREATE FUNCTION differences() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    condition text;
    by_table text;
    by_index text;
BEGIN
    FOREACH condition IN ARRAY ARRAY[
        'lower(name) LIKE ''n1%''', 'lower(name) = ''n17''', 'upper(owner) = ''W3'' AND owner IS NOT NULL',
        'expiry > clock_timestamp()', 'expiry <= clock_timestamp()', 'expiry IS NULL', 'token > 0',
        'owner = ''w3'' AND name >= ''''', 'owner = ''w4''', 'ttl = ''3 h'' AND grants > 1', 'ARRAY[grants] @> ARRAY[2::bigint]'] LOOP
        PERFORM set_config('enable_seqscan', 'on', true), set_config('enable_indexscan', 'off', true),
                set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'off', true);
        EXECUTE 'SELECT md5(string_agg(name, '','' ORDER BY name)) || count(*) FROM dist_lock WHERE ' || condition INTO by_table;
        PERFORM set_config('enable_seqscan', 'off', true), set_config('enable_indexscan', 'on', true), set_config('enable_indexonlyscan', 'on', true);
        EXECUTE 'SELECT md5(string_agg(name, '','' ORDER BY name)) || count(*) FROM dist_lock WHERE ' || condition INTO by_index;
        IF by_table IS DISTINCT FROM by_index THEN
            RETURN NEXT condition || ' by index';
        END IF;
        PERFORM set_config('enable_indexscan', 'off', true), set_config('enable_indexonlyscan', 'off', true), set_config('enable_bitmapscan', 'on', true);
        EXECUTE 'SELECT md5(string_agg(name, '','' ORDER BY name)) || count(*) FROM dist_lock WHERE ' || condition INTO by_index;
        IF by_table IS DISTINCT FROM by_index THEN
            RETURN NEXT condition || ' by bitmap';
        END IF;
    END LOOP;
END $$;

-- amcheck, where it is installed, looks into every B-tree and for every row.
CREATE FUNCTION damage() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    index regclass;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'amcheck') THEN
        RETURN;
    END IF;
    CREATE EXTENSION IF NOT EXISTS amcheck;
    FOR index IN SELECT i.indexrelid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
                  WHERE i.indrelid = 'dist_lock'::regclass AND a.amname = 'btree' LOOP
        BEGIN
            PERFORM bt_index_parent_check(index, true);
        EXCEPTION WHEN OTHERS THEN
            RETURN NEXT index || ': ' || SQLERRM;
        END;
    END LOOP;
END $$;

-- Every call, many times, each in a transaction of its own or in one that is
-- undone.
CREATE PROCEDURE work(rounds int, leases int) LANGUAGE plpgsql AS $$
DECLARE
    ok boolean;
BEGIN
    FOR r IN 1..rounds LOOP
        FOR i IN 1..leases LOOP
            ok := lease_try('N' || i, 'w' || i % 7, '1 h') AND NOT lease_try('N' || i, 'other', '1 h')
              AND lease_renew('N' || i, 'w' || i % 7, '3 h') AND lease_token('N' || i, 'w' || i % 7) IS NOT NULL;
            IF NOT ok THEN
                RAISE WARNING 'wrong at %', i;
            END IF;
            IF i % 5 = 0 THEN
                ROLLBACK;
                CONTINUE;
            END IF;
            COMMIT;
            BEGIN
                IF NOT lease_release('N' || i, 'w' || i % 7) THEN
                    RAISE WARNING 'no release of %', i;
                END IF;
                IF i % 3 = 0 THEN
                    RAISE EXCEPTION 'undo';
                END IF;
            EXCEPTION WHEN raise_exception THEN
                NULL;
            END;
        END LOOP;
        COMMIT;
        PERFORM lease_renew_all((SELECT array_agg('N' || i) FROM generate_series(1, leases) i), 'w3', '3 h');
        COMMIT;
        PERFORM lease_try_any(ARRAY['N1', 'N2', 'N' || r], 'slot' || r, '2 h');
        COMMIT;
        UPDATE dist_lock SET expiry = clock_timestamp() WHERE owner IN ('w3', 'w6') OR owner LIKE 'slot%';
        COMMIT;
        PERFORM brin_summarize_new_values(to_regclass('by_expiry_brin')) WHERE to_regclass('by_expiry_brin') IS NOT NULL;
        COMMIT;
        UPDATE dist_lock SET owner = NULL, expiry = NULL WHERE owner IS NOT NULL AND expiry > clock_timestamp();
        COMMIT;
    END LOOP;
    FOR i IN 1..leases LOOP
        PERFORM lease_try('N' || i, 'w' || i % 7, '3 h');
    END LOOP;
END $$;
CALL work(3, 200);
SELECT count(*), count(DISTINCT token) AS tokens, count(*) FILTER (WHERE owner = 'w3') AS w3 FROM dist_lock;
SELECT differences();
SELECT damage();

-- The same after VACUUM, with some rows gone and names back.
DELETE FROM dist_lock WHERE name LIKE '%3';
VACUUM dist_lock;
UPDATE dist_lock SET expiry = clock_timestamp();
CALL work(1, 250);
SELECT count(*), count(DISTINCT token) AS tokens FROM dist_lock;
SELECT differences();
SELECT damage();

-- A unique index or constraint that a new row breaks: its own error.
CREATE UNIQUE INDEX one_lower ON dist_lock (lower(name));
\set VERBOSITY sqlstate
SELECT lease_try('n1', 'w1', '1 h');
SELECT lease_try_any(ARRAY['n2'], 'w1', '1 h');
\set VERBOSITY default
SELECT lease_try('new', 'w1', '1 h');
DROP INDEX one_lower;

-- One that a new tenure of an old row breaks, and that a renewal keeps.
DELETE FROM dist_lock;
CREATE UNIQUE INDEX one_each ON dist_lock (owner);
SELECT lease_try('N1', 'a', '1 h'), lease_try('N2', 'b', '1 h'), lease_renew('N1', 'a', '2 h');
SELECT lease_release('N2', 'b');
\set VERBOSITY sqlstate
SELECT lease_try('N2', 'a', '1 h');
SELECT lease_try('N3', 'a', '1 h');
\set VERBOSITY default
SELECT name, owner FROM dist_lock ORDER BY name;
SELECT lease_try('N2', 'b', '1 h'), lease_release('N1', 'a'), lease_renew('N2', 'b', '1 h'), lease_try('N1', 'c', '1 h');
SELECT differences();
SELECT damage();
DROP INDEX one_each;

-- An index whose expression fails.
CREATE FUNCTION picky(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
    IF $1 = 'refused' THEN
        RAISE EXCEPTION 'refused' USING ERRCODE = 'LQ001';
    END IF;
    RETURN $1;
END $$;
CREATE INDEX by_picky ON dist_lock (picky(owner));
\set VERBOSITY sqlstate
SELECT lease_try('N4', 'refused', '1 h');
SELECT lease_release('N2', 'b'), lease_try('N2', 'refused', '1 h');
\set VERBOSITY default
SELECT lease_renew('N2', 'b', '1 h');
SELECT differences();
SELECT damage();

-- Without them, and with the primary key under another name.
DROP INDEX by_lower, by_upper_owner, by_expiry, by_expiry_brin, by_token, by_owner_and_name, by_owner_hash, by_ttl_partial, by_grants_gin, by_picky;
ALTER INDEX dist_lock_pkey RENAME TO "the key";
CALL work(1, 30);
SELECT damage();

DROP FUNCTION differences(), damage(), picky(text);
DROP PROCEDURE work(int, int);
DROP EXTENSION IF EXISTS amcheck;
DROP EXTENSION lease;
