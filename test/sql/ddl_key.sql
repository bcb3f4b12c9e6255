SET datestyle = ISO;
-- The primary key: always a paimon_key index with btree's operator classes, and the only index there can be.
CREATE SCHEMA ddl_key;
SET search_path = ddl_key;
CREATE VIEW keys AS
    SELECT t.relname AS "table", c.relname AS index, m.amname AS am, i.indisprimary AS prim, i.indisvalid AS valid,
           ARRAY(SELECT opcname || ' of ' || m2.amname FROM unnest(i.indclass::oid[]) WITH ORDINALITY u (opc, n)
                 JOIN pg_opclass o ON o.oid = u.opc JOIN pg_am m2 ON m2.oid = o.opcmethod ORDER BY n) AS classes,
           (SELECT count(*) FROM pg_depend d JOIN pg_am m3 ON d.refobjid = m3.oid
            WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_am'::regclass
              AND m3.amname = 'paimon_key') AS tied
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_class t ON t.oid = i.indrelid
         JOIN pg_am m ON m.oid = c.relam
    WHERE t.relnamespace = 'ddl_key'::regnamespace ORDER BY 1, 2;

CREATE TYPE color AS ENUM ('red', 'green');
CREATE DOMAIN positive AS int CHECK (value > 0);
CREATE TABLE k_column (a int PRIMARY KEY, b text) USING paimon;
CREATE TABLE k_table (a int, b text, c uuid, PRIMARY KEY (b, c)) USING paimon;
CREATE TABLE k_many (a numeric, b varchar(10), c date, d char(3), e bytea, f float8, g color, h positive,
                     PRIMARY KEY (a, b, c, d, e, f, g, h)) USING paimon;
CREATE TABLE k_later (a int, b int) USING paimon;
ALTER TABLE k_later ADD CONSTRAINT k_named PRIMARY KEY (b, a);
CREATE TABLE k_new_column (b int) USING paimon;
ALTER TABLE k_new_column ADD COLUMN a serial PRIMARY KEY;
CREATE TABLE k_include (a int, b int, PRIMARY KEY (a) INCLUDE (b) DEFERRABLE INITIALLY DEFERRED) USING paimon;
CREATE TABLE k_identity (a bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY) USING paimon;
CREATE TABLE h_source (a int PRIMARY KEY, b text) USING heap;
CREATE TABLE k_like (LIKE h_source INCLUDING ALL) USING paimon;
CREATE TABLE h_like (LIKE k_many INCLUDING ALL) USING heap;
CREATE TABLE k_as USING paimon AS SELECT 1 AS a;
ALTER TABLE k_as ADD PRIMARY KEY (a);
CREATE TABLE k_child (PRIMARY KEY (a)) INHERITS (k_column) USING paimon;
TABLE keys;

-- It is a key to everybody.
CREATE TABLE refers (a int REFERENCES k_column, b int, c int, FOREIGN KEY (b, c) REFERENCES k_later) USING paimon;
ALTER TABLE k_column REPLICA IDENTITY USING INDEX k_column_pkey;
SELECT a, b FROM k_column GROUP BY a;
SELECT count(*) FROM pg_constraint WHERE conrelid = 'refers'::regclass AND contype = 'f';
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'k_later'::regclass AND contype = 'p';
SELECT pg_get_indexdef('k_named'::regclass);
DROP TABLE refers;

-- What rebuilds an index keeps it what it is.
ALTER TABLE k_later ALTER COLUMN a TYPE bigint;
ALTER TABLE k_table ALTER COLUMN b TYPE varchar(20), ALTER COLUMN a TYPE text;
REINDEX TABLE k_later;
REINDEX INDEX CONCURRENTLY k_named;
VACUUM FULL k_later;
TRUNCATE k_later;
ALTER TABLE k_later SET UNLOGGED;
ALTER TABLE k_column RENAME TO k_renamed;
ALTER INDEX k_column_pkey RENAME TO k_renamed_pkey;
SELECT * FROM keys WHERE "table" IN ('k_later', 'k_table', 'k_renamed');
INSERT INTO k_later VALUES (1, 2), (1, 3);
SELECT * FROM k_later ORDER BY b;

-- No other indexes.
CREATE INDEX ON k_later (a);
CREATE UNIQUE INDEX ON k_later (a);
CREATE INDEX CONCURRENTLY ON k_later (a);
CREATE INDEX ON k_later USING hash (a);
CREATE INDEX ON k_later USING paimon_key (a);
CREATE INDEX ON h_source USING paimon_key (a);
ALTER TABLE k_later ADD UNIQUE (a);
ALTER TABLE k_later ADD EXCLUDE USING btree (a WITH =);
CREATE TABLE bad (a int PRIMARY KEY, b int UNIQUE) USING paimon;
CREATE TABLE bad (a int, EXCLUDE USING btree (a WITH =)) USING paimon;
CLUSTER k_later USING k_named;
ALTER TABLE k_later CLUSTER ON k_named;

-- Types and names.
CREATE TABLE bad (a json PRIMARY KEY) USING paimon;
CREATE TABLE bad (a jsonb PRIMARY KEY) USING paimon;
CREATE TABLE bad (a int PRIMARY KEY, "_KEY_a" int) USING paimon;
CREATE TABLE bad (a int PRIMARY KEY, "_ROW_ID" int) USING paimon;
ALTER TABLE k_later ADD COLUMN "_LEVEL" int;
ALTER TABLE k_later RENAME a TO "_VALUE_KIND";
CREATE TABLE good (a int PRIMARY KEY, rowkind text, _key_a int, _level int) USING paimon;

-- The key goes only while there are no rows.
ALTER TABLE k_later DROP CONSTRAINT k_named;
ALTER TABLE k_later DROP COLUMN b;
BEGIN;
TRUNCATE k_later;
ALTER TABLE k_later DROP CONSTRAINT k_named CASCADE;
INSERT INTO k_later VALUES (1, 2), (1, 2);
SELECT * FROM k_later;
ROLLBACK;
SELECT * FROM k_later ORDER BY b;
INSERT INTO k_many VALUES (1, 'x', '2000-01-01', 'abc', '\x00', 1.5, 'red', 1);
DROP DOMAIN positive CASCADE;
DROP TYPE color CASCADE;
SELECT * FROM k_many;
BEGIN;
DROP TABLE k_many, h_like;
DROP DOMAIN positive;
ROLLBACK;
TRUNCATE k_table;
ALTER TABLE k_table DROP COLUMN b, ADD COLUMN d int PRIMARY KEY;
SELECT * FROM keys WHERE "table" = 'k_table';

-- The extension is held by what depends on it.
SELECT count(*) > 10 AS held FROM pg_depend
WHERE refclassid = 'pg_am'::regclass AND refobjid = (SELECT oid FROM pg_am WHERE amname = 'paimon_key');

SET client_min_messages = warning;
DROP SCHEMA ddl_key CASCADE;
