-- Values that cannot be merged: found when they are written where that can be known, else by whoever reads the row; nothing else is kept from going on.

\set SHOW_CONTEXT never
\pset null NULL

-- kinds of rows
CREATE TABLE mv_kind (id int PRIMARY KEY, v text, op varchar(4)) USING paimon WITH ("rowkind.field" = 'op');
INSERT INTO mv_kind VALUES (1, 'a', '+I'), (2, 'b', '+U'), (3, 'c', '-U'), (4, 'd', '-D');
INSERT INTO mv_kind VALUES (5, 'e', NULL);
INSERT INTO mv_kind VALUES (5, 'e', '+i');
INSERT INTO mv_kind VALUES (5, 'e', '');
INSERT INTO mv_kind VALUES (5, 'e', '+I ');
INSERT INTO mv_kind (id, v) VALUES (5, 'e');
COPY mv_kind FROM STDIN;
6	f	+I
7	g	?
\.
SELECT * FROM mv_kind ORDER BY id;
UPDATE mv_kind SET op = NULL WHERE id = 1;
UPDATE mv_kind SET op = '-D' WHERE id = 2;
INSERT INTO mv_kind VALUES (2, 'b', '-U') RETURNING *;
SELECT * FROM mv_kind ORDER BY id;
DELETE FROM mv_kind WHERE id = 1;
SELECT count(*) FROM mv_kind;
DROP TABLE mv_kind;
CREATE TABLE mv_kind (id int PRIMARY KEY, v int, op char(2)) USING paimon WITH ("merge-engine" = 'aggregation', "fields.v.aggregate-function" = 'sum',
	"rowkind.field" = 'op', "ignore-delete" = true);
INSERT INTO mv_kind VALUES (1, 1, '+I'), (1, 5, '-U'), (1, 7, '-D'), (1, 2, '+U');
DELETE FROM mv_kind;
SELECT * FROM mv_kind;
ALTER TABLE mv_kind SET ("ignore-delete" = false, "ignore-update-before" = true);
INSERT INTO mv_kind VALUES (1, 5, '-U'), (1, 1, '-D');
SELECT * FROM mv_kind;
DROP TABLE mv_kind;

-- what the incoming row must be, whatever is there
CREATE TABLE mv_row (id int PRIMARY KEY, a int NOT NULL, b int CHECK (b > 0), c int DEFAULT 7, d int GENERATED ALWAYS AS (b * 2) STORED) USING paimon WITH ("merge-engine" = 'partial-update');
INSERT INTO mv_row VALUES (1, 1, 1, 1);
INSERT INTO mv_row (id, b) VALUES (1, 5);
INSERT INTO mv_row (id, a, b) VALUES (1, 2, -1);
INSERT INTO mv_row (id, a) VALUES (1, 2);
INSERT INTO mv_row (id, a, c) VALUES (1, 3, NULL);
SELECT * FROM mv_row;
DROP TABLE mv_row;

-- sums that do not fit: written, and told when read
CREATE TABLE mv_sum (id int PRIMARY KEY, s smallint, i int, j bigint, n numeric(4,1), p int, note text) USING paimon WITH ("merge-engine" = 'aggregation',
	"fields.default-aggregate-function" = 'sum', "fields.note.aggregate-function" = 'last_value', "fields.p.aggregate-function" = 'product');
INSERT INTO mv_sum VALUES (1, 32767, 1, 1, 1, 1, 'small'), (2, 1, 2147483647, 1, 1, 1, 'int'), (3, 1, 1, 9223372036854775807, 1, 1, 'big'), (4, 1, 1, 1, 999.9, 1, 'numeric'),
	(5, 1, 1, 1, 1, 65536, 'product'), (6, 1, 1, 1, 1, 1, 'fits');
INSERT INTO mv_sum SELECT id, 1, 1, 1, 0.1, 65536, note FROM mv_sum;
CREATE FUNCTION mv_read(OUT k int, OUT seen text) RETURNS SETOF record LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
	detail text;
BEGIN
	FOR at IN 1 .. 6 LOOP
		k := at;
		BEGIN
			SELECT x::text INTO seen FROM mv_sum x WHERE id = at;
		EXCEPTION WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
			seen := concat_ws(' ', SQLSTATE, SQLERRM, '|', detail);
		END;
		RETURN NEXT;
	END LOOP;
END $$;
SELECT * FROM mv_read();
SELECT count(*) FROM mv_sum;
SELECT sum(s) FROM mv_sum;
SELECT paimon.flush('mv_sum');
SELECT paimon.compact('mv_sum');
SELECT * FROM mv_read();
SELECT count(*) FROM paimon.verify('mv_sum');
-- who may not read the table is not told the key
CREATE ROLE mv_writer;
GRANT INSERT, SELECT (id, s) ON mv_sum TO mv_writer;
SET ROLE mv_writer;
SELECT s FROM mv_sum WHERE id = 1;
RESET ROLE;
-- what mends it
SET enable_seqscan = off;
UPDATE mv_sum SET s = 5 WHERE id = 1;
DELETE FROM mv_sum WHERE id = 1;
INSERT INTO mv_sum (id, s) VALUES (1, -1);
INSERT INTO mv_sum (id, i) VALUES (2, -10);
INSERT INTO mv_sum (id, j) VALUES (3, -10);
INSERT INTO mv_sum (id, n) VALUES (4, -0.1);
INSERT INTO mv_sum (id, p) VALUES (5, 0);
SELECT * FROM mv_sum ORDER BY id;
SELECT paimon.compact('mv_sum');
SELECT * FROM mv_sum ORDER BY id;
RESET enable_seqscan;
DROP TABLE mv_sum;
DROP FUNCTION mv_read;
DROP ROLE mv_writer;

