-- One key written again and again between two flushes: what a statement needs to know of it is found without a look at all versions.
\set VERBOSITY terse
CREATE TABLE many_versions (k int PRIMARY KEY, v int) USING paimon;
INSERT INTO many_versions VALUES (1, 0);
-- A table of few rows is no reason to read all their versions, as a plan that is kept would do for ever.
EXPLAIN (COSTS OFF) SELECT v FROM many_versions WHERE k = 1;
DO $$ BEGIN FOR i IN 1..200 LOOP INSERT INTO many_versions VALUES (1, i); COMMIT; END LOOP; END $$;
UPDATE many_versions SET v = v + 1 WHERE k = 1 RETURNING v;
-- A writer that still runs is waited for.
BEGIN;
INSERT INTO many_versions VALUES (1, -1);
PREPARE TRANSACTION 'many_versions';
SET lock_timeout = '50ms';
UPDATE many_versions SET v = v + 1 WHERE k = 1;
RESET lock_timeout;
SELECT v FROM many_versions WHERE k = 1;
COMMIT PREPARED 'many_versions';
UPDATE many_versions SET v = v + 1 WHERE k = 1 RETURNING v;
DO $$ BEGIN FOR i IN 1..200 LOOP UPDATE many_versions SET v = v + 1 WHERE k = 1; COMMIT; END LOOP; END $$;
SELECT * FROM many_versions;
-- An old snapshot finds that the row has changed since, also when many have changed it.
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT * FROM many_versions;
UPDATE many_versions SET v = v + 1;
ROLLBACK;
SELECT * FROM many_versions;
DROP TABLE many_versions;
-- Neither do scans look at all versions, forward or backward.
CREATE TABLE many_versions (k int PRIMARY KEY, v int) USING paimon;
INSERT INTO many_versions SELECT i, 0 FROM generate_series(1, 3) i;
DO $$ BEGIN FOR i IN 1..300 LOOP INSERT INTO many_versions VALUES (2, i); COMMIT; END LOOP; END $$;
SET enable_indexscan = off;
SET enable_bitmapscan = off;
SELECT paimon.stop_arm('reader-leaves-record', 'count', times => 0);
SELECT * FROM many_versions;
SELECT paimon.stop_hits('reader-leaves-record') < 30 AS few_records_passed;
BEGIN;
INSERT INTO many_versions VALUES (4, 0);
SELECT * FROM many_versions;
DECLARE c SCROLL CURSOR FOR SELECT * FROM many_versions;
MOVE ALL IN c;
FETCH BACKWARD ALL IN c;
FETCH ALL IN c;
COMMIT;
SELECT paimon.stop_hits('reader-leaves-record') < 100 AS few_records_passed;
SELECT paimon.stop_reset();
DROP TABLE many_versions;
