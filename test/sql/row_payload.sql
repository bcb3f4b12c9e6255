-- Payloads: every value comes back byte for byte, and damaged ones are refused; buckets as Paimon's.
SET client_min_messages = warning;
CREATE SCHEMA row_payload;
SET search_path = row_payload, public;
SET timezone = 'UTC';

CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TYPE pair AS (a int, b text);
CREATE TABLE wide (
    id int8, b bool, c "char", i2 int2, i4 int4, f4 float4, f8 float8, num numeric, t text, v varchar(20), bp char(5), n name,
    by bytea, u uuid, d date, tm time, tz timetz, ts timestamp, tstz timestamptz, iv interval, m mood, ip inet, ma macaddr,
    vb varbit, j jsonb, ia int[], ta text[], p pair, r int4range, pt point, f8a float8[]
);
-- All values, none, some; keys that are given back by the key bytes and keys that are not.
CREATE TABLE rows AS SELECT w FROM (VALUES
    (ROW(1, true, 'x', 2, 3, 1.5, -0.0::float8, 1.500, 'text', 'var', 'bp', 'name', '\x0001', '00000000-0000-0000-0000-00000000000a',
        '2024-01-01', '12:00', '12:00+02', '2024-01-01 00:00', '2024-01-01 00:00+00', '1 mon', 'ok', '10.0.0.1/8', '08:00:2b:01:02:03',
        '10101', '{"a": [1, 2]}', '{1,NULL,3}', '{a,NULL,""}', '(1,b)', '[1,5)', '(1,2)', '{1.5,2.5}')::wide),
    (ROW(2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::wide),
    (ROW(-9223372036854775808, false, '', -32768, -2147483648, 'NaN', '-Infinity', 'NaN', '', '', '', '', '', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
        'infinity', '24:00', '00:00-15:59', '-infinity', 'infinity', '-1 us', 'sad', '::1', 'ff:ff:ff:ff:ff:ff', '', '{}', '{}', '{}', NULL, 'empty', NULL, NULL)::wide)
) AS x (w);
SELECT (w).id, paimon.test_row('wide', '{1}', w) FROM rows;
SELECT (w).id, paimon.test_row('wide', '{}', w) FROM rows;
SELECT (w).id, paimon.test_row('wide', '{14,1}', w) FROM rows WHERE (w).u IS NOT NULL;
SELECT (w).id, paimon.test_row('wide', '{8,9,1,20}', w) FROM rows WHERE (w).u IS NOT NULL;
SELECT (w).id, paimon.test_row('wide', '{9,10,11,12,13,6,7,8,20,22,24,26,17,21}', w) FROM rows WHERE (w).u IS NOT NULL;
SELECT paimon.test_row('wide', '{2}', w) FROM rows WHERE (w).u IS NULL;
SELECT paimon.test_row('wide', '{25}', w) FROM rows LIMIT 1;
SELECT paimon.test_row('wide', '{40}', w) FROM rows LIMIT 1;

-- Lengths around the change from short to long headers, and of some MB; compressed, external and expanded values.
CREATE TABLE lengths (id int, a text, d float8[], b text);
ALTER TABLE lengths ALTER a SET STORAGE EXTERNAL;
INSERT INTO lengths SELECT n, repeat('x', n), array_fill(1.5::float8, ARRAY[n % 40]), repeat('y', n) FROM generate_series(118, 134) n;
INSERT INTO lengths SELECT n, repeat(md5(n::text), n / 32), array_fill(1.5::float8, ARRAY[n / 8]), repeat('y', n)
    FROM unnest('{2000,8160,100000,3000000}'::int[]) n;
SELECT id, paimon.test_row('lengths', '{1}', l) FROM lengths l;
DO $$
DECLARE
    a int[] := '{1,2,3}';
    l record;
BEGIN
    a[2] := 7;                  -- an expanded array
    CREATE TABLE expanded (id int, a int[]);
    SELECT 1, a INTO l;
    RAISE WARNING '%', paimon.test_row('expanded', '{1}', l);
END $$;

-- Many columns: the bitmap and the head grow; columns dropped and added.
SELECT format('CREATE TABLE many (%s)', string_agg(format('c%s int', i), ', ')) FROM generate_series(1, 300) i \gexec
INSERT INTO many (c1, c7, c150, c300) VALUES (1, 2, 3, 4), (2, NULL, NULL, NULL);
SELECT paimon.test_row('many', '{1}', m) FROM many m;
CREATE TABLE changing (id int, a text, b int8, c text);
INSERT INTO changing VALUES (1, 'a', 2, 'c');
ALTER TABLE changing DROP COLUMN b;
INSERT INTO changing VALUES (2, 'a', 'c');
ALTER TABLE changing ADD COLUMN d text DEFAULT 'default';
INSERT INTO changing VALUES (3, 'a', 'c', 'd'), (4, NULL, NULL, NULL);
SELECT paimon.test_row('changing', '{1}', x) FROM changing x;

-- Every cut of a payload is refused; no turned bit makes the decoder read outside.
SELECT paimon.test_row_damage('wide', '{1}', w) FROM rows;
SELECT paimon.test_row_damage('lengths', '{1}', l) FROM lengths l WHERE id < 130;
SELECT paimon.test_row_damage('many', '{1}', m) FROM many m;

-- Scaled numerics.
SELECT x, paimon.test_scaled(x) FROM unnest('{0,0.00,1,1.0,1.50,-1.5,0.05,0.0005,0.00005,12345.678,10000,100000000,9223372036854775807,
    9223372036854775808,-9223372036854775807,922337203685477580.7,0.9223372036854775,0.09223372036854775807,1.0000000000000000,
    1.00000000000000000,NaN,Infinity,99999999999999999999,0.1234567890123456,-0.0000000000000001,123456789012.3456}'::numeric[]) x;
SELECT count(*), count(paimon.test_scaled(x)), count(*) FILTER (WHERE paimon.test_scaled(x) = (i * m)::text || ' ' || s)
    FROM generate_series(-200, 200) i, unnest('{1,37,9999,10000,123457,1000000007}'::int8[]) m, generate_series(0, 16) s,
    LATERAL (SELECT round(i * m * (10::numeric ^ -s), s) AS x) q;

-- Paimon's buckets (the vectors of the specification).
CREATE FUNCTION bucket(typename text, val text, n int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    result int;
BEGIN
    EXECUTE format('CREATE TEMP TABLE one (k %s)', typename);
    EXECUTE format('INSERT INTO one VALUES (%L)', val);
    EXECUTE format('SELECT paimon.test_bucket(%L, %L, %L, %s, one) FROM one', 'one', '{1}', '{1}', n) INTO result;
    DROP TABLE one;
    RETURN result;
END $$;
SELECT t, v, bucket(t, v, 4) = b4 AND bucket(t, v, 16) = b16 AS as_paimon FROM (VALUES
    ('int', '5', 0, 4), ('int', '0', 3, 11), ('int', '2', 0, 0), ('int', '3', 1, 9), ('int', '-1', 3, 3), ('int', '1', 2, 14), ('bool', 't', 2, 14),
    ('bigint', '1', 2, 14), ('bigint', '10000000000', 2, 10),
    ('text', '', 3, 7), ('text', 'a', 2, 14), ('varchar', 'paimon', 0, 8), ('text', '1234567', 0, 12), ('bytea', '12345678', 1, 9),
    ('text', 'hello paimon', 0, 4), ('float8', '1.5', 1, 1), ('numeric(10,2)', '123.45', 2, 14), ('numeric(38,2)', '123.45', 1, 5),
    ('timestamp(3)', '2023-11-14 22:13:20.123', 1, 13), ('timestamp(6)', '2023-11-14 22:13:20.123456', 1, 5),
    ('timestamp', '2023-11-14 22:13:20.123456', 1, 5), ('timestamptz', '2023-11-14 22:13:20.123456+00', 1, 5),
    ('date', '2024-01-01', 1, 5)) AS x (t, v, b4, b16);
CREATE TABLE several (a int, b int, c int, s text);
SELECT paimon.test_bucket('several', '{1,2}', '{1,2}', 100, ROW(5, 6, 7, 'x')::several) AS "27",
       paimon.test_bucket('several', '{1,2,3}', '{1,2,3}', 100, ROW(5, 6, 7, 'x')::several) AS "40",
       paimon.test_bucket('several', '{4,1}', '{1,4}', 16, ROW(1, 6, 7, 'x')::several) AS "13",
       paimon.test_bucket('several', '{}', '{1}', 16, ROW(NULL, 6, 7, 'x')::several) AS "0";
-- Equal keys, one bucket, whatever the type.
SELECT t, count(DISTINCT bucket(t, v, 1000)) FROM (VALUES
    ('numeric', '{1,1.0,1.00}'::text[]), ('numeric(10,2)', '{1,1.0}'), ('numeric(10,2)', '{NaN,NaN}'), ('float8', '{0,-0}'), ('float4', '{NaN,-NaN}'),
    ('interval', '{1 mon,30 days,720 hours}'), ('bpchar', '{a,"a  "}'), ('char(3)', '{a,"a "}'), ('date', '{infinity,infinity}'),
    ('timestamp', '{-infinity,-infinity}'), ('uuid', '{00000000-0000-0000-0000-00000000000a,00000000-0000-0000-0000-00000000000A}')
    ) AS x (t, vs), unnest(vs) v GROUP BY t, vs ORDER BY t, vs;

-- Types that a key column may change to without a rewrite.
CREATE FUNCTION retype(a text, b text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    result text;
BEGIN
    EXECUTE format('CREATE TEMP TABLE two (a %s, b %s)', a, b);
    result := paimon.test_retype('two');
    DROP TABLE two;
    RETURN result;
END $$;
SELECT a, b, retype(a, b) FROM (VALUES
    ('varchar(10)', 'varchar(20)'), ('varchar', 'text'), ('varchar', 'char(5)'), ('text', 'bytea'), ('numeric(10,2)', 'numeric(12,2)'),
    ('numeric(10,2)', 'numeric(12,3)'), ('numeric(10,2)', 'numeric(19,2)'), ('numeric(10,2)', 'numeric'), ('timestamp(3)', 'timestamp(6)'),
    ('timestamp(4)', 'timestamp(6)'), ('timestamp', 'timestamp(6)'), ('int', 'oid'), ('text COLLATE "C"', 'text'), ('int', 'jsonb')) AS x (a, b);

DROP SCHEMA row_payload CASCADE;
