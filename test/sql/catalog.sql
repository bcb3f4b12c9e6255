-- Manifest tables: read with the transaction's own snapshot, written by anybody at any moment of a transaction.
SET client_min_messages = warning;
SELECT relname, relkind, relam = (SELECT oid FROM pg_am WHERE amname = 'heap') AS heap,
       has_table_privilege('public', oid, 'SELECT') AS public_may_read, obj_description(oid) IS NOT NULL AS described
FROM pg_class WHERE relnamespace = 'paimon'::regnamespace AND relname IN ('storage', 'log', 'file', 'snapshot') ORDER BY relname;
SELECT count(*) AS undescribed FROM pg_attribute a, pg_class c
WHERE c.oid = a.attrelid AND c.relnamespace = 'paimon'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
  AND col_description(c.oid, a.attnum) IS NULL;
-- Rows can be written while a transaction commits: no triggers, no partial indexes, none on expressions.
SELECT count(*) AS triggers FROM pg_trigger t, pg_class c WHERE c.oid = t.tgrelid AND c.relnamespace = 'paimon'::regnamespace AND t.tgenabled <> 'R';
SELECT count(*) AS unfit_indexes FROM pg_index i, pg_class c
WHERE c.oid = i.indrelid AND c.relnamespace = 'paimon'::regnamespace AND (i.indpred IS NOT NULL OR i.indexprs IS NOT NULL);

SELECT paimon.test_catalog_show(1);
SELECT paimon.test_catalog_fill(1, 0, 5, 2);
SELECT paimon.test_catalog_show(1);
SELECT paimon.test_catalog_fill(-1, 4711, 0, 0);
SELECT paimon.test_catalog_show(-1);
-- A storage that has none yet is found by its table.
SELECT paimon.test_catalog_show(2, 4711);
SELECT paimon.test_catalog_show(2, 4712);
-- Written twice: one row.
SELECT paimon.test_catalog_fill(-1, 4711, 0, 0);
SELECT storage_id, relid, keys, bucket_keys FROM paimon.storage WHERE storage_id IN (1, -1) ORDER BY 1;

SELECT paimon.test_catalog_publish(1);
SELECT paimon.test_catalog_show(1);
SELECT paimon.test_catalog_any(1, 16), paimon.test_catalog_any(1, 17), paimon.test_catalog_any(1, 99);

-- Rollback, savepoints; files of aborted transactions are found by number and do not hide better versions.
BEGIN;
SELECT paimon.test_catalog_publish(1);
SELECT paimon.test_catalog_show(1);
SAVEPOINT s;
SELECT paimon.test_catalog_publish(1);
SELECT paimon.test_catalog_publish(1);
SELECT paimon.test_catalog_show(1);
ROLLBACK TO s;
SELECT paimon.test_catalog_show(1);
ROLLBACK;
SELECT paimon.test_catalog_show(1);
SELECT paimon.test_catalog_any(1, 17);
-- Two publishes within one command.
SELECT count(*) FROM (SELECT paimon.test_catalog_publish(1) FROM generate_series(1, 20)) x;
SELECT paimon.test_catalog_show(1);
SELECT paimon.test_catalog_any(1, 17);

-- While committing, as a user without any privilege on them, in a READ ONLY transaction.
CREATE ROLE regress_catalog_nobody;
GRANT EXECUTE ON FUNCTION paimon.test_catalog_at_commit(bigint), paimon.test_catalog_show(bigint, oid) TO regress_catalog_nobody;
SET ROLE regress_catalog_nobody;
SELECT count(*) FROM paimon.file;
BEGIN READ ONLY;
SELECT paimon.test_catalog_at_commit(1);
COMMIT;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT paimon.test_catalog_show(1) AS seen;
SELECT paimon.test_catalog_at_commit(1);
COMMIT;
RESET ROLE;
SELECT paimon.test_catalog_show(1);

-- A file in very many pieces: its list is stored outside the row.
SELECT paimon.test_catalog_fill(3, 0, 2, 4000);
SELECT paimon.test_catalog_show(3);
SELECT paimon.test_catalog_any(3, 17);
BEGIN READ ONLY;
SELECT paimon.test_catalog_at_commit(3);
COMMIT;
SELECT paimon.test_catalog_show(3);
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT paimon.test_catalog_publish(3);
SELECT paimon.test_catalog_show(3);
COMMIT;

-- The end of storages.
BEGIN;
SELECT paimon.test_catalog_drop(3);
SELECT paimon.test_catalog_show(3);
ROLLBACK;
SELECT paimon.test_catalog_show(3);
SELECT paimon.test_catalog_drop(3), paimon.test_catalog_drop(1), paimon.test_catalog_drop(0, 4711);
SELECT paimon.test_catalog_show(1), paimon.test_catalog_show(3), paimon.test_catalog_show(-1);
SELECT count(*) FROM paimon.storage WHERE storage_id IN (1, 3, -1);

-- Damaged rows are reported.
SELECT paimon.test_catalog_fill(4, 0, 1, 1);
UPDATE paimon.file SET extents = '\x00' WHERE storage_id = 4;
SELECT paimon.test_catalog_show(4);
UPDATE paimon.file SET extents = '' WHERE storage_id = 4;
SELECT paimon.test_catalog_publish(4);
UPDATE paimon.log SET closed_xid = '{}' WHERE storage_id = 4;
SELECT paimon.test_catalog_show(4);
UPDATE paimon.storage SET keys = '{{1}}' WHERE storage_id = 4;
SELECT paimon.test_catalog_show(4);
SELECT paimon.test_catalog_drop(4);

-- The extension goes and comes back under a session that knows it.
DROP OWNED BY regress_catalog_nobody;
DROP ROLE regress_catalog_nobody;
CREATE DATABASE regress_paimon_catalog;
\c regress_paimon_catalog
SET client_min_messages = warning;
CREATE EXTENSION paimon_am;
SELECT paimon.test_catalog_fill(1, 0, 1, 1);
SELECT paimon.test_catalog_show(1);
DROP EXTENSION paimon_am;
CREATE EXTENSION paimon_am;
SELECT paimon.test_catalog_show(1);
BEGIN;
DROP EXTENSION paimon_am;
CREATE EXTENSION paimon_am;
SELECT paimon.test_catalog_fill(1, 0, 1, 1);
SELECT paimon.test_catalog_show(1);
ROLLBACK;
SELECT paimon.test_catalog_show(1);
-- While the extension is dropped its tables may go before users' ones do.
BEGIN;
SELECT paimon.test_catalog_fill(1, 0, 1, 1);
ALTER EXTENSION paimon_am DROP TABLE paimon.log;
DROP TABLE paimon.log;
SELECT paimon.test_catalog_drop(1), paimon.test_catalog_drop(0, 4711);
SELECT paimon.test_catalog_show(1);
ROLLBACK;
-- A schema of the same name does not pass for the extension's.
SELECT pg_get_functiondef('paimon.test_catalog_show(bigint, oid)'::regprocedure) AS def \gset
DROP EXTENSION paimon_am;
CREATE SCHEMA paimon;
:def;
SELECT paimon.test_catalog_show(1);
\c regression
DROP DATABASE regress_paimon_catalog;
