-- What an administrator may do to dist_lock: row security, triggers, rules,
-- children, more indexes, a dropped key. There are never two holders; the answer
-- is right, or a clear error.
CREATE EXTENSION lease;
CREATE ROLE regress_lease_user;
SET client_min_messages = error;

\getenv srcdir PG_ABS_SRCDIR
\set include :srcdir '/sql/include/outcome.sql'
\i :include
-- A tenure of each kind, by a user without rights: what it is told, and that nobody else gets in between.
CREATE PROCEDURE play(what text) LANGUAGE plpgsql AS $$
DECLARE
    said text := '';
    call text;
    holders int;
    one text;
BEGIN
    FOREACH call IN ARRAY ARRAY['lease_try(''new'', ''a'', ''1 h'')', 'lease_try(''new'', ''b'', ''1 h'')', 'lease_try(''free'', ''a'', ''1 h'')', 'lease_try(''free'', ''b'', ''1 h'')', 'lease_try(''expired'', ''a'', ''1 h'')', 'lease_try(''expired'', ''b'', ''1 h'')',
        'lease_try(''held'', ''b'', ''1 h'')', 'lease_renew(''held'', ''a'', ''2 h'')', 'lease_token(''held'', ''a'') > 0', 'lease_fence(''held'', lease_token(''held'', ''a''))::text = ''''', 'lease_fence(''held'', 1)', 'lease_release(''held'', ''a'')', 'lease_try(''held'', ''c'', ''1 h'')', 'lease_try(''held'', ''d'', ''1 h'')'] LOOP
        SET LOCAL ROLE regress_lease_user;
        one := outcome('SELECT ' || call);
        RESET ROLE;
        said := concat_ws(' ', said, one);
    END LOOP;
    said := concat_ws(' ', said, '| break', outcome('SELECT lease_break(''held'')'), outcome('SELECT lease_try(''held'', ''e'', ''1 h'')'), outcome('SELECT lease_try(''held'', ''f'', ''1 h'')'), 'purge', outcome('SELECT lease_purge(''1 h'')'),
        'views', outcome('SELECT count(*) FROM leases'), outcome('SELECT count(*) > 0 FROM lease_waiters'));
    -- Whoever believes that he holds it.
    FOR call, holders IN SELECT n, (SELECT count(*) FROM unnest(ARRAY['a', 'b', 'c', 'd', 'e', 'f']) o WHERE outcome(format('SELECT lease_token(%L, %L)', n, o)) ~ '^\d{6,}$') FROM unnest(ARRAY['new', 'free', 'expired', 'held']) n LOOP
        IF holders > 1 THEN
            RAISE WARNING '%: % holders of %', what, holders, call;
        END IF;
    END LOOP;
    RAISE WARNING '%:%', what, said;
    ROLLBACK;
END $$;
CREATE PROCEDURE play_with(ddl text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE ddl;
    COMMIT;
    CALL play(ddl);
END $$;
SELECT lease_try('free', 'x', '1 h'), lease_release('free', 'x'), lease_try('expired', 'x', '1 us');
SET ROLE regress_lease_user;
SELECT lease_try('held', 'a', '1 h');
RESET ROLE;
INSERT INTO dist_lock (name, token, expiry) VALUES ('idle', 1, now() - interval '2 h');
SET client_min_messages = warning;
\set VERBOSITY terse
CALL play('as it was made');

-- Row security, on and forced, with policies that hide and refuse.
CALL play_with('ALTER TABLE dist_lock ENABLE ROW LEVEL SECURITY');
CALL play_with('CREATE POLICY none ON dist_lock AS RESTRICTIVE USING (false) WITH CHECK (false)');
ALTER TABLE dist_lock OWNER TO regress_lease_user;
CALL play('row security, owned by a user');
CALL play_with('ALTER TABLE dist_lock FORCE ROW LEVEL SECURITY');
CALL play_with('CREATE POLICY seen ON dist_lock USING (name <> ''held'')');
DROP POLICY none ON dist_lock;
CALL play('row security, forced, one row hidden');
DROP POLICY seen ON dist_lock;
ALTER TABLE dist_lock NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY, OWNER TO CURRENT_USER;

-- Triggers that refuse, drop, change or double the row, each for every event.
CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    CASE TG_ARGV[0]
        WHEN 'refuse' THEN RAISE EXCEPTION 'refused' USING ERRCODE = 'LQ001';
        WHEN 'drop' THEN RETURN NULL;
        WHEN 'owner' THEN NEW.owner := 'meddler';
        WHEN 'expiry' THEN NEW.expiry := NULL;
        WHEN 'token' THEN NEW.token := 1;
        WHEN 'name' THEN NEW.name := NEW.name || '2';
        WHEN 'other' THEN INSERT INTO public.dist_lock (name, token, owner, expiry) VALUES (NEW.name, 5, 'meddler', 'infinity') ON CONFLICT DO NOTHING;
        WHEN 'delete' THEN DELETE FROM public.dist_lock WHERE name = NEW.name;
    END CASE;
    RETURN coalesce(NEW, OLD);
END $$;
DO $$
DECLARE
    how text;
BEGIN
    FOREACH how IN ARRAY ARRAY['refuse', 'drop', 'owner', 'expiry', 'token', 'name', 'other', 'delete'] LOOP
        EXECUTE format('CREATE TRIGGER %I BEFORE INSERT OR UPDATE OR DELETE ON dist_lock FOR EACH ROW EXECUTE FUNCTION meddle(%L)', 'before_' || how, how);
        EXECUTE format('CREATE TRIGGER %I AFTER INSERT OR UPDATE OR DELETE ON dist_lock FOR EACH ROW EXECUTE FUNCTION meddle(%L)', 'after_' || how, how);
        EXECUTE format('ALTER TABLE dist_lock DISABLE TRIGGER %I, DISABLE TRIGGER %I', 'before_' || how, 'after_' || how);
    END LOOP;
END $$;
CREATE PROCEDURE play_triggers() LANGUAGE plpgsql AS $$
DECLARE
    t name;
BEGIN
    FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'dist_lock'::regclass AND NOT tgisinternal ORDER BY tgname LOOP
        EXECUTE format('ALTER TABLE dist_lock ENABLE TRIGGER %I', t);
        COMMIT;
        CALL play(t);
        EXECUTE format('ALTER TABLE dist_lock DISABLE TRIGGER %I', t);
        COMMIT;
    END LOOP;
END $$;
CALL play_triggers();
DROP FUNCTION meddle() CASCADE;
DROP PROCEDURE play_triggers();

-- Rules.
CALL play_with('CREATE RULE r AS ON INSERT TO dist_lock DO INSTEAD NOTHING');
CALL play_with('CREATE OR REPLACE RULE r AS ON INSERT TO dist_lock DO ALSO NOTIFY x');
DROP RULE r ON dist_lock;
CALL play_with('CREATE RULE r AS ON UPDATE TO dist_lock DO INSTEAD NOTHING');
DROP RULE r ON dist_lock;
CALL play_with('CREATE RULE r AS ON DELETE TO dist_lock DO INSTEAD NOTHING');
CALL play_with('CREATE OR REPLACE RULE r AS ON DELETE TO dist_lock DO INSTEAD UPDATE dist_lock SET token = 0 WHERE name = OLD.name');
DROP RULE r ON dist_lock;

-- A child that has the same names, held and idle; and a parent above.
CREATE TABLE child () INHERITS (dist_lock);
INSERT INTO child (name, token, owner, expiry) VALUES ('new', 5, 'z', 'infinity'), ('held', 5, 'z', 'infinity'), ('held', 5, 'y', 'infinity'), ('free', 5, 'z', 'infinity'), ('idle', 5, 'z', 'infinity'), ('idle', 5, NULL, now() - interval '2 h');
CALL play('a child with rows');
BEGIN;
SELECT lease_purge('1 h') AS of_dist_lock_only, (SELECT count(*) FROM child) AS in_child;
ROLLBACK;
SELECT name, owner FROM leases WHERE owner IN ('y', 'z');
CALL play_with('ALTER TABLE child NO INHERIT dist_lock');
DROP TABLE child;
CREATE TABLE above (name text COLLATE "C" NOT NULL);
CALL play_with('ALTER TABLE dist_lock INHERIT above');
ALTER TABLE dist_lock NO INHERIT above;
DROP TABLE above;
CREATE TABLE above (LIKE dist_lock) PARTITION BY LIST (name);
CALL play_with('ALTER TABLE above ATTACH PARTITION dist_lock DEFAULT');
-- Rows that come in through the parent are leases like others.
INSERT INTO above (name, token, owner, expiry, grants, takeovers) VALUES ('above', 5, 'z', 'infinity', 0, 0);
SELECT lease_try('above', 'b', '1 h'), lease_break('above'), lease_try('above', 'b', '1 h');
ALTER TABLE above DETACH PARTITION dist_lock;
DROP TABLE above;
DELETE FROM dist_lock WHERE name = 'above';

-- Constraints and indexes.
CALL play_with('ALTER TABLE dist_lock ADD CONSTRAINT c CHECK (owner <> ''a'') NOT VALID');
ALTER TABLE dist_lock DROP CONSTRAINT c;
CALL play_with('CREATE UNIQUE INDEX u ON dist_lock (name)');
DROP INDEX u;
CALL play_with('CREATE UNIQUE INDEX u ON dist_lock (owner)');
DROP INDEX u;
CALL play_with('CREATE UNIQUE INDEX u ON dist_lock ((true)) WHERE owner IS NOT NULL AND owner <> ''a''');
DROP INDEX u;
CALL play_with('ALTER TABLE dist_lock ADD CONSTRAINT e EXCLUDE (owner WITH =)');
ALTER TABLE dist_lock DROP CONSTRAINT e;
CALL play_with('ALTER TABLE dist_lock ADD CONSTRAINT d UNIQUE (token) DEFERRABLE INITIALLY DEFERRED');
ALTER TABLE dist_lock DROP CONSTRAINT d;
-- Foreign keys from and to it.
CREATE TABLE refers (name text COLLATE "C" REFERENCES dist_lock);
INSERT INTO refers VALUES ('held'), ('idle');
CALL play('a foreign key on it');
DROP TABLE refers;
CREATE TABLE referred (owner text COLLATE "C" PRIMARY KEY);
CALL play_with('ALTER TABLE dist_lock ADD CONSTRAINT f FOREIGN KEY (owner) REFERENCES referred NOT VALID');
ALTER TABLE dist_lock DROP CONSTRAINT f;
DROP TABLE referred;

