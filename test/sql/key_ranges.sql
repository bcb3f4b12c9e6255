-- Index scans by the primary key: prefixes, ranges, order, both directions, index-only, mark and restore; against heap.
CREATE TABLE kr_h (a int, b text COLLATE "C", c timestamptz, v int, t text, PRIMARY KEY (a, b, c));
CREATE TABLE kr (LIKE kr_h, PRIMARY KEY (a, b, c)) USING paimon WITH (bucket = 3);
INSERT INTO kr_h SELECT g % 100, 'b' || g % 7, timestamptz '2026-01-01 00:00+00' + g * interval '1 h', g, repeat(md5(g::text), 2) FROM generate_series(1, 6000) g;
INSERT INTO kr SELECT * FROM kr_h;
SELECT paimon.compact('kr') AS compacted;
INSERT INTO kr SELECT a, b, c, -v, 'changed' FROM kr_h WHERE v % 10 = 1;
UPDATE kr_h SET v = -v, t = 'changed' WHERE v % 10 = 1;
SELECT paimon.flush('kr') AS flushed;
DELETE FROM kr WHERE a = 5 AND b = 'b3'; DELETE FROM kr_h WHERE a = 5 AND b = 'b3';
INSERT INTO kr SELECT a, 'b9', c, v, t FROM kr_h WHERE a < 10; INSERT INTO kr_h SELECT a, 'b9', c, v, t FROM kr_h WHERE a < 10;
ANALYZE kr; ANALYZE kr_h;
CREATE FUNCTION kr_same(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	paimon_rows text[];
	heap_rows text[];
BEGIN
	EXECUTE format('SELECT array_agg(q::text) FROM (%s) q', replace(query, '@', 'kr')) INTO paimon_rows;
	EXECUTE format('SELECT array_agg(q::text) FROM (%s) q', replace(query, '@', 'kr_h')) INTO heap_rows;
	RETURN CASE WHEN paimon_rows IS NOT DISTINCT FROM heap_rows THEN 'same' ELSE 'different' END || ': ' || coalesce(cardinality(heap_rows), 0);
END $$;
-- plans
EXPLAIN (COSTS OFF) SELECT * FROM kr WHERE a = 7;
EXPLAIN (COSTS OFF) SELECT * FROM kr WHERE a = 7 AND b >= 'b2' AND b < 'b4';
EXPLAIN (COSTS OFF) SELECT * FROM kr WHERE a IN (1, 2, 50) AND b = 'b1';
EXPLAIN (COSTS OFF) SELECT * FROM kr WHERE a BETWEEN 7 AND 8 ORDER BY a, b, c;
EXPLAIN (COSTS OFF) SELECT * FROM kr WHERE a = 7 ORDER BY b DESC, c DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT * FROM kr ORDER BY a, b LIMIT 10;
EXPLAIN (COSTS OFF) SELECT a, c FROM kr WHERE a = 7;
-- (how these are printed depends on the server's version)
CREATE FUNCTION kr_limits(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Scan' THEN RETURN NEXT ltrim(line, ' ->'); END IF;
	END LOOP;
END $$;
SELECT kr_limits('SELECT min(a), max(a) FROM kr');
SELECT kr_limits('SELECT max(c) FROM kr WHERE a = 7 AND b = ''b1''');
SELECT count(*) FROM kr WHERE a IS NULL;
EXPLAIN (COSTS OFF) SELECT * FROM kr WHERE b = 'b1';
EXPLAIN (COSTS OFF) SELECT a FROM kr GROUP BY a ORDER BY a LIMIT 3;
EXPLAIN (COSTS OFF) SELECT (SELECT v FROM kr WHERE a = n ORDER BY b, c LIMIT 1) FROM generate_series(1, 5) n;
-- rows, by index
BEGIN;
SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off;
INSERT INTO kr SELECT 7, 'b2', timestamptz '2020-01-01 00:00+00' + g * interval '1 day', g, 'own' FROM generate_series(1, 20) g;
INSERT INTO kr_h SELECT 7, 'b2', timestamptz '2020-01-01 00:00+00' + g * interval '1 day', g, 'own' FROM generate_series(1, 20) g;
SELECT kr_same(q) FROM unnest(ARRAY[
	'SELECT * FROM @ WHERE a = 7 ORDER BY b, c',
	'SELECT * FROM @ WHERE a = 7::bigint AND b > ''b1'' ORDER BY b DESC, c DESC',
	'SELECT * FROM @ WHERE a = 7::smallint AND b >= ''b1'' AND b <= ''b2'' AND b >= ''b0'' ORDER BY b, c',
	'SELECT * FROM @ WHERE a = 7 AND b = ''b2'' AND c >= date ''2020-01-10'' AND c < timestamp ''2026-03-01 12:00'' ORDER BY c',
	'SELECT * FROM @ WHERE a = 7 AND b = ''b2'' AND c > ''-infinity'' AND c < ''infinity'' ORDER BY c DESC LIMIT 5',
	'SELECT * FROM @ WHERE a > 97 ORDER BY a, b, c',
	'SELECT * FROM @ WHERE a > 97::bigint AND a < 5000000000 ORDER BY a, b, c',
	'SELECT * FROM @ WHERE a < -5000000000',
	'SELECT * FROM @ WHERE a > 5000000000 OR a < 0',
	'SELECT * FROM @ WHERE a >= 98 AND a < 98',
	'SELECT * FROM @ WHERE a IN (3, 1, 2, 3, NULL) AND b = ''b1'' ORDER BY a, b, c',
	'SELECT * FROM @ WHERE a = ANY (''{9,5,7}''::bigint[]) AND b IN (''b3'', ''b1'') ORDER BY a, b, c',
	'SELECT * FROM @ WHERE a = ANY (''{}''::int[])',
	'SELECT * FROM @ WHERE a < ANY (''{2,3}''::int[]) ORDER BY a, b, c',
	'SELECT * FROM @ WHERE a = 7 AND b LIKE ''b2%'' ORDER BY b, c',
	'SELECT * FROM @ WHERE a = 7 AND c = ''2026-01-01 07:00+00''',
	'SELECT * FROM @ WHERE a = 7 AND a = 8',
	'SELECT * FROM @ WHERE a IS NULL',
	'SELECT * FROM @ WHERE a = NULL::int',
	'SELECT count(*) FROM @ WHERE a IS NOT NULL',
	'SELECT * FROM @ WHERE b = ''b2'' AND v < 50 ORDER BY a, b, c',
	'SELECT * FROM @ WHERE (a, b) > (98, ''b3'') ORDER BY a, b, c',
	'SELECT * FROM @ ORDER BY a, b, c LIMIT 20',
	'SELECT * FROM @ ORDER BY a DESC, b DESC, c DESC LIMIT 20 OFFSET 100',
	'SELECT a, b, c FROM @ WHERE a = 7 ORDER BY b, c',
	'SELECT c FROM @ WHERE a < 3 ORDER BY a, b, c',
	'SELECT count(*) FROM @ WHERE a < 30',
	'SELECT min(a), max(a) FROM @',
	'SELECT min(c), max(c) FROM @ WHERE a = 7 AND b = ''b2''',
	'SELECT DISTINCT a FROM @ ORDER BY a',
	'SELECT x.v, y.v FROM @ x JOIN @ y ON x.a = y.a AND x.b = y.b AND x.c = y.c WHERE x.a < 3 ORDER BY x.a, x.b, x.c'
]) q;
-- mark and restore: neither side of the join is unique
SET LOCAL enable_hashjoin = off; SET LOCAL enable_nestloop = off; SET LOCAL enable_material = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM kr x JOIN kr y ON x.a = y.a;
SELECT kr_same(q) FROM unnest(ARRAY[
	'SELECT count(*), sum(x.v), sum(y.v) FROM @ x JOIN @ y ON x.a = y.a',
	'SELECT x.v, y.v FROM @ x JOIN @ y ON x.a = y.a AND x.b = y.b WHERE x.a < 2 AND y.a < 2 ORDER BY x.a, x.b, 1, 2'
]) q;
-- nested loops: the inner side is scanned again and again
SET LOCAL enable_mergejoin = off; SET LOCAL enable_nestloop = on;
EXPLAIN (COSTS OFF) SELECT count(*), sum(y.v) FROM generate_series(1, 50) n JOIN kr y ON y.a = n AND y.b = 'b2';
SELECT kr_same('SELECT count(*), sum(y.v) FROM generate_series(1, 50) n JOIN @ y ON y.a = n AND y.b = ''b2''');
SELECT kr_same('SELECT n, (SELECT y.v FROM @ y WHERE y.a = n AND y.c < timestamptz ''2026-02-01'' ORDER BY b DESC, c DESC LIMIT 1) FROM generate_series(-2, 102) n');
-- an UPDATE that moves rows ahead of its own scan does not meet them again
EXPLAIN (COSTS OFF) UPDATE kr SET c = c + interval '1000 days', v = v + 1 WHERE a = 8;
UPDATE kr SET c = c + interval '1000 days', v = v + 1 WHERE a = 8;
UPDATE kr_h SET c = c + interval '1000 days', v = v + 1 WHERE a = 8;
DELETE FROM kr WHERE a > 90 AND b = 'b4'; DELETE FROM kr_h WHERE a > 90 AND b = 'b4';
SELECT kr_same('SELECT * FROM @ WHERE a = 8 OR a > 90 ORDER BY a, b, c');
-- cursors turn round, while the transaction goes on writing
DECLARE kr_c SCROLL CURSOR FOR SELECT v, b FROM kr WHERE a IN (7, 8) AND b >= 'b3' ORDER BY a, b, c;
FETCH 3 FROM kr_c;
DELETE FROM kr WHERE a = 7;
INSERT INTO kr VALUES (7, 'b4', '1999-01-01 00:00+00', 0, 'later');
FETCH BACKWARD 2 FROM kr_c;
FETCH 4 FROM kr_c;
FETCH LAST FROM kr_c;
FETCH NEXT FROM kr_c;
FETCH PRIOR FROM kr_c;
FETCH PRIOR FROM kr_c;
FETCH BACKWARD ALL FROM kr_c \g /dev/null
FETCH NEXT FROM kr_c;
ROLLBACK;
-- types whose keys are not sorted as their values are: no claim of order, no ranges, equality all the same
CREATE TYPE kr_mood AS ENUM ('sad', 'happy');
ALTER TYPE kr_mood ADD VALUE 'ok' BEFORE 'happy';
CREATE TABLE kr_e (m kr_mood PRIMARY KEY, v int) USING paimon;
INSERT INTO kr_e VALUES ('happy', 3), ('sad', 1), ('ok', 2);
CREATE TABLE kr_t (x text COLLATE "und-x-icu" PRIMARY KEY, v int) USING paimon;
INSERT INTO kr_t SELECT x, row_number() OVER () FROM unnest(ARRAY['B', 'a', 'A', 'b', 'é', 'f']) x;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM kr_e WHERE m < 'happy' ORDER BY m;
SELECT * FROM kr_e WHERE m < 'happy' ORDER BY m;
EXPLAIN (COSTS OFF) SELECT * FROM kr_e WHERE m = 'ok';
SELECT * FROM kr_e WHERE m = 'ok';
SELECT * FROM kr_e WHERE m IN ('ok', 'sad') ORDER BY m;
EXPLAIN (COSTS OFF) SELECT * FROM kr_t WHERE x > 'a' ORDER BY x;
SELECT * FROM kr_t WHERE x > 'a' ORDER BY x;
SELECT min(x), max(x) FROM kr_t;
SELECT * FROM kr_t WHERE x = 'b';
SELECT * FROM kr_t WHERE x IN ('b', 'é') ORDER BY x;
-- a column that is sorted, behind one that is not but is given
CREATE TABLE kr_p (tenant text COLLATE "und-x-icu", at int, m kr_mood, v int, PRIMARY KEY (tenant, at, m)) USING paimon WITH (bucket = 2, "bucket-key" = 'tenant');
INSERT INTO kr_p SELECT CASE g % 3 WHEN 0 THEN 'a' WHEN 1 THEN 'B' ELSE 'c' END, g, 'ok', g FROM generate_series(1, 3000) g;
ANALYZE kr_p;
EXPLAIN (COSTS OFF) SELECT * FROM kr_p WHERE tenant = 'B' ORDER BY at DESC LIMIT 3;
SELECT * FROM kr_p WHERE tenant = 'B' ORDER BY at DESC LIMIT 3;
EXPLAIN (COSTS OFF) SELECT * FROM kr_p WHERE tenant = 'B' AND at > 2000 ORDER BY at LIMIT 3;
SELECT * FROM kr_p WHERE tenant = 'B' AND at > 2000 ORDER BY at LIMIT 3;
SELECT tenant, max(at) FROM kr_p WHERE tenant = 'c' GROUP BY tenant;
SET enable_incremental_sort = off;
EXPLAIN (COSTS OFF) SELECT tenant, at FROM kr_p ORDER BY tenant, at LIMIT 2;
SELECT tenant, at FROM kr_p ORDER BY tenant, at LIMIT 2;
EXPLAIN (COSTS OFF) SELECT * FROM kr_p WHERE tenant = 'a' ORDER BY at, m LIMIT 2;
EXPLAIN (COSTS OFF) SELECT * FROM kr_p WHERE tenant IN ('a', 'B') ORDER BY at LIMIT 2;
SELECT * FROM kr_p WHERE tenant IN ('a', 'B') ORDER BY at LIMIT 2;
RESET enable_incremental_sort;
-- conditions that no row can meet: nothing is scanned, whatever order is wanted
CREATE TABLE kr_n (a int, b text COLLATE "und-x-icu", PRIMARY KEY (a, b)) USING paimon;
INSERT INTO kr_n SELECT g, 'b' || g FROM generate_series(1, 10) g;
EXPLAIN (COSTS OFF) SELECT * FROM kr_n WHERE b = NULL AND a < 5 ORDER BY a, b;
SET enable_sort = off;
SELECT * FROM kr_n WHERE b = NULL AND a < 5 ORDER BY a, b;
RESET enable_sort;
-- an empty table, and a table without rows in range
CREATE TABLE kr_0 (a int, b int, PRIMARY KEY (a, b)) USING paimon WITH (bucket = 5);
SELECT * FROM kr_0 WHERE a > 3 ORDER BY a, b;
SELECT min(a), max(b) FROM kr_0;
INSERT INTO kr_0 VALUES (1, 1);
SELECT * FROM kr_0 WHERE a > 3 ORDER BY a, b;
SELECT a FROM kr_0 WHERE a >= 1 ORDER BY a DESC;
DROP TABLE kr, kr_h, kr_e, kr_t, kr_p, kr_n, kr_0;
DROP FUNCTION kr_same;
DROP TYPE kr_mood;
DROP FUNCTION kr_limits(text);
