-- Thousands of runs that do not overlap: a scan's memory grows with their number, not with its square.
CREATE TABLE bs (k int, t text) USING paimon WITH ("write-buffer-size" = '64 kb');
INSERT INTO bs SELECT g, repeat(md5(g::text), 5) FROM generate_series(1, 380000) g;
SELECT count(*) > 2000 AS many FROM paimon.files('bs');
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM bs;
FETCH 1 FROM c;
SELECT sum(total_bytes) < 50000000 AS bounded FROM pg_backend_memory_contexts;
COMMIT;
SELECT count(*), count(DISTINCT k), sum(k), count(DISTINCT t) FROM bs;
DROP TABLE bs;

-- The same with a key, runs that overlap here and there, and every key twice.
CREATE TABLE bs (k int PRIMARY KEY, t text) USING paimon WITH ("write-buffer-size" = '64 kb', bucket = 2);
INSERT INTO bs SELECT g, repeat(md5(g::text), 3) FROM generate_series(1, 10000) g;
INSERT INTO bs SELECT g, 'new' FROM generate_series(5000, 12000, 7) g;
SELECT count(*), sum(k), count(*) FILTER (WHERE t = 'new') FROM bs;
SELECT count(*) FROM bs WHERE k BETWEEN 4990 AND 5020 AND t = 'new';
DROP TABLE bs;

-- An index-only scan that needs no column.
CREATE TABLE bs (k int PRIMARY KEY, t text) USING paimon;
INSERT INTO bs SELECT g, 't' FROM generate_series(1, 100) g;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM bs;
SELECT count(*) FROM bs;
RESET enable_seqscan;
DROP TABLE bs;

-- Made-up ctids find rows or nothing, wherever in the log they lead.
CREATE TABLE bs_ctid (id int PRIMARY KEY, v text) USING paimon;
INSERT INTO bs_ctid SELECT i, repeat(md5(i::text), i % 5) FROM generate_series(1, 200) i;
SELECT count(*) > 10 AS found, count(*) = count(DISTINCT id) AS once, bool_and(v = repeat(md5(id::text), id % 5)) AS right
FROM bs_ctid WHERE ctid = ANY (ARRAY(SELECT format('(%s,%s)', b, o)::tid FROM generate_series(0, 40) b, generate_series(1, 1200) o));
DROP TABLE bs_ctid;
