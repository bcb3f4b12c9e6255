-- A session keeps what it has read of a table's manifest (paimon.test_manifest_reads), and reads it again when a snapshot sees another version:
-- after flushes, large commits, compactions, by others and by itself, rolled back or not; also for a storage that takes another's place.
SELECT paimon.stop_arm('flush-begin', 'lock', -1);
CREATE TABLE m (k int PRIMARY KEY, v text) USING paimon WITH ("write-buffer-size" = '64kb', "write-only" = true);
INSERT INTO m VALUES (1, 'small');
SELECT count(*) FROM m;
SELECT length(paimon.test_manifest_reads()) > 0;
SELECT count(*) FROM m;
SELECT v FROM m WHERE k = 1;
SELECT paimon.test_manifest_reads();

-- a large commit adds files
INSERT INTO m SELECT i, 'large' FROM generate_series(1, 5000) i;
SELECT v, count(*) FROM m GROUP BY v;
SELECT paimon.test_manifest_reads();
SELECT v, count(*) FROM m GROUP BY v;
SELECT v FROM m WHERE k = 1;
SELECT paimon.test_manifest_reads();

-- one that is rolled back does not, before and after
BEGIN;
INSERT INTO m SELECT i, 'rolled back' FROM generate_series(1, 6000) i;
SELECT v, count(*) FROM m GROUP BY v;
ROLLBACK;
SELECT v, count(*) FROM m GROUP BY v;
SELECT paimon.test_manifest_reads();

-- nor one that fails after it was announced; the next has the same version
SELECT paimon.stop_arm('bulk-registered', 'error');
INSERT INTO m SELECT i, 'failed' FROM generate_series(1, 6000) i;
SELECT v, count(*) FROM m GROUP BY v;
SELECT v, count(*) FROM m GROUP BY v;
SELECT paimon.test_manifest_reads();
INSERT INTO m SELECT i, 'second try' FROM generate_series(3001, 8000) i;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT paimon.test_manifest_reads();

-- flush and compaction, in a worker
SELECT paimon.stop_reset();
SELECT paimon.flush('m') > 0;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT paimon.test_manifest_reads();
SELECT paimon.compact('m') > 0;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT paimon.test_manifest_reads();
SELECT count(*) FROM m;
SELECT paimon.test_manifest_reads();

-- in one's own transaction: what it has published itself is read each time, and is gone after a rollback, also to a savepoint
INSERT INTO m VALUES (9000, 'own');
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT length(paimon.test_manifest_reads()) > 0;
BEGIN;
LOCK TABLE m IN ACCESS EXCLUSIVE MODE;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT paimon.test_manifest_reads();
SAVEPOINT a;
SELECT paimon.flush('m') > 0;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT paimon.test_manifest_reads();
ROLLBACK TO a;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT paimon.test_manifest_reads();
SELECT paimon.flush('m') > 0;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT paimon.test_manifest_reads();
ROLLBACK;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
SELECT paimon.test_manifest_reads();

-- a cursor from before goes on reading what it saw
BEGIN;
DECLARE c CURSOR FOR SELECT count(*) FROM m;
INSERT INTO m SELECT i, 'later' FROM generate_series(10001, 15000) i;
FETCH c;
COMMIT;
SELECT count(*) FROM m;

-- TRUNCATE, its rollback; a table of the same name
BEGIN;
TRUNCATE m;
SELECT count(*) FROM m;
INSERT INTO m SELECT i, 'new' FROM generate_series(1, 5000) i;
SELECT count(*) FROM m;
ROLLBACK;
SELECT count(*) FROM m;
TRUNCATE m;
SELECT count(*) FROM m;
INSERT INTO m SELECT i, 'new' FROM generate_series(1, 4000) i;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
VACUUM FULL m;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
DROP TABLE m;
CREATE TABLE m (k int PRIMARY KEY, v text) USING paimon WITH ("write-buffer-size" = '64kb', "write-only" = true);
SELECT count(*) FROM m;
INSERT INTO m SELECT i, 'another' FROM generate_series(1, 3000) i;
SELECT v, count(*) FROM m GROUP BY v ORDER BY v;
DROP TABLE m;

-- more tables than are kept, each read twice, then all of them again
DO $$
DECLARE
	n int;
BEGIN
	FOR i IN 1..140 LOOP
		EXECUTE format('CREATE TABLE many_%s (k int PRIMARY KEY) USING paimon WITH ("write-only" = true)', i);
		EXECUTE format('INSERT INTO many_%s SELECT generate_series(1, %s)', i, i);
	END LOOP;
END $$;
SELECT length(paimon.test_manifest_reads()) > 0;
DO $$
DECLARE
	n int;
BEGIN
	FOR r IN 1..3 LOOP
		FOR i IN 1..140 LOOP
			EXECUTE format('SELECT count(*) FROM many_%s', i) INTO n;
			IF n <> i THEN
				RAISE 'table % has % rows', i, n;
			END IF;
		END LOOP;
	END LOOP;
END $$;
SELECT paimon.test_manifest_reads() ~ 'rows 420$' AS least_recently_used_go;
DO $$
BEGIN
	FOR i IN 1..140 LOOP
		EXECUTE format('DROP TABLE many_%s', i);
	END LOOP;
END $$;
