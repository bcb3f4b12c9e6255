-- ALTER TABLE … SET ACCESS METHOD, to paimon and back: rows, key and foreign keys stay.
CREATE SCHEMA ddl_access_method;
SET search_path = ddl_access_method;
CREATE VIEW tables AS
    SELECT c.relname, t.amname AS am, c.reloptions, k.relname AS key, m.amname AS key_am
    FROM pg_class c JOIN pg_am t ON t.oid = c.relam LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
         LEFT JOIN pg_class k ON k.oid = i.indexrelid LEFT JOIN pg_am m ON m.oid = k.relam
    WHERE c.relnamespace = 'ddl_access_method'::regnamespace AND c.relkind IN ('r', 'm') ORDER BY c.relname;

CREATE TABLE t (a int PRIMARY KEY, b text) USING heap WITH (fillfactor = 80);
INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 100) g;
CREATE TABLE refers (a int REFERENCES t) USING heap;
INSERT INTO refers VALUES (7);

ALTER TABLE t SET ACCESS METHOD paimon, SET (bucket = 4, "bucket-key" = 'a');
TABLE tables;
SELECT count(*), sum(a), min(b), max(b) FROM t;
INSERT INTO t VALUES (101, 'v101');
ALTER TABLE t SET ACCESS METHOD paimon;
BEGIN;
ALTER TABLE t SET ACCESS METHOD heap;
TABLE tables;
SELECT count(*) FROM t;
INSERT INTO t VALUES (7, 'twice');
ROLLBACK;
TABLE tables;
ALTER TABLE t SET ACCESS METHOD heap, SET (fillfactor = 90);
TABLE tables;
SELECT count(*), sum(a) FROM t;
INSERT INTO t VALUES (7, 'twice');
SET enable_seqscan = off;
SELECT * FROM t WHERE a = 7;
RESET enable_seqscan;
SELECT count(*) FROM pg_depend d JOIN pg_am m ON m.oid = d.refobjid
WHERE d.refclassid = 'pg_am'::regclass AND m.amname LIKE 'paimon%' AND d.objid IN ('t'::regclass, 't_pkey'::regclass);

-- The key changes in the same command.
DROP TABLE refers;
ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (b), SET ACCESS METHOD paimon;
TABLE tables;
SELECT count(*) FROM t;
ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a), SET ACCESS METHOD heap;
TABLE tables;
ALTER TABLE t DROP CONSTRAINT t_pkey, SET ACCESS METHOD paimon;
TABLE tables;
SELECT count(*), sum(a) FROM t;
ALTER TABLE t SET ACCESS METHOD heap, ADD PRIMARY KEY (a);
TABLE tables;

-- What does not fit.
CREATE INDEX t_b ON t (b);
ALTER TABLE t SET ACCESS METHOD paimon;
DROP INDEX t_b;
ALTER TABLE t RENAME b TO "_LEVEL";
ALTER TABLE t SET ACCESS METHOD paimon;
ALTER TABLE t RENAME "_LEVEL" TO b;
CREATE TABLE j (a jsonb PRIMARY KEY) USING heap;
ALTER TABLE j SET ACCESS METHOD paimon;
CREATE TABLE p (a int PRIMARY KEY) PARTITION BY HASH (a) USING paimon;
CREATE TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 1, REMAINDER 0);
ALTER TABLE p0 SET ACCESS METHOD heap;
ALTER TABLE t SET (bucket = 4), SET ACCESS METHOD heap;
CREATE MATERIALIZED VIEW mat USING heap AS SELECT 1 AS a;
ALTER MATERIALIZED VIEW mat SET ACCESS METHOD paimon, SET (bucket = 2);
REFRESH MATERIALIZED VIEW mat;
SELECT * FROM mat;
TABLE tables;

SET client_min_messages = warning;
DROP SCHEMA ddl_access_method CASCADE;
