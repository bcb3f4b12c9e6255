-- paimon.compact: levels before and after, contents as in a heap table all along.
CREATE SCHEMA compact;
SET search_path = compact;

-- write-only: the workers leave them alone
CREATE TABLE t (k int PRIMARY KEY, v text, n numeric(10,2), d date) USING paimon
    WITH (bucket = 2, "write-only" = true, "snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1);
CREATE TABLE h (k int PRIMARY KEY, v text, n numeric(10,2), d date) USING heap;

CREATE FUNCTION put(lo int, hi int, step int, salt int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO t SELECT i, repeat('v' || salt || i, i % 4), CASE WHEN i % 3 > 0 THEN i / 100.0 + salt END, '2020-01-01'::date + i
        FROM generate_series(lo, hi, step) i;
    INSERT INTO h SELECT i, repeat('v' || salt || i, i % 4), CASE WHEN i % 3 > 0 THEN i / 100.0 + salt END, '2020-01-01'::date + i
        FROM generate_series(lo, hi, step) i
        ON CONFLICT (k) DO UPDATE SET v = excluded.v, n = excluded.n, d = excluded.d;
END $$;
CREATE FUNCTION remove(condition text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'DELETE FROM t WHERE ' || condition;
    EXECUTE 'DELETE FROM h WHERE ' || condition;
END $$;
CREATE VIEW difference AS
    SELECT count(*) AS different FROM ((SELECT t::text FROM t EXCEPT ALL SELECT h::text FROM h)
        UNION ALL (SELECT h::text FROM h EXCEPT ALL SELECT t::text FROM t)) x;
CREATE VIEW shape AS
    SELECT bucket, level, runs, files, record_count AS records, delete_count AS deletes, min_key, max_key FROM paimon.levels('t');

CREATE PROCEDURE wait_for(condition text) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + '1 minute';
    done bool;
BEGIN
    WHILE clock_timestamp() < until LOOP
        EXECUTE 'SELECT ' || condition INTO done;
        COMMIT;
        IF done THEN
            RETURN;
        END IF;
    END LOOP;
    RAISE 'not within a minute: %', condition;
END $$;

-- nothing there
SELECT paimon.compact('t');
SELECT * FROM shape;

-- several flushes; a full compaction leaves one run a bucket, without markers
SELECT put(1, 2000, 1, 1);
SELECT paimon.flush('t');
SELECT put(500, 1500, 2, 2);
SELECT remove('k BETWEEN 100 AND 199');
SELECT paimon.flush('t');
SELECT put(1900, 2100, 1, 3);
SELECT remove('k % 10 = 0');
SELECT paimon.flush('t');
SELECT * FROM shape;
SELECT * FROM difference;
SELECT paimon.compact('t');
SELECT * FROM shape;
SELECT * FROM difference;
SELECT count(*) FROM t WHERE k = 1234;
SELECT count(*) FROM t WHERE k = 1230;
-- again: nothing to do, no snapshot
SELECT paimon.compact('t');
SELECT snapshot_id, commit_kind, total_record_count, delta_record_count FROM paimon.snapshots('t') ORDER BY 1 DESC LIMIT 1;

-- what is in memory is flushed first; one bucket only
SELECT put(3000, 3100, 1, 4);
SELECT remove('k BETWEEN 3050 AND 3060');
SELECT paimon.compact('t', bucket => 1);
SELECT * FROM shape;
SELECT * FROM difference;

-- full => false does what the options say: here nothing, then, with a lower trigger, something; markers stay above what they delete
SELECT paimon.compact('t', full => false);
SELECT * FROM shape;
ALTER TABLE t SET ("num-sorted-run.compaction-trigger" = 2, "num-levels" = 4, "compaction.max-size-amplification-percent" = 100000);
SELECT remove('k < 50');
SELECT paimon.flush('t');
SELECT put(60, 70, 1, 5);
SELECT paimon.flush('t');
SELECT * FROM shape;
SELECT paimon.compact('t', full => false);
SELECT * FROM shape;
SELECT * FROM difference;
SELECT paimon.compact('t');
SELECT * FROM shape;
SELECT * FROM difference;

-- every row deleted: no files remain
SELECT remove('true');
SELECT paimon.compact('t');
SELECT * FROM shape;
SELECT * FROM difference;
SELECT put(1, 10, 1, 6);
SELECT * FROM difference;

-- a large commit of many runs, with small ones around it
ALTER TABLE t SET ("write-buffer-size" = '64 kb');
SELECT put(1, 20000, 1, 7);
SELECT put(5, 30, 5, 8);
SELECT paimon.compact('t');
SELECT bucket, level, runs, files FROM shape;
SELECT * FROM difference;
ALTER TABLE t RESET ("write-buffer-size");

-- files are cut at target-file-size; what does not overlap changes its level only
ALTER TABLE t SET ("target-file-size" = '64 kb', "compaction.small-file-ratio" = 0);
SELECT put(1, 60000, 1, 9);
SELECT paimon.compact('t');
SELECT bucket, level, runs, files > 1 AS several FROM shape;
CREATE TABLE before AS SELECT file_path, level FROM paimon.files('t');
SELECT put(70000, 70100, 1, 10);
SELECT paimon.flush('t');
CREATE TABLE flushed AS SELECT file_path FROM paimon.files('t') WHERE level = 0;
SELECT paimon.compact('t');
SELECT count(*) = (SELECT count(*) FROM before) AS all_kept FROM before JOIN paimon.files('t') USING (file_path, level);
SELECT count(*), min(level) FROM flushed JOIN paimon.files('t') USING (file_path);
SELECT * FROM difference;
-- but not when all files are to be rewritten
ALTER TABLE t SET ("compaction.force-rewrite-all-files" = true);
SELECT paimon.compact('t');
SELECT count(*) AS kept FROM before JOIN paimon.files('t') USING (file_path);
SELECT * FROM difference;
ALTER TABLE t RESET ("compaction.force-rewrite-all-files", "target-file-size", "compaction.small-file-ratio");

-- columns that came and went
ALTER TABLE t ADD COLUMN added int DEFAULT 42, DROP COLUMN d;
DROP VIEW difference;
ALTER TABLE h ADD COLUMN added int DEFAULT 42, DROP COLUMN d;
CREATE VIEW difference AS
    SELECT count(*) AS different FROM ((SELECT t::text FROM t EXCEPT ALL SELECT h::text FROM h)
        UNION ALL (SELECT h::text FROM h EXCEPT ALL SELECT t::text FROM t)) x;
UPDATE t SET added = k WHERE k % 5 = 0;
UPDATE h SET added = k WHERE k % 5 = 0;
ALTER TABLE t SET ("snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1);
SELECT paimon.compact('t');
SELECT * FROM difference;
SELECT min(added), max(added), count(*) FILTER (WHERE added = 42) > 1000 AS missing FROM t;
-- what was replaced goes
CALL wait_for($$NOT EXISTS (SELECT FROM paimon.file f JOIN paimon.storage s USING (storage_id) WHERE s.relid = 't'::regclass AND f.closing_xid <> '0')$$);
SELECT * FROM difference;

-- full-compaction.delta-commits = 1: after each flush, by itself; so do five runs with default options
CREATE TABLE cow (k int PRIMARY KEY, v int) USING paimon WITH ("full-compaction.delta-commits" = 1);
INSERT INTO cow SELECT i, 1 FROM generate_series(1, 100) i;
SELECT paimon.flush('cow') > 0 AS flushed;
CALL wait_for($$(SELECT array_agg(level) = '{2}' FROM paimon.files('cow'))$$);
INSERT INTO cow SELECT i, 2 FROM generate_series(50, 150) i;
SELECT paimon.flush('cow') > 0 AS flushed;
CALL wait_for($$(SELECT array_agg(level) = '{2}' AND sum(record_count) = 150 FROM paimon.files('cow'))$$);
SELECT count(*), sum(v) FROM cow;
CREATE TABLE five (k int PRIMARY KEY, v int) USING paimon;
DO $$
BEGIN
    FOR i IN 1 .. 5 LOOP
        INSERT INTO five SELECT g, i FROM generate_series(1, 1000) g;
        COMMIT;
        PERFORM paimon.flush('five');
        COMMIT;
    END LOOP;
END $$;
CALL wait_for($$(SELECT sum(record_count) = 1000 FROM paimon.files('five'))$$);
SELECT level, record_count FROM paimon.files('five');
SELECT commit_kind, delta_record_count FROM paimon.snapshots('five');

-- an append table keeps all its rows
CREATE TABLE append (a int) USING paimon;
INSERT INTO append SELECT i % 10 FROM generate_series(1, 1000) i;
SELECT paimon.flush('append') > 0 AS flushed;
INSERT INTO append SELECT i % 10 FROM generate_series(1, 1000) i;
DELETE FROM append WHERE a = 3;
SELECT paimon.compact('append') > 0 AS compacted;
SELECT level, record_count, delete_count FROM paimon.levels('append');
SELECT a, count(*) FROM append GROUP BY a ORDER BY a;

-- in the session: made, truncated or locked here, temporary tables
BEGIN;
CREATE TABLE own (k int PRIMARY KEY, v text) USING paimon WITH ("write-buffer-size" = '64 kb');
INSERT INTO own SELECT i, repeat('x', 100) FROM generate_series(1, 3000) i;
COMMIT;
BEGIN;
LOCK TABLE own IN ACCESS EXCLUSIVE MODE;
INSERT INTO own VALUES (1, 'mine');
SELECT paimon.compact('own') > 0 AS compacted;
SELECT bucket, level, runs, record_count FROM paimon.levels('own');
SELECT count(*), min(length(v)) FROM own;
SAVEPOINT s;
DELETE FROM own WHERE k <= 1000;
ROLLBACK TO s;
ROLLBACK;
SELECT count(*), min(length(v)) FROM own;
SELECT paimon.compact('own') > 0 AS compacted;
SELECT bucket, level, runs, record_count FROM paimon.levels('own');
CREATE TEMP TABLE temp (k int PRIMARY KEY, v int) USING paimon;
INSERT INTO temp SELECT i, 1 FROM generate_series(1, 100) i;
INSERT INTO temp SELECT i, 2 FROM generate_series(51, 150) i;
DELETE FROM temp WHERE k = 100;
SELECT runs, record_count FROM paimon.levels('temp');
SELECT paimon.compact('temp') > 0 AS compacted;
SELECT level, runs, record_count FROM paimon.levels('temp');
SELECT count(*), sum(v) FROM temp;
INSERT INTO temp VALUES (1, 3);
SELECT count(*), sum(v) FROM temp;

-- what is refused
SELECT paimon.compact('t', bucket => 2);
SELECT paimon.compact('t', bucket => -1);
SELECT paimon.compact(NULL);
SELECT paimon.compact('pg_class');
CREATE TABLE parts (k int, v int, PRIMARY KEY (k)) PARTITION BY RANGE (k) USING paimon;
SELECT paimon.compact('parts');
BEGIN READ ONLY;
SELECT paimon.compact('t');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
LOCK TABLE t IN ACCESS EXCLUSIVE MODE;
SELECT paimon.compact('t');
ROLLBACK;
CREATE ROLE compact_other;
GRANT USAGE ON SCHEMA compact TO compact_other;
SET ROLE compact_other;
SELECT paimon.compact('t');
SELECT * FROM paimon.levels('t');
RESET ROLE;
SET client_min_messages = warning;
DROP SCHEMA compact CASCADE;
DROP ROLE compact_other;
