-- Tables without a key: every row is a row, found again by its ctid; beside heap.
SET client_min_messages = warning;
CREATE SCHEMA append;
SET search_path = append, public;
CREATE FUNCTION same(p regclass, h regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n bigint; other bigint;
BEGIN
	EXECUTE format('SELECT (SELECT count(*) FROM %1$s), count(*) FROM ((SELECT x::text FROM %1$s x EXCEPT ALL SELECT x::text FROM %2$s x)
		UNION ALL (SELECT x::text FROM %2$s x EXCEPT ALL SELECT x::text FROM %1$s x)) d', p, h) INTO n, other;
	RETURN CASE other WHEN 0 THEN 'same, ' || n || ' rows' ELSE 'different: ' || other || ' of ' || n END;
END $$;
CREATE TABLE p (v int, t text) USING paimon WITH ("write-buffer-size" = '64kb');
CREATE TABLE h (v int, t text) USING heap;
-- Duplicates, also whole ones, stay.
INSERT INTO p VALUES (1, 'a'), (1, 'a'), (1, 'b'), (NULL, NULL), (NULL, NULL) RETURNING *;
INSERT INTO h VALUES (1, 'a'), (1, 'a'), (1, 'b'), (NULL, NULL), (NULL, NULL);
INSERT INTO p SELECT * FROM p;
INSERT INTO h SELECT * FROM h;
SELECT same('p', 'h');
SELECT count(*), count(DISTINCT ctid) FROM p;
-- One of two equal rows, by ctid.
DELETE FROM p WHERE ctid = (SELECT ctid FROM p WHERE t = 'a' LIMIT 1);
DELETE FROM h WHERE ctid = (SELECT ctid FROM h WHERE t = 'a' LIMIT 1);
UPDATE p SET v = 5 WHERE ctid IN (SELECT ctid FROM p WHERE v IS NULL LIMIT 3) RETURNING v, t;
UPDATE h SET v = 5 WHERE ctid IN (SELECT ctid FROM h WHERE v IS NULL LIMIT 3);
SELECT same('p', 'h');
SELECT paimon.flush('p') > 0 AS flushed;
SELECT same('p', 'h');
-- Rows in files are changed and deleted, with rows in memory beside them.
UPDATE p SET t = t || '!' WHERE v = 1;
UPDATE h SET t = t || '!' WHERE v = 1;
DELETE FROM p WHERE v = 5;
DELETE FROM h WHERE v = 5;
INSERT INTO p VALUES (1, 'a!');
INSERT INTO h VALUES (1, 'a!');
SELECT same('p', 'h');
SELECT paimon.flush('p') > 0 AS flushed;
SELECT same('p', 'h');
SELECT v, t, count(*) FROM p GROUP BY 1, 2 ORDER BY 1, 2;

-- Many rows, more than the write buffer, changed by plans that join.
BEGIN;
INSERT INTO p SELECT g % 100, md5((g % 1000)::text) FROM generate_series(1, 6000) g;
INSERT INTO h SELECT g % 100, md5((g % 1000)::text) FROM generate_series(1, 6000) g;
SELECT same('p', 'h');
DELETE FROM p USING generate_series(0, 100, 7) s WHERE p.v = s;
DELETE FROM h USING generate_series(0, 100, 7) s WHERE h.v = s;
SELECT same('p', 'h');
SAVEPOINT s;
DELETE FROM p;
SELECT count(*) FROM p;
INSERT INTO p VALUES (0, 'rolled back');
ROLLBACK TO s;
SELECT same('p', 'h');
UPDATE p SET v = p.v + 1000 FROM h WHERE h.v = p.v AND h.t = p.t AND p.v % 3 = 0;
UPDATE h SET v = v + 1000 WHERE v % 3 = 0;
SELECT same('p', 'h');
COMMIT;
SELECT same('p', 'h');
UPDATE p SET t = 'x' || t, v = v + 1 WHERE v > 500;
UPDATE h SET t = 'x' || t, v = v + 1 WHERE v > 500;
SELECT same('p', 'h');
SELECT paimon.flush('p') > 0 AS flushed;
-- Different ways to the rows.
SET enable_hashjoin = off;
SET enable_mergejoin = off;
UPDATE p SET t = 'loop' FROM (VALUES (3), (4)) s (v) WHERE p.v = s.v;
UPDATE h SET t = 'loop' WHERE v IN (3, 4);
RESET enable_hashjoin;
RESET enable_mergejoin;
SELECT same('p', 'h');
MERGE INTO p USING (SELECT DISTINCT v FROM h WHERE v BETWEEN 5 AND 20) s ON p.v = s.v
	WHEN MATCHED AND p.v < 10 THEN DELETE WHEN MATCHED THEN UPDATE SET t = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (s.v, 'new');
MERGE INTO h USING (SELECT DISTINCT v FROM h WHERE v BETWEEN 5 AND 20) s ON h.v = s.v
	WHEN MATCHED AND h.v < 10 THEN DELETE WHEN MATCHED THEN UPDATE SET t = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (s.v, 'new');
SELECT same('p', 'h');
WITH gone AS (DELETE FROM p WHERE v = 11 RETURNING *) INSERT INTO p SELECT v, 'from with' FROM gone;
WITH gone AS (DELETE FROM h WHERE v = 11 RETURNING *) INSERT INTO h SELECT v, 'from with' FROM gone;
SELECT same('p', 'h');
-- Changed twice in a transaction, deleted after a change, with savepoints, in loops.
BEGIN;
UPDATE p SET t = 'once' WHERE v = 12;
UPDATE p SET t = t || ' and again' WHERE v = 12;
SAVEPOINT s;
UPDATE p SET t = 'never' WHERE v = 12;
DELETE FROM p WHERE v = 12;
ROLLBACK TO s;
DELETE FROM p WHERE v = 13;
UPDATE h SET t = 'once and again' WHERE v = 12;
DELETE FROM h WHERE v = 13;
SELECT same('p', 'h');
COMMIT;
SELECT same('p', 'h');
DO $$
DECLARE r record;
BEGIN
	FOR r IN SELECT ctid AS at, v FROM p WHERE v BETWEEN 15 AND 20 LOOP
		UPDATE p SET v = r.v + 50000, t = 'in a loop' WHERE ctid = r.at;
	END LOOP;
END $$;
UPDATE h SET v = v + 50000, t = 'in a loop' WHERE v BETWEEN 15 AND 20;
SELECT same('p', 'h');
-- Locked rows, and no row of the table is taken for another's.
BEGIN;
SELECT count(*) FROM (SELECT 1 FROM p WHERE v = 30 FOR UPDATE) s;
UPDATE p SET t = 'locked' WHERE v = 30;
UPDATE h SET t = 'locked' WHERE v = 30;
COMMIT;
SELECT same('p', 'h');
DELETE FROM p WHERE ctid = '(4294967295,1)';
DELETE FROM p WHERE ctid = '(0,0)';
SELECT same('p', 'h');
SELECT paimon.flush('p') > 0 AS flushed;
VACUUM p;
ANALYZE p;
SELECT same('p', 'h');
VACUUM FULL p;
SELECT same('p', 'h');
UPDATE p SET v = v - 1 WHERE v % 2 = 0;
UPDATE h SET v = v - 1 WHERE v % 2 = 0;
SELECT same('p', 'h');
-- rows keep their numbers: later ones must not get the same
INSERT INTO p SELECT g, 'later' FROM generate_series(1001, 1200) g;
INSERT INTO h SELECT g, 'later' FROM generate_series(1001, 1200) g;
SELECT same('p', 'h');

-- TRUNCATE.
BEGIN;
TRUNCATE p;
INSERT INTO p VALUES (1, 'after');
SELECT * FROM p;
ROLLBACK;
SELECT same('p', 'h');
BEGIN;
DELETE FROM p WHERE v < 50;
TRUNCATE p;
INSERT INTO p SELECT * FROM h;
UPDATE p SET t = 'mine' WHERE v > 1000;
UPDATE h SET t = 'mine' WHERE v > 1000;
COMMIT;
SELECT same('p', 'h');
-- INSERT … ON CONFLICT without a key has nothing to conflict with.
INSERT INTO p VALUES (1, 'conflict') ON CONFLICT DO NOTHING;
INSERT INTO p VALUES (1, 'conflict') ON CONFLICT (v) DO NOTHING;
DELETE FROM p WHERE t = 'conflict';

-- A key is added: with duplicates, with NULLs, and on rows in memory and in files.
CREATE TABLE kp (a int, b int, t text) USING paimon WITH (bucket = 1);
INSERT INTO kp SELECT g, g % 2, 'file' FROM generate_series(1, 50) g;
SELECT paimon.flush('kp') > 0 AS flushed;
INSERT INTO kp SELECT g, g % 2, 'memory' FROM generate_series(40, 90) g;
ALTER TABLE kp ADD PRIMARY KEY (a);
SELECT count(*), count(DISTINCT a) FROM kp;
DELETE FROM kp WHERE a BETWEEN 40 AND 50 AND t = 'file';
BEGIN;
INSERT INTO kp VALUES (7, 1, 'twice');
ALTER TABLE kp ADD PRIMARY KEY (a);
ROLLBACK;
BEGIN;
INSERT INTO kp VALUES (NULL, 1, 'null');
ALTER TABLE kp ADD PRIMARY KEY (a);
ROLLBACK;
BEGIN;
ALTER TABLE kp ADD PRIMARY KEY (a);
INSERT INTO kp VALUES (7, 1, 'upserted');
SELECT count(*) FROM kp;
SELECT * FROM kp WHERE a = 7;
ROLLBACK;
SELECT count(*) FROM kp WHERE a = 7;
INSERT INTO kp VALUES (7, 1, 'kept');
SELECT count(*) FROM kp WHERE a = 7;
DELETE FROM kp WHERE t = 'kept';
ALTER TABLE kp ADD CONSTRAINT kp_key PRIMARY KEY (a);
SELECT count(*), count(DISTINCT a), sum(b) FROM kp;
INSERT INTO kp VALUES (7, 1, 'upserted'), (70, 0, 'upserted'), (700, 0, 'new');
SET enable_seqscan = off;
SELECT * FROM kp WHERE a IN (7, 70, 700, 8, 80) ORDER BY a;
RESET enable_seqscan;
SELECT count(*) FROM kp;
UPDATE kp SET t = 'updated' WHERE a < 10;
DELETE FROM kp WHERE a > 60;
SELECT paimon.flush('kp') > 0 AS flushed;
SELECT t, count(*) FROM kp GROUP BY t ORDER BY t;
-- Without rows, then with.
CREATE TABLE kq (a int, t text) USING paimon;
INSERT INTO kq VALUES (1, 'x'), (1, 'y');
DELETE FROM kq;
ALTER TABLE kq ADD PRIMARY KEY (a);
INSERT INTO kq VALUES (1, 'x'), (1, 'y');
SELECT * FROM kq;
DROP SCHEMA append CASCADE;
