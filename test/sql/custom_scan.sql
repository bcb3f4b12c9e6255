-- PaimonScan reads the columns that the plan looks at; every way to look at one, against heap.
CREATE TABLE cs_h (k int PRIMARY KEY, a int, b text, c numeric(10,2), d timestamptz DEFAULT '2026-01-01', e text);
CREATE TABLE cs (LIKE cs_h INCLUDING DEFAULTS, PRIMARY KEY (k)) USING paimon;
INSERT INTO cs_h SELECT g, nullif(g % 7, 3), 'b' || g % 50, g / 4.0, timestamptz '2026-01-01' + g * interval '1 h', repeat(md5(g::text), 3) FROM generate_series(1, 3000) g;
INSERT INTO cs SELECT * FROM cs_h;
SELECT paimon.flush('cs');
ALTER TABLE cs DROP COLUMN a; ALTER TABLE cs_h DROP COLUMN a;
ALTER TABLE cs ADD COLUMN f int DEFAULT 5; ALTER TABLE cs_h ADD COLUMN f int DEFAULT 5;
INSERT INTO cs SELECT g, 'n' || g, g, timestamptz '2026-05-05', NULL, g FROM generate_series(2900, 3100) g;
INSERT INTO cs_h SELECT g, 'n' || g, g, timestamptz '2026-05-05', NULL, g FROM generate_series(2900, 3100) g ON CONFLICT (k) DO UPDATE SET b = excluded.b, c = excluded.c, d = excluded.d, e = excluded.e, f = excluded.f;
-- rows in files, in the log and in the buffer
BEGIN;
DELETE FROM cs WHERE k % 100 = 1; DELETE FROM cs_h WHERE k % 100 = 1;
EXPLAIN (COSTS OFF) SELECT count(*) FROM cs;
EXPLAIN (COSTS OFF) SELECT sum(c) FROM cs WHERE f = 5;
CREATE FUNCTION cs_same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	paimon_rows text[];
	heap_rows text[];
BEGIN
	EXECUTE format('SELECT array_agg(q::text ORDER BY q::text) FROM (%s) q', replace(query, '@', 'cs')) INTO paimon_rows;
	EXECUTE format('SELECT array_agg(q::text ORDER BY q::text) FROM (%s) q', replace(query, '@', 'cs_h')) INTO heap_rows;
	RETURN CASE WHEN paimon_rows IS NOT DISTINCT FROM heap_rows THEN 'same' ELSE 'different' END || ': ' || cardinality(heap_rows);
END $$;
SELECT cs_same(q) FROM unnest(ARRAY[
	'SELECT count(*) FROM @',
	'SELECT * FROM @',
	'SELECT t FROM @ t',
	'SELECT f FROM @',
	'SELECT e, k FROM @ WHERE c < 100',
	'SELECT 1 FROM @ WHERE b LIKE ''%7''',
	'SELECT sum(c), max(d), min(e), count(e), count(f) FROM @',
	'SELECT b, count(*), sum(f) FROM @ GROUP BY b',
	'SELECT DISTINCT f FROM @',
	'SELECT k, e FROM @ ORDER BY e, k LIMIT 20',
	'SELECT x.k, y.e FROM @ x JOIN @ y ON x.f = y.k',
	'SELECT x.k, (SELECT max(y.c) FROM @ y WHERE y.f = x.k) FROM @ x',
	'SELECT k FROM @ x WHERE EXISTS (SELECT 1 FROM @ y WHERE y.f = x.k AND y.e IS NULL)',
	'SELECT k FROM @ x WHERE k NOT IN (SELECT f FROM @)',
	'SELECT x.k, l.s FROM @ x, LATERAL (SELECT sum(c) AS s FROM @ y WHERE y.f = x.k) l WHERE x.k > 3050',
	'SELECT x.*, row_to_json(y) FROM @ x FULL JOIN @ y ON x.k = y.f AND y.e IS NULL',
	'SELECT k, sum(c) OVER (PARTITION BY b ORDER BY k) FROM @',
	'SELECT b FROM @ UNION ALL SELECT e FROM @',
	'WITH w AS MATERIALIZED (SELECT k, e FROM @) SELECT w.e FROM w WHERE k % 3 = 0',
	'SELECT k + 0 AS k0, upper(e) FROM @ TABLE_ALIAS WHERE coalesce(e, '''') = ''''',
	'SELECT count(*) FILTER (WHERE f IS NULL), array_agg(f ORDER BY k) FROM @']) q;
