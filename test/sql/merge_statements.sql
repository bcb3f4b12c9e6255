-- Statements that touch rows of every engine otherwise than INSERT, UPDATE and DELETE do: MERGE, deferred triggers and foreign keys, two-phase commit.
SET client_min_messages = warning;
\set VERBOSITY terse
-- MERGE ... DELETE where deletes have no effect: the row stays, is not counted, and is no row that was not matched
CREATE TABLE ms_a (k int PRIMARY KEY, v int, x text) USING paimon WITH ("merge-engine" = 'aggregation', "fields.v.aggregate-function" = 'sum', "ignore-delete" = true);
INSERT INTO ms_a VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c');
PREPARE ms_merge AS MERGE INTO ms_a t USING (VALUES (1, 10), (2, 20), (9, 90)) s(k, v) ON t.k = s.k
	WHEN MATCHED AND s.k = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, 'n');
EXECUTE ms_merge;
SELECT * FROM ms_a ORDER BY k;
EXECUTE ms_merge;
SELECT paimon.compact('ms_a') > 0;
MERGE INTO ms_a t USING (VALUES (1), (1), (2), (9)) s(k) ON t.k = s.k WHEN MATCHED THEN DELETE;
BEGIN;
INSERT INTO ms_a VALUES (1, 5, NULL), (4, 4, 'd');
MERGE INTO ms_a t USING (VALUES (1), (4)) s(k) ON t.k = s.k WHEN MATCHED AND t.v > 5 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 0;
COMMIT;
SELECT * FROM ms_a ORDER BY k;
MERGE INTO ms_a t USING (VALUES (1)) s(k) ON t.k = s.k WHEN MATCHED THEN UPDATE SET k = 5;
-- the option is the table's at hand: the plan that was kept deletes where deletes count
CREATE TABLE ms_b (k int PRIMARY KEY, v int) USING paimon WITH ("merge-engine" = 'aggregation', "fields.v.aggregate-function" = 'sum');
INSERT INTO ms_b VALUES (1, 1), (2, 2), (3, 3);
PREPARE ms_delete(int) AS MERGE INTO ms_b t USING (SELECT $1 AS k) s ON t.k = s.k WHEN MATCHED THEN DELETE;
EXECUTE ms_delete(1);
ALTER TABLE ms_b SET ("ignore-delete" = true);
EXECUTE ms_delete(2);
SELECT * FROM ms_b ORDER BY k;
-- partitions, of which one takes deletes
CREATE TABLE ms_p (k int, p int, v int, PRIMARY KEY (k, p)) PARTITION BY LIST (p);
CREATE TABLE ms_p1 PARTITION OF ms_p FOR VALUES IN (1) USING paimon WITH ("ignore-delete" = true);
CREATE TABLE ms_p2 PARTITION OF ms_p FOR VALUES IN (2) USING paimon;
CREATE TABLE ms_p3 PARTITION OF ms_p FOR VALUES IN (3) USING paimon WITH ("merge-engine" = 'first-row', "ignore-delete" = true);
INSERT INTO ms_p SELECT k, p, 0 FROM generate_series(1, 2) k, generate_series(1, 3) p;
MERGE INTO ms_p t USING (VALUES (1)) s(k) ON t.k = s.k WHEN MATCHED THEN DELETE;
SELECT * FROM ms_p ORDER BY p, k;
-- first-row
CREATE TABLE ms_f (k int PRIMARY KEY, v int) USING paimon WITH ("merge-engine" = 'first-row');
INSERT INTO ms_f VALUES (1, 1);
MERGE INTO ms_f t USING (VALUES (1, 10), (2, 20)) s(k, v) ON t.k = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v);
MERGE INTO ms_f t USING (VALUES (1, 10), (2, 20)) s(k, v) ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v);
MERGE INTO ms_f t USING (VALUES (1, 10), (2, 20)) s(k, v) ON t.k = s.k WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v);
ALTER TABLE ms_f SET ("ignore-delete" = true);
MERGE INTO ms_f t USING (VALUES (1, 10), (3, 30)) s(k, v) ON t.k = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v);
SELECT * FROM ms_f ORDER BY k;
-- partial-update: MERGE's UPDATE sets to NULL, its INSERT merges with what comes
CREATE TABLE ms_u (k int PRIMARY KEY, a int, b int) USING paimon WITH ("merge-engine" = 'partial-update');
INSERT INTO ms_u VALUES (1, 1, 1), (2, 2, 2);
MERGE INTO ms_u t USING (VALUES (1, 10), (2, 20), (3, 30)) s(k, v) ON t.k = s.k
	WHEN MATCHED AND s.k = 2 THEN DELETE WHEN MATCHED THEN UPDATE SET a = s.v, b = NULL WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, NULL);
