-- Expiry of snapshots, what it lets go, and paimon.verify.  Tables are write-only here: snapshots expire when VACUUM asks for it.
CREATE SCHEMA expire;
SET search_path = expire;

CREATE TABLE bad (k int) USING paimon WITH ("snapshot.num-retained.max" = 3);
CREATE TABLE bad (k int) USING paimon WITH ("snapshot.num-retained.min" = 4, "snapshot.num-retained.max" = 3);
CREATE TABLE bad (k int) USING paimon WITH ("snapshot.num-retained.min" = 0);
CREATE TABLE bad (k int) USING paimon WITH ("snapshot.time-retained" = 'soon');
CREATE TABLE t (k int PRIMARY KEY, v text) USING paimon
    WITH ("write-only" = true, bucket = 2, "snapshot.num-retained.min" = 2, "snapshot.num-retained.max" = 4);
ALTER TABLE t SET ("snapshot.num-retained.max" = 1);
ALTER TABLE t RESET ("snapshot.num-retained.min");
ALTER TABLE t SET (snapshot_expire_limit = 0);

CREATE PROCEDURE put(rounds int) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1 .. rounds LOOP
        INSERT INTO t SELECT g, md5((g * i)::text) FROM generate_series(1, 3000) g;
        COMMIT;
        PERFORM paimon.flush('t');
        COMMIT;
    END LOOP;
END $$;
CREATE VIEW snapshots AS SELECT snapshot_id, commit_kind FROM paimon.snapshots('t') ORDER BY 1;
CREATE VIEW closed AS
    SELECT count(*), min(added_snapshot), max(removed_snapshot) FROM paimon.file f JOIN paimon.storage s USING (storage_id)
    WHERE s.relid = 't'::regclass AND f.closing_xid <> '0';
CREATE PROCEDURE wait_until(condition text) LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := clock_timestamp() + '1 minute';
    done bool;
BEGIN
    WHILE clock_timestamp() < until LOOP
        PERFORM paimon.test_sweep('t');
        COMMIT;
        EXECUTE 'SELECT ' || condition INTO done;
        COMMIT;
        IF done THEN
            RETURN;
        END IF;
    END LOOP;
    RAISE 'not within a minute: %', condition;
END $$;

SELECT * FROM paimon.verify('t');
CALL put(6);
SELECT * FROM snapshots;
-- the newest four stay
VACUUM t;
SELECT * FROM snapshots;
SELECT * FROM paimon.verify('t');
-- what a compaction replaces is kept for the snapshots that have it
SELECT paimon.compact('t');
VACUUM t;
SELECT * FROM snapshots;
SELECT * FROM closed;
SELECT * FROM paimon.verify('t');
SELECT count(*), count(DISTINCT v) FROM t;
-- each snapshot that comes lets one go; when the last one from before the compaction has gone, its files go too
CALL put(2);
VACUUM t;
SELECT * FROM snapshots;
CALL wait_until('(SELECT count = 6 FROM closed)');
CALL put(1);
CALL wait_until('(SELECT count = 0 FROM closed)');
SELECT * FROM snapshots;
SELECT * FROM paimon.verify('t');

-- time: nothing that is old stays but the smallest number
ALTER TABLE t SET ("snapshot.time-retained" = '0 ms');
CALL put(1);
VACUUM t;
SELECT count(*) FROM snapshots;
-- a limit to what goes at once
ALTER TABLE t SET ("snapshot.num-retained.max" = 100, "snapshot.time-retained" = '1 d', "snapshot.expire.limit" = 3);
CALL put(7);
VACUUM t;
SELECT count(*), min(snapshot_id) FROM snapshots;
ALTER TABLE t SET ("snapshot.num-retained.max" = 2);
VACUUM t;
SELECT count(*), min(snapshot_id) FROM snapshots;
VACUUM t;
SELECT count(*), min(snapshot_id) FROM snapshots;
VACUUM t;
SELECT count(*), min(snapshot_id) FROM snapshots;
SELECT * FROM paimon.verify('t');

-- by default an hour, and ten; expiry counts from commits, so full-compaction.delta-commits goes on counting
CREATE TABLE d (k int PRIMARY KEY, v int) USING paimon;
DO $$
BEGIN
    FOR i IN 1 .. 12 LOOP
        INSERT INTO d SELECT g, i FROM generate_series(1, 100) g;
        COMMIT;
        PERFORM paimon.flush('d');
        COMMIT;
    END LOOP;
END $$;
SELECT paimon.test_sweep('d');
SELECT count(*) FROM paimon.snapshots('d') WHERE commit_kind = 'APPEND';
SELECT * FROM paimon.verify('d');

-- who may: the owner and whoever may read it
CREATE ROLE expire_reader;
GRANT USAGE ON SCHEMA expire TO expire_reader;
SET ROLE expire_reader;
SELECT * FROM paimon.verify('t');
RESET ROLE;
GRANT SELECT ON t TO expire_reader;
SET ROLE expire_reader;
SELECT * FROM paimon.verify('t');
RESET ROLE;
SELECT * FROM paimon.verify('pg_class');
SELECT * FROM paimon.verify(0);
SELECT * FROM paimon.verify(NULL);

-- partitions, temporary and unlogged tables, materialized views; in a transaction, after an error in a savepoint, with rows of one's own
CREATE TABLE p (a int, b text, PRIMARY KEY (a)) PARTITION BY RANGE (a) USING paimon;
CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (100) USING paimon;
CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (100) TO (200) USING paimon;
INSERT INTO p SELECT i, 'x' FROM generate_series(0, 199) i;
SELECT paimon.flush('p1') > 0 AS flushed;
SELECT * FROM paimon.verify('p');
BEGIN ISOLATION LEVEL REPEATABLE READ;
CREATE TEMP TABLE tmp (a int PRIMARY KEY) USING paimon;
INSERT INTO tmp SELECT generate_series(1, 1000);
SAVEPOINT s;
SELECT * FROM paimon.verify('tmp');
SELECT 1 / 0;
ROLLBACK TO s;
SELECT * FROM paimon.verify('tmp');
COMMIT;
SELECT paimon.flush('tmp') > 0 AS flushed;
SELECT * FROM paimon.verify('tmp');
CREATE UNLOGGED TABLE u (a int) USING paimon;
INSERT INTO u SELECT generate_series(1, 1000);
SELECT * FROM paimon.verify('u');
CREATE MATERIALIZED VIEW m USING paimon AS SELECT * FROM generate_series(1, 1000) a;
SELECT * FROM paimon.verify('m');

-- what is wrong in the manifest
UPDATE paimon.snapshot SET total_record_count = total_record_count + 1 WHERE storage_id IN (SELECT storage_id FROM paimon.storage WHERE relid = 'd'::regclass)
    AND snapshot_id = 3;
SELECT * FROM paimon.verify('d');
UPDATE paimon.snapshot SET total_record_count = total_record_count - 1 WHERE storage_id IN (SELECT storage_id FROM paimon.storage WHERE relid = 'd'::regclass)
    AND snapshot_id = 3;
SELECT * FROM paimon.verify('d');

DROP TABLE tmp;
SET client_min_messages = warning;
DROP SCHEMA expire CASCADE;
DROP ROLE expire_reader;
