-- Transactions: two-phase commit, tables without a key, TRUNCATE, temporary tables.
CREATE TABLE tx_p (k int PRIMARY KEY, t text) USING paimon WITH ("write-buffer-size" = '64kb');
BEGIN;
INSERT INTO tx_p VALUES (1, 'prepared'), (2, 'prepared');
PREPARE TRANSACTION 'tx_one';
SELECT * FROM tx_p ORDER BY k;
COMMIT PREPARED 'tx_one';
SELECT * FROM tx_p ORDER BY k;
BEGIN;
UPDATE tx_p SET t = 'never';
PREPARE TRANSACTION 'tx_two';
ROLLBACK PREPARED 'tx_two';
SELECT * FROM tx_p ORDER BY k;
-- Run files written: only in one phase.
BEGIN;
INSERT INTO tx_p SELECT g, repeat('x', 100) FROM generate_series(1, 3000) g;
PREPARE TRANSACTION 'tx_three';
SELECT * FROM tx_p ORDER BY k;
-- What a rolled-back sub-transaction wrote does not count, what surrounds it does, whether spilled or not.
BEGIN;
SAVEPOINT one;
INSERT INTO tx_p SELECT g, 'one' FROM generate_series(100, 200) g;
ROLLBACK TO one;
INSERT INTO tx_p SELECT g, 'live' FROM generate_series(300, 302) g;
SAVEPOINT two;
INSERT INTO tx_p SELECT g, repeat('two', 100) FROM generate_series(400, 3000) g;
ROLLBACK TO two;
COMMIT;
SELECT * FROM tx_p ORDER BY k;
-- TRUNCATE, rolled back and not.
BEGIN;
TRUNCATE tx_p;
INSERT INTO tx_p VALUES (7, 'after');
SELECT * FROM tx_p ORDER BY k;
ROLLBACK;
SELECT count(*) FROM tx_p;
BEGIN;
INSERT INTO tx_p VALUES (8, 'before');
TRUNCATE tx_p;
INSERT INTO tx_p VALUES (7, 'after');
COMMIT;
SELECT * FROM tx_p ORDER BY k;
-- Without a key every row is a row.
CREATE TABLE tx_append (v int) USING paimon;
INSERT INTO tx_append VALUES (1), (1), (2);
UPDATE tx_append SET v = v + 1 WHERE v = 1;
DELETE FROM tx_append WHERE ctid = (SELECT min(ctid) FROM tx_append);
SELECT v, count(*) FROM tx_append GROUP BY v ORDER BY v;
-- Temporary tables.
CREATE TEMP TABLE tx_temp (k int PRIMARY KEY, t text) USING paimon ON COMMIT DELETE ROWS;
BEGIN;
INSERT INTO tx_temp VALUES (1, 'a'), (1, 'b');
SELECT * FROM tx_temp;
COMMIT;
SELECT * FROM tx_temp;
DROP TABLE tx_p, tx_append, tx_temp;
