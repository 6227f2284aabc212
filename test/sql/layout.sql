-- What the install script makes. The C++ side reads the table by attribute
-- number and counts on every line of this.
CREATE EXTENSION lease;

SELECT attnum, attname, format_type(atttypid, atttypmod) AS type, attnotnull AS not_null,
       (SELECT collname FROM pg_collation WHERE oid = attcollation) AS collation,
       (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum) AS default
  FROM pg_attribute WHERE attrelid = 'dist_lock'::regclass AND attnum > 0 ORDER BY attnum;

SELECT relkind, relpersistence, (SELECT amname FROM pg_am WHERE oid = relam) AS am, relrowsecurity, reloptions
  FROM pg_class WHERE oid = 'dist_lock'::regclass;
SELECT pg_get_indexdef(indexrelid) AS index, indisprimary, indimmediate FROM pg_index WHERE indrelid = 'dist_lock'::regclass ORDER BY 1;
SELECT contype, condeferrable, pg_get_constraintdef(oid) AS constraint FROM pg_constraint
 WHERE conrelid = 'dist_lock'::regclass AND contype <> 'n' ORDER BY 1, 3;
SELECT seqtypid::regtype, seqcache, seqincrement, seqcycle, seqmax FROM pg_sequence WHERE seqrelid = 'dist_lock_token'::regclass;

-- Only the table goes into a dump: a sequence that is restored is set back.
SELECT extconfig = ARRAY['dist_lock'::regclass::oid] AS config, extcondition, extrelocatable FROM pg_extension WHERE extname = 'lease';

SELECT proname, pg_get_function_arguments(oid) AS arguments, pg_get_function_result(oid) AS result, provolatile AS vol, proparallel AS par,
       proisstrict AS strict, prosecdef AS secdef, proleakproof AS leak, procost >= 10000 AS costly, proconfig AS config, prosrc = proname AS c_name
  FROM pg_proc WHERE pronamespace = 'public'::regnamespace
   AND EXISTS (SELECT FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid WHERE d.objid = pg_proc.oid AND d.deptype = 'e' AND extname = 'lease')
 ORDER BY proname;

-- PUBLIC has the views and most functions, and nothing else.
SELECT relname, relkind, privilege_type FROM pg_class, LATERAL aclexplode(relacl) WHERE grantee = 0 AND relnamespace = 'public'::regnamespace ORDER BY 1, 3;
SELECT proname FROM pg_proc WHERE proname LIKE 'lease\_%' AND NOT has_function_privilege('public', oid, 'EXECUTE') ORDER BY 1;

-- Everything that it makes has a comment, every column too.
SELECT pg_describe_object(classid, objid, 0) AS without_comment FROM pg_depend d
 WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'lease') AND deptype = 'e'
   AND obj_description(objid, classid::regclass::name) IS NULL AND classid <> 'pg_type'::regclass;
SELECT attrelid::regclass, attname AS without_comment FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
 WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') AND attnum > 0 AND col_description(attrelid, attnum) IS NULL;

DROP EXTENSION lease;
SELECT count(*) FROM pg_class WHERE relname LIKE 'dist_lock%';
SELECT count(*) FROM pg_proc WHERE proname LIKE 'lease\_%';