SELECT * FROM ms_u ORDER BY k;
INSERT INTO ms_u VALUES (1, NULL, 8), (2, NULL, 8), (3, NULL, 8);
SELECT * FROM ms_u ORDER BY k;
-- two-phase commit
BEGIN;
INSERT INTO ms_u VALUES (1, 5, NULL);
UPDATE ms_u SET b = NULL WHERE k = 1;
INSERT INTO ms_u VALUES (1, NULL, 6), (7, 7, NULL);
DELETE FROM ms_u WHERE k = 3;
INSERT INTO ms_u VALUES (3, NULL, 9);
PREPARE TRANSACTION 'ms_one';
SELECT * FROM ms_u ORDER BY k;
INSERT INTO ms_u VALUES (8, NULL, 80);
COMMIT PREPARED 'ms_one';
INSERT INTO ms_u VALUES (7, NULL, 70);
SELECT * FROM ms_u ORDER BY k;
-- triggers after INSERT see the incoming row, also when they were put off to the end of the transaction; OLD is the row that UPDATE and DELETE saw
CREATE TABLE ms_log (n int GENERATED ALWAYS AS IDENTITY, what text, old_row text, new_row text);
CREATE FUNCTION ms_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ms_log (what, old_row, new_row) VALUES (tg_name || ' ' || tg_op, CASE WHEN tg_op <> 'INSERT' THEN OLD::text END, CASE WHEN tg_op <> 'DELETE' THEN NEW::text END);
	RETURN NULL;
END $$;
CREATE FUNCTION ms_logged() RETURNS SETOF text LANGUAGE sql AS $$
	SELECT concat_ws(' ', CASE count(*) WHEN 2 THEN 'both' ELSE string_agg(split_part(what, ' ', 1), ' ') END, split_part(what, ' ', 2), old_row, '->', new_row)
	FROM (SELECT *, row_number() OVER (PARTITION BY split_part(what, ' ', 1) ORDER BY n) AS i FROM ms_log) l
	GROUP BY i, split_part(what, ' ', 2), old_row, new_row ORDER BY i $$;
CREATE TABLE ms_t (k int PRIMARY KEY, v int, x text, op text) USING paimon
	WITH ("merge-engine" = 'aggregation', "fields.v.aggregate-function" = 'sum', "rowkind.field" = 'op', "write-buffer-size" = '64kb');
