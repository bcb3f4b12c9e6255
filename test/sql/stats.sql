-- paimon.stats: what is counted, by what, and for whom.
CREATE TABLE st (a int PRIMARY KEY, b text) USING paimon WITH ("write-only" = true, "write-buffer-size" = '64kb', bucket = 2);
SELECT to_jsonb(s) - 'stats_since' AS stats, stats_since <= now() AS since FROM paimon.stats('st') s;
INSERT INTO st SELECT i, 'x' FROM generate_series(1, 20) i;
-- rolled back: not counted; small: in the log
BEGIN; INSERT INTO st VALUES (21, 'y'); ROLLBACK;
SELECT rows_written, bytes_written, flushes, runs, read_amplification, unflushed_bytes > 0 AS unflushed, write_amplification FROM paimon.stats('st');
SELECT paimon.flush('st');
SELECT rows_written, flushes, flush_bytes = file_bytes AS bytes, runs, read_amplification, space_amplification, unflushed_bytes,
	write_amplification = flush_bytes / bytes_written::float8 AS wa, rewrite_factor FROM paimon.stats('st');
-- large
INSERT INTO st SELECT i, repeat(md5(i::text), 3) FROM generate_series(1, 200) i;
SELECT rows_written, flushes, large_commits, large_commit_bytes + flush_bytes = file_bytes AS bytes, runs FROM paimon.stats('st');
SELECT paimon.compact('st');
SELECT compactions, compaction_bytes_read = large_commit_bytes + flush_bytes AS read, compaction_bytes_written = file_bytes AS written,
	runs, read_amplification, space_amplification, rewrite_factor = (large_commit_bytes + flush_bytes + compaction_bytes_written)::float8 / (large_commit_bytes + flush_bytes) AS factor
	FROM paimon.stats('st');
DELETE FROM st WHERE a <= 10;
UPDATE st SET b = 'z' WHERE a = 11;
SELECT rows_written, runs, read_amplification FROM paimon.stats('st');
-- row groups, found open or not: a new session has none open
CREATE FUNCTION groups(OUT hit bigint, OUT read bigint) LANGUAGE sql AS $$ SELECT groups_hit, groups_read FROM paimon.stats('st') $$;
SELECT hit AS hit0, read AS read0 FROM groups() \gset
\c -
SELECT count(b) FROM st;
SELECT hit - :hit0 AS hit, read - :read0 AS read FROM groups();
SELECT count(b) FROM st;
BEGIN;
SELECT b FROM st WHERE a = 50;
SELECT hit - :hit0 AS hit, read - :read0 AS read FROM groups();
ROLLBACK;
SELECT hit - :hit0 AS hit, read - :read0 AS read FROM groups();
DROP FUNCTION groups();
-- publications that are rolled back
BEGIN;
LOCK TABLE st;
SAVEPOINT s;
SELECT paimon.flush('st');
SELECT runs, flushes FROM paimon.stats('st');
ROLLBACK TO s;
COMMIT;
SELECT runs, flushes, stop_trigger, stalls, writers_waiting FROM paimon.stats('st');
ALTER TABLE st SET ("write-only" = false, "num-sorted-run.stop-trigger" = 3);
SELECT stop_trigger FROM paimon.stats('st');
ALTER TABLE st SET ("num-sorted-run.stop-trigger" = 2147483647);
SELECT stop_trigger FROM paimon.stats('st');
ALTER TABLE st SET ("num-sorted-run.stop-trigger" = 0);
-- the same table: TRUNCATE and rewrites change its storage only
TRUNCATE st;
SELECT rows_written, file_bytes, runs FROM paimon.stats('st');
VACUUM FULL st;
SELECT rows_written, file_bytes, runs FROM paimon.stats('st');
-- temporary tables have a manifest and no counters; partitioned ones a row for each partition
CREATE TEMP TABLE stt (a int PRIMARY KEY) USING paimon;
INSERT INTO stt VALUES (1);
SELECT runs, stalls, rows_written, file_bytes > 0 AS bytes FROM paimon.stats('stt');
CREATE TABLE stp (a int PRIMARY KEY) PARTITION BY RANGE (a);
CREATE TABLE stp1 PARTITION OF stp FOR VALUES FROM (0) TO (10) USING paimon;
CREATE TABLE stp2 PARTITION OF stp FOR VALUES FROM (10) TO (20) USING paimon;
INSERT INTO stp VALUES (1), (11), (12);
SELECT relation, rows_written FROM paimon.stats('stp') ORDER BY 1;
-- privileges
CREATE ROLE stats_user;
SET ROLE stats_user;
SELECT * FROM paimon.stats('st');
RESET ROLE;
GRANT SELECT ON st TO stats_user;
SET ROLE stats_user;
SELECT runs FROM paimon.stats('st');
RESET ROLE;
ALTER TABLE st ENABLE ROW LEVEL SECURITY;
SET ROLE stats_user;
SELECT runs FROM paimon.stats('st');
RESET ROLE;
SELECT * FROM paimon.stats('pg_class');
SELECT * FROM paimon.stats(1::regclass);
DROP TABLE st, stt, stp;
DROP ROLE stats_user;
