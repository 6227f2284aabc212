-- Tables behind a fence: every way to write to one is refused unless the
-- transaction has passed the fence of that very lease.
CREATE EXTENSION lease;
SELECT lease_try('job', 'a', '1 h'), lease_try('job2', 'a', '1 h'), lease_try('jo', 'a', '1 h'), lease_try('JOB', 'a', '1 h');
SELECT lease_token('job', 'a') AS token, lease_token('job2', 'a') AS token2, lease_token('jo', 'a') AS token3, lease_token('JOB', 'a') AS token4 \gset

-- What a statement comes to: the rows that it wrote, or the error.
CREATE FUNCTION outcome(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    written bigint;
BEGIN
    EXECUTE statement;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;

CREATE TABLE work (id int PRIMARY KEY, v int);
INSERT INTO work VALUES (1, 0), (2, 0), (3, 0);

-- The message, for the log of whoever forgot the fence.
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
DO $$ BEGIN INSERT INTO work VALUES (4, 0);
EXCEPTION WHEN SQLSTATE 'LEASE' THEN
    DECLARE hint text; BEGIN GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT; RAISE NOTICE '% % / %', SQLSTATE, SQLERRM, hint; END;
END $$;

-- Every statement that writes, without the fence, behind another's, behind it.
CREATE TABLE statements (statement text);
INSERT INTO statements VALUES
    ('INSERT INTO work VALUES (4, 0)'), ('INSERT INTO work SELECT 4, 0 WHERE false'), ('INSERT INTO work VALUES (1, 0) ON CONFLICT DO NOTHING'),
    ('INSERT INTO work VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET v = 1'), ('UPDATE work SET v = 1'), ('UPDATE work SET v = 1 WHERE id = 99'), ('DELETE FROM work WHERE id = 3'), ('DELETE FROM work WHERE id = 99'),
    ('MERGE INTO work USING (VALUES (1)) s (id) ON s.id = work.id WHEN MATCHED THEN UPDATE SET v = 2'), ('MERGE INTO work USING (VALUES (9)) s (id) ON s.id = work.id WHEN NOT MATCHED THEN INSERT VALUES (9, 0)'),
    ('MERGE INTO work USING (VALUES (1)) s (id) ON s.id = work.id WHEN MATCHED THEN DELETE'),
    ('WITH w AS (UPDATE work SET v = 3 RETURNING id) SELECT * FROM w'), ('COPY work FROM PROGRAM ''printf "7\\t0\\n"'''), ('TRUNCATE work'),
    ('SELECT * FROM work'), ('SELECT * FROM work FOR UPDATE'), ('LOCK TABLE work');
CREATE FUNCTION outcomes() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
    s text; o text;
BEGIN
    FOR s IN SELECT statement FROM statements LOOP
        BEGIN
            o := outcome(s);
            RAISE EXCEPTION 'undo' USING ERRCODE = 'LQ001';
        EXCEPTION WHEN SQLSTATE 'LQ001' THEN RETURN NEXT format('%s: %s', s, o); END;
    END LOOP;
END $$;
\pset format unaligned
\pset tuples_only on
SELECT * FROM outcomes();
BEGIN;
SELECT lease_fence('job2', :token2), lease_fence('jo', :token3), lease_fence('JOB', :token4);
SELECT count(*) FILTER (WHERE o LIKE '%LEASE'), count(*) FROM outcomes() o;
COMMIT;
BEGIN;
SELECT lease_fence('job', :token);
SELECT * FROM outcomes();
COMMIT;
SELECT count(*) FILTER (WHERE o LIKE '%LEASE'), count(*) FROM outcomes() o;
\pset tuples_only off
\pset format aligned

-- COPY from the client.
COPY work FROM stdin;
10	0
\.
BEGIN;
SELECT lease_fence('job', :token);
COPY work FROM stdin;
10	0
\.
COMMIT;
SELECT count(*) FROM work;

-- A fence that was rolled back does not count; one of the outer level does.
BEGIN;
SAVEPOINT s;
SELECT lease_fence('job', :token);
SELECT outcome('UPDATE work SET v = 1') AS in_savepoint;
ROLLBACK TO s;
SELECT outcome('UPDATE work SET v = 1') AS rolled_back;
SAVEPOINT s2;
SELECT lease_fence('job', :token);
RELEASE s2;
SELECT outcome('UPDATE work SET v = 1') AS released;
ROLLBACK TO s;
SELECT outcome('UPDATE work SET v = 1') AS rolled_back_with_its_parent;
SELECT lease_fence('job', :token), lease_fence('job2', :token2);
SAVEPOINT s3;
SELECT lease_fence('job', :token), lease_fence('jo', :token3);
SAVEPOINT s4;
SELECT lease_fence('JOB', :token4), lease_fence('job', :token);
ROLLBACK TO s3;
SELECT outcome('UPDATE work SET v = 1') AS passed_before;
COMMIT;
-- The same in blocks of PL/pgSQL.
BEGIN;
DO $$
BEGIN
    BEGIN
        PERFORM lease_fence('job', lease_token('job', 'a'));
        RAISE EXCEPTION 'undo';
    EXCEPTION WHEN raise_exception THEN NULL;
    END;
    IF outcome('UPDATE work SET v = 1') <> 'LEASE' THEN RAISE WARNING 'not refused'; END IF;
    BEGIN
        PERFORM lease_fence('job', lease_token('job', 'a'));
    EXCEPTION WHEN OTHERS THEN RAISE;
    END;
    IF outcome('UPDATE work SET v = 1') = 'LEASE' THEN RAISE WARNING 'refused'; END IF;
    BEGIN
        PERFORM lease_fence('job', 1);
    EXCEPTION WHEN SQLSTATE 'LEASE' THEN NULL;
    END;
    IF outcome('UPDATE work SET v = 1') = 'LEASE' THEN RAISE WARNING 'refused after another one was refused'; END IF;
END $$;
COMMIT;
-- A fence that was refused does not count.
BEGIN;
DO $$ BEGIN PERFORM lease_fence('job', 1); EXCEPTION WHEN SQLSTATE 'LEASE' THEN NULL; END $$;
SELECT outcome('UPDATE work SET v = 1');
COMMIT;
-- Nor does that of the transaction before: COMMIT AND CHAIN, COMMIT in a procedure.
BEGIN;
SELECT lease_fence('job', :token);
COMMIT AND CHAIN;
SELECT outcome('UPDATE work SET v = 1');
ROLLBACK AND CHAIN;
SELECT lease_fence('job', :token);
ROLLBACK AND CHAIN;
SELECT outcome('UPDATE work SET v = 1');
COMMIT;
CREATE PROCEDURE twice() LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lease_fence('job', lease_token('job', 'a'));
    UPDATE work SET v = v + 1;
    COMMIT;
    RAISE NOTICE 'then: %', outcome('UPDATE work SET v = v + 1');
END $$;
CALL twice();
DROP PROCEDURE twice();
-- And a tenure that ended behind the fence may still write: it commits first.
BEGIN;
SELECT lease_fence('job', :token), lease_release('job', 'a');
SELECT outcome('UPDATE work SET v = 2');
ROLLBACK;
BEGIN;
SELECT lease_fence('job', :token), lease_renew('job', 'a', '1 us');
SELECT outcome('UPDATE work SET v = 2'), lease_token('job', 'a');
ROLLBACK;

-- AFTER, FOR EACH ROW, and as a constraint that waits for the commit.
DROP TRIGGER fenced ON work;
CREATE TRIGGER fenced AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
SELECT count(*) FILTER (WHERE o LIKE '%LEASE'), count(*) FROM outcomes() o;
BEGIN; SELECT lease_fence('job', :token);
SELECT count(*) FILTER (WHERE o LIKE '%LEASE'), count(*) FROM outcomes() o; COMMIT;
DROP TRIGGER fenced ON work;
\pset format unaligned
\pset tuples_only on
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON work FOR EACH ROW EXECUTE FUNCTION lease_fenced('job');
SELECT * FROM outcomes();
BEGIN; SELECT lease_fence('job', :token);
SELECT * FROM outcomes(); COMMIT;
\pset tuples_only off
\pset format aligned
-- It lets rows through as they are.
BEGIN; SELECT lease_fence('job', :token);
INSERT INTO work VALUES (5, 50) RETURNING *;
UPDATE work SET id = 6, v = 60 WHERE id = 5 RETURNING *;
DELETE FROM work WHERE id = 6 RETURNING *;
COMMIT;
DROP TRIGGER fenced ON work;
CREATE TRIGGER fenced AFTER INSERT OR UPDATE OR DELETE ON work FOR EACH ROW EXECUTE FUNCTION lease_fenced('job');
SELECT count(*) FILTER (WHERE o LIKE '%LEASE'), count(*) FROM outcomes() o;
BEGIN; SELECT lease_fence('job', :token);
SELECT count(*) FILTER (WHERE o LIKE '%LEASE'), count(*) FROM outcomes() o; COMMIT;
DROP TRIGGER fenced ON work;
CREATE CONSTRAINT TRIGGER fenced AFTER INSERT OR UPDATE OR DELETE ON work DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lease_fenced('job');
BEGIN;
UPDATE work SET v = 7 WHERE id = 1;
\set VERBOSITY sqlstate
COMMIT;
\set VERBOSITY default
BEGIN;
UPDATE work SET v = 7 WHERE id = 1;
SELECT lease_fence('job', :token);
COMMIT;
SELECT v FROM work WHERE id = 1;
DROP TRIGGER fenced ON work;
-- With WHEN, and for one column.
CREATE TRIGGER fenced BEFORE UPDATE OF v ON work FOR EACH ROW WHEN (NEW.v > 100) EXECUTE FUNCTION lease_fenced('job');
SELECT outcome('UPDATE work SET v = 1'), outcome('UPDATE work SET v = 101'), outcome('UPDATE work SET id = id + 100 WHERE id = 3');
DROP TRIGGER fenced ON work;

-- Two leases on one table; names that are easily taken for each other.
CREATE TRIGGER f1 BEFORE INSERT ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
CREATE TRIGGER f2 BEFORE INSERT ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job2');
BEGIN; SELECT lease_fence('job', :token); SELECT outcome('INSERT INTO work VALUES (20, 0)');
SELECT lease_fence('job2', :token2); SELECT outcome('INSERT INTO work VALUES (20, 0)'); ROLLBACK;
BEGIN; SELECT lease_fence('job2', :token2); SELECT outcome('INSERT INTO work VALUES (20, 0)'); ROLLBACK;
DROP TRIGGER f1 ON work; DROP TRIGGER f2 ON work;
DO $$
DECLARE
    fenced text; passed text;
    names text[] := ARRAY['n', 'N', 'n ', ' n', 'nn', E'n\n', E'n\\', E'n\u0308', E'\u00f1', repeat('n', 63), repeat('n', 64), repeat('n', 255), 'it''s "n"', E'\\000', 'xICxDF3_CaWx', '42', '$n$'];
BEGIN
    FOREACH fenced IN ARRAY names LOOP
        EXECUTE format('CREATE TRIGGER fenced BEFORE INSERT ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced(%L)', fenced);
        FOREACH passed IN ARRAY names LOOP
            BEGIN
                PERFORM lease_try(passed, 'a', '1 h');
                PERFORM lease_fence(passed, lease_token(passed, 'a'));
                IF (outcome('INSERT INTO work VALUES (20, 0)') = '1') <> (fenced = passed) THEN
                    RAISE WARNING 'fenced by %, passed %', fenced, passed;
                END IF;
                RAISE EXCEPTION 'undo';
            EXCEPTION WHEN raise_exception THEN NULL;
            END;
        END LOOP;
        DROP TRIGGER fenced ON work;
    END LOOP;
END $$;

-- Wrong arguments, and calls that are none of a trigger.
CREATE TRIGGER fenced BEFORE INSERT ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced();
INSERT INTO work VALUES (30, 0);
DROP TRIGGER fenced ON work;
CREATE TRIGGER fenced BEFORE INSERT ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job', 'job2');
INSERT INTO work VALUES (30, 0);
DROP TRIGGER fenced ON work;
CREATE TRIGGER fenced BEFORE INSERT ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('');
SELECT outcome('INSERT INTO work VALUES (30, 0)');
DROP TRIGGER fenced ON work;
\set VERBOSITY sqlstate
SELECT lease_fenced();
SELECT lease_fenced('job');
CREATE EVENT TRIGGER fenced ON ddl_command_end EXECUTE FUNCTION lease_fenced('job');
\set VERBOSITY default

-- Through a view, one that is a join with rules, and an INSTEAD OF trigger.
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
CREATE VIEW simple AS SELECT * FROM work;
CREATE VIEW ruled AS SELECT w.*, 1 AS one FROM work w, (SELECT) x;
CREATE RULE i AS ON INSERT TO ruled DO INSTEAD INSERT INTO work VALUES (NEW.id, NEW.v);
CREATE FUNCTION instead() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO work VALUES (NEW.id, NEW.v); RETURN NEW; END $$;
CREATE VIEW triggered AS SELECT w.*, 1 AS one FROM work w, (SELECT) x;
CREATE TRIGGER instead INSTEAD OF INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION instead();
CREATE FUNCTION ways() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(outcome(s), ' ') FROM unnest(ARRAY['INSERT INTO simple VALUES (40, 0)', 'UPDATE simple SET v = 4', 'DELETE FROM simple WHERE id = 40', 'INSERT INTO ruled VALUES (41, 0)', 'INSERT INTO triggered VALUES (42, 0)']) s $$;
SELECT ways();
BEGIN; SELECT lease_fence('job', :token); SELECT ways(); ROLLBACK;
CREATE TRIGGER a_fenced INSTEAD OF INSERT ON triggered FOR EACH ROW EXECUTE FUNCTION lease_fenced('job');
BEGIN; SELECT lease_fence('job', :token); INSERT INTO triggered VALUES (42, 0); ROLLBACK;
DROP TRIGGER a_fenced ON triggered;
-- A view can have a statement trigger of its own.
CREATE TRIGGER of_view BEFORE INSERT ON triggered FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job2');
BEGIN; SELECT lease_fence('job', :token); SELECT outcome('INSERT INTO triggered VALUES (42, 0)'); SELECT lease_fence('job2', :token2); SELECT outcome('INSERT INTO triggered VALUES (42, 0)'); ROLLBACK;
DROP VIEW simple, ruled, triggered;
DROP FUNCTION instead(), ways();
DROP TRIGGER fenced ON work;

-- Foreign keys: what the parent does to the fenced child.
CREATE TABLE child (work_id int REFERENCES work ON DELETE CASCADE ON UPDATE CASCADE, note_id int REFERENCES work (id) ON DELETE SET NULL);
INSERT INTO child VALUES (1, NULL), (NULL, 2);
CREATE FUNCTION ways() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(outcome(s), ' ') FROM unnest(ARRAY['UPDATE work SET id = 50 WHERE id = 1', 'DELETE FROM work WHERE id = 50 OR id = 1', 'DELETE FROM work WHERE id = 2', 'TRUNCATE work CASCADE']) s $$;
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON child FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
SELECT ways();
BEGIN; SELECT lease_fence('job', :token); SELECT ways(); ROLLBACK;
DROP TRIGGER fenced ON child;
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION lease_fenced('job');
BEGIN; SELECT ways(); ROLLBACK;
SELECT * FROM child ORDER BY 1;
DROP FUNCTION ways();
DROP TABLE child;

-- Partitions: a row trigger guards every way in, a statement trigger of the parent does not, and says so.
CREATE TABLE parts (k int, v int) PARTITION BY LIST (k);
CREATE TABLE part1 PARTITION OF parts FOR VALUES IN (1) PARTITION BY RANGE (v);
CREATE TABLE part11 PARTITION OF part1 FOR VALUES FROM (0) TO (10);
CREATE TABLE part12 PARTITION OF part1 DEFAULT;
CREATE TABLE part2 PARTITION OF parts FOR VALUES IN (2);
INSERT INTO parts VALUES (1, 1), (1, 11), (2, 1);
CREATE FUNCTION ways() RETURNS text LANGUAGE sql AS $$ SELECT string_agg(outcome(s), ' ') FROM unnest(ARRAY['INSERT INTO parts VALUES (1, 2)', 'INSERT INTO part1 VALUES (1, 2)', 'INSERT INTO part11 VALUES (1, 2)', 'INSERT INTO part12 VALUES (1, 12)', 'UPDATE parts SET k = 2 WHERE v = 1', 'UPDATE part2 SET v = 3', 'DELETE FROM part1', 'DELETE FROM parts', 'COPY part2 FROM PROGRAM ''printf "2\\t0\\n"''', 'MERGE INTO parts USING (VALUES (2)) s (k) ON s.k = parts.k WHEN NOT MATCHED THEN INSERT VALUES (2, 0) WHEN MATCHED THEN UPDATE SET v = 9']) s $$;
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE ON parts FOR EACH ROW EXECUTE FUNCTION lease_fenced('job');
SELECT ways();
BEGIN; SELECT lease_fence('job', :token); SELECT ways(); ROLLBACK;
-- A partition that is made, attached or detached later.
CREATE TABLE part3 PARTITION OF parts FOR VALUES IN (3);
CREATE TABLE part4 (k int, v int);
ALTER TABLE parts ATTACH PARTITION part4 FOR VALUES IN (4);
ALTER TABLE parts DETACH PARTITION part2;
SELECT outcome('INSERT INTO part3 VALUES (3, 0)'), outcome('INSERT INTO part4 VALUES (4, 0)'), outcome('INSERT INTO part2 VALUES (2, 0)') AS detached;
-- TRUNCATE has no row triggers: it needs a statement trigger on each.
SELECT outcome('TRUNCATE part3') AS open;
CREATE TRIGGER no_truncate BEFORE TRUNCATE ON part3 FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
SELECT outcome('TRUNCATE part3'), outcome('TRUNCATE parts');
DROP TRIGGER fenced ON parts;
CREATE TRIGGER fenced BEFORE INSERT ON parts FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
BEGIN; SELECT lease_fence('job', :token);
INSERT INTO parts VALUES (3, 0);
ROLLBACK;
INSERT INTO parts VALUES (3, 0);
SELECT outcome('INSERT INTO part3 VALUES (3, 0)') AS open;
DROP TRIGGER fenced ON parts;
CREATE TRIGGER fenced BEFORE INSERT ON part3 FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
SELECT outcome('INSERT INTO part3 VALUES (3, 0)'), outcome('INSERT INTO parts VALUES (3, 0)') AS through_the_parent;
DROP FUNCTION ways();
DROP TABLE parts, part2;

-- Children by INHERITS: each needs its own. The parent's statement trigger says so, until there is none.
CREATE TABLE parent (v int);
CREATE TABLE heir () INHERITS (parent);
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE ON parent FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
BEGIN; SELECT lease_fence('job', :token);
UPDATE parent SET v = 0;
DROP TABLE heir;
UPDATE parent SET v = 0;
ROLLBACK;
SELECT outcome('INSERT INTO heir VALUES (1)') AS open, outcome('UPDATE parent SET v = 1') AS through_the_parent;
DROP TABLE parent CASCADE;

-- What leaves triggers out leaves this one out: session_replication_role, as an apply worker has it, and ALTER TABLE DISABLE. ALWAYS keeps it in.
CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON work FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
SET session_replication_role = replica;
SELECT outcome('UPDATE work SET v = 1') AS left_out;
ALTER TABLE work ENABLE ALWAYS TRIGGER fenced;
SELECT outcome('UPDATE work SET v = 1') AS always;
RESET session_replication_role;

-- Temporary and unlogged tables; a user who may not write gets his own error.
CREATE TEMP TABLE tmp (v int);
CREATE UNLOGGED TABLE unlogged (v int);
CREATE TRIGGER fenced BEFORE INSERT ON tmp FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
CREATE TRIGGER fenced BEFORE INSERT ON unlogged FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
SELECT outcome('INSERT INTO tmp VALUES (1)'), outcome('INSERT INTO unlogged VALUES (1)');
BEGIN; SELECT lease_fence('job', :token); SELECT outcome('INSERT INTO tmp VALUES (1)'), outcome('INSERT INTO unlogged VALUES (1)'); ROLLBACK;
DROP TABLE tmp, unlogged;
CREATE ROLE regress_lease_writer;
GRANT INSERT ON work TO regress_lease_writer;
SET ROLE regress_lease_writer;
SELECT outcome('INSERT INTO work VALUES (60, 0)'), outcome('UPDATE work SET v = 1');
RESET ROLE;
-- Whoever passed the fence, the transaction has: the writer need not be the holder.
BEGIN;
SELECT lease_fence('job', :token);
SET ROLE regress_lease_writer;
SELECT outcome('INSERT INTO work VALUES (60, 0)');
ROLLBACK;
REVOKE ALL ON work FROM regress_lease_writer;
DROP ROLE regress_lease_writer;

-- A trigger keeps the extension, and goes with it.
\set VERBOSITY sqlstate
DROP EXTENSION lease;
\set VERBOSITY terse
SET client_min_messages = warning;
DROP EXTENSION lease CASCADE;
SELECT outcome('UPDATE work SET v = 1') AS open;
DROP TABLE work, statements;
DROP FUNCTION outcome(text), outcomes();