CREATE TRIGGER once AFTER INSERT OR UPDATE OR DELETE ON ms_t FOR EACH ROW EXECUTE FUNCTION ms_trigger();
CREATE CONSTRAINT TRIGGER later AFTER INSERT OR UPDATE OR DELETE ON ms_t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ms_trigger();
INSERT INTO ms_t VALUES (1, 1000, 'first', '+I');
SELECT * FROM ms_logged();
TRUNCATE ms_log;
BEGIN;
INSERT INTO ms_t VALUES (1, 1, 'a', '+I'), (1, 2, NULL, '-U'), (2, 5, 'c', '+I');
INSERT INTO ms_t VALUES (1, 10, NULL, '+I');
UPDATE ms_t SET v = v + 100 WHERE k = 1;
INSERT INTO ms_t VALUES (1, 7, 'z', '+I');
SELECT * FROM ms_t WHERE k = 1 FOR UPDATE;
SAVEPOINT s;
INSERT INTO ms_t VALUES (1, 1000, 'gone', '+I');
DELETE FROM ms_t WHERE k = 2;
ROLLBACK TO s;
DELETE FROM ms_t WHERE k = 2;
INSERT INTO ms_t VALUES (2, 3, 'again', '+I');
DO $$ BEGIN INSERT INTO ms_t VALUES (2, 1 / 0, 'x', '+I'); EXCEPTION WHEN division_by_zero THEN NULL; END $$;
COPY ms_t FROM STDIN;
2	4	copied	+I
2	5	copied	+I
\.
MERGE INTO ms_t t USING (VALUES (1), (3)) s(k) ON t.k = s.k WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.k, 8, 'merged', '+I');
COMMIT;
SELECT * FROM ms_logged();
SELECT * FROM ms_t ORDER BY k;
TRUNCATE ms_log;
BEGIN;
INSERT INTO ms_t VALUES (3, 1, NULL, '+I'), (3, 1, NULL, '+I');
SET CONSTRAINTS ALL IMMEDIATE;
UPDATE ms_t SET v = -v WHERE k = 3;
SET CONSTRAINTS ALL DEFERRED;
INSERT INTO ms_t VALUES (3, 1, NULL, '+I');
PREPARE TRANSACTION 'ms_two';
COMMIT PREPARED 'ms_two';
SELECT * FROM ms_logged();
-- with rows that are spilled meanwhile
TRUNCATE ms_log;
BEGIN;
INSERT INTO ms_t SELECT g % 1000, g, repeat('x', 50), '+I' FROM generate_series(1, 10000) g;
INSERT INTO ms_t SELECT g % 1000, g, repeat('x', 50), '+I' FROM generate_series(1, 10000) g;
UPDATE ms_t SET v = 0 WHERE k < 10;
INSERT INTO ms_t SELECT g, 1, 'y', '+I' FROM generate_series(1, 100) g;
COMMIT;
SELECT what, count(*), sum((old_row::ms_t).v), sum((new_row::ms_t).v) FILTER (WHERE (new_row::ms_t).k >= 10) FROM ms_log GROUP BY what ORDER BY what;
SELECT count(*), sum(v) FROM ms_t;
DROP TABLE ms_t, ms_log;
DROP FUNCTION ms_trigger, ms_logged;
-- a deferred foreign key of a table that merges
CREATE TABLE ms_parent (id int PRIMARY KEY) USING paimon;
INSERT INTO ms_parent VALUES (1), (2);
CREATE TABLE ms_child (k int PRIMARY KEY, p int REFERENCES ms_parent DEFERRABLE INITIALLY DEFERRED, v int) USING paimon WITH ("merge-engine" = 'partial-update');
BEGIN;
INSERT INTO ms_child VALUES (1, 5, NULL);
UPDATE ms_child SET p = 1 WHERE k = 1;
INSERT INTO ms_child VALUES (1, NULL, 3), (2, 2, NULL);
COMMIT;
BEGIN;
INSERT INTO ms_child VALUES (1, 7, NULL);
COMMIT;
SELECT * FROM ms_child ORDER BY k;
DELETE FROM ms_parent WHERE id = 1;
-- ON DELETE CASCADE where deletes have no effect
CREATE TABLE ms_ignore (k int PRIMARY KEY, p int REFERENCES ms_parent ON DELETE CASCADE) USING paimon WITH ("ignore-delete" = true);
INSERT INTO ms_parent VALUES (3);
INSERT INTO ms_ignore VALUES (3, 3);
DELETE FROM ms_ignore;
DELETE FROM ms_parent WHERE id = 3;
ALTER TABLE ms_ignore RESET ("ignore-delete");
DELETE FROM ms_parent WHERE id = 3;
SELECT count(*) FROM ms_ignore;
EXPLAIN (COSTS OFF) MERGE INTO ms_a t USING (VALUES (1)) s(k) ON t.k = s.k WHEN MATCHED THEN DELETE;
DROP TABLE ms_a, ms_b, ms_p, ms_f, ms_u, ms_child, ms_ignore, ms_parent;

-- Triggers for an INSERT see the row that came in, deletes and retracts of rowkind.field included.
CREATE TABLE ms_kinds (k int PRIMARY KEY, op text, v text) USING paimon WITH ("rowkind.field" = 'op');
CREATE TABLE ms_heard (n serial, op text, k int, seen text);
CREATE FUNCTION ms_hear() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO ms_heard (op, k, seen) VALUES (TG_NAME, new.k, new.op || new.v); RETURN NULL; END $$;
CREATE TRIGGER ms_at_once AFTER INSERT ON ms_kinds FOR EACH ROW EXECUTE FUNCTION ms_hear();
CREATE CONSTRAINT TRIGGER ms_late AFTER INSERT ON ms_kinds DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ms_hear();
INSERT INTO ms_kinds VALUES (1, '+I', 'a'), (2, '+I', 'b');
BEGIN;
DELETE FROM ms_kinds WHERE k = 1;
INSERT INTO ms_kinds VALUES (1, '-D', 'c'), (2, '-U', 'd'), (3, '-D', 'e'), (4, '+U', 'f');
COMMIT;
SELECT op, k, seen FROM ms_heard ORDER BY n;
SELECT * FROM ms_kinds ORDER BY k;
DROP TABLE ms_kinds, ms_heard;
DROP FUNCTION ms_hear;