SELECT cs_same('SELECT k FROM @ t WHERE t IS NOT NULL');
SELECT tableoid::regclass, ctid IS NOT NULL FROM cs WHERE c = 3000;
COMMIT;
-- joins without hash: rescans
SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_material = off; SET enable_indexscan = off; SET enable_memoize = off;
SELECT cs_same('SELECT x.k, y.e FROM @ x JOIN @ y ON x.c > y.c AND x.k = y.k + 1 WHERE x.k > 3060 AND y.k > 3060');
RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material; RESET enable_indexscan; RESET enable_memoize;
-- changes: the plan wants some columns, the new row all
UPDATE cs SET f = f + 1 WHERE b = 'b3'; UPDATE cs_h SET f = f + 1 WHERE b = 'b3';
UPDATE cs t SET e = 'from ' || s.b FROM cs s WHERE s.f = t.k AND s.k > 3000; UPDATE cs_h t SET e = 'from ' || s.b FROM cs_h s WHERE s.f = t.k AND s.k > 3000;
DELETE FROM cs WHERE f = 3050 RETURNING k, b, c, e, f;
DELETE FROM cs_h WHERE f = 3050;
MERGE INTO cs USING (VALUES (10), (20), (9999)) v (k) ON cs.f = v.k OR cs.k = v.k WHEN MATCHED THEN UPDATE SET c = c * 2 WHEN NOT MATCHED THEN INSERT (k, b) VALUES (v.k, 'merged');
MERGE INTO cs_h USING (VALUES (10), (20), (9999)) v (k) ON cs_h.f = v.k OR cs_h.k = v.k WHEN MATCHED THEN UPDATE SET c = c * 2 WHEN NOT MATCHED THEN INSERT (k, b) VALUES (v.k, 'merged');
SELECT cs_same('SELECT * FROM @');
-- row locks keep the columns that are wanted
BEGIN;
SELECT k, e FROM cs WHERE f = 3060 FOR UPDATE;
SELECT x.k, x.e, y.b FROM cs x, cs_h y WHERE x.f = 3070 AND y.k = x.k FOR UPDATE OF x;
ROLLBACK;
-- cursors in both directions, and WHERE CURRENT OF
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT b, c FROM cs WHERE k > 3095;
FETCH 3 FROM c;
FETCH BACKWARD 2 FROM c;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
CLOSE c;
DECLARE u CURSOR FOR SELECT b FROM cs WHERE c = 3100 FOR UPDATE;
FETCH u;
UPDATE cs SET c = -1 WHERE CURRENT OF u;
SELECT k, b, c FROM cs WHERE c = -1;
ROLLBACK;
-- a table so small that any other scan would cost less
CREATE TABLE cs_1 (k int PRIMARY KEY, v int) USING paimon;
INSERT INTO cs_1 VALUES (1, 1), (2, 2);
BEGIN;
DECLARE u CURSOR FOR SELECT v FROM cs_1;
FETCH 2 FROM u;
EXPLAIN (COSTS OFF) UPDATE cs_1 SET v = -1 WHERE CURRENT OF u;
UPDATE cs_1 SET v = -1 WHERE CURRENT OF u RETURNING k;
MOVE BACKWARD 1 IN u;
DELETE FROM cs_1 WHERE CURRENT OF u RETURNING k;
COMMIT;
TABLE cs_1;
DROP TABLE cs_1;
-- prepared: one plan, many runs
PREPARE p (int) AS SELECT count(e), sum(c) FROM cs WHERE f < $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE p (6);
EXECUTE p (3000);
RESET plan_cache_mode;
-- parallel
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SELECT paimon.flush('cs') > 0;
EXPLAIN (COSTS OFF) SELECT sum(c), count(e) FROM cs WHERE f < 1000;
SELECT cs_same('SELECT sum(c), count(e) FROM @ WHERE f < 1000');
BEGIN;
INSERT INTO cs VALUES (5000, 'own', 1, timestamptz '2026-05-06', 'own', 1); INSERT INTO cs_h VALUES (5000, 'own', 1, timestamptz '2026-05-06', 'own', 1);
SELECT cs_same('SELECT sum(c), count(e) FROM @ WHERE f < 1000');
ROLLBACK;
RESET parallel_setup_cost; RESET parallel_tuple_cost; RESET min_parallel_table_scan_size;
-- inheritance: children in one plan
CREATE TABLE cs_child (g text) INHERITS (cs) USING paimon;
INSERT INTO cs_child SELECT 7000, 'child', 1, NULL, 'e', 6, 'g';
SELECT tableoid::regclass, k, e FROM cs WHERE f = 6 AND e = 'e';
UPDATE cs SET c = 2 WHERE e = 'e' RETURNING tableoid::regclass, k, b, c, e;
SELECT * FROM cs_child;
-- an empty table, one without columns
CREATE TABLE cs_empty (a int, b int) USING paimon;
SELECT sum(b) FROM cs_empty;
CREATE TABLE cs_none () USING paimon;
INSERT INTO cs_none DEFAULT VALUES;
SELECT count(*) FROM cs_none;
SELECT * FROM cs_none;
-- merged rows: columns that nobody looks at are not folded, and cannot fail
CREATE TABLE cs_sums (k int PRIMARY KEY, n smallint, s int, t text) USING paimon
    WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum', "fields.s.aggregate-function" = 'sum', "fields.t.aggregate-function" = 'last_value');
