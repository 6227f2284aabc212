-- Who may call what, and what the planner is told: every object of the
-- extension against a written list.
CREATE EXTENSION lease;

CREATE TABLE listed_functions (name text, arguments text, acl text, kind "char", volatile "char", parallel "char", cost real, strict boolean, security_definer boolean, leakproof boolean, settings text[]);
INSERT INTO listed_functions VALUES
    ('lease_acquire',   'IN name text, IN owner text, IN ttl interval, IN wait interval DEFAULT NULL::interval, INOUT token bigint DEFAULT NULL::bigint', 'public', 'p', 'v', 'u', 1, false, false, false, NULL),
    ('lease_activity',  'OUT name text, OUT pid integer, OUT kind text, OUT waits_since timestamp with time zone', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_attach',    'name text, owner text', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_break',     'name text', 'owner', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_detach',    'name text, owner text', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_fence',     'name text, token bigint', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_fenced',    '', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_purge',     'idle interval', 'owner', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_release',   'name text, owner text, keep interval DEFAULT NULL::interval, token bigint DEFAULT NULL::bigint', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_renew',     'name text, owner text, ttl interval, token bigint DEFAULT NULL::bigint', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_renew_all', 'names text[], owner text, ttl interval', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_token',     'name text, owner text', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_try',       'name text, owner text, ttl interval', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_try_any',   'names text[], owner text, ttl interval', 'public', 'f', 'v', 'u', 10000, false, false, false, NULL),
    ('lease_watch',     'IN name text, IN known bigint, IN wait interval DEFAULT NULL::interval, INOUT token bigint DEFAULT NULL::bigint', 'public', 'p', 'v', 'u', 1, false, false, false, NULL);

-- Whoever has EXECUTE, in words.
CREATE FUNCTION who(acl aclitem[], owner oid) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(CASE WHEN grantee = 0 THEN 'public' WHEN grantee = owner THEN 'owner' ELSE grantee::regrole::text END || CASE WHEN is_grantable THEN '*' ELSE '' END, ',' ORDER BY grantee)
      FROM aclexplode(coalesce(acl, acldefault('f', owner)))
     WHERE privilege_type = 'EXECUTE' AND (grantee <> owner OR acl IS NOT NULL AND NOT EXISTS (SELECT FROM aclexplode(acl) WHERE grantee = 0))
$$;
CREATE TEMP VIEW actual_functions AS
    SELECT proname::text, pg_get_function_arguments(p.oid), who(proacl, proowner), prokind, provolatile, proparallel, procost, proisstrict, prosecdef, proleakproof, proconfig
      FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
     WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'lease');
SELECT 'missing or different' AS listed, * FROM (TABLE listed_functions EXCEPT TABLE actual_functions) l;
SELECT 'not listed or different' AS actual, * FROM (TABLE actual_functions EXCEPT TABLE listed_functions) a;
SELECT count(*) FROM actual_functions;

-- Tables, views, sequence: what PUBLIC may, column grants, owners, options.
SELECT relname, relkind, relrowsecurity, reloptions, relowner = (SELECT extowner FROM pg_extension WHERE extname = 'lease') AS extensions_owner,
       (SELECT string_agg(privilege_type, ', ' ORDER BY privilege_type) FROM aclexplode(relacl) WHERE grantee = 0) AS public,
       (SELECT count(*) FROM aclexplode(relacl) WHERE grantee NOT IN (0, relowner)) AS others,
       (SELECT count(*) FROM pg_attribute WHERE attrelid = c.oid AND attacl IS NOT NULL) AS column_grants
  FROM pg_class c JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e' WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'lease') ORDER BY 1;
-- Nothing else belongs to it but row and array types.
SELECT classid::regclass, count(*) FROM pg_depend WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'lease') AND classid NOT IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_type'::regclass) GROUP BY 1 ORDER BY 1;

-- What a REVOKE or GRANT of an administrator's says, a dump remembers: the rights it was made with are noted.
SELECT count(*) FROM pg_init_privs WHERE privtype = 'e' AND classoid = 'pg_proc'::regclass AND objoid IN ('lease_break(text)'::regprocedure, 'lease_purge(interval)'::regprocedure);

-- A role with nothing: what it may call and read, in fact.
CREATE ROLE regress_lease_nobody;
SET ROLE regress_lease_nobody;
SELECT lease_try('job', 'a', '1 h'), lease_token('job', 'a') > 0 AS token, lease_fence('job', lease_token('job', 'a')), (SELECT count(*) FROM leases) AS leases, (SELECT count(*) >= 0 FROM lease_waiters) AS waiters;
\set VERBOSITY sqlstate
SELECT lease_break('job');
SELECT lease_purge('1 h');
SELECT * FROM dist_lock;
SELECT * FROM dist_lock_token;
INSERT INTO leases (name) VALUES ('x');
COMMENT ON FUNCTION lease_try(text, text, interval) IS 'mine';
\set VERBOSITY default
CREATE TEMP TABLE mine (v int);
CREATE TRIGGER fenced BEFORE INSERT ON mine FOR EACH STATEMENT EXECUTE FUNCTION lease_fenced('job');
RESET ROLE;
DROP TABLE mine;

DROP VIEW actual_functions;
DROP TABLE listed_functions;
DROP FUNCTION who(aclitem[], oid);
DROP EXTENSION lease;
DROP ROLE regress_lease_nobody;
