-- The primary key as others see it: psql, the information schema, the planner's proofs, replication; other indexes are refused.
CREATE TABLE kcat (a int, b text COLLATE "C", v int, w text, PRIMARY KEY (a, b)) USING paimon;
CREATE TABLE kone (id int PRIMARY KEY, a int, v text) USING paimon;
INSERT INTO kcat SELECT g % 5, 'b' || g, g, 'w' || g % 3 FROM generate_series(1, 50) g;
INSERT INTO kone SELECT g, g % 5, 'v' || g FROM generate_series(1, 20) g;
\d kcat
SELECT constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_name = 'kcat' AND constraint_type = 'PRIMARY KEY';
SELECT column_name, ordinal_position FROM information_schema.key_column_usage WHERE table_name = 'kcat' ORDER BY 2;
SELECT pg_get_indexdef('kcat_pkey'::regclass), pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'kcat_pkey';
SELECT p, pg_index_column_has_property('kcat_pkey'::regclass, 1, p) FROM unnest(ARRAY['asc', 'desc', 'orderable', 'returnable', 'search_array', 'search_nulls']) p;
SELECT p, pg_index_has_property('kcat_pkey'::regclass, p) FROM unnest(ARRAY['index_scan', 'bitmap_scan', 'backward_scan', 'clusterable']) p;
-- functional dependency on the key
SELECT id, x.v, count(*) FROM kone x JOIN kcat y USING (a) GROUP BY id ORDER BY id LIMIT 2;
SELECT a, b, w FROM kcat GROUP BY a, b ORDER BY a, b LIMIT 2;
-- joins that cannot change the result go
EXPLAIN (COSTS OFF) SELECT x.v FROM kcat x LEFT JOIN kone y ON y.id = x.v;
EXPLAIN (COSTS OFF) SELECT x.v FROM kone x LEFT JOIN kcat y ON y.a = x.a AND y.b = x.v;
EXPLAIN (COSTS OFF, VERBOSE) SELECT x.v FROM kcat x JOIN kone y ON y.id = x.v WHERE x.a = 1 AND x.b = 'b1';
-- replica identity
ALTER TABLE kcat REPLICA IDENTITY USING INDEX kcat_pkey;
SELECT relreplident FROM pg_class WHERE relname = 'kcat';
SELECT indisreplident, indisprimary, indisunique, indisvalid FROM pg_index WHERE indexrelid = 'kcat_pkey'::regclass;
ALTER TABLE kcat REPLICA IDENTITY FULL;
ALTER TABLE kcat REPLICA IDENTITY DEFAULT;
UPDATE kcat SET v = 0 WHERE a = 1;
-- other indexes
CREATE INDEX ON kcat (v);
CREATE INDEX ON kcat USING hash (v);
CREATE INDEX ON kcat USING gin (to_tsvector('simple', w));
CREATE INDEX ON kcat USING brin (v);
CREATE INDEX ON kcat USING paimon_key (v);
CREATE UNIQUE INDEX ON kcat (v);
ALTER TABLE kcat ADD UNIQUE (v);
-- a filled table gets its key
CREATE TABLE kadd (a int, b text) USING paimon;
INSERT INTO kadd SELECT g, 'b' || g FROM generate_series(1000, 1, -1) g;
ALTER TABLE kadd ADD PRIMARY KEY (a);
SET enable_seqscan = off;
SELECT * FROM kadd WHERE a < 4 ORDER BY a DESC;
SELECT min(a), max(a), count(*) FROM kadd;
INSERT INTO kadd VALUES (1, 'again');
SELECT * FROM kadd ORDER BY a LIMIT 2;
CREATE TABLE kadd2 (a int, b text) USING paimon;
INSERT INTO kadd2 VALUES (1, 'x'), (2, 'y'), (1, 'z');
ALTER TABLE kadd2 ADD PRIMARY KEY (a);
DROP TABLE kcat, kone, kadd, kadd2;
