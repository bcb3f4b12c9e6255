-- CREATE TABLE AS and REFRESH MATERIALIZED VIEW write in the leader while a parallel plan runs below.
SET client_min_messages = warning;
CREATE TABLE bp_src AS SELECT g AS k, g % 10 AS v FROM generate_series(1, 20000) g;
ANALYZE bp_src;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

EXPLAIN (COSTS OFF) CREATE TABLE bp USING paimon AS SELECT k, v FROM bp_src;
CREATE TABLE bp USING paimon AS SELECT k, v FROM bp_src;
SELECT count(*), count(DISTINCT k), sum(v) FROM bp;

-- larger than the buffer: runs are written meanwhile
CREATE TABLE bp_large USING paimon WITH ("write-buffer-size" = '64 kb') AS SELECT k, md5(k::text) AS t FROM bp_src;
SELECT count(*), count(DISTINCT t) FROM bp_large;

-- in a transaction and its subtransactions
BEGIN;
SAVEPOINT s;
CREATE TABLE bp_sub USING paimon AS SELECT k FROM bp_src;
ROLLBACK TO s;
CREATE TABLE bp_sub USING paimon AS SELECT k FROM bp;
SELECT count(*), sum(k) FROM bp_sub;
COMMIT;
SELECT count(*), sum(k) FROM bp_sub;

CREATE MATERIALIZED VIEW bp_view USING paimon AS SELECT v, count(*) AS n FROM bp GROUP BY v;
INSERT INTO bp VALUES (0, 5);
REFRESH MATERIALIZED VIEW bp_view;
SELECT * FROM bp_view ORDER BY v LIMIT 6;

DROP MATERIALIZED VIEW bp_view;
DROP TABLE bp, bp_large, bp_sub, bp_src;
