-- Temporary tables: no worker gets at them, so their session compacts, expires and reclaims by itself. Their size stays bounded however often they are rewritten.
CREATE SCHEMA temporary;
SET search_path = temporary, public;
CREATE PROCEDURE rewrite(t regclass, n int, nrows int, fail bool DEFAULT false) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. n LOOP
		EXECUTE format('INSERT INTO %s SELECT g, md5(g || %L) || md5(%L || g) FROM generate_series(1, %s) g', t, i, i, nrows);
		IF fail THEN
			ROLLBACK;
		ELSE
			COMMIT;
		END IF;
	END LOOP;
END $$;
CREATE FUNCTION megabytes(t regclass) RETURNS int LANGUAGE sql AS 'SELECT (pg_relation_size(t) / 1048576)::int';
CREATE FUNCTION live_megabytes(t regclass) RETURNS int LANGUAGE sql AS 'SELECT (sum(file_size_in_bytes) / 1048576)::int FROM paimon.files(t)';

-- nothing retained: a few times what a cycle of compactions writes
CREATE TEMP TABLE few (k int PRIMARY KEY, v text) USING paimon
	WITH (bucket = 2, "snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1);
CALL rewrite('few', 20, 5000);
SELECT megabytes('few') AS m20 \gset
CALL rewrite('few', 80, 5000);
SELECT megabytes('few') <= :m20 + 2 AS bounded, megabytes('few') < 20 AS small;
SELECT count(*), count(*) FILTER (WHERE v = md5(k || '80') || md5('80' || k)) FROM few;
SELECT count(*) <= 12 AS few_snapshots, count(*) > 0 AS some FROM paimon.snapshots('few');
SELECT * FROM paimon.verify('few');

-- what transactions leave behind that are rolled back, too
CALL rewrite('few', 40, 5000, true);
CALL rewrite('few', 30, 5000);
SELECT megabytes('few') <= :m20 + 20 AS bounded;
SELECT count(*), count(*) FILTER (WHERE v = md5(k || '30') || md5('30' || k)) FROM few;

-- the defaults: a quarter of the live files, or 16 MB, beside them
CREATE TEMP TABLE defaults (k int PRIMARY KEY, v text) USING paimon;
CALL rewrite('defaults', 100, 20000);
SELECT megabytes('defaults') < live_megabytes('defaults') + 16 + 30 AS bounded, live_megabytes('defaults') > 0 AS live;
SELECT count(*), count(*) FILTER (WHERE v = md5(k || '100') || md5('100' || k)) FROM defaults;
SELECT * FROM paimon.verify('defaults');

-- old snapshots of the session: of a transaction, of cursors
BEGIN ISOLATION LEVEL REPEATABLE READ;
DECLARE c CURSOR FOR SELECT k, v FROM few ORDER BY k;
FETCH 1 FROM c;
SAVEPOINT s;
UPDATE few SET v = 'new';
SELECT paimon.compact('few') > 0 AS compacted;
SELECT count(*), min(v) FROM few;
FETCH 1 FROM c;
ROLLBACK TO s;
SELECT paimon.compact('few') > 0 AS compacted;
SELECT count(*), count(*) FILTER (WHERE v = md5(k || '30') || md5('30' || k)) FROM few;
MOVE ABSOLUTE 4999 FROM c;
FETCH 2 FROM c;
COMMIT;
SELECT count(*), count(*) FILTER (WHERE v = md5(k || '30') || md5('30' || k)) FROM few;
SELECT * FROM paimon.verify('few');
BEGIN;
DECLARE h CURSOR WITH HOLD FOR SELECT k, v = md5(k || '30') || md5('30' || k) FROM few ORDER BY k;
COMMIT;
CALL rewrite('few', 25, 5000);
MOVE ABSOLUTE 4999 FROM h;
FETCH 2 FROM h;
CLOSE h;

-- append tables, rows deleted, VACUUM gives back what is free
CREATE TEMP TABLE appended (k int, v text) USING paimon WITH ("snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1);
CALL rewrite('appended', 5, 20000);
DELETE FROM appended;
SELECT paimon.compact('appended') > 0 AS compacted;
VACUUM appended;
VACUUM appended;
SELECT count(*), megabytes('appended') AS mb FROM appended;
DELETE FROM few;
SELECT paimon.compact('few') > 0 AS compacted;
VACUUM few;
VACUUM few;
SELECT count(*), megabytes('few') AS mb FROM few;
SELECT * FROM paimon.verify('few');
INSERT INTO few VALUES (1, 'again');
SELECT * FROM few;

-- emptied at each commit
CREATE TEMP TABLE emptied (k int PRIMARY KEY, v text) USING paimon ON COMMIT DELETE ROWS;
CALL rewrite('emptied', 40, 5000);
SELECT count(*), megabytes('emptied') AS mb FROM emptied;
DISCARD TEMP;
SET client_min_messages = warning;
DROP SCHEMA temporary CASCADE;