INSERT INTO cs_sums VALUES (1, 32767, 1, 'a'), (2, 1, 1, 'b');
INSERT INTO cs_sums VALUES (1, 1, 2, 'c');
SELECT s, t FROM cs_sums;
SELECT count(*), max(k) FROM cs_sums;
SELECT s, n FROM cs_sums;
SELECT * FROM cs_sums;
SELECT paimon.flush('cs_sums') > 0;
INSERT INTO cs_sums VALUES (1, NULL, 10, NULL), (2, 1, 1, NULL);
SELECT s, t FROM cs_sums;
SELECT t FROM cs_sums WHERE s > 5;
SELECT sum(n) FROM cs_sums WHERE k = 2;
SELECT sum(n) FROM cs_sums;
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT s FROM cs_sums;
FETCH 2 FROM c;
FETCH BACKWARD 1 FROM c;
COMMIT;
-- an order that nobody asked for still decides
CREATE TABLE cs_parts (k int PRIMARY KEY, a int, g int, v text, w int, h int, x text, kind text) USING paimon
    WITH ("merge-engine" = 'partial-update', "fields.g.sequence-group" = 'v,w', "fields.w.aggregate-function" = 'sum', "fields.h.sequence-group" = 'x',
          "partial-update.remove-record-on-sequence-group" = 'h', "rowkind.field" = 'kind');
INSERT INTO cs_parts VALUES (1, 1, 5, 'new', 1, NULL, NULL, '+I'), (2, 1, 1, 'two', 1, 7, 'seven', '+I'), (3, 1, NULL, 'no group', 4, NULL, 'none', '+I');
SELECT paimon.flush('cs_parts') > 0;
INSERT INTO cs_parts VALUES (1, NULL, 3, 'late', 2, 1, 'one', '+I'), (2, NULL, NULL, NULL, NULL, 8, NULL, '-D');
SELECT k, v, w FROM cs_parts;
SELECT k, a FROM cs_parts;
SELECT v FROM cs_parts;
SELECT w, x FROM cs_parts;
SELECT count(*) FROM cs_parts;
SELECT paimon.flush('cs_parts') > 0;
SELECT w, a FROM cs_parts;
SELECT x FROM cs_parts WHERE v = 'new';
SELECT * FROM cs_parts;
DROP TABLE cs_child, cs, cs_h, cs_empty, cs_none, cs_sums, cs_parts;
DROP FUNCTION cs_same;
