-- Partitioned tables: ours by USING, by an option, or by their first partition; options and keys reach the partitions.
CREATE SCHEMA ddl_partition;
SET search_path = ddl_partition;
CREATE VIEW tables AS
    SELECT c.relname, c.relkind, c.reloptions, m.amname AS key_am
    FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
         LEFT JOIN pg_class k ON k.oid = i.indexrelid LEFT JOIN pg_am m ON m.oid = k.relam
    WHERE c.relnamespace = 'ddl_partition'::regnamespace AND c.relkind IN ('r', 'p') ORDER BY c.relname;

CREATE TABLE p (a int, b int, v text, PRIMARY KEY (a)) PARTITION BY RANGE (a) USING paimon WITH (bucket = 2);
CREATE TABLE p0 PARTITION OF p FOR VALUES FROM (0) TO (10);
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (10) TO (20) WITH (bucket = 8);
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (20) TO (30) USING heap;
CREATE TABLE p3 PARTITION OF p FOR VALUES FROM (30) TO (40) PARTITION BY HASH (a);
CREATE TABLE p30 PARTITION OF p3 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE p31 PARTITION OF p3 FOR VALUES WITH (MODULUS 2, REMAINDER 1);
-- attached: with a key of its own, without one, of another kind
CREATE TABLE p4 (a int PRIMARY KEY, b int, v text) USING paimon;
ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (40) TO (50);
CREATE TABLE p5 (a int NOT NULL, b int, v text) USING paimon;
ALTER TABLE p ATTACH PARTITION p5 FOR VALUES FROM (50) TO (60);
CREATE TABLE p6 (a int NOT NULL, b int, v text) USING heap;
ALTER TABLE p ATTACH PARTITION p6 FOR VALUES FROM (60) TO (70);
DROP TABLE p6;
-- a tree attached: with and without a key
CREATE TABLE p7 (a int PRIMARY KEY, b int, v text) PARTITION BY RANGE (a) USING paimon;
CREATE TABLE p70 PARTITION OF p7 FOR VALUES FROM (70) TO (75);
ALTER TABLE p ATTACH PARTITION p7 FOR VALUES FROM (70) TO (80);
CREATE TABLE p8 (a int NOT NULL, b int, v text) PARTITION BY RANGE (a) USING paimon;
CREATE TABLE p80 PARTITION OF p8 FOR VALUES FROM (80) TO (85);
ALTER TABLE p ATTACH PARTITION p8 FOR VALUES FROM (80) TO (90);
TABLE tables;
INSERT INTO p SELECT g, g, 'v' || g FROM generate_series(0, 19) g;
INSERT INTO p VALUES (30, 30, 'v30'), (31, 31, 'v31');
SELECT tableoid::regclass, count(*), sum(b) FROM p GROUP BY 1 ORDER BY 1;

-- The parent's key comes and goes with all of them.
ALTER TABLE p DROP CONSTRAINT p_pkey;
TRUNCATE p;
ALTER TABLE p DROP CONSTRAINT p_pkey;
SELECT count(*) FROM tables WHERE key_am IS NOT NULL;
ALTER TABLE p ADD PRIMARY KEY (a);
SELECT relname, key_am FROM tables;
ALTER TABLE p DETACH PARTITION p4;
ALTER TABLE p ATTACH PARTITION p4 FOR VALUES FROM (40) TO (50);
ALTER TABLE p RENAME b TO bb;
CREATE INDEX ON p (bb);
ALTER TABLE p SET (bucket = 4);
ALTER TABLE p SET (nonsense = 50);
ALTER TABLE p RESET ("table-am");
CREATE TABLE p9 PARTITION OF p FOR VALUES FROM (90) TO (100);
SELECT * FROM tables WHERE relname IN ('p', 'p0', 'p9');
SELECT * FROM paimon.options('p');
DROP TABLE p;

