-- Values of all kinds of types, beside a heap table that gets the same: as columns, stored outside of their rows or not, and as keys.
SET client_min_messages = warning;
CREATE SCHEMA types;
SET search_path = types, public;
SET datestyle = 'ISO, YMD';
SET intervalstyle = postgres;
SET timezone = 'UTC';
CREATE FUNCTION same(p regclass, h regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n bigint; extra text; missing text;
BEGIN
	EXECUTE format('SELECT count(*), (SELECT min(t) FROM (SELECT x::text AS t FROM %1$s x EXCEPT ALL SELECT x::text FROM %2$s x) d),
		(SELECT min(t) FROM (SELECT x::text AS t FROM %2$s x EXCEPT ALL SELECT x::text FROM %1$s x) d) FROM %1$s', p, h) INTO n, extra, missing;
	IF extra IS NULL AND missing IS NULL THEN
		RETURN 'same, ' || n || ' rows';
	END IF;
	RETURN format('different; only here: %s; only in heap: %s', left(extra, 300), left(missing, 300));
END $$;

CREATE TYPE color AS ENUM ('red', 'green', 'blue');
CREATE TYPE pair AS (a int, b text);
CREATE TYPE nest AS (p pair, ps pair[], j jsonb);
CREATE DOMAIN positive AS numeric(12, 3) CHECK (value > 0);
CREATE DOMAIN words AS text[] CHECK (array_length(value, 1) < 100);
CREATE TYPE floatrange AS RANGE (subtype = float8);

-- One row is what generate_series's number makes of it; every seventh value of a column is NULL.
CREATE TABLE h (
	k int PRIMARY KEY,
	bool_ bool, char_ "char", int2_ int2, int4_ int4, int8_ int8, float4_ float4, float8_ float8, numeric_ numeric, numeric_ps numeric(20, 5),
	money_ money, text_ text, varchar_ varchar(40), bpchar_ char(12), name_ name, bytea_ bytea, bit_ bit(9), varbit_ varbit,
	date_ date, time_ time, timetz_ timetz, timestamp_ timestamp, timestamptz_ timestamptz, interval_ interval,
	uuid_ uuid, oid_ oid, tid_ tid, xid8_ xid8, lsn_ pg_lsn, inet_ inet, cidr_ cidr, macaddr_ macaddr, macaddr8_ macaddr8,
	json_ json, jsonb_ jsonb, tsvector_ tsvector, tsquery_ tsquery,
	point_ point, lseg_ lseg, box_ box, path_ path, polygon_ polygon, circle_ circle, line_ line,
	int4range_ int4range, numrange_ numrange, tsrange_ tsrange, floatrange_ floatrange, multi_ int4multirange,
	ints int[], texts text[], matrix float8[][], pairs pair[], pair_ pair, nest_ nest, color_ color, colors color[], positive_ positive, words_ words,
	reg regclass, ids oidvector, numbers int2vector, d_int int DEFAULT 42, d_text text DEFAULT 'default ' || 1, g_len int GENERATED ALWAYS AS (length(text_)) STORED,
	g_text text GENERATED ALWAYS AS (coalesce(text_, 'none') || '!') STORED
) USING heap;
CREATE TABLE p (LIKE h INCLUDING ALL) USING paimon WITH (bucket = 3);
SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS columns FROM pg_attribute
WHERE attrelid = 'h'::regclass AND attnum > 0 AND attname !~ '^[dg]_' \gset
INSERT INTO h (:columns) SELECT g,
	g % 2 = 0, chr(65 + g % 26)::"char", (g * 7 - 300)::int2, g * 1000003, g::int8 * 4000000007, g / 3::float4,
	(CASE g % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '-Infinity' WHEN 3 THEN '-0' ELSE (g / 7.0)::text END)::float8,
	(CASE g % 11 WHEN 0 THEN 'NaN' WHEN 1 THEN 'Infinity' WHEN 2 THEN '1e300' WHEN 3 THEN '-1.5000e-30' ELSE (g * 1.10)::text END)::numeric, g / 7.0,
	(g * 1.25)::money, repeat('täxt ' || g, g % 50), left(md5(g::text), g % 33), md5(g::text)::char(9)::char(12), ('name' || g)::name, decode(md5(g::text), 'hex'),
	(g % 512)::bit(9), repeat('10', g % 40)::varbit,
	CASE g % 5 WHEN 0 THEN 'infinity' WHEN 1 THEN '4713-01-01 BC' ELSE '2000-02-28'::date + g END::date, make_time(g % 24, g % 60, g / 7.0 % 60),
	(make_time(g % 24, g % 60, 0)::text || '+0' || g % 10)::timetz, CASE g % 9 WHEN 0 THEN '-infinity' ELSE '1999-12-31 23:59:59.123456'::timestamp + g * '1 hour'::interval END,
	'1999-12-31 23:59:59+05'::timestamptz + g * '1 day'::interval, make_interval(g % 10, -g % 13, 0, g, 0, g),
	md5(g::text)::uuid, (g::int8 * 3000000)::oid, format('(%s,%s)', g, g % 100 + 1)::tid, (g::int8 * 5000000000)::text::xid8, (g::int8 * 10000000)::text::numeric + '0/0'::pg_lsn,
	('10.0.' || g % 256 || '.1/24')::inet, ('2001:db8:' || g % 100 || '::/48')::cidr, ('08:00:2b:01:02:' || lpad(to_hex(g % 256), 2, '0'))::macaddr,
	('08:00:2b:01:02:03:04:' || lpad(to_hex(g % 256), 2, '0'))::macaddr8,
	('{"a":  ' || g || ', "a": [1,2]}')::json, jsonb_build_object('k', g, 'list', jsonb_build_array(1, 'x', NULL, g * 1.50), 'o', jsonb_build_object('z', true)),
	to_tsvector('simple', 'the number ' || g || ' has a text ' || g), to_tsquery('simple', 'a' || g || ' & !b | c:*'),
	point(g, -g), lseg(point(0, g), point(g, 0)), box(point(g, g), point(-1, -1)), path(format('[(0,0),(%s,1),(2,2)]', g)), polygon(format('(0,0),(%s,1),(2,2)', g)),
	circle(point(g, 0), g), line(point(0, g), point(1, g + 2)),
	CASE g % 4 WHEN 0 THEN 'empty' ELSE int4range(g, g + 10, '[]') END, numrange(g, NULL), tsrange(NULL, '2000-01-01'::timestamp + g * '1 hour'::interval, '(]'), floatrange(g, g + 0.5),
	int4multirange(int4range(g, g + 2), int4range(g + 5, g + 7)),
	ARRAY[g, NULL, -g], ARRAY['a' || g, NULL, '', '{"'], ARRAY[[1.5, g], [2.5, 3]]::float8[], ARRAY[(g, 'x')::pair, NULL, (NULL, NULL)::pair], (g, repeat('p', g % 9))::pair,
	((g, 'n')::pair, ARRAY[(1, 'q')::pair], '{"in": [1]}')::nest, (ARRAY['red', 'green', 'blue'])[1 + g % 3]::color, ARRAY['blue', 'red']::color[], g + 0.125, ARRAY['w' || g]::words,
	(CASE g % 2 WHEN 0 THEN 'pg_class' ELSE 'pg_type' END)::regclass, (g || ' 7')::oidvector, (g || ' 8 9')::int2vector
FROM generate_series(1, 300) g;
INSERT INTO p (:columns) SELECT :columns FROM h;
SELECT same('p', 'h');
-- NULLs at changing places.
DO $$
DECLARE c record;
BEGIN
	FOR c IN SELECT attname, attnum FROM pg_attribute WHERE attrelid = 'h'::regclass AND attnum > 1 AND attgenerated = '' AND NOT attisdropped LOOP
		EXECUTE format('UPDATE h SET %1$I = NULL WHERE (k + %2$s) %% 7 = 0', c.attname, c.attnum);
		EXECUTE format('UPDATE p SET %1$I = NULL WHERE (k + %2$s) %% 7 = 0', c.attname, c.attnum);
	END LOOP;
END $$;
SELECT same('p', 'h');
SELECT paimon.flush('p') > 0 AS flushed;
SELECT same('p', 'h');
INSERT INTO h (k) VALUES (1001);
INSERT INTO p (k) VALUES (1001);
UPDATE h SET text_ = 'longer ' || text_, nest_.p.a = k, ints[2] = k, ints[5] = 7, jsonb_ = jsonb_ || '{"new": [1, 2]}', d_int = DEFAULT WHERE k % 3 = 0;
UPDATE p SET text_ = 'longer ' || text_, nest_.p.a = k, ints[2] = k, ints[5] = 7, jsonb_ = jsonb_ || '{"new": [1, 2]}', d_int = DEFAULT WHERE k % 3 = 0;
SELECT same('p', 'h');
-- Conditions and aggregates on some of the columns; what is not asked for need not be read.
SELECT (SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM (SELECT color_, count(*), sum(int8_), max(timestamptz_), min(text_ COLLATE "C"), bool_and(bool_) FROM p GROUP BY 1) t)
	= (SELECT md5(string_agg(t::text, '|' ORDER BY t::text)) FROM (SELECT color_, count(*), sum(int8_), max(timestamptz_), min(text_ COLLATE "C"), bool_and(bool_) FROM h GROUP BY 1) t) AS same;
SELECT k, g_text, ints, pair_ FROM p WHERE jsonb_ @> '{"k": 27}' AND int4range_ @> 30;
SELECT k, nest_, tableoid::regclass FROM p WHERE k = 27;
UPDATE p SET g_len = 1 WHERE k = 1;
UPDATE p SET positive_ = -1 WHERE k = 1;
INSERT INTO p (k, varchar_) VALUES (2000, repeat('x', 41));
SELECT same('p', 'h');
SELECT paimon.flush('p') > 0 AS flushed;
SELECT same('p', 'h');
-- Dropped columns in the middle, and new ones.
ALTER TABLE h DROP COLUMN jsonb_, DROP COLUMN name_, DROP COLUMN int2_, DROP COLUMN g_len, ADD COLUMN more int[] DEFAULT '{1,2}', ADD COLUMN again bytea;
ALTER TABLE p DROP COLUMN jsonb_, DROP COLUMN name_, DROP COLUMN int2_, DROP COLUMN g_len, ADD COLUMN more int[] DEFAULT '{1,2}', ADD COLUMN again bytea;
SELECT same('p', 'h');
UPDATE h SET again = bytea_, more[1] = k WHERE k % 2 = 0;
UPDATE p SET again = bytea_, more[1] = k WHERE k % 2 = 0;
SELECT same('p', 'h');
SELECT paimon.flush('p') > 0 AS flushed;
SELECT same('p', 'h');
VACUUM FULL p;
SELECT same('p', 'h');


-- Long values: what a heap table compresses or moves out is whole here.
CREATE TABLE long_h (k int PRIMARY KEY, a text, b bytea, c jsonb, d text[], e pair) USING heap;
CREATE TABLE long_p (LIKE long_h INCLUDING ALL) USING paimon;
INSERT INTO long_h SELECT g, repeat('compressible ' || g || ' ', 1000 * g), NULL, NULL, NULL, (g, repeat('pair', 10000))::pair FROM generate_series(1, 12) g;
INSERT INTO long_h SELECT g, string_agg(md5((g * 1000000 + i)::text), ''), decode(string_agg(md5((g * 77 + i)::text), ''), 'hex'),
	jsonb_object_agg(i, md5(i::text)), array_agg(md5((g + i)::text)), NULL
FROM generate_series(13, 16) g, generate_series(1, 4000) i GROUP BY g;
INSERT INTO long_h SELECT 17, string_agg(md5(i::text), ''), NULL, NULL, NULL, NULL FROM generate_series(1, 100000) i;
SELECT pg_column_size(a) < length(a) AS compressed FROM long_h WHERE k = 12;
INSERT INTO long_p SELECT * FROM long_h;
SELECT same('long_p', 'long_h');
SELECT k, length(a), length(b), (SELECT count(*) FROM jsonb_object_keys(c)), cardinality(d), length((e).b) FROM long_p WHERE k IN (1, 12, 13, 17) ORDER BY k;
SELECT paimon.flush('long_p') > 0 AS flushed;
SELECT same('long_p', 'long_h');
-- Moved out by another compression, and not compressed; a composite that holds a value moved out.
ALTER TABLE long_h ALTER a SET STORAGE external, ALTER b SET COMPRESSION pglz;
UPDATE long_h SET a = a || 'x', b = b || '\x00', e = (k, a)::pair;
UPDATE long_p SET (a, b, e) = (SELECT a, b, e FROM long_h h WHERE h.k = long_p.k);
SELECT same('long_p', 'long_h');
-- And back: rows of paimon into heap.
TRUNCATE long_h;
INSERT INTO long_h SELECT * FROM long_p;
SELECT same('long_p', 'long_h');
-- Column by column: the other long values of the row stay.
UPDATE long_h SET d = d || ARRAY['one more'] WHERE k > 12;
UPDATE long_p SET d = d || ARRAY['one more'] WHERE k > 12;
SELECT same('long_p', 'long_h');
SELECT paimon.flush('long_p') > 0 AS flushed;
SELECT same('long_p', 'long_h');
SELECT md5(a) = (SELECT md5(a) FROM long_h WHERE k = 17) AS same, substr(a, 3000000, 10) FROM long_p WHERE k = 17;
-- Values that a function holds expanded.
DO $$
DECLARE arr int[] := '{}'; rec long_p; words text[];
BEGIN
	FOR i IN 1 .. 3000 LOOP
		arr[i] := i;
	END LOOP;
	SELECT * INTO rec FROM long_p WHERE k = 13;
	rec.k := 100;
	rec.d[2] := 'changed';
	rec.e := (1, 'set')::pair;
	INSERT INTO long_p VALUES (rec.*);
	INSERT INTO long_h VALUES (rec.*);
	words := arr::text[];
	words[1] := 'first';
	INSERT INTO long_p (k, d, e) VALUES (101, words, (arr[7], words[1])::pair);
	INSERT INTO long_h (k, d, e) VALUES (101, words, (arr[7], words[1])::pair);
	words[1] := 'later';
	UPDATE long_p SET d = words WHERE k = 12;
	UPDATE long_h SET d = words WHERE k = 12;
END $$;
SELECT same('long_p', 'long_h');
SELECT k, cardinality(d), d[1], left(e::text, 20) FROM long_p WHERE k IN (12, 101) ORDER BY k;
SELECT paimon.flush('long_p') > 0 AS flushed;
SELECT same('long_p', 'long_h');
-- Arrays of all lengths around those of short and long headers: elements are found by the addresses that they should have.
CREATE TABLE arrays_h (k int PRIMARY KEY, f float8[], s text, i int8[], n numrange[], c circle[], t timestamp[], x text[]) USING heap;
CREATE TABLE arrays_p (LIKE arrays_h INCLUDING ALL) USING paimon;
INSERT INTO arrays_h SELECT g, ARRAY(SELECT i FROM generate_series(1, g % 60) i), repeat('s', g % 200), ARRAY(SELECT i * 5000000000 FROM generate_series(1, g % 50) i),
	ARRAY(SELECT numrange(i, g) FROM generate_series(1, g % 20) i), ARRAY(SELECT circle(point(i, g), 1) FROM generate_series(1, g % 11) i),
	ARRAY(SELECT '2000-01-01'::timestamp + i * '1 day'::interval FROM generate_series(1, g % 40) i), ARRAY(SELECT repeat('x', i) FROM generate_series(1, g % 30) i)
FROM generate_series(1, 500) g;
INSERT INTO arrays_p SELECT * FROM arrays_h;
SELECT same('arrays_p', 'arrays_h');
SELECT paimon.flush('arrays_p') > 0 AS flushed;
SELECT same('arrays_p', 'arrays_h');
SELECT count(*) FROM arrays_p p JOIN arrays_h h USING (k) WHERE (p.f, p.s, p.i, p.n, p.c::text, p.t, p.x) = (h.f, h.s, h.i, h.n, h.c::text, h.t, h.x);
SELECT sum(v) FROM arrays_p, unnest(f) v;
SELECT sum(v) FROM arrays_h, unnest(f) v;
SET enable_seqscan = off;
SELECT k, f[20], i[20], n[3], c[2], t[20], x[7] FROM arrays_p WHERE k IN (27, 56, 230) ORDER BY k;
RESET enable_seqscan;
DROP TABLE p, h, long_p, long_h, arrays_p, arrays_h;

-- Every type that can be a key: upserts, lookups, changes and deletes by the key, in memory and in files.
CREATE FUNCTION as_key(type text, expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE result text; found bigint; plan text; part text; line text;
BEGIN
	EXECUTE format('CREATE TABLE kh (k %s PRIMARY KEY, v int) USING heap', type);
	EXECUTE format('CREATE TABLE kp (k %s PRIMARY KEY, v int) USING paimon WITH (bucket = 2)', type);
	EXECUTE format('INSERT INTO kh SELECT DISTINCT ON (1) %s, g FROM generate_series(1, 60) n (g) ORDER BY 1, 2 DESC', expression);
	EXECUTE format('INSERT INTO kp SELECT %s, g FROM generate_series(1, 60) n (g) ORDER BY n.g', expression);
	FOR i IN 1 .. 3 LOOP
		part := same('kp', 'kh');
		SET LOCAL enable_seqscan = off;
		SET LOCAL enable_hashjoin = off;
		SET LOCAL enable_mergejoin = off;
		SET LOCAL enable_material = off;
		plan := '';
		FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) SELECT count(*) FROM kh JOIN kp USING (k) WHERE kh.v = kp.v' LOOP
			plan := plan || line;
		END LOOP;
		EXECUTE 'SELECT count(*) FROM kh JOIN kp USING (k) WHERE kh.v = kp.v' INTO found;
		RESET enable_seqscan; RESET enable_hashjoin; RESET enable_mergejoin; RESET enable_material;
		part := part || ', ' || found || CASE WHEN plan LIKE '%kp_pkey on kp%' THEN ' by key' ELSE ' by ' || plan END;
		result := concat_ws('; ', result, part);
		IF i = 1 THEN
			PERFORM paimon.flush('kp');
		ELSE
			UPDATE kp SET v = -v WHERE k IN (SELECT k FROM kh WHERE v % 3 = 0);
			UPDATE kh SET v = -v WHERE v % 3 = 0;
			IF type LIKE '%[]' OR type = 'oidvector' THEN
				DELETE FROM kp USING kh WHERE kp.k = kh.k AND kh.v % 5 = 0;
			ELSE
				DELETE FROM kp WHERE k = ANY (ARRAY(SELECT k FROM kh WHERE v % 5 = 0));
			END IF;
			DELETE FROM kh WHERE v % 5 = 0;
			EXECUTE format('INSERT INTO kp SELECT %s, 1000 + g FROM generate_series(50, 60) n (g) ORDER BY n.g', expression);
			EXECUTE format('INSERT INTO kh SELECT DISTINCT ON (1) %s, 1000 + g FROM generate_series(50, 60) n (g) ORDER BY 1, 2 DESC ON CONFLICT (k) DO UPDATE SET v = excluded.v', expression);
		END IF;
	END LOOP;
	DROP TABLE kh, kp;
	RETURN result;
END $$;
SELECT type, as_key(type, expression) FROM (VALUES
	('bool', 'g % 2 = 0'),
	('"char"', 'chr(65 + g % 26)::"char"'),
	('int2', '(g - 30)::int2'),
	('int4', '(g - 30) * 70000000'),
	('int8', '(g - 30) * 4000000000000000::int8'),
	('oid', '(g::int8 * 70000000)::oid'),
	('float4', '(CASE g WHEN 1 THEN ''NaN'' WHEN 2 THEN ''-0'' WHEN 3 THEN ''0'' WHEN 4 THEN ''Infinity'' ELSE (g / 7.0 - 4)::text END)::float4'),
	('float8', '(CASE g WHEN 1 THEN ''NaN'' WHEN 2 THEN ''-0'' WHEN 3 THEN ''0'' WHEN 4 THEN ''-Infinity'' ELSE (g / 7.0 - 4)::text END)::float8'),
	('numeric', '(CASE g WHEN 1 THEN ''NaN'' WHEN 2 THEN ''1.0'' WHEN 3 THEN ''1.00'' WHEN 4 THEN ''-Infinity'' WHEN 5 THEN ''1e100'' ELSE (g / 7.0 - 4)::text END)::numeric'),
	('numeric(10,2)', '(g * 1.10)::numeric(10, 2)'),
	('money', '(g * 1.25)::money'),
	('text', 'repeat(''ä'' || g % 7, g / 3)'),
	('text COLLATE "C"', 'repeat(''k'', g % 9) || g'),
	('varchar(40)', 'left(md5(g::text), g % 33)'),
	('char(8)', 'left(md5(g::text), g % 8)::char(8)'),
	('name', '(''n'' || g)::name'),
	('bytea', 'decode(repeat(''00'', g % 5) || md5(g::text), ''hex'')'),
	('bit(9)', 'g::bit(9)'),
	('varbit', '(repeat(''0'', g % 7) || g::bit(7)::text)::varbit'),
	('date', '(CASE g WHEN 1 THEN ''infinity'' WHEN 2 THEN ''-infinity'' ELSE (''2000-01-01''::date + g)::text END)::date'),
	('time', 'make_time(g % 24, g % 60, g / 7.0)'),
	('timestamp', '''2000-01-01''::timestamp + g * ''1 hour 0.000001 sec''::interval'),
	('timestamptz', '''2000-01-01 00:00+00''::timestamptz - g * ''1 hour''::interval'),
	('uuid', 'md5(g::text)::uuid'),
	('macaddr', '(''08:00:2b:01:02:'' || lpad(to_hex(g), 2, ''0''))::macaddr'),
	('macaddr8', '(''08:00:2b:01:02:03:04:'' || lpad(to_hex(g), 2, ''0''))::macaddr8'),
	('inet', '(''10.0.'' || g % 7 || ''.1/'' || 8 + g % 20)::inet'),
	('color', '(ARRAY[''red'', ''green'', ''blue''])[1 + g % 3]::color'),
	('positive', '(g % 20 + 0.125)::positive'),
	('pg_lsn', '''0/0''::pg_lsn + g'),
	('timetz', '(''10:'' || lpad((g % 60)::text, 2, ''0'') || ''+0'' || g % 9)::timetz'),
	('interval', 'make_interval(0, g % 3, 0, g % 40)'),
	('oidvector', '(g % 7 || '' '' || g)::oidvector'),
	('xid8', 'g::text::xid8'),
	('int[]', 'ARRAY[g % 5, NULL, g]'),
	('text[]', 'ARRAY[''a'' || g % 5, '''']')
) t (type, expression);
-- Types that cannot, and arrays, which can.
CREATE TABLE bad (k int4range PRIMARY KEY) USING paimon;
CREATE TYPE pg_temp.twin AS (a int, b text);
CREATE TABLE bad (k twin PRIMARY KEY) USING paimon;
CREATE TABLE bad (k tsvector PRIMARY KEY) USING paimon;
CREATE TABLE bad (k tid PRIMARY KEY) USING paimon;
-- Many columns of a key, all parts of it needed for a lookup.
CREATE TABLE many (a int, b text, c date, d uuid, e numeric, v int, PRIMARY KEY (e, a, d, b, c)) USING paimon WITH (bucket = 4);
INSERT INTO many SELECT g % 3, 'b' || g % 5, '2000-01-01'::date + g % 7, md5((g % 2)::text)::uuid, (g % 2) / 2.0, g FROM generate_series(1, 2000) g;
SELECT count(*), sum(v) FROM many;
SELECT paimon.flush('many') > 0 AS flushed;
SET enable_seqscan = off;
SELECT * FROM many WHERE e = 0.50 AND a = 2 AND d = md5('1')::uuid AND b = 'b3' AND c = '2000-01-04';
SELECT count(*) FROM many WHERE e = 0.5 AND a = 2;
RESET enable_seqscan;
DROP SCHEMA types CASCADE;
