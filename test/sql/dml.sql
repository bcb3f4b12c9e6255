-- Statements on a table with a key, beside a heap table that gets the same.
CREATE TABLE dml_p (k int PRIMARY KEY, v int, t text) USING paimon WITH (bucket = 3, "write-buffer-size" = '64kb');
CREATE TABLE dml_h (k int PRIMARY KEY, v int, t text) USING heap;
CREATE FUNCTION dml_same() RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN EXISTS (TABLE dml_p EXCEPT ALL TABLE dml_h) OR EXISTS (TABLE dml_h EXCEPT ALL TABLE dml_p) THEN 'different'
		ELSE 'same, ' || (SELECT count(*) FROM dml_p) || ' rows' END
$$;
-- An INSERT of a key that is there replaces the row; of several rows of a key the last one counts.
INSERT INTO dml_p VALUES (1, 1, 'a'), (2, 2, 'b'), (1, 3, 'c');
INSERT INTO dml_h VALUES (1, 3, 'c'), (2, 2, 'b');
SELECT dml_same();
INSERT INTO dml_p VALUES (2, NULL, NULL) RETURNING *;
UPDATE dml_h SET v = NULL, t = NULL WHERE k = 2;
SELECT dml_same();
-- More than the write buffer holds, read and changed in its own transaction.
BEGIN;
INSERT INTO dml_p SELECT g, g, repeat(md5(g::text), 5) FROM generate_series(1, 3000) g;
SELECT count(*), sum(v) FROM dml_p;
UPDATE dml_p SET v = v + 1;
SAVEPOINT one;
DELETE FROM dml_p WHERE k % 2 = 0;
SELECT count(*), sum(v) FROM dml_p;
ROLLBACK TO one;
DELETE FROM dml_p WHERE k % 3 = 0;
COMMIT;
DELETE FROM dml_h;
INSERT INTO dml_h SELECT g, g + 1, repeat(md5(g::text), 5) FROM generate_series(1, 3000) g WHERE g % 3 <> 0;
SELECT dml_same();
-- Keys that move onto each other's places in one statement.
BEGIN;
UPDATE dml_p SET k = k + 1;
UPDATE dml_h SET k = k + 1000000;
UPDATE dml_h SET k = k - 999999;
SELECT dml_same();
COMMIT;
SELECT dml_same();
-- ... also when each row goes to another partition.
CREATE TABLE dml_parts (k int PRIMARY KEY, v int) PARTITION BY HASH (k) USING paimon;
CREATE TABLE dml_parts_0 PARTITION OF dml_parts FOR VALUES WITH (modulus 2, remainder 0);
CREATE TABLE dml_parts_1 PARTITION OF dml_parts FOR VALUES WITH (modulus 2, remainder 1);
INSERT INTO dml_parts SELECT g, g FROM generate_series(1, 100) g;
UPDATE dml_parts SET k = k + 1;
SELECT count(*), count(*) FILTER (WHERE k = v + 1) AS moved FROM dml_parts;
UPDATE dml_parts SET k = k - 1;
SELECT count(*), count(*) FILTER (WHERE k = v) AS moved FROM dml_parts;
UPDATE dml_parts SET k = 101 - k;
SELECT count(*), count(*) FILTER (WHERE k = 101 - v) AS moved FROM dml_parts;
DROP TABLE dml_parts;
-- A statement does not see what it writes itself.
INSERT INTO dml_p SELECT k + 10000, v, t FROM dml_p;
INSERT INTO dml_h SELECT k + 10000, v, t FROM dml_h;
SELECT dml_same();
-- A cursor shows what was there when it was opened, also after a spill.
BEGIN;
INSERT INTO dml_p VALUES (0, 0, 'zero');
DECLARE c CURSOR FOR SELECT k, t FROM dml_p WHERE k = 0;
DELETE FROM dml_p;
INSERT INTO dml_p SELECT g, g, repeat('x', 300) FROM generate_series(1, 2000) g;
FETCH ALL FROM c;
ROLLBACK;
SELECT dml_same();
DROP FUNCTION dml_same();
DROP TABLE dml_p, dml_h;

-- a plain INSERT has nothing to tell the key's index, and so does not even lock it; one with ON CONFLICT asks it
CREATE TABLE dml_index (id int PRIMARY KEY, v int) USING paimon;
BEGIN;
INSERT INTO dml_index VALUES (1, 1);
INSERT INTO dml_index SELECT i, i FROM generate_series(2, 5) i;
SELECT count(*) FROM pg_locks WHERE relation = 'dml_index_pkey'::regclass AND pid = pg_backend_pid();
INSERT INTO dml_index VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET v = dml_index.v + excluded.v;
SELECT count(*) > 0 AS locked FROM pg_locks WHERE relation = 'dml_index_pkey'::regclass AND pid = pg_backend_pid();
COMMIT;
SELECT * FROM dml_index ORDER BY id;
DROP TABLE dml_index;
