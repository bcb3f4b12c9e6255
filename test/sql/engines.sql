-- The merge engines through tables: each step of a scenario is a commit, and what is seen after it must not depend on where its rows lie, in the log, in
-- level 0 or compacted, nor on whether all steps are one transaction.
SET client_min_messages = notice;
SET enable_seqscan = on;
CREATE FUNCTION e_look(how text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
BEGIN
	PERFORM set_config('enable_seqscan', CASE how WHEN 'scan' THEN 'on' ELSE 'off' END, true);
	PERFORM set_config('enable_indexscan', CASE how WHEN 'scan' THEN 'off' ELSE 'on' END, true);
	PERFORM set_config('enable_bitmapscan', 'off', true);
	IF how = 'scan' THEN
		EXECUTE 'SELECT string_agg(t::text, '' '' ORDER BY k) FROM e_t t' INTO result;
	ELSIF how = 'keys' THEN
		EXECUTE 'SELECT string_agg(t::text, '' '' ORDER BY k) FROM e_t t WHERE k IN (1, 2, 3, 4, 7, 9)' INTO result;
	ELSIF how = 'forward' THEN
		EXECUTE 'SELECT string_agg(row, '' '') FROM (SELECT t::text AS row FROM e_t t WHERE k > 0 ORDER BY k) s' INTO result;
	ELSE
		EXECUTE 'SELECT string_agg(row, '' '' ORDER BY -n) FROM (SELECT t::text AS row, row_number() OVER () AS n FROM (SELECT * FROM e_t WHERE k < 100 ORDER BY k DESC) t) s' INTO result;
	END IF;
	RETURN coalesce(result, '-');
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS result = PG_EXCEPTION_DETAIL;
	RETURN concat('ERROR ', SQLSTATE, ': ', SQLERRM, '; ', result);
END $$;
CREATE PROCEDURE e(columns text, options text, VARIADIC steps text[]) LANGUAGE plpgsql AS $$
DECLARE
	modes text[] := ARRAY['log', 'flushed', 'compacted', 'compacted fully', 'one transaction'];
	first text[];
	look text;
	now text;
	said text;
	n bigint;
BEGIN
	FOR m IN 1 .. array_length(modes, 1) LOOP
		EXECUTE format('CREATE TABLE e_t (%s) USING paimon WITH (%s)', columns, options);
		COMMIT;
		FOR i IN 1 .. array_length(steps, 1) LOOP
			said := '';
			BEGIN
				EXECUTE CASE WHEN steps[i] LIKE '(%' THEN 'INSERT INTO e_t VALUES ' ELSE '' END || steps[i];
				GET DIAGNOSTICS n = ROW_COUNT;
				IF steps[i] NOT LIKE '(%' THEN
					said := format(' [%s]', n);
				END IF;
			EXCEPTION WHEN OTHERS THEN
				said := ' ERROR ' || SQLSTATE || ': ' || SQLERRM;
			END;
			IF modes[m] <> 'one transaction' THEN
				COMMIT;
			END IF;
			IF modes[m] <> 'log' AND modes[m] <> 'one transaction' THEN
				PERFORM paimon.flush('e_t');
				COMMIT;
			END IF;
			IF modes[m] LIKE 'compacted%' THEN
				PERFORM paimon.compact('e_t', full => modes[m] = 'compacted fully');
				COMMIT;
			END IF;
			now := e_look('scan');
			FOREACH look IN ARRAY ARRAY['keys', 'forward', 'backward'] LOOP
				IF e_look(look) IS DISTINCT FROM now THEN
					RAISE WARNING '%, after %: % by %, not %', modes[m], steps[i], e_look(look), look, now;
				END IF;
			END LOOP;
			IF m = 1 THEN
				first[i] := now || said;
				RAISE NOTICE '%  =>  %', steps[i], first[i];
			ELSIF first[i] IS DISTINCT FROM now || said THEN
				RAISE WARNING '%, after %: %, not %', modes[m], steps[i], now || said, first[i];
			END IF;
		END LOOP;
		COMMIT;
		IF EXISTS (SELECT FROM paimon.verify('e_t')) THEN
			RAISE WARNING '%: damaged', modes[m];
		END IF;
		DROP TABLE e_t;
		COMMIT;
	END LOOP;
END $$;
-- 1. deduplicate, with kinds
CALL e('k int PRIMARY KEY, label text, n int', '"merge-engine" = ''deduplicate''',
	$$(1, 'bolt', 5), (2, 'nut', 7)$$, $$(1, 'bolt', NULL)$$, 'DELETE FROM e_t WHERE k = 2', $$(2, 'nut', 1)$$, $$(3, 'a', 1), (3, 'b', 2)$$,
	'DELETE FROM e_t WHERE k = 9');
CALL e('k int PRIMARY KEY, v int, op text', '"rowkind.field" = ''op''',
	$$(1, 1, '+I'), (2, 2, '+I')$$, $$(1, 1, '-U')$$, $$(1, 5, '+U')$$, $$(2, 9, '-D')$$, $$(4, 9, '-D')$$, $$(1, 1, NULL)$$, $$(1, 1, 'D')$$,
	$$UPDATE e_t SET op = 'any', v = 6 WHERE k = 1$$, 'DELETE FROM e_t');
CALL e('k int PRIMARY KEY, v int, op text', '"rowkind.field" = ''op'', "ignore-delete" = ''true''',
	$$(1, 1, '+I'), (2, 2, '+I')$$, $$(1, 1, '-U')$$, $$(1, 1, '-D')$$, 'DELETE FROM e_t WHERE k = 2', 'UPDATE e_t SET v = 3 WHERE k = 2',
	'UPDATE e_t SET k = 5 WHERE k = 2');
CALL e('k int PRIMARY KEY, v int, op text', '"rowkind.field" = ''op'', "ignore-update-before" = ''true''',
	$$(1, 1, '+I')$$, $$(1, 1, '-U')$$, $$(1, 1, '-D')$$);
-- 2. partial-update
CALL e('k int PRIMARY KEY, name text, qty int, price int', '"merge-engine" = ''partial-update''',
	$$(7, 'pen', NULL, NULL)$$, '(7, NULL, 3, NULL), (7, NULL, NULL, 150)', $$(7, 'ink', NULL, NULL)$$,
	'UPDATE e_t SET qty = NULL WHERE k = 7', '(7, NULL, NULL, 1)', 'DELETE FROM e_t WHERE k = 7', $$(7, NULL, 4, NULL)$$,
	'UPDATE e_t SET k = 4, qty = 5', $$(4, 'x', NULL, NULL), (7, 'y', NULL, NULL)$$);
CALL e('k int PRIMARY KEY, v int, op text', '"merge-engine" = ''partial-update'', "rowkind.field" = ''op''',
	$$(1, 1, '+I')$$, $$(1, 1, '-D')$$, $$(1, 1, '-U')$$);
CALL e('k int PRIMARY KEY, v int, op text', '"merge-engine" = ''partial-update'', "rowkind.field" = ''op'', "ignore-delete" = ''true''',
	$$(1, 1, '+I')$$, $$(1, 1, '-D'), (1, NULL, '-U')$$, 'DELETE FROM e_t', $$(1, NULL, '+U')$$);
-- 3. sequence groups
CALL e('k int PRIMARY KEY, a text, b text, ts1 int, c text, ts2 int, op text',
	'"merge-engine" = ''partial-update'', "rowkind.field" = ''op'', "fields.ts1.sequence-group" = ''a,b'', "fields.ts2.sequence-group" = ''c''',
	$$(1, 'a1', 'b1', 10, 'c1', 10, '+I')$$, $$(2, 'a1', 'b1', 10, 'c1', 10, '+I')$$, $$(1, 'a2', NULL, 12, 'zz', NULL, '+I')$$, $$(1, 'old', 'old', 11, 'c2', 15, '+I')$$,
	$$(1, 'a3', 'b3', 12, NULL, NULL, '+I')$$, $$(2, NULL, NULL, 13, NULL, NULL, '-D')$$, $$(3, NULL, NULL, 5, NULL, NULL, '-D')$$, $$(3, 'x', 'x', 1, 'y', 1, '+I')$$,
	$$UPDATE e_t SET a = 'u', ts1 = 3 WHERE k = 1$$, $$(1, 'v', 'v', 2, 'v', 1, '+I')$$, $$(1, 'w', NULL, 3, 'v', 99, '+I')$$, 'DELETE FROM e_t WHERE k = 1',
	$$(1, 'n', 'n', 1, NULL, NULL, '+I')$$);
CALL e('k int PRIMARY KEY, v text, d int, n int', '"merge-engine" = ''partial-update'', "fields.d,n.sequence-group" = ''v''',
	$$(1, 'x', 5, 1)$$, $$(1, 'y', 5, NULL)$$, $$(1, 'z', 5, 2)$$, $$(1, 'w', NULL, NULL)$$, $$(1, 'q', NULL, 7)$$, $$(2, 'q', NULL, 7)$$);
-- 4. NULL order
CALL e('k int PRIMARY KEY, v text, ts int', '"merge-engine" = ''partial-update'', "fields.ts.sequence-group" = ''v''',
	$$(9, 'hi', NULL)$$, $$(9, 'yo', NULL)$$, $$(9, 'yo', 4)$$);
-- 5. aggregation in groups
CALL e('k int PRIMARY KEY, amt int, ver int, op text',
	'"merge-engine" = ''partial-update'', "rowkind.field" = ''op'', "fields.ver.sequence-group" = ''amt'', "fields.amt.aggregate-function" = ''sum''',
	$$(1, 10, 5, '+I')$$, $$(1, 4, 9, '+I')$$, $$(1, 7, 6, '+I')$$, $$(1, 100, NULL, '+I')$$, $$(1, 4, 9, '-D')$$, $$(1, 1, 1, '-U')$$, $$(2, 5, 5, '-D')$$, $$(2, 6, 1, '+I')$$);
CALL e('k int PRIMARY KEY, v text, ver int',
	'"merge-engine" = ''partial-update'', "fields.ver.sequence-group" = ''v'', "fields.v.aggregate-function" = ''first_value''',
	$$(1, 'm', 5)$$, $$(1, 'n', 9)$$, $$(1, 'k', 2)$$, $$(1, NULL, 1)$$);
CALL e('k int PRIMARY KEY, v text, ver int, w text',
	'"merge-engine" = ''partial-update'', "fields.ver.sequence-group" = ''v,w'', "fields.default-aggregate-function" = ''listagg''',
	$$(1, 'm', 5, 'a')$$, $$(1, 'n', 9, NULL)$$, $$(1, 'k', 2, 'b')$$, $$(1, ' ', 10, 'c')$$);
-- 6. remove-record-on-delete
CALL e('k int PRIMARY KEY, a text, b text, op text',
	'"merge-engine" = ''partial-update'', "rowkind.field" = ''op'', "partial-update.remove-record-on-delete" = ''true''',
	$$(1, 'a', 'b', '+I')$$, $$(1, 'a', 'b', '-U')$$, $$(1, 'a', 'b', '-D')$$, $$(1, NULL, 'c', '+I')$$, $$(2, 'a', 'b', '-D')$$, $$(2, 'a', 'b', '-U')$$, $$(2, 'a', NULL, '+I')$$);
-- 7. remove-record-on-sequence-group
CALL e('k int PRIMARY KEY, p text, s1 int, q text, s2 int, op text',
	'"merge-engine" = ''partial-update'', "rowkind.field" = ''op'', "fields.s1.sequence-group" = ''p'', "fields.s2.sequence-group" = ''q'', "partial-update.remove-record-on-sequence-group" = ''s1''',
	$$(1, 'p', 2, 'q', 2, '+I'), (2, 'p', 2, 'q', 2, '+I'), (3, 'p', 2, 'q', 2, '+I'), (4, 'p', 2, 'q', 2, '+I')$$,
	$$(1, 'p', NULL, NULL, 3, '-D')$$, $$(2, 'p', 3, NULL, NULL, '-D')$$, $$(3, 'p', 1, NULL, NULL, '-D')$$, $$(4, 'p', 3, NULL, NULL, '-U')$$,
	$$(2, 'n', NULL, 'm', 1, '+I')$$, $$(7, 'p', 9, NULL, NULL, '-D'), (7, 'p', 5, NULL, NULL, '-D')$$, $$(7, 'p', 6, 'q', NULL, '+I')$$);
-- 8. aggregation
CALL e('k int PRIMARY KEY, total int, last text, op text',
	'"merge-engine" = ''aggregation'', "rowkind.field" = ''op'', "fields.total.aggregate-function" = ''sum''',
	$$(1, 5, 'a', '+I')$$, $$(1, 7, NULL, '+I')$$, $$(1, 5, 'a', '-U')$$, $$(1, 7, 'z', '-D')$$, $$(2, 3, 'x', '-D')$$, $$(2, 10, NULL, '+I')$$,
	'DELETE FROM e_t WHERE k = 1', $$(1, 4, NULL, '-U')$$, $$(1, 5, 'n', '+I')$$, 'UPDATE e_t SET total = total * 2, last = NULL', $$(2, 1, NULL, '+I')$$,
	'UPDATE e_t SET k = k + 1', $$(3, 100, 'moved', '+I')$$, $$(3, -7, NULL, '+I') ON CONFLICT (k) DO UPDATE SET (total, last, op) = (EXCLUDED.total, EXCLUDED.last, EXCLUDED.op)$$,
	$$(3, 1, 'u', '+I') ON CONFLICT (k) DO UPDATE SET total = e_t.total + 1000$$, $$(3, 1, 'u', '+I') ON CONFLICT (k) DO NOTHING$$);
CALL e('k int PRIMARY KEY, total int, last text, op text',
	'"merge-engine" = ''aggregation'', "rowkind.field" = ''op'', "fields.total.aggregate-function" = ''sum'', "aggregation.remove-record-on-delete" = ''true''',
	$$(1, 5, 'a', '+I')$$, $$(1, 7, NULL, '+I')$$, $$(1, 5, 'a', '-U')$$, $$(1, 7, 'z', '-D')$$, $$(1, 3, NULL, '+I')$$);
CALL e('k int PRIMARY KEY, m int, op text', '"merge-engine" = ''aggregation'', "rowkind.field" = ''op'', "fields.m.aggregate-function" = ''max''',
	$$(1, 5, '+I')$$, $$(1, 7, '+I')$$, $$(1, 7, '-U')$$);
CALL e('k int PRIMARY KEY, m int, op text',
	'"merge-engine" = ''aggregation'', "rowkind.field" = ''op'', "fields.m.aggregate-function" = ''max'', "fields.m.ignore-retract" = ''true''',
	$$(1, 5, '+I')$$, $$(1, 7, '-U')$$, $$(2, 7, '-D')$$, $$(2, 3, '+I')$$);
CALL e('k int PRIMARY KEY, i int, l bigint, n numeric(5,2), d double precision, p int',
	'"merge-engine" = ''aggregation'', "fields.default-aggregate-function" = ''sum'', "fields.p.aggregate-function" = ''product''',
	'(1, 2147483647, 1, 1, 0.5, 2)', '(1, -1, 9223372036854775807, 998.99, 0.5, 3)', '(1, 1, -2, -0.5, NULL, -1)', '(2, 2147483647, NULL, NULL, NULL, NULL), (2, 1, NULL, NULL, NULL, NULL)',
	'(2, -1, NULL, NULL, NULL, NULL)', '(3, NULL, NULL, 999.99, NULL, NULL), (3, NULL, NULL, 0.01, NULL, NULL)', '(3, NULL, NULL, -0.01, NULL, NULL)');
CALL e('k int PRIMARY KEY, a boolean, o boolean, f text, fn text, lv text, mi date, c int[], j jsonb',
	'"merge-engine" = ''aggregation'', "fields.a.aggregate-function" = ''bool_and'', "fields.o.aggregate-function" = ''bool_or'', "fields.f.aggregate-function" = ''first_value'', "fields.fn.aggregate-function" = ''first_non_null_value'', "fields.lv.aggregate-function" = ''last_value'', "fields.mi.aggregate-function" = ''min'', "fields.c.aggregate-function" = ''collect'', "fields.c.distinct" = ''true'', "fields.j.aggregate-function" = ''merge_map''',
	$$(1, true, false, NULL, NULL, 'l', '2020-02-02', '{1,2}', '{"a": 1}')$$, $$(1, NULL, NULL, 'f', 'fn', NULL, NULL, '{2,3}', '{"b": 2}')$$,
	$$(1, false, true, 'g', 'gn', 'm', '2019-01-01', NULL, '{"a": 3}')$$, $$UPDATE e_t SET c = '{9}', f = NULL$$, $$(1, NULL, NULL, 'h', 'h', 'h', NULL, '{9,1}', NULL)$$);
-- a function of a user's own
CREATE FUNCTION e_longest(text, text) RETURNS text IMMUTABLE STRICT LANGUAGE sql AS 'SELECT CASE WHEN length($2) > length($1) THEN $2 ELSE $1 END';
CALL e('k int PRIMARY KEY, v text', '"merge-engine" = ''aggregation'', "fields.v.aggregate-function" = ''public.e_longest''',
	$$(1, 'ab')$$, $$(1, 'c'), (1, NULL)$$, $$(1, 'xyz')$$, $$UPDATE e_t SET v = 'u'$$, $$(1, 'uv')$$);
-- 9. first-row
CALL e('k int PRIMARY KEY, v text', '"merge-engine" = ''first-row''',
	$$(1, 'a'), (1, 'b')$$, $$(1, 'c'), (2, 'd')$$, 'DELETE FROM e_t', $$UPDATE e_t SET v = 'x'$$, $$(3, 'c') ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v$$,
	$$(3, 'd') ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v$$);
CALL e('k int PRIMARY KEY, v text, op text', '"merge-engine" = ''first-row'', "rowkind.field" = ''op'', "ignore-delete" = ''true''',
	$$(1, 'a', '+I')$$, $$(1, 'a', '-D')$$, $$(1, 'b', '+U')$$, 'DELETE FROM e_t', $$UPDATE e_t SET v = 'x'$$);
-- 10. sequence.field
CALL e('k int PRIMARY KEY, v text, ts int, op text', '"sequence.field" = ''ts'', "rowkind.field" = ''op''',
	$$(1, 'new', 20, '+I')$$, $$(1, 'late', 10, '+I')$$, $$(1, 'same', 20, '+I')$$, $$(1, 'nots', NULL, '+I')$$, $$(1, 'x', 15, '-D')$$,
	$$UPDATE e_t SET v = 'upd'$$, $$UPDATE e_t SET v = 'lost', ts = 5$$, $$UPDATE e_t SET v = 'won', ts = 25$$, $$(1, 'x', 26, '-D')$$, $$(2, 'only', NULL, '+I')$$, $$(2, 'again', NULL, '+I')$$,
	'DELETE FROM e_t WHERE k = 2');
CALL e('k int PRIMARY KEY, v text, a int, b text', '"sequence.field" = ''a,b'', "sequence.field.sort-order" = ''descending''',
	$$(1, 'one', 5, 'm')$$, $$(1, 'two', 5, 'n')$$, $$(1, 'three', 5, 'k')$$, $$(1, 'four', 6, 'a')$$, $$(1, 'five', NULL, 'a')$$, $$(1, 'six', 5, NULL)$$, $$(1, 'seven', 4, NULL)$$);
CALL e('k int PRIMARY KEY, n int, m int, ts int', '"merge-engine" = ''aggregation'', "fields.n.aggregate-function" = ''sum'', "fields.m.aggregate-function" = ''max'', "sequence.field" = ''ts''',
	'(1, 1, 5, 20)', '(1, 2, 9, 10)', '(1, 4, 1, NULL)', '(1, 8, 1, 30)', 'UPDATE e_t SET n = 100', '(1, 1, 1, 31)', 'DELETE FROM e_t', '(1, 7, 7, 40)');
-- A delete that a full compaction has dropped is not remembered, as in Paimon: the exception.
CREATE TABLE e_z (k int PRIMARY KEY, v text, ts int) USING paimon WITH ("sequence.field" = 'ts');
INSERT INTO e_z VALUES (1, 'x', 25);
DELETE FROM e_z;
INSERT INTO e_z VALUES (1, 'zombie', 22);
SELECT * FROM e_z;
SELECT paimon.flush('e_z') > 0 AS flushed;
SELECT paimon.compact('e_z', full => true) > 0 AS compacted;
SELECT * FROM e_z;
INSERT INTO e_z VALUES (1, 'zombie', 22);
SELECT * FROM e_z;
DROP TABLE e_z;
-- ignore-delete that is switched on later leaves older deletes their effect.
CREATE TABLE e_i (k int PRIMARY KEY, v int) USING paimon WITH ("merge-engine" = 'aggregation', "fields.v.aggregate-function" = 'sum');
INSERT INTO e_i VALUES (1, 1), (2, 2);
DELETE FROM e_i WHERE k = 1;
ALTER TABLE e_i SET ("ignore-delete" = 'true');
DELETE FROM e_i WHERE k = 2;
SELECT * FROM e_i ORDER BY k;
DROP TABLE e_i;
-- Many records of few keys, in one statement, in many, and spilled; a delta log of them; savepoints.
CREATE TABLE e_hot (k int PRIMARY KEY, n bigint, c int, t text) USING paimon
	WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum', "fields.c.aggregate-function" = 'sum', "fields.t.aggregate-function" = 'max', "write-buffer-size" = '64kb', bucket = 2);
INSERT INTO e_hot SELECT g % 3, g, 1, g::text FROM generate_series(1, 30000) g;
SELECT * FROM e_hot ORDER BY k;
BEGIN;
INSERT INTO e_hot SELECT g % 3, g, 1, g::text FROM generate_series(1, 30000) g;
SAVEPOINT a;
INSERT INTO e_hot SELECT g % 5, g, 1, g::text FROM generate_series(1, 30000) g;
SELECT * FROM e_hot ORDER BY k DESC;
SELECT * FROM e_hot WHERE k = 1;
ROLLBACK TO a;
SELECT * FROM e_hot ORDER BY k;
UPDATE e_hot SET c = 0 WHERE k = 2;
INSERT INTO e_hot SELECT g % 3, g, 1, g::text FROM generate_series(1, 30000) g;
SELECT * FROM e_hot ORDER BY k DESC;
COMMIT;
SELECT * FROM e_hot ORDER BY k;
SELECT paimon.flush('e_hot') > 0 AS flushed;
SELECT * FROM e_hot ORDER BY k;
SELECT paimon.compact('e_hot', full => true) > 0 AS compacted;
SELECT * FROM e_hot ORDER BY k;
SELECT * FROM paimon.verify('e_hot');
DROP TABLE e_hot;
DO $$ BEGIN
	EXECUTE 'CREATE TABLE e_log (k int PRIMARY KEY, n bigint, l text) USING paimon WITH ("merge-engine" = ''aggregation'', "fields.n.aggregate-function" = ''sum'')';
END $$;
CREATE PROCEDURE e_stream(n int) LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. n LOOP INSERT INTO e_log VALUES (1, i, CASE WHEN i % 100 = 0 THEN i::text END); COMMIT; END LOOP; END $$;
CALL e_stream(3000);
SELECT * FROM e_log WHERE k = 1;
SELECT * FROM e_log;
UPDATE e_log SET n = n + 1;
SELECT * FROM e_log ORDER BY k DESC;
SELECT paimon.flush('e_log') > 0 AS flushed;
SELECT * FROM e_log;
DROP TABLE e_log;
-- Records that cannot be joined stay apart: a chain of some thousands, in all ways of reading.
CREATE TABLE e_chain (k int PRIMARY KEY, v text) USING paimon WITH ("merge-engine" = 'aggregation', "fields.v.aggregate-function" = 'public.e_longest');
CREATE PROCEDURE e_fill() LANGUAGE plpgsql AS $$ BEGIN FOR i IN 1 .. 6 LOOP INSERT INTO e_chain SELECT g % 2 * 100 + 1, repeat('x', g % 50) FROM generate_series(1, 2000) g; INSERT INTO e_chain SELECT g, 'y' FROM generate_series(1, 200, 3) g; COMMIT; PERFORM paimon.flush('e_chain'); COMMIT; END LOOP; END $$;
CALL e_fill();
SELECT count(*), sum(length(v)) FROM e_chain;
SELECT k, length(v) FROM e_chain WHERE k IN (1, 101, 4);
SET enable_seqscan = off;
SELECT count(*), sum(length(v)) FROM (SELECT * FROM e_chain ORDER BY k DESC) s;
SELECT k, length(v) FROM e_chain WHERE k BETWEEN 99 AND 101 ORDER BY k;
SELECT k, length(v) FROM e_chain WHERE k <= 101 AND k > 97 ORDER BY k DESC;
RESET enable_seqscan;
SELECT paimon.compact('e_chain') > 0 AS compacted;
SELECT count(*), sum(length(v)) FROM e_chain;
SELECT * FROM paimon.verify('e_chain');
DROP TABLE e_chain;
-- Triggers see the incoming row and the merged old one; foreign keys what is there.
CREATE TABLE e_tr (k int PRIMARY KEY, n int, t text) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum');
CREATE FUNCTION e_tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE NOTICE '% % old % new %', TG_WHEN, TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END, CASE WHEN TG_OP <> 'DELETE' THEN NEW::text END; RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END; END $$;
CREATE TRIGGER e_before BEFORE INSERT OR UPDATE OR DELETE ON e_tr FOR EACH ROW EXECUTE FUNCTION e_tell();
CREATE TRIGGER e_after AFTER INSERT OR UPDATE OR DELETE ON e_tr FOR EACH ROW EXECUTE FUNCTION e_tell();
INSERT INTO e_tr VALUES (1, 1, 'a'), (1, 2, NULL), (2, 5, 'b') RETURNING *;
INSERT INTO e_tr VALUES (1, 4, NULL) ON CONFLICT (k) DO UPDATE SET n = EXCLUDED.n, t = EXCLUDED.t;
UPDATE e_tr SET n = n + 10 WHERE k = 1 RETURNING *;
BEGIN;
INSERT INTO e_tr VALUES (1, 100, NULL), (2, 1, NULL);
UPDATE e_tr SET t = t || '!' RETURNING *;
DELETE FROM e_tr WHERE k = 2 RETURNING *;
INSERT INTO e_tr VALUES (2, 7, 'anew');
COMMIT;
TABLE e_tr ORDER BY k;
DROP TABLE e_tr;
CREATE TABLE e_parent (k int PRIMARY KEY, t text) USING paimon WITH ("merge-engine" = 'partial-update');
CREATE TABLE e_child (k int PRIMARY KEY, p int REFERENCES e_parent, x text) USING paimon WITH ("merge-engine" = 'partial-update');
INSERT INTO e_parent VALUES (1, 'one'), (2, 'two');
INSERT INTO e_child VALUES (1, 1, NULL), (1, NULL, 'x');
INSERT INTO e_child VALUES (2, 3, NULL), (2, NULL, 'x');
INSERT INTO e_child VALUES (1, 3, NULL);
UPDATE e_child SET p = 3;
DELETE FROM e_parent WHERE k = 1;
UPDATE e_child SET p = 2;
DELETE FROM e_parent WHERE k = 1;
TABLE e_child;
DROP TABLE e_child, e_parent;
-- Columns come and go; what was stored before is as if it had had them.
CREATE TABLE e_alter (k int PRIMARY KEY, a int, b text) USING paimon WITH ("merge-engine" = 'partial-update');
INSERT INTO e_alter VALUES (1, 1, 'b');
ALTER TABLE e_alter ADD COLUMN c int DEFAULT 7;
INSERT INTO e_alter VALUES (1, NULL, 'bb', NULL), (2, 2, NULL, 3);
TABLE e_alter ORDER BY k;
ALTER TABLE e_alter DROP COLUMN b;
INSERT INTO e_alter VALUES (1, 5, NULL), (3, 3, 3);
TABLE e_alter ORDER BY k;
ALTER TABLE e_alter ALTER COLUMN a TYPE text USING 'a' || a;
INSERT INTO e_alter VALUES (2, NULL, 4);
TABLE e_alter ORDER BY k;
VACUUM FULL e_alter;
INSERT INTO e_alter VALUES (3, NULL, 5);
TABLE e_alter ORDER BY k;
CLUSTER e_alter USING e_alter_pkey;
ANALYZE e_alter;
SELECT count(*) FROM e_alter TABLESAMPLE SYSTEM (100);
TABLE e_alter ORDER BY k;
ALTER TABLE e_alter SET ACCESS METHOD heap;
TABLE e_alter ORDER BY k;
DROP TABLE e_alter;
-- Old snapshots keep what they saw.
CREATE TABLE e_old (k int PRIMARY KEY, n int) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum');
INSERT INTO e_old VALUES (1, 1), (2, 2);
BEGIN;
INSERT INTO e_old VALUES (1, 10);
DECLARE c SCROLL CURSOR FOR SELECT * FROM e_old;
INSERT INTO e_old VALUES (1, 100), (3, 3);
UPDATE e_old SET n = n + 1000;
FETCH ALL FROM c;
FETCH BACKWARD ALL FROM c;
SELECT * FROM e_old ORDER BY k;
COMMIT;
DROP TABLE e_old;
-- Parallel scans.
CREATE TABLE e_par (k int PRIMARY KEY, n int) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum', bucket = 2);
INSERT INTO e_par SELECT g, 1 FROM generate_series(1, 40000) g;
SELECT paimon.flush('e_par') > 0 AS flushed;
INSERT INTO e_par SELECT g, 1 FROM generate_series(1, 40000, 2) g;
SELECT paimon.flush('e_par') > 0 AS flushed;
INSERT INTO e_par SELECT g, 1 FROM generate_series(1, 40000, 3) g;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT count(*), sum(n), max(n) FROM e_par;
SET max_parallel_workers_per_gather = 0;
SELECT count(*), sum(n), max(n) FROM e_par;
DROP TABLE e_par;
DROP PROCEDURE e;
DROP PROCEDURE e_stream;
DROP PROCEDURE e_fill;
DROP FUNCTION e_look, e_longest(text, text), e_tell();