-- The primary key dropped; put back on two columns, deferrable, and right; beside rows that are there twice.
CALL play_with('ALTER TABLE dist_lock DROP CONSTRAINT dist_lock_pkey');
INSERT INTO dist_lock (name, token, owner, expiry) VALUES ('held', 5, 'b', 'infinity');
CALL play('no primary key, and a name that is there twice');
DELETE FROM dist_lock WHERE name = 'held' AND token = 5;
CALL play_with('ALTER TABLE dist_lock ADD CONSTRAINT dist_lock_pkey PRIMARY KEY (name, token)');
ALTER TABLE dist_lock DROP CONSTRAINT dist_lock_pkey;
CALL play_with('ALTER TABLE dist_lock ADD CONSTRAINT dist_lock_pkey PRIMARY KEY (name) DEFERRABLE');
ALTER TABLE dist_lock DROP CONSTRAINT dist_lock_pkey;
CALL play_with('CREATE UNIQUE INDEX u ON dist_lock (name)');
DROP INDEX u;
CALL play_with('ALTER TABLE dist_lock ADD CONSTRAINT dist_lock_pkey PRIMARY KEY (name)');

-- Unlogged; columns more and in another place; a table of the same shape in its place.
CALL play_with('ALTER TABLE dist_lock SET UNLOGGED');
ALTER TABLE dist_lock SET LOGGED;
CALL play_with('ALTER TABLE dist_lock ADD COLUMN note text DEFAULT ''x'', ADD COLUMN twice bigint GENERATED ALWAYS AS (token * 2) STORED');
ALTER TABLE dist_lock DROP COLUMN note, DROP COLUMN twice;
CALL play('after them');
CALL play_with('ALTER TABLE dist_lock REPLICA IDENTITY FULL');
ALTER TABLE dist_lock REPLICA IDENTITY DEFAULT;
SET client_min_messages = error;
CREATE PUBLICATION regress_lease_pub FOR TABLE dist_lock;
RESET client_min_messages;
CALL play('published');
CALL play_with('ALTER TABLE dist_lock REPLICA IDENTITY NOTHING');
DROP PUBLICATION regress_lease_pub;
ALTER TABLE dist_lock REPLICA IDENTITY DEFAULT;
CALL play('at the end');

DROP PROCEDURE play(text), play_with(text);
DROP FUNCTION outcome(text);
DROP EXTENSION lease;
DROP ROLE regress_lease_user;