-- found when they are written
CREATE TYPE mv_item AS (k int, v text);
CREATE TABLE mv_write (id int PRIMARY KEY, m jsonb, t jsonb, r mv_item[], rows jsonb, a int[], p int, op text) USING paimon WITH ("merge-engine" = 'aggregation', "rowkind.field" = 'op',
	"fields.m.aggregate-function" = 'merge_map', "fields.t.aggregate-function" = 'merge_map_with_keytime', "fields.t.ts-field" = 'at', "fields.t.ignore-retract" = true,
	"fields.r.aggregate-function" = 'nested_update', "fields.r.nested-key" = 'k', "fields.r.nested-key-null-strategy" = 'error',
	"fields.rows.aggregate-function" = 'nested_update', "fields.a.aggregate-function" = 'collect', "fields.p.aggregate-function" = 'product');
INSERT INTO mv_write (id, op, m) VALUES (1, '+I', '[1]');
INSERT INTO mv_write (id, op, m) VALUES (1, '+I', '"text"');
INSERT INTO mv_write (id, op, t) VALUES (1, '+I', '{"a": {"at": 5}}');
INSERT INTO mv_write (id, op, t) VALUES (1, '+I', '{"a": 1}');
INSERT INTO mv_write (id, op, r) VALUES (1, '+I', '{"(,x)"}');
INSERT INTO mv_write (id, op, rows) VALUES (1, '+I', '{"k": 1}');
INSERT INTO mv_write (id, op, rows) VALUES (1, '+I', '[1]');
INSERT INTO mv_write (id, op, a) VALUES (1, '+I', '{{1,2},{3,4}}');
INSERT INTO mv_write (id, op, p) VALUES (1, '-U', 0);
SELECT * FROM mv_write;
INSERT INTO mv_write VALUES (1, '{"a": 1}', '{"a": {"at": "1"}}', '{"(1,x)"}', '[{"k": 1}]', '{1,2}', 2, '+I');
UPDATE mv_write SET m = '[1]';
UPDATE mv_write SET m = '{"b": 2}', a = '{3,4}';
INSERT INTO mv_write VALUES (1, '{"a": 1}', '{"a": {"at": "2"}}', '{"(1,y)"}', '[{"k": 1}]', '{1,2}', 2, '+I');
SELECT * FROM mv_write;
DROP TABLE mv_write;
DROP TYPE mv_item;

