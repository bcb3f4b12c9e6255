-- Value statistics of run files.
SET client_min_messages = warning;
CREATE SCHEMA statistics;
SET search_path = statistics, public;
-- Of one file: each column's count of nulls and bounds.
CREATE FUNCTION stats(t regclass) RETURNS TABLE ("column" text, nulls text, min text, max text) LANGUAGE sql AS $$
	SELECT n.key, n.value, f.min_value_stats ->> n.key, f.max_value_stats ->> n.key
	FROM paimon.files(t) f, jsonb_each_text(f.null_value_counts) n ORDER BY f.relation::text, f.file_path, n.key $$;
CREATE DOMAIN amount AS numeric(12, 2);
CREATE TYPE mood AS ENUM ('sad', 'happy');
CREATE TABLE t (k bigint PRIMARY KEY, i2 smallint, i4 int, i8 bigint, b bool, d date, ti time, ts timestamp, tz timestamptz,
	n numeric(10, 3), a amount, f4 float4, f8 float8, o oid, t text, m mood, u uuid, iv interval, none int, "say ""so""" int)
	USING paimon WITH ("target-file-row-num" = 100000);
INSERT INTO t SELECT g, g % 100 - 50, g * 7 - 3000, g * 10000000000, g % 2 = 0, '2024-01-01'::date + g, '01:00'::time + g * interval '1 second',
	'2024-02-03'::timestamp + g * interval '1 hour', '2024-02-03 00:00+00'::timestamptz - g * interval '1 day', g * 0.125 - 5, g + 0.25, g, g / 4.0, g,
	't' || g, 'sad', gen_random_uuid(), '1 day', NULL, g
FROM generate_series(1, 20000) g;
UPDATE t SET i4 = NULL WHERE k <= 5;
SELECT paimon.flush('t') > 0 AS flushed;
VACUUM FULL t;
SELECT record_count FROM paimon.files('t');
SELECT * FROM stats('t');
-- They are what the columns hold.
SELECT jsonb_build_object('i2', min(i2), 'i4', min(i4), 'i8', min(i8), 'b', false, 'd', min(d), 'ti', min(ti), 'ts', min(ts), 'tz', min(tz), 'n', min(n),
	'a', min(a), 'f4', min(f4), 'f8', min(f8), 'k', min(k)) AS min FROM t \gset
SELECT min_value_stats @> :'min' AS same FROM paimon.files('t');
SELECT jsonb_typeof(min_value_stats -> 'n') AS n, jsonb_typeof(min_value_stats -> 'd') AS d, jsonb_typeof(min_value_stats -> 'b') AS b,
	jsonb_typeof(min_value_stats -> 't') AS t FROM paimon.files('t');
-- Columns added later, columns gone, another type of the same bytes.
ALTER TABLE t DROP COLUMN i2, DROP COLUMN iv, DROP COLUMN u, DROP COLUMN m, DROP COLUMN t, DROP COLUMN "say ""so""", DROP COLUMN ti, DROP COLUMN ts,
	ADD COLUMN later int, ADD COLUMN five int DEFAULT 5, ADD COLUMN price numeric DEFAULT 'NaN', ADD COLUMN word text DEFAULT 'w',
	ALTER COLUMN i4 TYPE oid;
SELECT * FROM stats('t');
DROP TABLE t;

-- What cannot be told.
CREATE TABLE u (k int PRIMARY KEY, f float8, n numeric, d date, ts timestamptz) USING paimon WITH ("write-only" = true);
INSERT INTO u VALUES (1, -1, 1.5, 'infinity', 'infinity'), (2, 0, 1e30, '2024-01-01', '-infinity');
SELECT paimon.flush('u') > 0 AS flushed;
SELECT * FROM stats('u');
TRUNCATE u;
INSERT INTO u VALUES (1, 'NaN', 1.5, '0044-03-15 BC', '2024-01-01 00:00Z'), (2, 'inf', 22.25, '9999-12-31', '1999-01-01 00:00Z');
SELECT paimon.flush('u') > 0 AS flushed;
SELECT * FROM stats('u');
-- A delete marker has a key and no values.
DELETE FROM u WHERE k = 2;
SELECT paimon.flush('u') > 0 AS flushed;
SELECT record_count, "deleteRowCount", null_value_counts, min_value_stats FROM paimon.files('u') WHERE "deleteRowCount" > 0;

-- Keys of several columns: the first one's bounds are those of the file. Without a key; temporary.
CREATE TABLE k2 (a text COLLATE "C", b int, v int, PRIMARY KEY (b, a)) USING paimon;
INSERT INTO k2 SELECT 'key ' || g % 10, g, g FROM generate_series(1, 30) g;
SELECT paimon.flush('k2') > 0 AS flushed;
SELECT * FROM stats('k2');
CREATE TABLE k1 (a text COLLATE "C" PRIMARY KEY) USING paimon;
INSERT INTO k1 VALUES ('b'), ('"quoted"'), (repeat('long', 30));
SELECT paimon.flush('k1') > 0 AS flushed;
SELECT * FROM stats('k1');
CREATE TEMP TABLE k0 (a int, b bool) USING paimon;
INSERT INTO k0 VALUES (1, true), (5, true), (NULL, NULL);
SELECT * FROM stats('k0');
CREATE TABLE nothing () USING paimon;
INSERT INTO nothing DEFAULT VALUES;
SELECT paimon.flush('nothing') > 0 AS flushed;
SELECT null_value_counts, min_value_stats, max_value_stats FROM paimon.files('nothing');
DROP SCHEMA statistics CASCADE;