-- Keys of several columns; a change of type and a new name reach the whole tree; options hold a column everywhere.
CREATE TABLE w (a int, b int, c text, PRIMARY KEY (a, b)) PARTITION BY RANGE (a) USING paimon WITH ("bucket-key" = 'b', bucket = 2);
CREATE TABLE w0 PARTITION OF w FOR VALUES FROM (0) TO (10);
CREATE TABLE w1 PARTITION OF w FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (a);
CREATE TABLE w10 PARTITION OF w1 FOR VALUES FROM (10) TO (15);
ALTER TABLE w ALTER COLUMN b TYPE bigint, ALTER COLUMN c TYPE varchar(10);
ALTER TABLE w RENAME b TO bb;
INSERT INTO w VALUES (1, 1, 'one'), (11, 11, 'eleven');
SELECT * FROM w ORDER BY a;
TABLE tables;
TRUNCATE w;
ALTER TABLE w DROP COLUMN bb;
ALTER TABLE w DETACH PARTITION w0 CONCURRENTLY;
ALTER TABLE w0 SET (bucket = 3);
DROP TABLE w, w0;
-- A partition that is attached decides too.
CREATE TABLE x (a int PRIMARY KEY) PARTITION BY RANGE (a);
CREATE TABLE x0 (a int PRIMARY KEY) USING paimon;
ALTER TABLE x ATTACH PARTITION x0 FOR VALUES FROM (0) TO (10);
CREATE TABLE x1 PARTITION OF x FOR VALUES FROM (10) TO (20);
TABLE tables;
DROP TABLE x;

-- The default access method works by way of the first partition, and leaves other partitioned tables alone.
SET default_table_access_method = paimon;
CREATE TABLE d (a int PRIMARY KEY, v text) PARTITION BY HASH (a);
CREATE TABLE e (a int PRIMARY KEY, v text) PARTITION BY HASH (a);
SELECT * FROM tables;
CREATE TABLE d0 PARTITION OF d FOR VALUES WITH (MODULUS 2, REMAINDER 0);
RESET default_table_access_method;
CREATE TABLE d1 PARTITION OF d FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE e0 PARTITION OF e FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE e1 PARTITION OF e FOR VALUES WITH (MODULUS 2, REMAINDER 1) USING paimon;
-- so do options
CREATE TABLE f (a int PRIMARY KEY) PARTITION BY HASH (a) WITH (bucket = 2);
CREATE TABLE g (a int PRIMARY KEY) PARTITION BY HASH (a);
ALTER TABLE g SET (bucket = 2);
CREATE TABLE bad (a int PRIMARY KEY) PARTITION BY HASH (a) WITH (bucket = 0);
CREATE TABLE bad (a int PRIMARY KEY) PARTITION BY HASH (a) USING paimon WITH ("table-am" = 'heap');
CREATE TABLE bad (a jsonb PRIMARY KEY) PARTITION BY HASH (a) USING paimon;
TABLE tables;

-- Without keys partitions may be of both kinds, but then there can be no key.
CREATE TABLE m (a int NOT NULL, v text) PARTITION BY RANGE (a);
CREATE TABLE m0 PARTITION OF m FOR VALUES FROM (0) TO (10) USING paimon;
CREATE TABLE m1 PARTITION OF m FOR VALUES FROM (10) TO (20) USING heap;
INSERT INTO m VALUES (1, 'paimon'), (11, 'heap');
UPDATE m SET a = a + 10 WHERE a = 1;
SELECT tableoid::regclass, * FROM m ORDER BY v;
ALTER TABLE m ADD PRIMARY KEY (a);
CREATE INDEX ON m (v);

-- A key that comes after the partitions, as in a restore: the partitioned table becomes ours then.
CREATE TABLE late (a int, b int) PARTITION BY LIST (a);
CREATE TABLE late_1 PARTITION OF late FOR VALUES IN (1) PARTITION BY LIST (b);
CREATE TABLE late_1_1 PARTITION OF late_1 FOR VALUES IN (1) USING paimon;
INSERT INTO late VALUES (1, 1);
ALTER TABLE late ADD PRIMARY KEY (a, b);
INSERT INTO late VALUES (1, 1);
SELECT tableoid::regclass, * FROM late;
SELECT indexrelid::regclass, amname FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
WHERE indrelid::regclass::text LIKE 'late%' ORDER BY 1;
CREATE TABLE late_2 PARTITION OF late FOR VALUES IN (2) USING paimon;
CREATE TABLE late_3 PARTITION OF late FOR VALUES IN (3) USING heap;
DROP TABLE late;
CREATE TABLE late (a int NOT NULL) PARTITION BY LIST (a);
CREATE TABLE late_1 (a int NOT NULL) USING paimon;
ALTER TABLE ONLY late ATTACH PARTITION late_1 FOR VALUES IN (1);
ALTER TABLE ONLY late ADD CONSTRAINT late_pkey PRIMARY KEY (a);
ALTER TABLE ONLY late_1 ADD CONSTRAINT late_1_pkey PRIMARY KEY (a);
ALTER INDEX late_pkey ATTACH PARTITION late_1_pkey;
SELECT indexrelid::regclass, indisvalid, amname FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
WHERE indrelid::regclass::text LIKE 'late%' ORDER BY 1;
DROP TABLE late;

SET client_min_messages = warning;
DROP SCHEMA ddl_partition CASCADE;
