-- A query takes the leases of the rows that it returns, and no other.
CREATE EXTENSION lease;
CREATE TABLE jobs (id int PRIMARY KEY, kind text);
INSERT INTO jobs SELECT i, CASE WHEN i % 10 = 0 THEN 'x' ELSE 'y' END FROM generate_series(1, 100) i;
ANALYZE jobs;

-- EXPLAIN takes nothing.
CREATE FUNCTION explain(options text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    line text;
    plan text := '';
BEGIN
    FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, statement) LOOP
        plan := plan || line;
    END LOOP;
    RETURN plan;
END $$;
PREPARE take(text) AS SELECT lease_try($1, 'w', '1 min');
SELECT explain('VERBOSE', statement) LIKE '%Result%' AS explained FROM (VALUES
    ($$SELECT lease_try('explained', 'w', '1 min')$$),
    ($$SELECT lease_token('explained', 'w') WHERE lease_try('explained', 'w', '1 min')$$),
    ($$SELECT lease_try_any(ARRAY['explained'], 'w', '1 min'), lease_renew_all(ARRAY['explained'], 'w', '1 min'), lease_release('explained', 'w')$$),
    ($$EXECUTE take('explained')$$)) v (statement);
-- The cheaper condition comes first, however it is written.
SELECT explain('COSTS OFF', $$SELECT id FROM jobs WHERE lease_try('j' || id, 'w', '1 min') AND kind = 'x' LIMIT 1$$)
  LIKE '%Filter: ((kind = ''x''::text) AND lease_try(%' AS cheaper_first;
SELECT count(*) FROM dist_lock;
-- With ANALYZE it runs.
SELECT explain('ANALYZE', $$SELECT lease_try('analyzed', 'w', '1 min')$$) LIKE '%Result%' AS explained;
SELECT count(*) FROM dist_lock;

-- One job, one lease, wherever the condition stands.
SELECT id FROM jobs WHERE lease_try('j' || id, 'w', '1 min') AND kind = 'x' LIMIT 1;
SELECT name FROM dist_lock WHERE name LIKE 'j%';
SELECT id FROM jobs WHERE lease_try('j' || id, 'w2', '1 min') AND kind = 'x' AND id > 0 LIMIT 1;
SELECT id FROM jobs WHERE kind = 'x' AND lease_try('j' || id, 'w3', '1 min') LIMIT 1;
SELECT id FROM (SELECT id FROM jobs WHERE kind = 'x') j WHERE lease_try('j' || id, 'w4', '1 min') LIMIT 1;
SELECT id FROM (SELECT * FROM jobs WHERE lease_try('j' || id, 'w5', '1 min')) j WHERE kind = 'x' LIMIT 1;
SELECT string_agg(name, ' ' ORDER BY token) FROM dist_lock WHERE name LIKE 'j%';

-- A filter in plpgsql is cheaper, too.
CREATE FUNCTION slow_filter(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN $1 % 50 = 0; END $$;
SELECT id FROM jobs WHERE lease_try('f' || id, 'w', '1 min') AND slow_filter(id) AND kind = 'x' LIMIT 1;
SELECT string_agg(name, ' ' ORDER BY token) FROM dist_lock WHERE name LIKE 'f%';

-- Parallel query.
CREATE TABLE many (id int, kind text);
INSERT INTO many SELECT i, 'x' FROM generate_series(1, 5000) i;
ANALYZE many;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;
DO $$ BEGIN
    IF current_setting('server_version_num')::int >= 160000 THEN
        PERFORM set_config('debug_parallel_query', 'on', false);
    ELSE
        PERFORM set_config('force_parallel_mode', 'on', false);
    END IF;
END $$;
SELECT id FROM many WHERE lease_try('p' || id, 'w', '1 min') AND kind = 'x' LIMIT 1;
SELECT count(*) FROM dist_lock WHERE name LIKE 'p%';
SELECT count(*) FROM many WHERE id <= 50 AND lease_try('q' || id, 'w', '1 min');
SELECT count(*) FROM many WHERE id <= 50 AND lease_token('q' || id, 'w') IS NOT NULL;
SELECT count(*) FROM many WHERE id <= 60 AND lease_renew('q' || id, 'w', '1 min');
SELECT lease_try('parallel', 'w', '1 min'), lease_try('parallel', 'v', '1 min'), lease_renew('parallel', 'w', '1 min'),
       lease_renew_all(ARRAY['parallel'], 'w', '1 min'), lease_token('parallel', 'w') IS NOT NULL AS token, lease_release('parallel', 'w');
-- A function that says it is safe: it may look in a worker, but whatever could write or keep a lock is refused there.
SELECT lease_token('q1', 'w') AS token \gset
CREATE FUNCTION labelled_safe(call text) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE call INTO answer;
    RETURN answer IS NOT NULL AND pg_backend_pid() <> current_setting('test.leader')::int;
END $$;
\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/outcome_in_words.sql'
\i :include
DO $$ BEGIN PERFORM set_config('test.leader', pg_backend_pid()::text, false); END $$;
SELECT call, outcome(format('SELECT labelled_safe(%L)', replace(call, 'TOKEN', :'token'))) AS in_worker FROM (VALUES
    ('SELECT lease_token(''q1'', ''w'')'), ('SELECT count(*) FROM leases'), ('SELECT count(*) FROM lease_waiters'), ('CALL lease_watch(''q1'', 1)'),
    ('SELECT lease_fence(''q1'', TOKEN)'), ('SELECT lease_fence(''q1'', 1)'), ('SELECT lease_try(''q1'', ''w'', ''1 h'')'), ('SELECT lease_try(''q1'', ''v'', ''1 h'')'), ('SELECT lease_try_any(''{new}'', ''w'', ''1 h'')'),
    ('SELECT lease_renew(''q1'', ''w'', ''1 h'')'), ('SELECT lease_renew_all(''{q1}'', ''w'', ''1 h'')'), ('SELECT lease_release(''q1'', ''v'')'), ('SELECT lease_attach(''q1'', ''w'')'),
    ('SELECT lease_detach(''q1'', ''w'')'), ('SELECT lease_break(''q1'')'), ('SELECT lease_purge(''0'')'), ('CALL lease_acquire(''q1'', ''v'', ''1 h'', ''0'')')) v (call);
SELECT lease_token('q1', 'w') = :token AS untouched;
DROP FUNCTION labelled_safe(text), outcome(text);
RESET ALL;

-- A join, and a generic plan.
SELECT count(*) FROM jobs a JOIN jobs b USING (id) WHERE a.kind = 'x' AND lease_try('s' || b.id, 'w', '1 min');
SELECT count(*) FROM dist_lock WHERE name LIKE 's%';
SET plan_cache_mode = force_generic_plan;
EXECUTE take('generic');
EXECUTE take('generic');
EXECUTE take('generic2');
SELECT count(*) FROM dist_lock WHERE name LIKE 'generic%';
RESET plan_cache_mode;

DEALLOCATE take;
DROP FUNCTION explain(text, text), slow_filter(int);
DROP TABLE jobs, many;
DROP EXTENSION lease;