-- a function that fails: whoever reads the row is told, and so is who flushes; other tables go on, and the table does when the function has been mended
CREATE FUNCTION mv_div(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1 / $2 $$;
CREATE TABLE mv_user (id int PRIMARY KEY, q int, n int) USING paimon WITH ("merge-engine" = 'aggregation', "fields.q.aggregate-function" = 'mv_div', "fields.n.aggregate-function" = 'sum');
CREATE TABLE mv_other (id int PRIMARY KEY, n int) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum');
INSERT INTO mv_user VALUES (1, 100, 1), (1, 5, 1), (2, 100, 1), (2, 0, 1), (3, NULL, 1), (3, 8, 1);
SET enable_seqscan = off;
\set SHOW_CONTEXT errors
SELECT * FROM mv_user WHERE id = 1;
SELECT * FROM mv_user WHERE id = 2;
\set SHOW_CONTEXT never
SELECT paimon.flush('mv_user');
INSERT INTO mv_other VALUES (1, 1), (1, 2);
SELECT paimon.compact('mv_other');
SELECT * FROM mv_other;
INSERT INTO mv_user VALUES (1, 2, 1), (4, 4, 1);
SELECT * FROM mv_user WHERE id = 1;
CREATE OR REPLACE FUNCTION mv_div(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1 / nullif($2, 0) $$;
SELECT paimon.compact('mv_user');
SELECT * FROM mv_user ORDER BY id;
DROP TABLE mv_user, mv_other;
DROP FUNCTION mv_div;

-- what a function of one's own gives is assigned to the column, and its settings are not the reader's
CREATE FUNCTION mv_text(varchar, varchar) RETURNS varchar LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1 || $2 $$;
CREATE FUNCTION mv_plus(numeric, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1 + $2 / 3 $$;
CREATE FUNCTION mv_texts(varchar[], varchar[]) RETURNS varchar[] LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1 || $2 $$;
CREATE FUNCTION mv_set(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM set_config('work_mem', '77kB', false); RETURN $2; END $$;
CREATE TABLE mv_fit (id int PRIMARY KEY, v varchar(5), n numeric(4,2), i int) USING paimon WITH ("merge-engine" = 'aggregation',
	"fields.v.aggregate-function" = 'mv_text', "fields.n.aggregate-function" = 'mv_plus', "fields.i.aggregate-function" = 'mv_set');
INSERT INTO mv_fit VALUES (1, 'abc', 1, 1), (1, 'de', 1, 2), (2, 'abc', 1, 1), (3, 'x', 99, 1);
SET enable_seqscan = off;
SELECT * FROM mv_fit WHERE id = 1;
SELECT paimon.compact('mv_fit') > 0;
INSERT INTO mv_fit VALUES (1, '', 1, 3), (2, 'def', 1, 1), (3, 'y', 3, 1);
SELECT * FROM mv_fit WHERE id = 1;
SELECT * FROM mv_fit WHERE id = 2;
SELECT * FROM mv_fit WHERE id = 3;
SHOW work_mem;
RESET enable_seqscan;
CREATE TABLE mv_fits (id int PRIMARY KEY, v varchar(5)[]) USING paimon WITH ("merge-engine" = 'aggregation', "fields.v.aggregate-function" = 'mv_texts');
DROP TABLE mv_fit;
DROP FUNCTION mv_text, mv_plus, mv_texts, mv_set;

-- a function that may not be called while a query runs in parallel: it then does not
CREATE FUNCTION mv_catch(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS $$ BEGIN RETURN $1 / $2; EXCEPTION WHEN division_by_zero THEN RETURN $1 + 1; END $$;
CREATE TABLE mv_parallel (id int PRIMARY KEY, n int) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'mv_catch');
INSERT INTO mv_parallel SELECT g % 1000, g % 3 FROM generate_series(1, 4000) g;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT count(*), sum(n) FROM mv_parallel;
SELECT count(*), sum(n) FROM mv_parallel;
SELECT paimon.compact('mv_parallel') > 0;
SELECT count(*), sum(n) FROM mv_parallel;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
DROP TABLE mv_parallel;
DROP FUNCTION mv_catch;

-- an UPDATE in the course of which the rows that it reads are spilled: it sees merged rows, not what was inserted
CREATE TABLE mv_spill (id int PRIMARY KEY, n int, t text, pad text, op text) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum',
	"fields.t.aggregate-function" = 'listagg', "fields.t.ignore-retract" = true, "rowkind.field" = 'op', "write-buffer-size" = '64 kb');
INSERT INTO mv_spill SELECT g, 100, NULL, 'old', '+I' FROM generate_series(1, 400) g;
BEGIN;
INSERT INTO mv_spill SELECT 1 + g / 2, 10, CASE WHEN g % 2 = 1 THEN '  ' END, 'pad', CASE WHEN g % 2 = 1 THEN '+I' ELSE '-D' END FROM generate_series(0, 799) g;
SAVEPOINT s;
UPDATE mv_spill SET pad = repeat(md5(id::text), 10), op = 'done' WHERE true;
SELECT count(*), count(t), sum(n), min(op) FROM mv_spill;
COMMIT;
SELECT count(*), count(t), sum(n), min(op) FROM mv_spill;
DROP TABLE mv_spill;

-- a retract that stays is no delete marker, for which the file would be compacted without end
CREATE TABLE mv_stay (id int PRIMARY KEY, n int, op text) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum', "rowkind.field" = 'op',
	"aggregation.remove-record-on-delete" = true);
INSERT INTO mv_stay VALUES (1, 1, '-U'), (2, 1, '-D'), (3, 1, '+I');
SELECT paimon.compact('mv_stay') IS NOT NULL;
SELECT paimon.compact('mv_stay', full => false) IS NOT NULL;
SELECT level, record_count, "deleteRowCount" FROM paimon.files('mv_stay');
SELECT * FROM mv_stay ORDER BY id;
DROP TABLE mv_stay;

-- Records that remove and records that stay, in one file: the check of a file knows that the options decide which of them count as delete markers.
CREATE TABLE mv_kinds (op text, k int PRIMARY KEY, n int) USING paimon WITH ("merge-engine" = 'aggregation', "rowkind.field" = 'op',
	"aggregation.remove-record-on-delete" = true, "fields.n.aggregate-function" = 'sum', "num-sorted-run.compaction-trigger" = 100);
INSERT INTO mv_kinds VALUES ('+I', 1, 1), ('+I', 2, 2), ('+I', 3, 3), ('+I', 4, 4);
SELECT paimon.flush('mv_kinds') \g /dev/null
INSERT INTO mv_kinds VALUES ('-U', 1, 1), ('-U', 5, 7), ('-D', 2, 2), ('+I', 6, 6);
DELETE FROM mv_kinds WHERE k = 3;
SELECT paimon.flush('mv_kinds') \g /dev/null
SELECT * FROM paimon.verify('mv_kinds');
SELECT k, n FROM mv_kinds ORDER BY k;
DROP TABLE mv_kinds;
