-- Short and long ranges by key, from any place: rows decoded one by one, in blocks, and whole columns come to the same as in heap. Columns of all encodings,
-- some of them with nulls, added later, dropped; rows in one run, and under newer ones and the log.
CREATE TABLE blocks_h (k bigint, u uuid, n numeric(12,2), d numeric, flag text, note text, big text, ts timestamptz, mostly int, never text, gone int, q tsquery, iv interval);
INSERT INTO blocks_h SELECT i * 3, md5(i::text)::uuid, i * 1.25, CASE WHEN i % 7 = 0 THEN i::numeric / 3 WHEN i % 7 < 3 THEN i END,
	(ARRAY['open', 'paid', 'packed', 'lost', NULL])[1 + i % 5], md5(i::text), CASE WHEN i % 997 = 0 THEN repeat(md5(i::text), 400) END,
	'2024-01-01'::timestamptz + i * interval '7 minutes', CASE WHEN i % 50 = 0 THEN i END, NULL, i, CASE WHEN i % 3 = 0 THEN ('w' || i % 10)::tsquery END,
	i * interval '1 hour' FROM generate_series(1, 20000) i;
CREATE TABLE blocks_p (LIKE blocks_h, PRIMARY KEY (k)) USING paimon WITH ("write-only" = true);
CREATE TABLE blocks_u (LIKE blocks_h, PRIMARY KEY (u, flag)) USING paimon WITH ("write-only" = true, bucket = 2, "bucket-key" = 'u');
ALTER TABLE blocks_h ADD PRIMARY KEY (k);
CREATE UNIQUE INDEX ON blocks_h (u);
INSERT INTO blocks_p SELECT * FROM blocks_h;
INSERT INTO blocks_u SELECT k, u, n, d, coalesce(flag, 'none'), note, big, ts, mostly, never, gone, q, iv FROM blocks_h;
SELECT paimon.flush('blocks_p') > 0, paimon.compact('blocks_p') > 0, paimon.flush('blocks_u') > 0, paimon.compact('blocks_u') > 0;

-- random ranges, by chance the rest of the table, forward and backward; how many differ from heap
CREATE FUNCTION blocks_differ(name text, key text, from_h text, rounds int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	lo text;
	answer text;
	wanted text;
	query text;
	wrong int := 0;
	wide int;
	columns text;
BEGIN
	PERFORM setseed(0.42);
	SET LOCAL enable_seqscan = off;
	SELECT string_agg(attname, ', ' ORDER BY random()) INTO columns FROM pg_attribute WHERE attrelid = name::regclass AND attnum > 0 AND NOT attisdropped;
	FOR i IN 1..rounds LOOP
		wide := (ARRAY[1, 2, 3, 10, 31, 33, 100, 129, 300, 1000, 5000, 9000])[1 + floor(random() * 12)];
		EXECUTE format('SELECT %s::text FROM blocks_h OFFSET %s LIMIT 1', key, floor(random() * 19000)::int) INTO lo;
		query := format('SELECT md5(string_agg(r::text, %L)) FROM (SELECT %s FROM %%s WHERE %s >= %L ORDER BY %s %s LIMIT %s) r', '|',
						CASE WHEN i % 3 = 0 THEN 'note, ' || key ELSE columns END, key, lo, key, CASE WHEN i % 4 = 0 THEN 'DESC' ELSE '' END, wide);
		EXECUTE format(query, name) INTO answer;
		EXECUTE format(query, from_h) INTO wanted;
		IF answer IS DISTINCT FROM wanted THEN
			wrong := wrong + 1;
			RAISE NOTICE 'differs: %', format(query, name);
		END IF;
	END LOOP;
	RETURN wrong;
END $$;
EXPLAIN (COSTS OFF) SELECT * FROM blocks_p WHERE k >= 300 ORDER BY k LIMIT 100;
SELECT blocks_differ('blocks_p', 'k', 'blocks_h', 60);
SELECT blocks_differ('blocks_u', 'u', $$(SELECT k, u, n, d, coalesce(flag, 'none') AS flag, note, big, ts, mostly, never, gone, q, iv FROM blocks_h) h$$, 40);

-- a session that has decoded blocks, then columns that come and go
ALTER TABLE blocks_h DROP COLUMN gone, ADD COLUMN late text DEFAULT 'late', ADD COLUMN later int;
ALTER TABLE blocks_p DROP COLUMN gone, ADD COLUMN late text DEFAULT 'late', ADD COLUMN later int;
SELECT blocks_differ('blocks_p', 'k', 'blocks_h', 40);
BEGIN;
ALTER TABLE blocks_p DROP COLUMN note, ADD COLUMN note int;
SELECT count(note), count(late) FROM (SELECT * FROM blocks_p WHERE k > 600 ORDER BY k LIMIT 500) x;
ROLLBACK;
SELECT blocks_differ('blocks_p', 'k', 'blocks_h', 40);

-- newer rows above, in level 0 and in the log
UPDATE blocks_h SET note = 'new', mostly = 1, later = k WHERE k % 11 = 0;
UPDATE blocks_p SET note = 'new', mostly = 1, later = k WHERE k % 11 = 0;
SELECT paimon.flush('blocks_p') > 0;
DELETE FROM blocks_h WHERE k % 13 = 0;
DELETE FROM blocks_p WHERE k % 13 = 0;
INSERT INTO blocks_h (k, u, note) SELECT i * 30 + 1, md5(i::text || 'x')::uuid, 'log' FROM generate_series(1, 2000) i;
INSERT INTO blocks_p (k, u, note) SELECT i * 30 + 1, md5(i::text || 'x')::uuid, 'log' FROM generate_series(1, 2000) i;
SELECT blocks_differ('blocks_p', 'k', 'blocks_h', 60);
SELECT paimon.compact('blocks_p') > 0;
SELECT blocks_differ('blocks_p', 'k', 'blocks_h', 60);
DROP TABLE blocks_h, blocks_p, blocks_u;
DROP FUNCTION blocks_differ;
