-- INSERT with a list of rows: its expressions are evaluated in our own way (am_values.c).  Everything beside a heap table.
\set VERBOSITY terse
SET TIME ZONE 'UTC';
CREATE EXTENSION IF NOT EXISTS paimon_am;
CREATE SCHEMA iv;
SET search_path = iv, public;
CREATE TYPE pair AS (a int, b text);
CREATE DOMAIN small AS int CHECK (value < 1000);
CREATE SEQUENCE s;
CREATE TABLE h (id bigint PRIMARY KEY, n numeric(8,2), v varchar(8), t text, ts timestamptz, a int[], pr pair, d small, j jsonb,
	at timestamptz DEFAULT now(), no bigint DEFAULT nextval('s'), g bigint GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE p (LIKE h INCLUDING ALL) USING paimon;
SELECT a.amname FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.oid IN ('h'::regclass, 'p'::regclass) ORDER BY 1;
CREATE FUNCTION same() RETURNS text LANGUAGE sql AS
	'SELECT CASE WHEN (SELECT array_agg(h ORDER BY id) FROM h)::text IS NOT DISTINCT FROM (SELECT array_agg(p ORDER BY id) FROM p)::text THEN ''same, '' || (SELECT count(*) FROM p) || '' rows'' ELSE ''different'' END';
-- each statement for both tables, with the sequence from the start
CREATE PROCEDURE each_way(sql text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM setval('s', 1, false);
	EXECUTE replace(sql, '@', 'h');
	PERFORM setval('s', 1, false);
	EXECUTE replace(sql, '@', 'p');
END $$;

-- constants of all kinds, defaults, NULLs, casts, calls of built-in functions, operators, subqueries, CASE
BEGIN;
CALL each_way($$INSERT INTO @ (id, n, v, t, ts, a, pr, d, j) VALUES
	(1, 1.234, 'a', 'x', '2026-01-01', '{1,2}', '(1,x)', 5, '{"k": 1}'),
	(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(3, 3::float8, 'b'::text, 7::text || 'y', '2026-01-01'::date, ARRAY[1, NULL, 3], ROW(2, 'y'), 6::bigint, jsonb_build_object('a', 1)),
	(length('four'), -(2.5::numeric), upper('c'), repeat('z', 5000), timestamptz '2026-02-03 04:05:06+02', array_append('{4}', 5), NULL::pair, 1 + 1, 'null'),
	((SELECT 5), (SELECT max(x) FROM generate_series(1, 9) x), CASE WHEN 1 > 0 THEN 'case' END, coalesce(NULL, 'c'), now(), '{}', ROW(NULL, NULL), DEFAULT, to_jsonb(5)),
	(6, nullif(1, 1), 'varchar'::varchar(3), current_user, current_timestamp, (SELECT array_agg(x) FROM generate_series(1, 3) x), (7, 'z')::pair, mod(17, 10), NULL)$$);
COMMIT;
SELECT same();
SELECT id, n, v, left(t, 5) AS t, ts, a, pr, d, j, no, g FROM p WHERE id <> 6 AND id <> 5 ORDER BY id;

-- parameters: of a prepared statement, typed and not; of PL/pgSQL, with arrays it has expanded and records
SELECT setval('s', 1, false);
PREPARE ph AS INSERT INTO h (id, n, t, a, d) VALUES ($1, $2, $3, $4, $5), ($1 + 1, $2 + 1, $3 || '+', $4 || 9, $5), ($1 + 2, $2::int, lower($3), $4, $5);
PREPARE pp AS INSERT INTO p (id, n, t, a, d) VALUES ($1, $2, $3, $4, $5), ($1 + 1, $2 + 1, $3 || '+', $4 || 9, $5), ($1 + 2, $2::int, lower($3), $4, $5);
BEGIN;
EXECUTE ph(10, 10.5, 'Ten', '{1}', 1);
EXECUTE ph(20, NULL, NULL, NULL, NULL);
SELECT setval('s', 1, false);
EXECUTE pp(10, 10.5, 'Ten', '{1}', 1);
EXECUTE pp(20, NULL, NULL, NULL, NULL);
COMMIT;
SELECT same();
SET plan_cache_mode = force_generic_plan;
BEGIN;
SELECT setval('s', 1, false);
EXECUTE ph(30, 10.5, 'Ten', '{1}', 1);
SELECT setval('s', 1, false);
EXECUTE pp(30, 10.5, 'Ten', '{1}', 1);
COMMIT;
RESET plan_cache_mode;
SELECT same();
DO $$
DECLARE
	arr int[] := '{1,2,3}';
	r record;
	one pair := (1, 'one');
	k bigint := 40;
BEGIN
	arr[5] := 5;
	FOR r IN SELECT 'rec' AS t, 7.25 AS n LOOP
		PERFORM setval('s', 1, false);
		INSERT INTO h (id, a, t, n, pr, ts) VALUES (k, arr, r.t, r.n, one, '2026-03-01'), (k + 1, arr || 8, r.t || k, r.n * 2, one, '2026-03-01'), (k + 2, array_append(arr, 1), upper(r.t), NULL, (2, r.t), '2026-03-01');
		PERFORM setval('s', 1, false);
		INSERT INTO p (id, a, t, n, pr, ts) VALUES (k, arr, r.t, r.n, one, '2026-03-01'), (k + 1, arr || 8, r.t || k, r.n * 2, one, '2026-03-01'), (k + 2, array_append(arr, 1), upper(r.t), NULL, (2, r.t), '2026-03-01');
	END LOOP;
END $$;
SELECT same();

-- Rows with all columns need no projection: only these lists are walked in our way.  What they call, in which order, and how they fail must be equal too.
CREATE TABLE h3 (id bigint PRIMARY KEY, n numeric(8,2), v varchar(8), t text, ts timestamptz, a int[], pr pair, d small, j jsonb);
CREATE TABLE p3 (LIKE h3 INCLUDING ALL) USING paimon;
CREATE SEQUENCE calls;
CREATE FUNCTION called(int) RETURNS int LANGUAGE plpgsql AS 'BEGIN PERFORM nextval(''calls''); RETURN $1; END';
CREATE FUNCTION nothing(int) RETURNS int LANGUAGE plpgsql STRICT AS 'BEGIN PERFORM nextval(''calls''); RETURN NULL; END';
CREATE FUNCTION grown(int[]) RETURNS int[] LANGUAGE plpgsql AS 'BEGIN $1[4] := 4; RETURN $1; END';
CREATE FUNCTION made(int, text) RETURNS pair LANGUAGE plpgsql AS 'DECLARE r pair; BEGIN r.a := $1; r.b := $2; RETURN r; END';
CREATE FUNCTION kind(anyelement) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN pg_typeof($1); END';
CREATE FUNCTION number(VARIADIC int[]) RETURNS int LANGUAGE sql AS 'SELECT cardinality($1)';
CREATE FUNCTION outcome(sql text, tab text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text := 'done';
	rows text;
BEGIN
	PERFORM setval('s', 1, false), setval('calls', 1, false), setseed(0.5);
	BEGIN
		EXECUTE replace(sql, '@', tab);
	EXCEPTION WHEN OTHERS THEN
		message := SQLSTATE || ' ' || replace(SQLERRM, tab, '@');
	END;
	EXECUTE format('SELECT string_agg(x::text, '' '' ORDER BY id) FROM %I x', tab) INTO rows;
	RETURN message || '; ' || md5(coalesce(rows, '') || random()::text) || (SELECT format('; s %s, calls %s', s.last_value, calls.last_value) FROM s, calls);
END $$;
CREATE FUNCTION twins(sql text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	heap text := outcome(sql, 'h3');
	paimon text := outcome(sql, 'p3');
BEGIN
	RETURN CASE WHEN heap = paimon THEN 'same: ' || regexp_replace(heap, ' [0-9a-f]{32};', '') ELSE heap || ' but ' || paimon END;
END $$;
BEGIN;
SELECT twins($$INSERT INTO @ VALUES
	(1, 1.234, 'a', 'x', '2026-01-01', '{1,2}', '(1,x)', 5, '{"k": 1}'),
	(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
	(3, 3::float8, 'b'::text, 7::text || 'y', '2026-01-01'::date, ARRAY[1, NULL, 3], ROW(2, 'y'), 6::bigint, jsonb_build_object('a', 1)),
	(length('four'), -(2.5::numeric), upper('c'), repeat('z', 5000), timestamptz '2026-02-03 04:05:06+02', array_append('{4}', 5), NULL::pair, 1 + 1, 'null'),
	((SELECT 5), (SELECT max(x) FROM generate_series(1, 9) x), CASE WHEN 1 > 0 THEN 'case' END, coalesce(NULL, 'c'), now(), '{}', ROW(NULL, NULL), DEFAULT, to_jsonb(5))$$);
SELECT twins($$INSERT INTO @ VALUES
	(nextval('s') + 10, random(), 'v' || nextval('s'), called(1)::text, to_timestamp(called(2)), grown('{1}'), made(called(3), 'q'), abs(called(4)), to_jsonb(nextval('s'))),
	(nextval('s') + 10, nothing(NULL), nothing(called(5))::text, kind(1.5), date_trunc('day', '2026-02-03 04:05:06+00'::timestamptz), grown(NULL), made(NULL, kind('{1}'::int[])), number(1, 2, 3), '1'),
	(nextval('s') + 10, sqrt(2::numeric), concat('a', NULL, 'b'), (made(1, 'field')).b, NULL, (ARRAY[1, 2, 3])[2:3], (1, current_user), number(VARIADIC '{4,5}'), '{"a": [1, 2]}'::jsonb #> '{a,1}'),
	(nextval('s') + 10, greatest(1, 2), left('leftmost', 4), format('%s-%I', 'a', 'B c'), 'infinity', ARRAY[nextval('s')::int, called(6)], (called(7), random()::text), nullif(1, 1), row_to_json(ROW(1, 2))::jsonb)$$);
SELECT twins($$INSERT INTO @ VALUES (nextval('s') + 50, 1, called(1)::text, '', NULL, NULL, NULL, 1, NULL), (nextval('s') + 50, 1 / (nextval('s') - 3), called(2)::text, '', NULL, NULL, NULL, called(3), NULL)$$);
SELECT twins($$INSERT INTO @ VALUES (50, 1, 'v', '', NULL, NULL, NULL, called(1), NULL), (51, 1, 'v', '', NULL, NULL, NULL, 1000 + called(2), NULL), (52, 1, 'v', '', NULL, NULL, NULL, called(3), NULL)$$);
SELECT twins($$INSERT INTO @ VALUES (50, called(1), 'v', '', NULL, NULL, NULL, 1, NULL), (51, called(2), repeat('v', 9), '', NULL, NULL, NULL, 1, NULL)$$);
SELECT twins($$INSERT INTO @ VALUES (50, called(1), 'v', '', NULL, NULL, NULL, 1, NULL), (51, 1234567.1, 'v', '', NULL, NULL, NULL, called(2), NULL)$$);
SELECT twins($$INSERT INTO @ VALUES (50, called(1), 'v', '', NULL, NULL, NULL, 1, NULL), (51, 1, 'v', '', NULL, called(2)::text::int[], NULL, called(3), NULL)$$);
COMMIT;
PREPARE h3 AS INSERT INTO h3 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9), ($1 + 1, $2 + 1, upper($3), $4 || $3, $5, $6 || 9, $7, $8, $9 -> 'k'), (abs($1) + 2, -$2, left($3, 2), kind($4), $5 + '1 day', $6[2:3], (($7).a, $4), $8 + 1, to_jsonb($4));
PREPARE p3 AS INSERT INTO p3 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9), ($1 + 1, $2 + 1, upper($3), $4 || $3, $5, $6 || 9, $7, $8, $9 -> 'k'), (abs($1) + 2, -$2, left($3, 2), kind($4), $5 + '1 day', $6[2:3], (($7).a, $4), $8 + 1, to_jsonb($4));
SET plan_cache_mode = force_generic_plan;
EXECUTE h3(100, 10.5, 'Ten', 'Text', '2026-01-01', '{1,2,3}', '(1,x)', 1, '{"k": 2}');
EXECUTE p3(100, 10.5, 'Ten', 'Text', '2026-01-01', '{1,2,3}', '(1,x)', 1, '{"k": 2}');
EXECUTE h3(110, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
EXECUTE p3(110, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
EXECUTE h3(120, 1, 'a', 'a', 'now', '{}', NULL, 999, NULL);
EXECUTE p3(120, 1, 'a', 'a', 'now', '{}', NULL, 999, NULL);
RESET plan_cache_mode;
EXECUTE h3(130, 10.5, 'Ten', 'Text', '2026-01-01', '{1,2,3}', '(1,x)', 1, '{"k": 2}');
EXECUTE p3(130, 10.5, 'Ten', 'Text', '2026-01-01', '{1,2,3}', '(1,x)', 1, '{"k": 2}');
-- variables that hold expanded objects stay as they are, and may change between
DO $$
DECLARE
	arr int[] := '{1,2,3}';
	one pair := (1, 'one');
	r record;
BEGIN
	arr[5] := 5;
	one.b := 'two';
	SELECT 'rec' AS t, 7.25 AS n INTO r;
	FOR k IN 200..202 LOOP
		INSERT INTO h3 VALUES (k, r.n, 'v', r.t, NULL, arr, one, 1, NULL), (k + 10, k, r.t, upper(r.t), NULL, grown(arr), (k, r.t), k, NULL), (k + 20, -k, r.t || k, one.b, NULL, arr || k, one, one.a, to_jsonb(arr));
		INSERT INTO p3 VALUES (k, r.n, 'v', r.t, NULL, arr, one, 1, NULL), (k + 10, k, r.t, upper(r.t), NULL, grown(arr), (k, r.t), k, NULL), (k + 20, -k, r.t || k, one.b, NULL, arr || k, one, one.a, to_jsonb(arr));
		arr[1] := k;
		one.a := k;
	END LOOP;
	RAISE NOTICE '% %', arr, one;
END $$;
SELECT CASE WHEN (SELECT array_agg(h3 ORDER BY id) FROM h3)::text = (SELECT array_agg(p3 ORDER BY id) FROM p3)::text THEN 'same, ' || (SELECT count(*) FROM p3) || ' rows' ELSE 'different' END AS all_columns;

-- RETURNING, a list within WITH, the upsert that sets all columns, one that does not
CREATE TABLE h2 (id int PRIMARY KEY, x int, y text);
CREATE TABLE p2 (LIKE h2 INCLUDING ALL) USING paimon;
INSERT INTO h2 VALUES (1, 1, 'a'), (2, 1 + 1, 'b') RETURNING *, x + 1 AS z;
INSERT INTO p2 VALUES (1, 1, 'a'), (2, 1 + 1, 'b') RETURNING *, x + 1 AS z;
WITH w AS (INSERT INTO h2 VALUES (3, 3, 'c'), (4, abs(-4), 'd') RETURNING id) SELECT sum(id) FROM w;
WITH w AS (INSERT INTO p2 VALUES (3, 3, 'c'), (4, abs(-4), 'd') RETURNING id) SELECT sum(id) FROM w;
INSERT INTO h2 VALUES (1, 10, 'A'), (5, 5, 'e') ON CONFLICT (id) DO UPDATE SET x = excluded.x, y = excluded.y;
INSERT INTO p2 VALUES (1, 10, 'A'), (5, 5, 'e') ON CONFLICT (id) DO UPDATE SET x = excluded.x, y = excluded.y;
INSERT INTO h2 VALUES (1, 10, 'A'), (6, 6, 'f') ON CONFLICT (id) DO UPDATE SET x = h2.x + excluded.x;
INSERT INTO p2 VALUES (1, 10, 'A'), (6, 6, 'f') ON CONFLICT (id) DO UPDATE SET x = p2.x + excluded.x;
INSERT INTO p2 VALUES (7, 7, 'g'), (7, 8, 'h') ON CONFLICT (id) DO UPDATE SET x = excluded.x, y = excluded.y;
SELECT (SELECT array_agg(h2 ORDER BY id) FROM h2)::text = (SELECT array_agg(p2 ORDER BY id) FROM p2)::text AS same, count(*) FROM p2;

-- errors: in an expression, of a row in the middle, of a function that may not be called; of a parameter's type
INSERT INTO p2 VALUES (8, 8, 'x'), (9, 1 / 0, 'y');
PREPARE d AS INSERT INTO p2 VALUES (8, 8, 'x'), (9, 8 / $1, 'y');
EXECUTE d(0);
EXECUTE d(4);
INSERT INTO p2 VALUES (10, 1, 'x'), (NULL, 1, 'y');
INSERT INTO p (id, d) VALUES (60, 1), (61, 5000);
INSERT INTO p (id, v) VALUES (60, 'x'), (61, 'much too long');
CREATE ROLE iv_user;
GRANT USAGE ON SCHEMA iv TO iv_user;
GRANT INSERT ON p2 TO iv_user;
REVOKE EXECUTE ON FUNCTION int4abs(int) FROM public;
SET ROLE iv_user;
INSERT INTO p2 VALUES (11, 1, 'x'), (12, int4abs(-1 * length('a')), now()::text);
PREPARE u AS INSERT INTO p2 VALUES (11, 1, 'x'), (12, int4abs($1), 'y');
EXECUTE u(-1);
RESET ROLE;
-- what may not be called is found before anything of its row is called
CREATE SEQUENCE before;
GRANT USAGE ON SEQUENCE before TO iv_user;
CREATE FUNCTION forbidden() RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
REVOKE EXECUTE ON FUNCTION forbidden() FROM public;
SET ROLE iv_user;
INSERT INTO p2 VALUES (11, 1, 'x'), (nextval('before'), 1, forbidden());
INSERT INTO p2 VALUES (11, nextval('before'), 'x'), (12, nextval('before'), int4abs(-1 * length(now()::text))::text);
RESET ROLE;
SELECT last_value, is_called FROM before;
GRANT EXECUTE ON FUNCTION int4abs(int) TO public;
SET ROLE iv_user;
EXECUTE u(-1);
RESET ROLE;
SELECT * FROM p2 WHERE id > 7 ORDER BY id;

-- the plan stays the server's
EXPLAIN (COSTS OFF, VERBOSE) INSERT INTO p2 VALUES (20, 1, 'x'), (21, abs(-1), 'y');

-- the same list again and again in one statement: rows of a rescan are not asked for by core, but a rule makes two lists of one
CREATE RULE twice AS ON INSERT TO p2 WHERE new.id = 30 DO ALSO INSERT INTO h2 VALUES (new.id, new.x, 'rule'), (new.id + 1, new.x, 'rule');
INSERT INTO p2 VALUES (30, 30, 'x'), (31, 31, 'y');
SELECT * FROM h2 WHERE id >= 30 ORDER BY id;

-- partitions, triggers, user functions
CREATE TABLE parted (id int PRIMARY KEY, x text) PARTITION BY RANGE (id);
CREATE TABLE parted1 PARTITION OF parted FOR VALUES FROM (0) TO (10) USING paimon;
CREATE TABLE parted2 PARTITION OF parted FOR VALUES FROM (10) TO (20);
INSERT INTO parted VALUES (1, 'a'), (11, 'b'), (2, repeat('c', 3));
SELECT tableoid::regclass, * FROM parted ORDER BY id;
CREATE FUNCTION twice(int) RETURNS int LANGUAGE plpgsql STRICT AS 'BEGIN RETURN $1 * 2; END';
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN new.y := new.y || ''!''; RETURN new; END';
CREATE TRIGGER note BEFORE INSERT ON p2 FOR EACH ROW EXECUTE FUNCTION note();
INSERT INTO p2 VALUES (40, twice(20), 'x'), (41, twice(NULL), 'y'), (42, twice(twice(1)), 'z');
SELECT * FROM p2 WHERE id >= 40 ORDER BY id;

SET client_min_messages = warning;
DROP SCHEMA iv CASCADE;
DROP ROLE iv_user;
