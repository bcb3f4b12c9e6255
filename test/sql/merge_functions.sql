-- The merge functions on the server's types: what a key's rows come to, the same under every way to cut them into runs.

\set SHOW_CONTEXT never
\pset null NULL
CREATE TYPE merge_item AS (k int, t int, v text, w text);
CREATE TABLE merge_t (id int PRIMARY KEY, i2 smallint, i int, j bigint, f4 real, f8 double precision, n numeric(5,2), nn numeric,
	b boolean, t text, tc text COLLATE "C", c varchar(20), d date, ts timestamptz, a int[], ta text[], r merge_item[], m jsonb, rows jsonb, u uuid);

-- m(options, kinds, column, values): one column of the table
CREATE FUNCTION m(options text[], kinds text[], col text, vals text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	texts text[];
	fields text;
	one text;
	result text;
BEGIN
	FOR k IN 1 .. array_length(vals, 1) LOOP
		SELECT string_agg(CASE attname WHEN 'id' THEN '1' WHEN col THEN quote_nullable(vals[k]) ELSE 'NULL' END, ', ' ORDER BY attnum) INTO fields
			FROM pg_attribute WHERE attrelid = 'merge_t'::regclass AND attnum > 0;
		EXECUTE format('SELECT ROW(%s)::merge_t::text', fields) INTO one;
		texts := texts || one;
	END LOOP;
	result := paimon.test_merge('merge_t', options, kinds, texts);
	IF result IS NULL THEN
		RETURN 'no row';
	END IF;
	EXECUTE format('SELECT (%L::merge_t).%I::text', result, col) INTO result;
	RETURN result;
END $$;
CREATE FUNCTION agg(f text, col text, VARIADIC vals text[]) RETURNS text LANGUAGE sql AS $$
	SELECT m(ARRAY['merge-engine=aggregation', format('fields.%s.aggregate-function=%s', col, f)], (SELECT array_agg('+I'::text) FROM unnest(vals)), col, vals)
$$;
-- the last value is taken back
CREATE FUNCTION back(f text, col text, VARIADIC vals text[]) RETURNS text LANGUAGE sql AS $$
	SELECT m(ARRAY['merge-engine=aggregation', format('fields.%s.aggregate-function=%s', col, f)],
		(SELECT array_agg(CASE WHEN o = array_length(vals, 1) THEN '-U' ELSE '+I' END ORDER BY o) FROM unnest(vals) WITH ORDINALITY AS v(v, o)), col, vals)
$$;

-- sum
SELECT col, agg('sum', col, '1', NULL, '2', '-5') AS added, back('sum', col, '1', '2', '5') AS taken, back('sum', col, '5') AS alone,
	back('sum', col, '5', NULL) AS nothing
FROM unnest(ARRAY['i2', 'i', 'j', 'f4', 'f8', 'n', 'nn']) AS col;
SELECT agg('sum', 'i2', '32767', '1', '-2'), agg('sum', 'j', '9223372036854775807', '9223372036854775807', '-9223372036854775807'),
	agg('sum', 'n', '999.99', '999.99', '-999.99');
SELECT agg('sum', 'i2', '32767', '1');
SELECT agg('sum', 'i', '-2147483648', '-1');
SELECT agg('sum', 'j', '9223372036854775807', '1');
SELECT agg('sum', 'n', '999.99', '0.01');
SELECT agg('sum', 'f4', '3e38', '3e38');
SELECT agg('sum', 'n', 'NaN', '1.5'), agg('sum', 'nn', '1e30', '0.000001'), agg('sum', 'f8', 'Infinity', '1');

-- product
SELECT col, agg('product', col, '3', NULL, '-4') AS added, back('product', col, '7', '2', '2') AS taken, back('product', col, '5') AS alone
FROM unnest(ARRAY['i2', 'i', 'j', 'f4', 'f8', 'n', 'nn']) AS col;
SELECT back('product', 'i', '7', '2'), back('product', 'i', '-7', '2'), agg('product', 'n', '1.11', '1.11'), back('product', 'nn', '1', '8');
SELECT agg('product', 'i', '65536', '65536', '0'), agg('product', 'n', '99', '99', '0.01');
SELECT agg('product', 'i', '65536', '65536');
SELECT agg('product', 'n', '99', '99');
SELECT back('product', 'i', '7', '0');
SELECT back('product', 'nn', '7', '0');
SELECT back('product', 'f8', '7', '0');
SELECT back('product', 'nn', '1', '3');

-- max, min
SELECT col, agg('max', col, VARIADIC v) AS max, agg('min', col, VARIADIC v) AS min
FROM (VALUES ('i2', '{1,-3,2}'::text[]), ('i', '{1,-3,NULL,2}'), ('j', '{1,-3,2}'), ('f4', '{1,NaN,-Infinity}'), ('f8', '{1.5,-3,2}'), ('n', '{1.10,-3,2}'),
	('nn', '{1.10,1.1,2}'), ('b', '{t,f}'), ('t', '{b,a,c}'), ('tc', '{B,a,C}'), ('c', '{b,a,c}'), ('d', '{2024-01-02,1999-12-31,2020-02-29}'),
	('ts', '{2024-01-02 00:00+00,1999-12-31 00:00+01,2020-02-29 00:00+00}')) AS x(col, v) ORDER BY col;
SELECT back('max', 'i', '1', '2');

-- values
SELECT col, agg('last_value', col, VARIADIC v || NULL::text), agg('last_non_null_value', col, VARIADIC v || NULL::text), agg('first_value', col, VARIADIC NULL::text || v),
	agg('first_non_null_value', col, VARIADIC NULL::text || v), back('last_value', col, VARIADIC v), back('last_non_null_value', col, VARIADIC v || NULL::text)
FROM (VALUES ('i', '{1,2}'::text[]), ('t', '{x,y}'), ('u', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12}'), ('m', '{"{}",1}'), ('a', '{"{1}","{2}"}')) AS x(col, v);
SELECT agg('bool_and', 'b', 't', NULL, 'f'), agg('bool_and', 'b', 't', NULL), agg('bool_or', 'b', 'f', 't'), agg('bool_or', 'b', 'f', NULL);
SELECT agg('listagg', 't', 'a', ' ', NULL, 'b', repeat('x', 5));
SELECT length(agg('listagg', 't', repeat('x', 100000), repeat('y', 100000), 'z'));
SELECT m('{merge-engine=aggregation,fields.t.aggregate-function=listagg,fields.t.distinct=true,fields.t.list-agg-delimiter=|}',
	'{+I,+I,+I}', 't', '{a|b,b|c,ä|a}');

-- collect
SELECT agg('collect', 'a', '{1,2}', NULL, '{2,NULL,3}', '{}'), agg('collect', 'ta', '{a,b}', '{NULL,c}');
SELECT back('collect', 'a', '{1,2,2,3}', '{2,NULL}', '{2,9,NULL}'), back('collect', 'a', '{1,2}'), back('collect', 'ta', '{x,y}', '{x,y}');
SELECT m('{merge-engine=aggregation,fields.a.aggregate-function=collect,fields.a.distinct=true}', '{+I,+I,-U,+I}', 'a', '{"{1,1,2}","{2,3,NULL,NULL}","{1}","{5,1}"}');
SELECT agg('collect', 'a', '{{1,2},{3,4}}');
SELECT array_length(agg('collect', 'a', (SELECT array_agg(i)::text FROM generate_series(1, 3000) i), (SELECT array_agg(i)::text FROM generate_series(2000, 5000) i))::int[], 1),
	array_length(m('{merge-engine=aggregation,fields.a.aggregate-function=collect,fields.a.distinct=true}', '{+I,+I}', 'a',
		ARRAY[(SELECT array_agg(i)::text FROM generate_series(1, 3000) i), (SELECT array_agg(i)::text FROM generate_series(2000, 5000) i)])::int[], 1);

-- maps
SELECT agg('merge_map', 'm', '{"a": 1, "b": {"x": [1, 2]}}', NULL, '{"b": 2, "c": null}'), back('merge_map', 'm', '{"a": 1, "b": 2}', '{"c": 3}', '{"a": 9, "z": 1}'),
	back('merge_map', 'm', '{"a": 1}');
SELECT agg('merge_map', 'm', '[1, 2]');
SELECT agg('merge_map', 'm', '7');
CREATE FUNCTION keytime(VARIADIC vals text[]) RETURNS text LANGUAGE sql AS $$
	SELECT m('{merge-engine=aggregation,fields.m.aggregate-function=merge_map_with_keytime,fields.m.ts-field=at}', (SELECT array_agg('+I'::text) FROM unnest(vals)), 'm', vals)
$$;
SELECT keytime('{"a": {"v": 1, "at": "2024-01-02"}}', '{"a": {"v": 2, "at": "2024-01-01"}, "b": {"v": 3, "at": "2024-01-01"}}', '{"b": {"v": 4, "at": "2024-01-01"}}');
SELECT keytime('{"a": {"v": 1, "at": "5"}, "n": {"v": 0}}', '{"a": null, "n": {"v": 1}, "x": {"v": 2}}', '{"a": {"v": 2, "at": "1"}}');
SELECT keytime('{"a": {"v": 1, "at": 5}}');
SELECT keytime('{"a": 1}');

-- nested rows, of a composite type and of jsonb
SELECT agg('nested_update', 'r', '{"(1,1,a,b)"}', NULL, '{"(1,2,c,d)","(2,,,)"}'), back('nested_update', 'r', '{"(1,1,a,b)","(2,1,a,b)"}', '{"(1,1,a,b)","(1,2,a,b)"}', '{"(1,1,a,b)"}');
SELECT agg('nested_update', 'rows', '[{"k": 1}]', '[{"k": 1, "v": 2}]'), back('nested_update', 'rows', '[{"k": 1}, {"k": 1.0, "v": 1}]', '[{"k": 1}]');
CREATE FUNCTION nested(col text, f text, extra text[], kinds text[], vals text[]) RETURNS text LANGUAGE sql AS $$
	SELECT m(ARRAY['merge-engine=aggregation', format('fields.%s.aggregate-function=%s', col, f), format('fields.%s.nested-key=k', col)] ||
		(SELECT coalesce(array_agg(format('fields.%s.%s', col, e)), '{}') FROM unnest(extra) e), kinds, col, vals)
$$;
SELECT nested('r', 'nested_update', '{}', '{+I,+I}', '{"{\"(1,1,a,b)\",\"(2,1,a,b)\"}","{\"(3,1,c,c)\",\"(1,,c,)\"}"}'),
	nested('rows', 'nested_update', '{}', '{+I,+I}', ARRAY['[{"k": 1, "v": 1}, {"k": 2}]', '[{"k": 3}, {"k": 1, "w": 1}]']);
SELECT nested('r', 'nested_update', '{nested-sequence-field=t}', '{+I,+I,+I}', '{"{\"(1,5,a,b)\",\"(2,,a,b)\"}","{\"(1,4,late,)\",\"(2,1,c,)\"}","{\"(1,5,equal,)\",\"(2,,null,)\"}"}'),
	nested('rows', 'nested_update', '{nested-sequence-field=t}', '{+I,+I,+I}', ARRAY['[{"k": 1, "t": 5}, {"k": 2}]', '[{"k": 1, "t": 4, "v": "late"}, {"k": 2, "t": 10, "v": "c"}]', '[{"k": 1, "t": 5, "v": "equal"}, {"k": 2, "t": 9}]']);
SELECT nested('r', 'nested_partial_update', '{}', '{+I,+I}', '{"{\"(1,1,a,b)\",\"(2,1,a,b)\"}","{\"(1,,c,)\",\"(1,2,,)\"}"}'),
	nested('rows', 'nested_partial_update', '{}', '{+I,+I}', ARRAY['[{"k": 1, "v": "a", "w": "b"}]', '[{"k": 1, "v": null, "w": "c"}, {"k": 2}]']);
SELECT nested('r', 'nested_update', '{count-limit=2}', '{+I,+I}', '{"{\"(1,1,a,b)\"}","{\"(2,,,)\",\"(3,,,)\",\"(1,9,,)\"}"}'),
	nested('rows', 'nested_update', '{}', '{+I,-U,+I}', ARRAY['[{"k": 1}, {"k": 2}]', '[{"k": 1, "x": 0}]', '[{"k": 1, "v": 2}]']);
SELECT nested('r', 'nested_update', '{}', '{+I,+I}', '{"{\"(,1,a,)\"}","{\"(,2,b,)\"}"}'),
	nested('r', 'nested_update', '{nested-key-null-strategy=ignore}', '{+I,+I}', '{"{\"(,1,a,)\"}","{\"(,2,b,)\",\"(1,,,)\"}"}'),
	nested('rows', 'nested_update', '{nested-key-null-strategy=ignore}', '{+I}', ARRAY['[{"k": null}, {"v": 1}, {"k": 1}]']);
SELECT nested('r', 'nested_update', '{nested-key-null-strategy=error}', '{+I}', '{"{\"(,1,a,)\"}"}');
SELECT nested('rows', 'nested_update', '{nested-key-null-strategy=error}', '{+I}', ARRAY['[{"v": 1}]']);
SELECT agg('nested_update', 'rows', '{"k": 1}');
SELECT agg('nested_update', 'rows', '[1]');

-- a user's function
CREATE FUNCTION longest(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT CASE WHEN length($2) > length($1) THEN $2 ELSE $1 END $$;
CREATE FUNCTION step(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT coalesce($1, 100) * 2 + coalesce($2, 7) $$;
CREATE FUNCTION loose(int, int) RETURNS int LANGUAGE sql STABLE AS $$ SELECT $1 $$;
CREATE FUNCTION wrong(int, int) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'x' $$;
CREATE FUNCTION fails(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RAISE 'no % and %', $1, $2 USING ERRCODE = '22000'; END $$;
SELECT agg('longest', 't', 'a', NULL, 'bcd', 'ef'), agg('step', 'i', '1', '2', NULL), agg('step', 'i', NULL), agg('public.longest', 't', NULL);
SELECT agg('fails', 'i', '1', '2');
SELECT agg('loose', 'i', '1');
SELECT agg('wrong', 'i', '1');
SELECT agg('longest', 'i', '1');
SELECT agg('no_such', 'i', '1');
SELECT agg('count', 'i', '1');
SELECT back('longest', 't', 'a');

-- wrong configurations: SQLSTATE and text
CREATE FUNCTION wrong_options(VARIADIC options text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	hint text;
BEGIN
	PERFORM paimon.test_merge('merge_t', options, '{+I}', '{"(1,,,,,,,,,,,,,,,,,,,)"}');
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(E'\n', SQLSTATE || ' ' || message, nullif(hint, ''));
END $$;
SELECT wrong_options('merge-engine=partial-update', 'fields.i.sequence-group=nope');
SELECT wrong_options('merge-engine=partial-update', 'fields.i.aggregate-function=sum');
SELECT wrong_options('merge-engine=partial-update', 'fields.t.sequence-group=i');
SELECT wrong_options('merge-engine=first-row', 'sequence.field=i');
SELECT wrong_options('merge-engine=aggregation', 'fields.c.aggregate-function=listagg');
SELECT wrong_options('merge-engine=aggregation', 'fields.m.aggregate-function=max');
SELECT wrong_options('merge-engine=aggregation', 'fields.a.aggregate-function=rbm32');
SELECT wrong_options('merge-engine=aggregation', 'fields.id.aggregate-function=sum');
SELECT wrong_options('merge-engine=aggregation', 'fields.r.aggregate-function=nested_update', 'fields.r.nested-key=k,zz');
SELECT wrong_options('merge-engine=aggregation', 'fields.i.aggregate-function=no_such');
SELECT wrong_options('sequence.field=ts,d,u', 'rowkind.field=c');
CREATE ROLE merge_owner;
ALTER TABLE merge_t OWNER TO merge_owner;
REVOKE ALL ON FUNCTION step(int, int) FROM PUBLIC;
SELECT wrong_options('merge-engine=aggregation', 'fields.i.aggregate-function=step');

-- the function runs as the table's owner, and restricted
CREATE FUNCTION who(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT current_user::text $$;
SELECT agg('who', 't', 'a', 'b'), current_user = session_user;

-- groups and order on the server's types
SELECT paimon.test_merge('merge_t', '{merge-engine=partial-update,"fields.n,d.sequence-group=t,i",fields.ts.sequence-group=j,fields.i.aggregate-function=sum}',
	'{+I,+I,-U,+I}', ARRAY['(1,,5,7,,,1.10,,,a,,,2024-01-01,2024-01-01 00:00+00,,,,,,)', '(1,,6,8,,,1.1,,,b,,,2023-12-31,2024-01-02 00:00+00,,,,,,)',
	'(1,,1,8,,,1.1,,,b,,,2024-01-01,,,,,,,)', '(1,,,9,,,,,t,z,,,,2024-01-01 12:00+00,,,,,,)']);
SELECT paimon.test_merge('merge_t', '{"sequence.field=tc,n"}', '{+I,+I,+I}',
	ARRAY['(1,,1,,,,1.5,,,,b,,,,,,,,,)', '(1,,2,,,,9,,,,B,,,,,,,,,)', '(1,,3,,,,1.50,,,,b,,,,,,,,,)']);

-- the options that a table has
CREATE TABLE merge_own (k int PRIMARY KEY, v text) USING paimon WITH (bucket = 1);
SELECT paimon.test_merge('merge_own', '{}', '{+I,+I}', '{"(1,a)","(1,)"}');
SELECT paimon.test_merge('merge_own', '{}', '{+I,-U}', '{"(1,a)","(1,)"}');
DROP TABLE merge_own;

DROP TABLE merge_t CASCADE;
DROP TYPE merge_item;
DROP FUNCTION m, agg, back, keytime, nested, wrong_options, longest, step, loose, wrong, fails, who;
DROP ROLE merge_owner;
