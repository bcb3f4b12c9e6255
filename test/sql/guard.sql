-- The extension as installed: where it lives, who may do what, what is described.
SELECT extname, extnamespace::regnamespace AS schema, extrelocatable
FROM pg_extension WHERE extname = 'paimon_am';
SELECT paimon.check_preload() IS NOT NULL AS preloaded;
SELECT current_setting('shared_preload_libraries') ~ 'paimon_am' AS listed;

-- The schema belongs to the extension; users may use it, not create in it.
SELECT has_schema_privilege('public', 'paimon', 'USAGE') AS usage,
       has_schema_privilege('public', 'paimon', 'CREATE') AS "create";
SELECT deptype FROM pg_depend
WHERE classid = 'pg_namespace'::regclass AND objid = 'paimon'::regnamespace
  AND refclassid = 'pg_extension'::regclass;

-- Every object a user can name has a comment.
SELECT pg_describe_object(d.classid, d.objid, 0) AS no_comment
FROM pg_depend d
WHERE d.refclassid = 'pg_extension'::regclass
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'paimon_am')
  AND d.deptype = 'e'
  AND d.classid IN ('pg_proc'::regclass, 'pg_class'::regclass, 'pg_am'::regclass, 'pg_namespace'::regclass,
                    'pg_opclass'::regclass)
  AND (d.classid <> 'pg_class'::regclass
       OR (SELECT relkind IN ('r', 'v', 'm', 'S') FROM pg_class c WHERE c.oid = d.objid))
  AND obj_description(d.objid, d.classid::regclass::name) IS NULL
ORDER BY 1;

-- Nothing of it lies outside its schema.
SELECT proname, pronamespace::regnamespace
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'paimon_am')
  AND p.pronamespace <> 'paimon'::regnamespace
ORDER BY 1;

-- An ordinary user may not call what only administrators need.
CREATE ROLE regress_paimon_guard;
SET ROLE regress_paimon_guard;
SELECT paimon.check_preload();
CREATE TABLE paimon.mine (id int);
RESET ROLE;
DROP ROLE regress_paimon_guard;

-- It cannot be moved, and can be dropped and made again.
ALTER EXTENSION paimon_am SET SCHEMA public;
DROP EXTENSION paimon_am;
SELECT to_regnamespace('paimon') AS gone;
CREATE SCHEMA paimon;
\set SHOW_CONTEXT never
CREATE EXTENSION paimon_am;
\set SHOW_CONTEXT errors
DROP SCHEMA paimon;
CREATE EXTENSION paimon_am;
