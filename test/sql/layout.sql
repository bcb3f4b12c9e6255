-- How a storage is laid out: recorded with it when its key is built, whatever becomes of the options afterwards.
SET client_min_messages = warning;
CREATE SCHEMA layout;
SET search_path = layout, public;
CREATE FUNCTION layout(t regclass) RETURNS TABLE (buckets int, keys smallint[], bucket_keys smallint[]) LANGUAGE sql AS
$$ SELECT nbuckets, keys, bucket_keys FROM paimon.storage WHERE relid = t $$;
CREATE TABLE t (a int, b int, v text, PRIMARY KEY (a, b)) USING paimon WITH (bucket = 4, "bucket-key" = b);
INSERT INTO t SELECT i, i % 7, 'first' FROM generate_series(1, 200) i;
SELECT paimon.flush('t') > 0 AS flushed;
SELECT * FROM layout('t');

-- Options that changed behind our back.
SET allow_system_table_mods = on;
UPDATE pg_class SET reloptions = '{bucket=7}' WHERE oid = 't'::regclass;
RESET allow_system_table_mods;
INSERT INTO t SELECT i, i % 7, 'second' FROM generate_series(1, 100) i;
UPDATE t SET v = 'third' WHERE (a, b) = (50, 1);
DELETE FROM t WHERE a < 10;
SELECT v, count(*), sum(a) FROM t GROUP BY v ORDER BY v;
SELECT * FROM t WHERE (a, b) = (50, 1);
SELECT paimon.flush('t') > 1 AS flushed;
SELECT v, count(*), sum(a) FROM t GROUP BY v ORDER BY v;
SELECT count(DISTINCT bucket) FROM paimon.files('t');
VACUUM FULL t;
SELECT * FROM layout('t');
SELECT v, count(*), sum(a) FROM t GROUP BY v ORDER BY v;
SELECT * FROM t WHERE (a, b) = (50, 1);
REINDEX TABLE t;
SELECT * FROM layout('t');

-- New storage takes the options as they are: TRUNCATE, a rewrite that changes the key, options of an empty table.
BEGIN;
TRUNCATE t;
SELECT * FROM layout('t');
ROLLBACK;
SELECT * FROM layout('t');
ALTER TABLE t ALTER COLUMN v TYPE varchar(20);
SELECT * FROM layout('t');
ALTER TABLE t ALTER COLUMN b TYPE bigint;
SELECT * FROM layout('t');
SELECT v, count(*), sum(a) FROM t GROUP BY v ORDER BY v;
SELECT * FROM t WHERE (a, b) = (50, 1);
ALTER TABLE t SET (bucket = 3);
ALTER TABLE t SET ("bucket-key" = a);
TRUNCATE t;
ALTER TABLE t SET (bucket = 3, "bucket-key" = a);
SELECT * FROM layout('t');
INSERT INTO t VALUES (1, 1, 'row');
ALTER TABLE t SET UNLOGGED;
SELECT * FROM layout('t');
SELECT * FROM t WHERE (a, b) = (1, 1);
ALTER TABLE t SET LOGGED;
DELETE FROM t;
ALTER TABLE t DROP CONSTRAINT t_pkey, SET (bucket = 5);
SELECT * FROM layout('t');

-- Without a key nothing is laid out, so options change freely until there is one.
INSERT INTO t SELECT i, i % 7, 'row' FROM generate_series(1, 100) i;
ALTER TABLE t SET (bucket = 6), RESET ("bucket-key");
ALTER TABLE t ADD PRIMARY KEY (b, a);
SELECT * FROM layout('t');
SELECT count(*), count(DISTINCT (a, b)) FROM t;
SELECT * FROM t WHERE (a, b) = (50, 1);
ALTER TABLE t SET (bucket = 7);

-- In place: a table of this transaction, and ON COMMIT DELETE ROWS.
BEGIN;
CREATE TABLE own (k int PRIMARY KEY) USING paimon WITH (bucket = 3);
INSERT INTO own VALUES (1), (2);
TRUNCATE own;
INSERT INTO own VALUES (3), (4);
SELECT * FROM layout('own');
COMMIT;
SELECT * FROM own ORDER BY k;
CREATE TEMP TABLE kept (k int PRIMARY KEY) USING paimon WITH (bucket = 3) ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO kept VALUES (1), (2);
COMMIT;
BEGIN;
INSERT INTO kept VALUES (3);
SELECT * FROM kept;
COMMIT;
SELECT * FROM kept;
SELECT * FROM layout('kept');

-- To heap and back.
BEGIN;
ALTER TABLE t SET ACCESS METHOD heap;
SELECT * FROM layout('t');
ALTER TABLE t SET ACCESS METHOD paimon, SET (bucket = 9);
SELECT * FROM layout('t');
SELECT * FROM t WHERE (a, b) = (50, 1);
ROLLBACK;
ALTER TABLE t SET ACCESS METHOD heap, SET (bucket = 9);
ALTER TABLE t SET ACCESS METHOD heap, SET (fillfactor = 50);
SELECT reloptions FROM pg_class WHERE oid = 't'::regclass;

-- Columns that options name.
CREATE TABLE named (a int, b int, c int, PRIMARY KEY (a, b)) USING paimon WITH (bucket = 3, "bucket-key" = b);
ALTER TABLE named DROP COLUMN b;
ALTER TABLE named DROP COLUMN b CASCADE;
BEGIN;
ALTER TABLE named RESET ("bucket-key"), DROP COLUMN b;
SELECT * FROM layout('named');
ROLLBACK;
INSERT INTO named VALUES (1, 2, 3);
ALTER TABLE named DROP COLUMN b;
ALTER TABLE named DROP COLUMN c;
CREATE DOMAIN small AS int;
CREATE TABLE by_type (a int, b small, PRIMARY KEY (a, b)) USING paimon WITH ("bucket-key" = b);
INSERT INTO by_type VALUES (1, 2);
DROP DOMAIN small CASCADE;
CREATE TABLE plain (a int, b int) USING paimon WITH ("bucket-key" = b);
INSERT INTO plain VALUES (1, 2);
ALTER TABLE plain DROP COLUMN b;
ALTER TABLE plain RESET ("bucket-key"), DROP COLUMN b;
SELECT * FROM plain;
DROP SCHEMA layout CASCADE;
