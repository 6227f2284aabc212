-- All that the extension consists of, a line each, in words that do not depend on where and
-- when it was made. Two installations of one version have the same lines.
WITH member AS (
    SELECT classid, objid FROM pg_depend
     WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
       AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'lease')
), relation AS (
    SELECT c.*, c.oid::regclass AS called FROM pg_class c JOIN member ON classid = 'pg_class'::regclass AND objid = c.oid
)
SELECT concat_ws(' | ', 'member', pg_describe_object(classid, objid, 0), obj_description(objid, classid::regclass::name)) AS line
  FROM member
UNION ALL
SELECT concat_ws(' | ', 'extension', extversion, extrelocatable, extconfig::regclass[], extcondition, obj_description(oid, 'pg_extension'))
  FROM pg_extension WHERE extname = 'lease'
UNION ALL
SELECT concat_ws(' | ', 'function', p.oid::regprocedure, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), prokind, provolatile, proparallel,
       procost, prorows, proisstrict, prosecdef, proleakproof, proconfig, prosrc, probin, prosqlbody, proacl, proowner::regrole)
  FROM pg_proc p JOIN member ON classid = 'pg_proc'::regclass AND objid = p.oid
UNION ALL
SELECT concat_ws(' | ', 'relation', called, relkind, relpersistence, relam, reloptions, relrowsecurity, relacl, relowner::regrole, pg_get_viewdef(oid))
  FROM relation
UNION ALL
SELECT concat_ws(' | ', 'column', called, attnum, attname, format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation, attidentity, attgenerated,
       attacl, pg_get_expr(adbin, adrelid), col_description(attrelid, attnum))
  FROM relation JOIN pg_attribute ON attrelid = relation.oid AND attnum > 0 AND NOT attisdropped
       LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
UNION ALL
SELECT concat_ws(' | ', 'constraint', called, conname, pg_get_constraintdef(pg_constraint.oid))
  FROM relation JOIN pg_constraint ON conrelid = relation.oid
UNION ALL
SELECT concat_ws(' | ', 'index', indexrelid::regclass, pg_get_indexdef(indexrelid), indisprimary, indisvalid)
  FROM relation JOIN pg_index ON indrelid = relation.oid
UNION ALL
SELECT concat_ws(' | ', 'sequence', called, seqtypid::regtype, seqincrement, seqmin, seqmax, seqcache, seqcycle)
  FROM relation JOIN pg_sequence ON seqrelid = relation.oid
UNION ALL
SELECT concat_ws(' | ', 'trigger', called, pg_get_triggerdef(pg_trigger.oid)) FROM relation JOIN pg_trigger ON tgrelid = relation.oid
UNION ALL
SELECT concat_ws(' | ', 'rights at first', pg_describe_object(classoid, objoid, objsubid), privtype, initprivs)
  FROM pg_init_privs JOIN member ON classid = classoid AND objid = objoid
UNION ALL
SELECT concat_ws(' | ', 'label', objtype, objname, provider, label)
  FROM pg_seclabels JOIN member ON classid = classoid AND objid = objoid
ORDER BY line;
