-- INSERT ... ON CONFLICT and MERGE: every statement runs on a paimon table and on a heap table, and must do and say the same.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS paimon_am;
CREATE SCHEMA up_p;
CREATE SCHEMA up_h;

-- The same objects in both schemas.
CREATE PROCEDURE up_define(sql text) LANGUAGE plpgsql AS $$
DECLARE s text;
BEGIN
	FOREACH s IN ARRAY ARRAY['up_p', 'up_h'] LOOP
		PERFORM set_config('search_path', s || ', public', true);
		PERFORM set_config('default_table_access_method', CASE s WHEN 'up_p' THEN 'paimon' ELSE 'heap' END, true);
		EXECUTE sql;
	END LOOP;
	PERFORM set_config('default_table_access_method', 'heap', true);
	PERFORM set_config('search_path', 'public', true);
END $$;

-- What a statement did: rows returned, else their number, else the error.
CREATE FUNCTION up_run(sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	r record;
	n bigint;
	result text := '';
BEGIN
	IF sql ~* '(RETURNING|SELECT)[^()]*$|^\s*SELECT' THEN
		FOR r IN EXECUTE sql LOOP result := result || r::text || ' '; END LOOP;
		RETURN result;
	END IF;
	EXECUTE sql;
	GET DIAGNOSTICS n = ROW_COUNT;
	RETURN n || ' rows';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ': ' || SQLERRM;
END $$;

CREATE FUNCTION up(sql text, tab text DEFAULT 't') RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	s text;
	did text[];
	has text[];
	rows text;
BEGIN
	FOREACH s IN ARRAY ARRAY['up_p', 'up_h'] LOOP
		PERFORM set_config('search_path', s || ', public', true);
		did := did || up_run(sql);
		EXECUTE format('SELECT string_agg(x::text, '' '' ORDER BY x::text) FROM %I x', tab) INTO rows;
		has := has || rows;
	END LOOP;
	PERFORM set_config('search_path', 'public', true);
	IF did[1] IS DISTINCT FROM did[2] OR has[1] IS DISTINCT FROM has[2] THEN
		RETURN format('DIFFERENT paimon: %s, holds %s; heap: %s, holds %s', did[1], has[1], did[2], has[2]);
	END IF;
	RETURN did[1];
END $$;

-- Is the statement run as a plain INSERT?
CREATE FUNCTION up_blind(sql text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
	blind boolean := true;
BEGIN
	PERFORM set_config('search_path', 'up_p, public', true);
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || sql LOOP
		blind := blind AND line !~ 'Conflict Resolution';
	END LOOP;
	PERFORM set_config('search_path', 'public', true);
	RETURN blind;
EXCEPTION WHEN OTHERS THEN
	PERFORM set_config('search_path', 'public', true);
	RETURN NULL;
END $$;

CALL up_define('CREATE TABLE t (id int PRIMARY KEY, n int DEFAULT 7, v text)');
SELECT up($$INSERT INTO t SELECT g, g * 10, 'v' || g FROM generate_series(1, 9) g$$);

-- ---- the full row: a plain upsert ----
SELECT up_blind($$INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$INSERT INTO t VALUES (1, 2, 'x'), (20, 2, 'x') ON CONFLICT (id) DO UPDATE SET id = EXCLUDED.id, n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$INSERT INTO t (id, v) VALUES (2, 'x'), (21, 'y') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v RETURNING *$$);
SELECT up($$INSERT INTO t (id, v) VALUES (2, 'z'), (21, 'z') ON CONFLICT ON CONSTRAINT t_pkey DO UPDATE SET (n, v) = ROW (EXCLUDED.n, EXCLUDED.v) RETURNING *$$);
SELECT up($$INSERT INTO t AS target VALUES (2, 5, 'a') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v, n = EXCLUDED.n RETURNING target.n, target$$);
-- twice in one statement
SELECT up($$INSERT INTO t VALUES (1, 3, 'x'), (1, 4, 'x') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$INSERT INTO t VALUES (30, 3, 'x'), (30, 4, 'x') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$WITH u AS (UPDATE t SET n = 0 WHERE id = 4 RETURNING id) INSERT INTO t SELECT id, 1, 'u' FROM u ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$WITH d AS (DELETE FROM t WHERE id = 4 RETURNING id) INSERT INTO t SELECT id, 1, 'd' FROM d ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$WITH d AS (DELETE FROM t WHERE id = 5 RETURNING *), i AS (INSERT INTO t SELECT id + 100, n, v FROM d ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v RETURNING *) SELECT * FROM i$$);
-- many rows, some twice far apart
SELECT up($$INSERT INTO t SELECT g % 1000, g, 'many' FROM generate_series(0, 999) g ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$INSERT INTO t SELECT g % 999, g, 'many' FROM generate_series(0, 999) g ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$DELETE FROM t WHERE id > 9$$);

-- ---- not the full row ----
SELECT up_blind(s), up(s) FROM unnest(ARRAY[
	$$INSERT INTO t VALUES (1, 11, 'part') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n$$,
	$$INSERT INTO t VALUES (1, 11, 'part'), (40, 1, 'new') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v RETURNING *$$,
	$$INSERT INTO t VALUES (1, 11, 'sum') ON CONFLICT (id) DO UPDATE SET n = t.n + EXCLUDED.n, v = EXCLUDED.v RETURNING n$$,
	$$INSERT INTO t VALUES (1, 11, 'swap') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.id, v = EXCLUDED.v$$,
	$$INSERT INTO t VALUES (1, 11, 'dflt') ON CONFLICT (id) DO UPDATE SET n = DEFAULT, v = EXCLUDED.v RETURNING *$$,
	$$INSERT INTO t VALUES (1, 11, 'w') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v WHERE t.n < 5 RETURNING *$$,
	$$INSERT INTO t VALUES (1, 11, 'w'), (41, 1, 'w') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v WHERE t.n > EXCLUDED.n RETURNING *$$,
	$$INSERT INTO t VALUES (1, 0, 'w') ON CONFLICT (id) DO UPDATE SET n = (SELECT max(n) FROM t), v = t.v || EXCLUDED.v RETURNING *$$,
	$$INSERT INTO t VALUES (1, 0, 'key') ON CONFLICT (id) DO UPDATE SET id = 50 RETURNING *$$,
	$$INSERT INTO t VALUES (2, 0, 'key') ON CONFLICT (id) DO UPDATE SET id = EXCLUDED.id + 49 - EXCLUDED.id + t.id RETURNING *$$,
	$$INSERT INTO t VALUES (1, 1, 'no'), (3, 1, 'no'), (42, 1, 'no') ON CONFLICT DO NOTHING$$,
	$$INSERT INTO t VALUES (1, 1, 'no'), (3, 1, 'no'), (43, 1, 'no') ON CONFLICT (id) DO NOTHING RETURNING *$$,
	$$INSERT INTO t VALUES (44, 1, 'no'), (44, 2, 'no') ON CONFLICT ON CONSTRAINT t_pkey DO NOTHING RETURNING *$$,
	$$INSERT INTO t VALUES (45, 1, 'x'), (45, 2, 'x') ON CONFLICT (id) DO UPDATE SET n = t.n + EXCLUDED.n$$,
	$$INSERT INTO t VALUES (4, 1, 'x'), (4, 2, 'x') ON CONFLICT (id) DO UPDATE SET n = t.n + EXCLUDED.n$$,
	$$INSERT INTO t SELECT g, 1, 'x' FROM generate_series(1, 2000) g ON CONFLICT (id) DO UPDATE SET n = t.n + EXCLUDED.n$$,
	$$INSERT INTO t SELECT g, 1, 'x' FROM generate_series(1, 3000) g ON CONFLICT (id) DO NOTHING$$,
	$$DELETE FROM t WHERE id > 60$$,
	$$INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (n) DO NOTHING$$,
	$$INSERT INTO t VALUES (NULL, 1, 'x') ON CONFLICT (id) DO NOTHING$$,
	$$INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET id = NULL$$]) s
WHERE s LIKE 'INSERT%' OR up(s) IS NOT NULL;

-- ---- within one transaction ----
BEGIN;
SELECT up($$INSERT INTO t VALUES (70, 1, 'a') ON CONFLICT (id) DO UPDATE SET n = t.n + 1$$);
SELECT up($$INSERT INTO t VALUES (70, 1, 'a') ON CONFLICT (id) DO UPDATE SET n = t.n + 1$$);
SELECT up($$UPDATE t SET v = 'b' WHERE id = 70$$);
SELECT up($$INSERT INTO t VALUES (70, 1, 'a') ON CONFLICT (id) DO NOTHING RETURNING *$$);
SELECT up($$INSERT INTO t VALUES (70, 1, 'a') ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING *$$);
SELECT up($$DELETE FROM t WHERE id = 70$$);
SELECT up($$INSERT INTO t VALUES (70, 100, 'c') ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING *$$);
SAVEPOINT a;
SELECT up($$INSERT INTO t VALUES (70, 1, 'a'), (71, 1, 'a') ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING *$$);
ROLLBACK TO a;
SELECT up($$INSERT INTO t VALUES (70, 1, 'a'), (71, 1, 'a') ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING *$$);
SELECT up($$INSERT INTO t VALUES (71, 5, 'blind'), (72, 5, 'blind') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SAVEPOINT b;
SELECT up($$INSERT INTO t VALUES (73, 5, 'gone') ON CONFLICT (id) DO NOTHING$$);
ROLLBACK TO b;
SELECT up($$INSERT INTO t VALUES (71, 1, 'a'), (73, 1, 'a') ON CONFLICT (id) DO UPDATE SET n = t.n + 1 RETURNING *$$);
COMMIT;
SELECT up($$SELECT * FROM t ORDER BY id$$);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT up_blind($$INSERT INTO t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$INSERT INTO t VALUES (1, 1, 'x'), (80, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$);
SELECT up($$INSERT INTO t VALUES (1, 1, 'x'), (80, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = t.n + 1$$);
SELECT up($$INSERT INTO t VALUES (1, 1, 'x'), (80, 1, 'x'), (81, 1, 'x'), (81, 1, 'x') ON CONFLICT DO NOTHING RETURNING *$$);
SELECT up($$INSERT INTO t VALUES (82, 1, 'x'), (82, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = t.n + 1$$);
COMMIT;

-- ---- prepared, functions, rules of the language ----
SET search_path = up_p, public;
PREPARE full_row (int, int, text) AS INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v;
PREPARE adding (int, int, text) AS INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET n = t.n + EXCLUDED.n RETURNING n;
SET plan_cache_mode = force_generic_plan;
EXECUTE full_row (90, 1, 'p');
EXECUTE full_row (90, 2, 'p');
EXECUTE adding (90, 3, 'p');
EXECUTE adding (90, 4, 'p');
BEGIN ISOLATION LEVEL REPEATABLE READ;
EXECUTE full_row (90, 2, 'p');
EXECUTE adding (90, 3, 'p');
COMMIT;
EXECUTE full_row (91, 1, 'p');
RESET plan_cache_mode;
DEALLOCATE ALL;
SELECT * FROM t WHERE id >= 90 ORDER BY id;
DELETE FROM t WHERE id >= 90;
RESET search_path;
CALL up_define($q$CREATE FUNCTION add_all(n int) RETURNS int LANGUAGE plpgsql AS $f$
DECLARE done int := 0; r int;
BEGIN
	FOR i IN 1 .. 300 LOOP
		INSERT INTO t AS x VALUES (200 + i % 10, n, 'f') ON CONFLICT (id) DO UPDATE SET n = x.n + EXCLUDED.n RETURNING x.n INTO r;
		done := done + r;
	END LOOP;
	RETURN done;
END $f$ $q$);
CALL up_define($q$CREATE FUNCTION put(int, int) RETURNS void LANGUAGE sql AS $f$
	INSERT INTO t VALUES ($1, $2, 'sql') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v $f$ $q$);
SELECT up($$SELECT add_all(3)$$);
SELECT up($$SELECT put(g, g) FROM generate_series(200, 212) g$$);
SELECT up($$DELETE FROM t WHERE id >= 200$$);
\set VERBOSITY terse
-- whether a row was there is not told by xmax
INSERT INTO up_p.t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v RETURNING xmax = 0;
INSERT INTO up_p.t AS t VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = t.n RETURNING xmax = 0;

-- ---- keys that are equal and not the same ----
CALL up_define('CREATE TABLE k (a numeric, b text, w int, PRIMARY KEY (a, b))');
SELECT up_blind(s), up(s, 'k') FROM unnest(ARRAY[
	$$INSERT INTO k VALUES (1.0, 'x', 1)$$,
	$$INSERT INTO k VALUES (1.00, 'x', 2) ON CONFLICT (a, b) DO UPDATE SET w = EXCLUDED.w RETURNING *$$,
	$$INSERT INTO k VALUES (1.000, 'x', 3) ON CONFLICT (b, a) DO UPDATE SET w = EXCLUDED.w, a = EXCLUDED.a RETURNING *$$,
	$$INSERT INTO k VALUES (1, 'x', 3), (1.0, 'x', 4) ON CONFLICT (b, a) DO UPDATE SET w = EXCLUDED.w, a = EXCLUDED.a RETURNING *$$,
	$$INSERT INTO k VALUES (1, 'x', 3), (1.0, 'y', 4) ON CONFLICT (b, a) DO NOTHING RETURNING *$$]) s;

-- ---- buckets ----
SET default_table_access_method = heap;
CREATE TABLE up_h.b (id int PRIMARY KEY, n int);
CREATE TABLE up_p.b (id int PRIMARY KEY, n int) USING paimon WITH (bucket = 5);
SELECT up($$INSERT INTO b SELECT g, g FROM generate_series(1, 100) g ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n$$, 'b');
SELECT up($$INSERT INTO b SELECT g, g FROM generate_series(50, 150) g ON CONFLICT (id) DO UPDATE SET n = b.n + EXCLUDED.n$$, 'b');
SELECT up($$INSERT INTO b SELECT g, g FROM generate_series(90, 170) g ON CONFLICT DO NOTHING$$, 'b');
SELECT paimon.flush('up_p.b') IS NOT NULL AS flushed;
SELECT up($$INSERT INTO b SELECT g, g FROM generate_series(50, 180) g ON CONFLICT (id) DO UPDATE SET n = b.n + EXCLUDED.n WHERE b.id % 3 = 0$$, 'b');
SELECT up($$INSERT INTO b SELECT g, g FROM generate_series(90, 190) g ON CONFLICT DO NOTHING$$, 'b');

-- ---- more than the write buffer holds; more keys than are locked one by one ----
CREATE TABLE up_h.x (id int PRIMARY KEY, n int, v text);
CREATE TABLE up_p.x (id int PRIMARY KEY, n int, v text) USING paimon WITH ("write-buffer-size" = '64kb', bucket = 2);
CREATE FUNCTION up_write(id int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO x VALUES (id, -1, 'function'); RETURN id; END $$;
SELECT up_blind(s), up(s, 'x') FROM unnest(ARRAY[
	$$INSERT INTO x SELECT g, g, repeat('a', 20) FROM generate_series(1, 8000) g ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$,
	$$INSERT INTO x SELECT 1 + g % 7999, g, repeat('b', 20) FROM generate_series(1, 8000) g ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$,
	$$INSERT INTO x SELECT 1 + g % 7999, g, repeat('b', 20) FROM generate_series(1, 8000) g ON CONFLICT (id) DO UPDATE SET n = x.n + EXCLUDED.n$$,
	$$INSERT INTO x SELECT g, g, repeat('c', 20) FROM generate_series(4001, 12000) g ON CONFLICT (id) DO UPDATE SET n = x.n + EXCLUDED.n$$,
	$$INSERT INTO x SELECT g % 9000, g, repeat('d', 20) FROM generate_series(0, 18000) g ON CONFLICT DO NOTHING$$,
	$$INSERT INTO x SELECT g % 100 + 20000, g, repeat('e', 20) FROM generate_series(0, 8000) g ON CONFLICT (id) DO NOTHING$$,
	$$INSERT INTO x SELECT CASE g WHEN 8000 THEN up_write(30005) ELSE 30000 + g END, g, 'f' FROM generate_series(1, 8000) g WHERE g <> 5 ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$,
	$$INSERT INTO x VALUES (up_write(30006), 1, 'f') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$,
	$$MERGE INTO x USING generate_series(11001, 16000) g ON x.id = g WHEN MATCHED THEN UPDATE SET n = -x.n WHEN NOT MATCHED THEN INSERT VALUES (g, g, repeat('g', 20))$$]) s;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT up($$INSERT INTO x SELECT g % 4000 + 40000, g, repeat('h', 20) FROM generate_series(0, 8000) g ON CONFLICT (id) DO NOTHING$$, 'x');
SELECT up($$INSERT INTO x SELECT g + 40000, g, repeat('i', 20) FROM generate_series(0, 8000) g ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n$$, 'x');
SELECT up($$INSERT INTO x SELECT g % 4000 + 50000, g, repeat('h', 20) FROM generate_series(0, 8000) g ON CONFLICT (id) DO UPDATE SET n = x.n$$, 'x');
COMMIT;

-- ---- triggers ----
CALL up_define('CREATE TABLE log (no serial, what text)');
CALL up_define('CREATE TABLE g (id int PRIMARY KEY, n int, v text)');
CALL up_define($q$CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $f$
DECLARE rows text;
BEGIN
	IF TG_LEVEL = 'ROW' THEN
		INSERT INTO log (what) VALUES (concat_ws(' ', TG_NAME, TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD.id || ',' || OLD.n || ',' || OLD.v END,
			CASE WHEN TG_OP <> 'DELETE' THEN NEW.id || ',' || NEW.n || ',' || NEW.v END));
		IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
		RETURN NEW;
	END IF;
	INSERT INTO log (what) VALUES (TG_NAME || ' ' || TG_OP);
	RETURN NULL;
END $f$ $q$);
CALL up_define($q$CREATE FUNCTION note_new() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
	INSERT INTO log (what) SELECT TG_NAME || ' ' || string_agg(x::text, ' ' ORDER BY x.id) FROM new_rows x;
	RETURN NULL;
END $f$ $q$);
CALL up_define($q$CREATE FUNCTION note_both() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
	INSERT INTO log (what) SELECT TG_NAME || ' ' || string_agg(o::text || x::text, ' ' ORDER BY x.id) FROM new_rows x JOIN old_rows o USING (id);
	RETURN NULL;
END $f$ $q$);
CREATE FUNCTION up_triggers() RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE s text;
BEGIN
	FOREACH s IN ARRAY ARRAY[
		$s$INSERT INTO g VALUES (1, 1, 'a'), (2, 2, 'b') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$s$,
		$s$INSERT INTO g VALUES (1, 3, 'c'), (3, 3, 'd') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v RETURNING *$s$,
		$s$INSERT INTO g VALUES (1, 4, 'e'), (4, 4, 'f') ON CONFLICT (id) DO UPDATE SET n = g.n + EXCLUDED.n RETURNING *$s$,
		$s$INSERT INTO g VALUES (1, 5, 'g'), (5, 5, 'h') ON CONFLICT (id) DO NOTHING RETURNING *$s$,
		$s$INSERT INTO g VALUES (1, 6, 'i') ON CONFLICT (id) DO UPDATE SET n = 0 WHERE false$s$] LOOP
		RETURN NEXT concat_ws(' | ', up_blind(s), up(s, 'g'), up('SELECT what FROM log ORDER BY no', 'log'));
		PERFORM up('DELETE FROM log', 'log');
	END LOOP;
	PERFORM up('DELETE FROM g', 'g');
	PERFORM up('DELETE FROM log', 'log');
END $$;
CALL up_define('CREATE TRIGGER bs BEFORE INSERT ON g EXECUTE FUNCTION note()');
CALL up_define('CREATE TRIGGER bi BEFORE INSERT ON g FOR EACH ROW EXECUTE FUNCTION note()');
SELECT * FROM up_triggers();
CALL up_define('CREATE TRIGGER ai AFTER INSERT ON g FOR EACH ROW EXECUTE FUNCTION note()');
SELECT * FROM up_triggers();
CALL up_define('DROP TRIGGER ai ON g');
CALL up_define('CREATE TRIGGER ait AFTER INSERT ON g REFERENCING NEW TABLE AS new_rows EXECUTE FUNCTION note_new()');
SELECT * FROM up_triggers();
CALL up_define('DROP TRIGGER ait ON g');
CALL up_define('CREATE TRIGGER us AFTER UPDATE ON g EXECUTE FUNCTION note()');
SELECT * FROM up_triggers();
CALL up_define('DROP TRIGGER us ON g');
CALL up_define('CREATE TRIGGER bu BEFORE UPDATE ON g FOR EACH ROW EXECUTE FUNCTION note()');
CALL up_define('CREATE TRIGGER au AFTER UPDATE ON g FOR EACH ROW EXECUTE FUNCTION note()');
CALL up_define('CREATE TRIGGER ai AFTER INSERT ON g FOR EACH ROW EXECUTE FUNCTION note()');
CALL up_define('CREATE TRIGGER aut AFTER UPDATE ON g REFERENCING NEW TABLE AS new_rows OLD TABLE AS old_rows EXECUTE FUNCTION note_both()');
CALL up_define('CREATE TRIGGER ait AFTER INSERT ON g REFERENCING NEW TABLE AS new_rows EXECUTE FUNCTION note_new()');
SELECT * FROM up_triggers();
-- a trigger that changes the key, and one that leaves the row out
CALL up_define('DROP TABLE g');
CALL up_define('CREATE TABLE g (id int PRIMARY KEY, n int, v text)');
CALL up_define($q$CREATE FUNCTION turn() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
	IF NEW.n = 99 THEN RETURN NULL; END IF;
	NEW.id := NEW.id % 10;
	RETURN NEW;
END $f$ $q$);
CALL up_define('CREATE TRIGGER bi BEFORE INSERT ON g FOR EACH ROW EXECUTE FUNCTION turn()');
SELECT up_blind(s), up(s, 'g') FROM unnest(ARRAY[
	$$INSERT INTO g VALUES (11, 1, 'a'), (22, 2, 'b') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v RETURNING *$$,
	$$INSERT INTO g VALUES (31, 1, 'c'), (42, 99, 'd'), (43, 3, 'd') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v RETURNING *$$,
	$$INSERT INTO g VALUES (31, 1, 'c'), (41, 3, 'd') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v RETURNING *$$,
	$$INSERT INTO g VALUES (31, 1, 'c'), (44, 3, 'd') ON CONFLICT (id) DO UPDATE SET n = g.n + EXCLUDED.n RETURNING *$$]) s;

-- ---- foreign keys do not stand in the way ----
CALL up_define('CREATE TABLE parent (id int PRIMARY KEY, v text)');
CALL up_define('CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON UPDATE CASCADE)');
SELECT up_blind(s), up(s, 'child') FROM unnest(ARRAY[
	$$INSERT INTO parent VALUES (1, 'a'), (2, 'b') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v$$,
	$$INSERT INTO child VALUES (1, 1), (2, 2) ON CONFLICT (id) DO UPDATE SET parent = EXCLUDED.parent$$,
	$$INSERT INTO parent VALUES (1, 'c'), (3, 'd') ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v$$,
	$$INSERT INTO child VALUES (1, 3), (3, 3) ON CONFLICT (id) DO UPDATE SET parent = EXCLUDED.parent$$,
	$$INSERT INTO child VALUES (1, 9), (3, 3) ON CONFLICT (id) DO UPDATE SET parent = EXCLUDED.parent$$,
	$$INSERT INTO parent VALUES (1, 'c'), (3, 'd') ON CONFLICT (id) DO UPDATE SET id = parent.id + 10$$,
	$$INSERT INTO child VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET parent = 8$$,
	$$INSERT INTO child VALUES (1, 9), (7, 11) ON CONFLICT (id) DO NOTHING$$]) s;
SELECT up('SELECT * FROM parent ORDER BY 1', 'parent');

-- ---- generated and identity columns, checks, domains ----
CALL up_define('CREATE DOMAIN small AS int CHECK (VALUE < 100)');
CALL up_define('CREATE TABLE c (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a small, twice int GENERATED ALWAYS AS (a * 2) STORED, b int NOT NULL DEFAULT 1 CHECK (b > 0))');
SELECT up_blind(s), up(s, 'c') FROM unnest(ARRAY[
	$$INSERT INTO c (a) VALUES (1), (2), (3) RETURNING *$$,
	$$INSERT INTO c (id, a) OVERRIDING SYSTEM VALUE VALUES (1, 10) ON CONFLICT (id) DO UPDATE SET a = EXCLUDED.a, b = EXCLUDED.b RETURNING *$$,
	$$INSERT INTO c (id, a) OVERRIDING SYSTEM VALUE VALUES (1, 11), (9, 12) ON CONFLICT (id) DO UPDATE SET a = c.a + EXCLUDED.a RETURNING *$$,
	$$INSERT INTO c (id, a) OVERRIDING SYSTEM VALUE VALUES (1, 90) ON CONFLICT (id) DO UPDATE SET a = c.a + EXCLUDED.a RETURNING *$$,
	$$INSERT INTO c (id, a, b) OVERRIDING SYSTEM VALUE VALUES (1, 1, -1) ON CONFLICT (id) DO UPDATE SET b = 5 RETURNING *$$,
	$$INSERT INTO c (id, a, b) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1) ON CONFLICT (id) DO UPDATE SET b = -5 RETURNING *$$,
	$$INSERT INTO c (id, a, b) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1) ON CONFLICT (id) DO UPDATE SET b = NULL RETURNING *$$,
	$$INSERT INTO c (id, a) VALUES (1, 11) ON CONFLICT (id) DO NOTHING$$]) s;
CALL up_define('ALTER TABLE c ADD extra int DEFAULT 5, DROP b');
SELECT up_blind(s), up(s, 'c') FROM unnest(ARRAY[
	$$INSERT INTO c (id, a) OVERRIDING SYSTEM VALUE VALUES (1, 10) ON CONFLICT (id) DO UPDATE SET a = EXCLUDED.a RETURNING *$$,
	$$INSERT INTO c (id, a) OVERRIDING SYSTEM VALUE VALUES (1, 10) ON CONFLICT (id) DO UPDATE SET a = EXCLUDED.a, extra = EXCLUDED.extra + 1 RETURNING *$$,
	$$INSERT INTO c (id, a) OVERRIDING SYSTEM VALUE VALUES (2, 10), (12, 1) ON CONFLICT (id) DO UPDATE SET a = EXCLUDED.a, extra = EXCLUDED.extra RETURNING *$$]) s;

-- ---- views ----
CALL up_define('CREATE TABLE base (id int PRIMARY KEY, n int, v text)');
CALL up_define('CREATE VIEW vw AS SELECT v AS text, id AS key, n FROM base WHERE n > 0');
CALL up_define('CREATE VIEW vc AS SELECT * FROM base WHERE n > 0 WITH CHECK OPTION');
CALL up_define('CREATE VIEW vp AS SELECT v, id, n AS m FROM base');
-- (whether rows that a view does not show can be updated through it depends on the server's minor version)
SELECT up(s, 'base') FROM unnest(ARRAY[
	$$INSERT INTO vw (key, n, text) VALUES (1, 1, 'a'), (2, 2, 'b') ON CONFLICT (key) DO UPDATE SET n = EXCLUDED.n, text = EXCLUDED.text RETURNING *$$,
	$$INSERT INTO vw (key, n, text) VALUES (1, 1, 'c'), (2, 2, 'd'), (3, 3, 'e') ON CONFLICT (key) DO UPDATE SET n = EXCLUDED.n, text = EXCLUDED.text RETURNING *$$,
	$$INSERT INTO vw (key, n, text) VALUES (1, 1, 'c'), (2, 2, 'd'), (3, 3, 'e') ON CONFLICT (key) DO UPDATE SET n = vw.n + EXCLUDED.n RETURNING *$$,
	$$INSERT INTO vw (key, n, text) VALUES (1, 1, 'c'), (4, 4, 'd') ON CONFLICT DO NOTHING RETURNING *$$]) s;
SELECT up_blind(s), up(s, 'base') FROM unnest(ARRAY[
	$$INSERT INTO vp (id, m, v) VALUES (1, 10, 'z'), (6, 6, 'y') ON CONFLICT (id) DO UPDATE SET m = EXCLUDED.m, v = EXCLUDED.v RETURNING *$$,
	$$INSERT INTO vp (id, m) VALUES (1, 11), (7, 7) ON CONFLICT (id) DO UPDATE SET m = EXCLUDED.m RETURNING *$$,
	$$INSERT INTO vc VALUES (1, 1, 'x'), (5, 5, 'y') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$,
	$$INSERT INTO vc VALUES (1, -1, 'x') ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, v = EXCLUDED.v$$,
	$$INSERT INTO vc VALUES (1, 1, 'x') ON CONFLICT (id) DO UPDATE SET n = -EXCLUDED.n$$]) s;

-- ---- partitioned parents ----
CALL up_define('CREATE TABLE part (a int, b int, v text, n int DEFAULT 3, PRIMARY KEY (a, b)) PARTITION BY LIST (a)');
CALL up_define('CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1)');
CALL up_define('CREATE TABLE part2 (junk int, n int, v text, b int NOT NULL, a int NOT NULL)');
CALL up_define('ALTER TABLE part2 DROP junk');
CALL up_define('ALTER TABLE part ATTACH PARTITION part2 FOR VALUES IN (2, 3)');
CALL up_define('CREATE TABLE part4 PARTITION OF part FOR VALUES IN (4, 5) PARTITION BY RANGE (b)');
CALL up_define('CREATE TABLE part41 PARTITION OF part4 FOR VALUES FROM (0) TO (10)');
CALL up_define('CREATE TABLE part42 PARTITION OF part4 FOR VALUES FROM (10) TO (20)');
SELECT up_blind(s), up(s, 'part') FROM unnest(ARRAY[
	$$INSERT INTO part SELECT g % 5 + 1, g, 'a', g FROM generate_series(0, 19) g ON CONFLICT (a, b) DO UPDATE SET v = EXCLUDED.v, n = EXCLUDED.n$$,
	$$INSERT INTO part SELECT g % 5 + 1, g, 'b', g FROM generate_series(0, 19) g ON CONFLICT (a, b) DO UPDATE SET v = EXCLUDED.v, n = EXCLUDED.n RETURNING *$$,
	$$INSERT INTO part VALUES (2, 1, 'x', 1), (3, 1, 'x', 1), (2, 1, 'y', 1) ON CONFLICT (a, b) DO UPDATE SET v = EXCLUDED.v, n = EXCLUDED.n$$,
	$$INSERT INTO part SELECT g % 5 + 1, g, 'c', g FROM generate_series(0, 19) g ON CONFLICT (a, b) DO UPDATE SET n = part.n + EXCLUDED.n WHERE part.b % 3 > 0 RETURNING *$$,
	$$INSERT INTO part (v, b, a) SELECT 'd', g, g % 3 + 1 FROM generate_series(0, 19) g ON CONFLICT (a, b) DO UPDATE SET v = part.v || EXCLUDED.v || EXCLUDED.n RETURNING v, part$$,
	$$INSERT INTO part SELECT g % 5 + 1, g % 20, 'e', g FROM generate_series(0, 39) g ON CONFLICT (a, b) DO NOTHING$$,
	$$INSERT INTO part SELECT 2, g, 'f', g FROM generate_series(0, 39) g ON CONFLICT DO NOTHING RETURNING tableoid::regclass::text ~ 'part2', *$$,
	$$INSERT INTO part VALUES (2, 1, 'x', 1), (2, 1, 'y', 1) ON CONFLICT (a, b) DO UPDATE SET v = part.v$$,
	$$INSERT INTO part VALUES (2, 1, 'x', 1), (4, 1, 'y', 1) ON CONFLICT ON CONSTRAINT part_pkey DO UPDATE SET v = part.v || 'z' RETURNING *$$,
	$$INSERT INTO part VALUES (9, 1, 'x', 1) ON CONFLICT (a, b) DO NOTHING$$,
	$$INSERT INTO part VALUES (4, 99, 'x', 1) ON CONFLICT (a, b) DO UPDATE SET v = EXCLUDED.v$$,
	$$INSERT INTO part VALUES (2, 1, 'x', 1) ON CONFLICT (a, b) DO UPDATE SET a = 3, b = part.b + 1000 RETURNING *$$,
	$$INSERT INTO part VALUES (2, 0, 'x', 1) ON CONFLICT (a, b) DO UPDATE SET a = 1 RETURNING *$$,
	$$INSERT INTO part2 (a, b, v) VALUES (2, 0, 'direct'), (2, 500, 'direct') ON CONFLICT (a, b) DO UPDATE SET v = EXCLUDED.v || part2.n RETURNING *$$,
	$$WITH i AS (INSERT INTO part VALUES (1, 0, 'cte', 1), (5, 19, 'cte', 2) ON CONFLICT (a, b) DO UPDATE SET n = -part.n RETURNING *) SELECT * FROM i$$]) s;
CALL up_define($q$CREATE FUNCTION note_row() RETURNS trigger LANGUAGE plpgsql AS $f$
BEGIN
	INSERT INTO log (what) VALUES (concat_ws(' ', TG_NAME, TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD::text END, NEW::text));
	RETURN NEW;
END $f$ $q$);
CALL up_define('CREATE TRIGGER bi BEFORE INSERT OR UPDATE ON part FOR EACH ROW EXECUTE FUNCTION note_row()');
CALL up_define('CREATE TRIGGER au AFTER INSERT OR UPDATE ON part2 FOR EACH ROW EXECUTE FUNCTION note_row()');
SELECT up_blind(s), up(s, 'part'), up('SELECT what FROM log ORDER BY no', 'log'), up('DELETE FROM log', 'log') FROM unnest(ARRAY[
	$$INSERT INTO part VALUES (1, 0, 'g', 1), (2, 5, 'g', 1), (3, 5, 'g', 1) ON CONFLICT (a, b) DO UPDATE SET v = EXCLUDED.v, n = EXCLUDED.n$$,
	$$INSERT INTO part VALUES (1, 0, 'h', 1), (2, 5, 'h', 1), (3, 6, 'h', 1) ON CONFLICT (a, b) DO UPDATE SET n = part.n + 1 RETURNING *$$]) s;
-- no unique index on the parent, one on each partition
CALL up_define('CREATE TABLE loose (a int, b int) PARTITION BY LIST (a)');
CALL up_define('CREATE TABLE loose1 PARTITION OF loose (PRIMARY KEY (b)) FOR VALUES IN (1)');
CALL up_define('CREATE TABLE loose2 PARTITION OF loose FOR VALUES IN (2)');
SELECT up($$INSERT INTO loose VALUES (1, 1), (1, 1), (2, 1), (2, 1) ON CONFLICT DO NOTHING RETURNING *$$, 'loose');
SELECT up($$INSERT INTO loose VALUES (1, 1), (1, 2), (2, 1), (2, 1) ON CONFLICT DO NOTHING RETURNING *$$, 'loose');

-- ---- row security and privileges ----
CREATE ROLE up_user;
GRANT ALL ON SCHEMA public, up_p, up_h TO up_user;
CALL up_define('CREATE TABLE s (id int PRIMARY KEY, owner text, n int)');
CALL up_define('GRANT SELECT, INSERT, UPDATE ON s TO up_user');
SELECT up($$INSERT INTO s VALUES (1, 'up_user', 1), (2, 'else', 2)$$, 's');
CALL up_define('CREATE POLICY sel ON s FOR SELECT USING (owner IN (''up_user'', ''else''))');
CALL up_define('CREATE POLICY ins ON s FOR INSERT WITH CHECK (n < 100)');
CALL up_define('CREATE POLICY upd ON s FOR UPDATE USING (owner = current_user) WITH CHECK (n < 50)');
CALL up_define('ALTER TABLE s ENABLE ROW LEVEL SECURITY');
SET ROLE up_user;
SELECT up_blind(s), up(s, 's') FROM unnest(ARRAY[
	$$INSERT INTO s VALUES (1, 'up_user', 11), (3, 'up_user', 3) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, owner = EXCLUDED.owner RETURNING *$$,
	$$INSERT INTO s VALUES (2, 'up_user', 11) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, owner = EXCLUDED.owner$$,
	$$INSERT INTO s VALUES (1, 'up_user', 70) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, owner = EXCLUDED.owner$$,
	$$INSERT INTO s VALUES (4, 'up_user', 70) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, owner = EXCLUDED.owner RETURNING *$$,
	$$INSERT INTO s VALUES (5, 'up_user', 170) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, owner = EXCLUDED.owner$$,
	$$INSERT INTO s VALUES (2, 'up_user', 11), (6, 'up_user', 11) ON CONFLICT (id) DO NOTHING RETURNING *$$,
	$$INSERT INTO s VALUES (1, 'up_user', 1) ON CONFLICT (id) DO UPDATE SET n = s.n + 1 RETURNING *$$]) s;
RESET ROLE;
CALL up_define('ALTER TABLE s DISABLE ROW LEVEL SECURITY');
CALL up_define('REVOKE ALL ON s FROM up_user');
CALL up_define('GRANT SELECT (id, n), INSERT ON s TO up_user');
SET ROLE up_user;
SELECT up_run('SET LOCAL search_path = up_p; INSERT INTO s VALUES (1, ''x'', 1) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, owner = EXCLUDED.owner');
SELECT up_run('SET LOCAL search_path = up_p; INSERT INTO s VALUES (1, ''x'', 1) ON CONFLICT (id) DO NOTHING');
RESET ROLE;
CALL up_define('GRANT UPDATE (n) ON s TO up_user');
SET ROLE up_user;
SELECT up_run('SET LOCAL search_path = up_p; INSERT INTO s VALUES (1, ''x'', 1) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n, owner = EXCLUDED.owner');
SELECT up_run('SET LOCAL search_path = up_p; INSERT INTO s VALUES (1, ''x'', 21) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n');
SELECT up_run('SET LOCAL search_path = up_p; INSERT INTO s VALUES (1, ''x'', 1) ON CONFLICT (id) DO UPDATE SET n = s.n + 1');
RESET ROLE;
SELECT * FROM up_p.s WHERE id = 1;

-- ---- MERGE ----
CALL up_define('CREATE TABLE m (id int PRIMARY KEY, n int, v text)');
CALL up_define('CREATE TABLE src (id int, n int, v text)');
SELECT up($$INSERT INTO m SELECT g, g, 'm' FROM generate_series(1, 8) g$$, 'm');
SELECT up($$INSERT INTO src SELECT g, g * 100, 's' FROM generate_series(5, 12) g$$, 'src');
SELECT up(s, 'm') FROM unnest(ARRAY[
	$$MERGE INTO m USING src ON m.id = src.id WHEN MATCHED THEN UPDATE SET n = m.n + src.n, v = src.v WHEN NOT MATCHED THEN INSERT VALUES (src.id, src.n, src.v)$$,
	$$MERGE INTO m USING src ON m.id = src.id WHEN MATCHED AND src.id % 2 = 0 THEN DELETE WHEN MATCHED AND src.id = 7 THEN DO NOTHING WHEN MATCHED THEN UPDATE SET n = 0$$,
	$$MERGE INTO m USING src ON m.id = src.id AND src.id > 100 WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (src.id + 100, src.n, src.v)$$,
	$$MERGE INTO m USING src ON m.id = src.id WHEN MATCHED THEN UPDATE SET id = m.id + 1000 WHEN NOT MATCHED THEN DO NOTHING$$,
	$$MERGE INTO m USING (VALUES (1, 1), (1, 2)) s (id, n) ON m.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n$$,
	$$MERGE INTO m USING (VALUES (1, 1), (1, 2)) s (id, n) ON m.id = s.id WHEN MATCHED THEN DELETE$$,
	$$MERGE INTO m USING (VALUES (50, 1), (50, 2)) s (id, n) ON m.id = s.id WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n, 'x')$$,
	$$MERGE INTO m USING (VALUES (1, 1)) s (id, n) ON m.n = -5 WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n, 'x')$$,
	$$MERGE INTO m USING (VALUES (2, 1), (60, 2)) s (id, n) ON m.id = s.id WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'x')$$]) s;
SELECT up($$MERGE INTO part USING (SELECT g % 5 + 1 AS a, g AS b FROM generate_series(0, 25) g WHERE g < 20 OR g % 5 < 2) s ON part.a = s.a AND part.b = s.b
	WHEN MATCHED AND part.n < 10 THEN DELETE WHEN MATCHED THEN UPDATE SET n = part.n + 1 WHEN NOT MATCHED THEN INSERT VALUES (s.a, s.b, 'merge')$$, 'part');
SELECT up('DELETE FROM log', 'log');

SET client_min_messages = error;
DROP SCHEMA up_p CASCADE;
DROP SCHEMA up_h CASCADE;
DROP FUNCTION up, up_run, up_blind, up_triggers, up_write;
DROP PROCEDURE up_define;
REVOKE ALL ON SCHEMA public FROM up_user;
DROP ROLE up_user;
