-- Before an ON CONFLICT into a partitioned table its partitions are looked at, once.  Where that failed, the next statement looks again.
\set VERBOSITY terse
CREATE TABLE upl_heap (k int, d int, v int, PRIMARY KEY (k, d)) PARTITION BY LIST (d);
CREATE TABLE upl_heap0 PARTITION OF upl_heap FOR VALUES IN (0);
CREATE TABLE upl (k int, d int, v int, PRIMARY KEY (k, d)) PARTITION BY LIST (d) USING paimon;
CREATE TABLE upl0 PARTITION OF upl FOR VALUES IN (0);
CREATE TABLE upl1 PARTITION OF upl FOR VALUES IN (1);
INSERT INTO upl VALUES (1, 0, 1), (1, 1, 1);
INSERT INTO upl_heap VALUES (1, 0, 5) ON CONFLICT (k, d) DO NOTHING;
BEGIN;
LOCK TABLE upl1 IN ACCESS EXCLUSIVE MODE;
PREPARE TRANSACTION 'upl';
SET lock_timeout = '10ms';
INSERT INTO upl VALUES (1, 1, 5), (2, 1, 5) ON CONFLICT (k, d) DO NOTHING RETURNING k, d, v;
RESET lock_timeout;
COMMIT PREPARED 'upl';
INSERT INTO upl VALUES (1, 1, 5), (2, 1, 5) ON CONFLICT (k, d) DO NOTHING RETURNING k, d, v;
INSERT INTO upl_heap VALUES (1, 0, 5) ON CONFLICT (k, d) DO NOTHING;
BEGIN;
LOCK TABLE upl0 IN ACCESS EXCLUSIVE MODE;
PREPARE TRANSACTION 'upl';
SET lock_timeout = '10ms';
INSERT INTO upl VALUES (1, 1, 5), (3, 0, 5) ON CONFLICT (k, d) DO UPDATE SET v = upl.v + EXCLUDED.v RETURNING k, d, v;
RESET lock_timeout;
COMMIT PREPARED 'upl';
INSERT INTO upl VALUES (1, 1, 5), (3, 0, 5) ON CONFLICT (k, d) DO UPDATE SET v = upl.v + EXCLUDED.v RETURNING k, d, v;
SELECT * FROM upl ORDER BY k, d;
DROP TABLE upl, upl_heap;
