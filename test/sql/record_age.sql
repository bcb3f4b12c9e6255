-- record-level.expire-time: rows that compactions leave out
SET timezone = 'UTC';
CREATE FUNCTION fails(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE m text; d text; h text;
BEGIN
	EXECUTE statement;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS m = MESSAGE_TEXT, d = PG_EXCEPTION_DETAIL, h = PG_EXCEPTION_HINT;
	RETURN concat_ws(' | ', SQLSTATE, m, nullif(d, ''), nullif(h, ''));
END $$;
SELECT fails($$CREATE TABLE ra (k int PRIMARY KEY, t int) USING paimon WITH ("record-level.expire-time" = '1 h')$$);
SELECT fails($$CREATE TABLE ra (k int PRIMARY KEY, t text) USING paimon WITH ("record-level.expire-time" = '1 h', "record-level.time-field" = 't')$$);
SELECT fails($$CREATE TABLE ra (k int PRIMARY KEY, t date) USING paimon WITH ("record-level.time-field" = 't')$$);
SELECT fails($$CREATE TABLE ra (k int PRIMARY KEY, t int) USING paimon WITH ("record-level.expire-time" = '1 h', "record-level.time-field" = 'x')$$);
SELECT fails($$CREATE TABLE ra (k int PRIMARY KEY, t int) USING paimon WITH ("record-level.expire-time" = 'soon', "record-level.time-field" = 't')$$);
SELECT to_regclass('ra');

-- a column of each type: an hour is the limit
CREATE TABLE ra_all (k int, kind text, i int, b bigint, m bigint, ts timestamp, tz timestamptz, PRIMARY KEY (k, tz));
INSERT INTO ra_all SELECT row_number() OVER (), kind, extract(epoch FROM at)::int, extract(epoch FROM at)::bigint, (extract(epoch FROM at) * 1000)::bigint, at AT TIME ZONE 'UTC', at
	FROM (VALUES ('old', now() - interval '2 hours'), ('new', now()), ('soon', now() + interval '1 year'), ('older', timestamptz '2001-10-01')) v(kind, at);
CREATE FUNCTION kept(field text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE seen text;
BEGIN
	EXECUTE format('CREATE TABLE ra (LIKE ra_all, PRIMARY KEY (k, tz)) USING paimon WITH ("record-level.expire-time" = ''1 h'', "record-level.time-field" = %L)', field);
	INSERT INTO ra SELECT * FROM ra_all;
	SELECT string_agg(kind, ' ' ORDER BY k) INTO seen FROM ra;
	RETURN seen;
END $$;
SELECT kept('i');
SELECT paimon.compact('ra', full => true) > 0;
SELECT string_agg(kind, ' ' ORDER BY k) FROM ra;
DROP TABLE ra;
SELECT kept('b');
SELECT paimon.compact('ra', full => true) > 0;
SELECT string_agg(kind, ' ' ORDER BY k) FROM ra;
DROP TABLE ra;
SELECT kept('m');
SELECT paimon.compact('ra', full => true) > 0;
SELECT string_agg(kind, ' ' ORDER BY k) FROM ra;
DROP TABLE ra;
SELECT kept('ts');
SELECT paimon.compact('ra', full => true) > 0;
SELECT string_agg(kind, ' ' ORDER BY k) FROM ra;
DROP TABLE ra;
-- of the key
SELECT kept('tz');
SELECT paimon.compact('ra', full => true) > 0;
SELECT string_agg(kind, ' ' ORDER BY k) FROM ra;
DROP TABLE ra;

-- NULL never grows old, nor does infinity; what is before all times is old
CREATE TABLE ra (k int PRIMARY KEY, at timestamptz, v text) USING paimon WITH ("record-level.expire-time" = '1 d', "record-level.time-field" = 'at');
INSERT INTO ra VALUES (1, NULL, 'null'), (2, 'infinity', 'infinity'), (3, '-infinity', '-infinity'), (4, now(), 'now'), (5, now() - interval '25 hours', 'old'), (6, now() - interval '23 hours', 'not so old');
SELECT paimon.compact('ra', full => true) > 0;
SELECT k, v FROM ra ORDER BY k;
-- a row that is old hides what was before it until both are merged; it does not bring it to light
INSERT INTO ra VALUES (4, '2000-01-01', 'became old');
SELECT paimon.flush('ra') > 0;
SELECT k, v FROM ra ORDER BY k;
SELECT paimon.compact('ra', full => false) IS NOT NULL;
SELECT k, v FROM ra WHERE v = 'now';
SELECT paimon.compact('ra', full => true) > 0;
SELECT k, v FROM ra ORDER BY k;
-- an UPDATE makes it young again
INSERT INTO ra VALUES (7, '2000-01-01', 'old');
UPDATE ra SET at = now(), v = 'young' WHERE k = 7;
SELECT paimon.compact('ra', full => true) > 0;
SELECT k, v FROM ra WHERE k = 7;
-- files of the last level are looked at, too: the limit has become shorter, nothing was written
SELECT level, runs FROM paimon.levels('ra') WHERE runs > 0;
ALTER TABLE ra SET ("record-level.expire-time" = '1 h');
SELECT paimon.compact('ra', full => true) > 0;
SELECT k, v FROM ra ORDER BY k;
-- nothing is old any more: nothing to do
SELECT count(*) AS before FROM paimon.compaction_history WHERE "table" = 'ra'::regclass \gset
SELECT paimon.compact('ra', full => true) > 0;
SELECT count(*) - :before AS compactions FROM paimon.compaction_history WHERE "table" = 'ra'::regclass;
-- names are followed, the column stays
ALTER TABLE ra RENAME COLUMN at TO happened;
SELECT key, value FROM paimon.options('ra') WHERE key LIKE 'record-level.%' ORDER BY key;
SELECT fails('ALTER TABLE ra DROP COLUMN happened');
SELECT fails('ALTER TABLE ra ALTER COLUMN happened TYPE text');
ALTER TABLE ra RESET ("record-level.expire-time", "record-level.time-field");
ALTER TABLE ra DROP COLUMN happened;
SELECT k, v FROM ra ORDER BY k;
DROP TABLE ra;

-- rows that merge: what all records of a key come to has an age
CREATE TABLE ra (k int PRIMARY KEY, at int, n bigint) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum', "fields.at.aggregate-function" = 'max',
	"record-level.expire-time" = '1 h', "record-level.time-field" = 'at');
INSERT INTO ra VALUES (1, 5, 1), (2, 5, 1);
SELECT paimon.flush('ra') > 0;
INSERT INTO ra VALUES (1, extract(epoch FROM now())::int, 10);
SELECT paimon.flush('ra') > 0;
INSERT INTO ra VALUES (1, 7, 100), (2, 7, 10);
SELECT paimon.compact('ra', full => true) > 0;
SELECT k, n FROM ra ORDER BY k;
DROP TABLE ra;

-- and rows without a key
CREATE TABLE ra (at timestamp, v text) USING paimon WITH ("record-level.expire-time" = '10 min', "record-level.time-field" = 'at', bucket = 2, "bucket-key" = 'v');
INSERT INTO ra SELECT now() AT TIME ZONE 'UTC' - g * interval '1 minute', 'v' || g FROM generate_series(1, 30) g;
SELECT paimon.compact('ra', full => true) > 0;
SELECT count(*), count(*) FILTER (WHERE v IN ('v11', 'v30')) AS old FROM ra;
SELECT severity, problem FROM paimon.verify('ra');
DROP TABLE ra, ra_all;
DROP FUNCTION kept, fails;
