-- TABLESAMPLE: what is true of every sample, whatever the rows are stored in.
CREATE TABLE ts (k int PRIMARY KEY, v text) USING paimon WITH (bucket = 2);
CREATE TABLE ts_append (k int, v text) USING paimon;
CREATE TEMP TABLE remembered (k int) USING heap;
SELECT count(*) FROM ts TABLESAMPLE SYSTEM (50);
SELECT count(*) FROM ts TABLESAMPLE BERNOULLI (50);
INSERT INTO ts SELECT g, 'first' FROM generate_series(1, 10000) g;
INSERT INTO ts_append SELECT g, 'first' FROM generate_series(1, 10000) g;

-- All and nothing.
SELECT count(*), count(DISTINCT k), sum(k) FROM ts TABLESAMPLE SYSTEM (100);
SELECT count(*), count(DISTINCT k), sum(k) FROM ts TABLESAMPLE BERNOULLI (100);
SELECT count(*), count(DISTINCT k), sum(k) FROM ts_append TABLESAMPLE SYSTEM (100);
SELECT count(*) FROM ts TABLESAMPLE SYSTEM (0);
SELECT count(*) FROM ts TABLESAMPLE BERNOULLI (0);

-- About the share that was asked for, from everywhere; the same again; others with another seed.
SELECT count(*) BETWEEN 1500 AND 2500 AS share, count(*) = count(DISTINCT k) AS once, min(k) < 500 AS low, max(k) > 9500 AS high
FROM ts TABLESAMPLE BERNOULLI (20) REPEATABLE (1);
SELECT count(*) BETWEEN 700 AND 3300 AS share, count(*) = count(DISTINCT k) AS once FROM ts TABLESAMPLE SYSTEM (20) REPEATABLE (1);
SELECT count(*) BETWEEN 700 AND 3300 AS share, count(*) = count(DISTINCT k) AS once FROM ts_append TABLESAMPLE SYSTEM (20) REPEATABLE (1);
INSERT INTO remembered SELECT k FROM ts TABLESAMPLE BERNOULLI (20) REPEATABLE (1);
SELECT count(*) FROM (SELECT k FROM ts TABLESAMPLE BERNOULLI (20) REPEATABLE (1) EXCEPT SELECT k FROM remembered) x;
SELECT count(*) > 500 FROM (SELECT k FROM ts TABLESAMPLE BERNOULLI (20) REPEATABLE (2) EXCEPT SELECT k FROM remembered) x;

-- Where rows lie does not matter to BERNOULLI.
SELECT paimon.flush('ts') > 0 AS flushed;
UPDATE ts SET v = 'second' WHERE k % 3 = 0;
SELECT paimon.compact('ts') > 0 AS compacted;
SELECT count(*) FROM (SELECT k FROM ts TABLESAMPLE BERNOULLI (20) REPEATABLE (1) EXCEPT SELECT k FROM remembered) x;
SELECT count(*) = (SELECT count(*) FROM remembered) AS same FROM ts TABLESAMPLE BERNOULLI (20) REPEATABLE (1);

-- Rows of the transaction itself, deleted ones, conditions, columns that are not wanted, one sample after the other in a join.
BEGIN;
DELETE FROM ts WHERE k <= 5000;
INSERT INTO ts SELECT g, 'third' FROM generate_series(10001, 11000) g;
SELECT count(*), sum(k) FROM ts TABLESAMPLE SYSTEM (100);
SELECT count(*), sum(k) FROM ts TABLESAMPLE BERNOULLI (100) WHERE v = 'third';
SELECT count(*) FROM ts TABLESAMPLE BERNOULLI (30) WHERE k <= 5000;
ROLLBACK;
SELECT g, count(*) BETWEEN 100 * g - 200 AND 100 * g + 200 AS share FROM generate_series(0, 100, 20) g, LATERAL (SELECT FROM ts TABLESAMPLE BERNOULLI (g) REPEATABLE (3)) x GROUP BY g ORDER BY g;
SELECT g, count(*) BETWEEN 100 * g - 1500 AND 100 * g + 1500 AS share FROM generate_series(0, 100, 20) g, LATERAL (SELECT FROM ts TABLESAMPLE SYSTEM (g) REPEATABLE (3)) x GROUP BY g ORDER BY g;
BEGIN;
DECLARE c CURSOR FOR SELECT k FROM ts TABLESAMPLE SYSTEM (50) REPEATABLE (4);
FETCH FORWARD 3 FROM c \g /dev/null
CLOSE c;
SELECT count(*) = 0 AS locked FROM (SELECT k FROM ts TABLESAMPLE BERNOULLI (1) REPEATABLE (1) FOR UPDATE) x;
COMMIT;

-- The last chunk is rarely full.
CREATE TABLE ts_small (k int) USING paimon;
INSERT INTO ts_small SELECT generate_series(1, 7);
SELECT g, count(*) = count(DISTINCT k) AS once, count(*) <= 7 AS few
FROM generate_series(1, 40) g, LATERAL (SELECT k FROM ts_small TABLESAMPLE BERNOULLI (50) REPEATABLE (g)) x GROUP BY g HAVING count(*) > 7;
SELECT count(*) FROM generate_series(1, 40) g, LATERAL (SELECT k FROM ts_small TABLESAMPLE BERNOULLI (50) REPEATABLE (g) WHERE k > g) x WHERE g > 7;
SELECT count(*) BETWEEN 70 AND 210 AS share FROM generate_series(1, 40) g, LATERAL (SELECT k FROM ts_small TABLESAMPLE BERNOULLI (50) REPEATABLE (g)) x;
SELECT count(*) % 7 AS whole FROM generate_series(1, 40) g, LATERAL (SELECT k FROM ts_small TABLESAMPLE SYSTEM (50) REPEATABLE (g)) x;
DROP TABLE ts_small;

-- A larger table: SYSTEM reads some row groups and leaves the others alone.
INSERT INTO ts_append SELECT g, 'first' FROM generate_series(10001, 600000) g;
SELECT paimon.compact('ts_append') > 0 AS compacted;
SELECT count(*), count(DISTINCT k), sum(k) FROM ts_append TABLESAMPLE SYSTEM (100);
SELECT count(*) BETWEEN 60000 AND 240000 AS share, count(*) = count(DISTINCT k) AS once FROM ts_append TABLESAMPLE SYSTEM (25) REPEATABLE (1);
SELECT count(*) BETWEEN 145000 AND 155000 AS share, count(*) = count(DISTINCT k) AS once FROM ts_append TABLESAMPLE BERNOULLI (25) REPEATABLE (1);
EXPLAIN (COSTS OFF) SELECT k FROM ts_append TABLESAMPLE SYSTEM (25) REPEATABLE (1) WHERE v = 'first';
DROP TABLE ts, ts_append;
