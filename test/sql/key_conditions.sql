-- Comparisons of rows, and choices, by the primary key; the same rows as without it
SET client_min_messages = warning;
CREATE SCHEMA kc;
SET search_path = kc;
CREATE TABLE p (a int, b int, c text COLLATE "C", v int, PRIMARY KEY (a, b, c)) USING paimon WITH (bucket = 2);
INSERT INTO p SELECT g / 100, g % 100, 'c' || g % 7, g FROM generate_series(1, 20000) g;
SELECT paimon.flush('p') > 0 AS flushed;
INSERT INTO p SELECT g / 100, g % 100, 'c' || g % 7, -g FROM generate_series(5000, 5200) g;
ANALYZE p;
CREATE TABLE h (LIKE p INCLUDING ALL) USING heap;
INSERT INTO h SELECT * FROM p;
-- The plan's scans and conditions.  15 sorts what lists for several columns find, newer servers know that it comes in order: that sort is not told.
CREATE FUNCTION plan(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE line text; lines text[];
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || q LOOP lines := lines || line; END LOOP;
	RETURN QUERY SELECT regexp_replace(trim(l), '^->  ', '') FROM unnest(lines) l WHERE l ~ 'Scan|Cond:|Filter:|Sort' AND (l !~ 'Sort' OR lines::text !~ 'ANY.* ANY');
END $$;
-- The plan, and whether both tables answer alike.
CREATE FUNCTION cond(q text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE one text; two text;
BEGIN
	RETURN QUERY SELECT plan(replace(q, '{T}', 'p'));
	EXECUTE format('SELECT string_agg(x::text, '' '') FROM (%s) x', replace(q, '{T}', 'p')) INTO one;
	EXECUTE format('SELECT string_agg(x::text, '' '') FROM (%s) x', replace(q, '{T}', 'h')) INTO two;
	RETURN NEXT CASE WHEN one IS NOT DISTINCT FROM two THEN 'same, ' || coalesce(length(one), 0) || ' characters' ELSE 'different' END;
END $$;
SELECT cond('SELECT * FROM {T} WHERE (a, b) > (50, 10) ORDER BY a, b, c LIMIT 3');
SELECT cond('SELECT * FROM {T} WHERE (a, b, c) >= (50, 10, ''c3'') ORDER BY a, b, c LIMIT 3');
SELECT cond('SELECT * FROM {T} WHERE (a, b) < (50, 10) ORDER BY a DESC, b DESC, c DESC LIMIT 3');
SELECT cond('SELECT * FROM {T} WHERE (a, b) <= (0, 10) ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE (a, b) > (50, 10) AND (a, b) < (50, 14) ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE a = 50 AND (b, c) > (97, ''c2'') ORDER BY a, b, c');
SELECT cond('SELECT a, b FROM {T} WHERE (a, b) > (199, 95) ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE (50, 97) < (a, b) AND a < 52 ORDER BY a, b, c LIMIT 5');
-- other columns between, values of another type or NULL, not the first column
SELECT cond('SELECT * FROM {T} WHERE (a, c) > (199, ''c3'') ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE (a, b, v) > (200, 0, 5) ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE (a, b) > (199, 95::bigint) ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE (a, b) > (199, NULL) ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE (a, b) > (NULL, 5) ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE (a, b) > (3000000000, 5) ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE (b, c) < (0, ''c1'') AND a < 3 ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE (a, b) >= (2147483647, 2147483647) ORDER BY a, b, c');
-- choices
SELECT cond('SELECT * FROM {T} WHERE (a, b) IN ((50, 10), (3, 4), (9999, 1)) ORDER BY a, b, c');
SELECT cond('SELECT * FROM {T} WHERE a = 50 AND b = 10 OR a = 70 AND b = 12 AND c = ''c2'' ORDER BY a, b, c');
SELECT cond('SELECT count(*) FROM {T} WHERE a = 50 OR a = 60');
SELECT cond('SELECT count(*) FROM {T} WHERE (a = 50 OR a = 60) AND (b = 1 OR b = 2 OR b = NULL)');
SELECT cond('SELECT count(*) FROM {T} WHERE a = 50 AND b < 5 OR a = 60 AND v = 6001');
SELECT cond('SELECT * FROM {T} WHERE (a, b, c) IN (' || string_agg(format('(%s, %s, ''c1'')', g, g % 9), ', ') || ') ORDER BY a, b, c') FROM generate_series(1, 9) g;
SELECT cond('SELECT * FROM {T} WHERE a = 50 AND b = 7 OR a = 60::bigint AND b = 6 ORDER BY a, b, c');
SELECT cond('SELECT count(*) FROM {T} WHERE a = 50 OR v = 7');
-- with parameters
PREPARE page (int, int) AS SELECT a, b, c FROM p WHERE (a, b) > ($1, $2) ORDER BY a, b, c LIMIT 2;
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE page (50, 98);
EXECUTE page (50, 98);
EXECUTE page (200, 0);
EXECUTE page (NULL, 0);
PREPARE two (int, int, int, int) AS SELECT a, b, c, v FROM p WHERE a = $1 AND b = $2 OR a = $3 AND b = $4 ORDER BY a, b;
SELECT plan('EXECUTE two (50, 1, 51, 2)');
EXECUTE two (50, 1, 51, 2);
EXECUTE two (50, 1, NULL, 2);
RESET plan_cache_mode;
-- on the inner side, with other values for each row
SELECT n, (SELECT b FROM p WHERE (a, b) > (n, 98 - n) ORDER BY a, b, c LIMIT 1) FROM generate_series(0, 4) n;
-- an order that is not the bytes': no bound is taken
CREATE TABLE e (k text COLLATE "und-x-icu", n int, PRIMARY KEY (k, n)) USING paimon;
INSERT INTO e SELECT chr(65 + g % 20) || chr(97 + g % 7), g FROM generate_series(1, 500) g;
INSERT INTO e SELECT chr(97 + g % 20), g FROM generate_series(1, 500) g;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*), sum(n) FROM e WHERE (k, n) > ('c', 50);
SELECT count(*), sum(n) FROM e WHERE (k, n) > ('c', 50);
RESET enable_seqscan;
SELECT count(*), sum(n) FROM e WHERE (k || '', n) > ('c', 50);
-- through partitions, row security, and with volatile functions
CREATE TABLE pt (a int, b int, v int, PRIMARY KEY (a, b)) PARTITION BY RANGE (a) USING paimon;
CREATE TABLE pt1 PARTITION OF pt FOR VALUES FROM (0) TO (100);
CREATE TABLE pt2 PARTITION OF pt FOR VALUES FROM (100) TO (300);
INSERT INTO pt SELECT g / 100, g % 100, g FROM generate_series(1, 20000) g;
ANALYZE pt;
EXPLAIN (COSTS OFF) SELECT * FROM pt WHERE (a, b) > (99, 97) ORDER BY a, b LIMIT 4;
SELECT * FROM pt WHERE (a, b) > (99, 97) ORDER BY a, b LIMIT 4;
EXPLAIN (COSTS OFF) SELECT * FROM pt WHERE a = 99 AND b = 97 OR a = 101 AND v > 10198;
SELECT * FROM pt WHERE (a, b) IN ((99, 97), (101, 1)) ORDER BY a;
EXPLAIN (COSTS OFF) SELECT * FROM pt1 WHERE a = (random() * 0)::int OR a = 2;
UPDATE pt SET v = -1 WHERE (a, b) IN ((99, 97), (101, 1));
DELETE FROM pt WHERE (a, b) > (199, 98) OR a = 0 AND b = 1;
SELECT count(*), sum(v) FROM pt;
DROP SCHEMA kc CASCADE;
