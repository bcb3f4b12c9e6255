-- COPY in and out: formats, errors in the middle, FREEZE, conditions, triggers, partitions; beside heap.
SET client_min_messages = warning;
CREATE SCHEMA copying;
SET search_path = copying, public;
CREATE FUNCTION same(p regclass, h regclass) RETURNS text LANGUAGE plpgsql AS $$
DECLARE n bigint; other bigint;
BEGIN
	EXECUTE format('SELECT (SELECT count(*) FROM %1$s), count(*) FROM ((SELECT x::text FROM %1$s x EXCEPT ALL SELECT x::text FROM %2$s x)
		UNION ALL (SELECT x::text FROM %2$s x EXCEPT ALL SELECT x::text FROM %1$s x)) d', p, h) INTO n, other;
	RETURN CASE other WHEN 0 THEN 'same, ' || n || ' rows' ELSE 'different: ' || other || ' of ' || n END;
END $$;
CREATE TABLE p (k int PRIMARY KEY, t text, n numeric, b bytea, a int[], d int DEFAULT 7, g int GENERATED ALWAYS AS (length(t)) STORED) USING paimon WITH (bucket = 2);
CREATE TABLE h (LIKE p INCLUDING ALL) USING heap;

-- Text and CSV, with NULLs, escapes, some columns, and a key twice: the later row counts.
COPY p (k, t, n, b, a) FROM STDIN;
1	one	1.50	\\x00ff	{1,2,NULL}
2	tab\there\nand line	\N	\N	\N
3		0	\\x	{}
1	once more	2	\\x01	{3}
\.
SELECT * FROM p ORDER BY k;
COPY p (t, k) FROM STDIN (FORMAT csv, HEADER, NULL 'none');
t,k
"quoted ""text"", with comma",4
none,5
"two
lines",6
\.
COPY p (k, t, d) FROM STDIN (DELIMITER '|', NULL '') WHERE k % 2 = 1;
7|odd|
8|even|1
9|odd|2
\.
SELECT k, t, d, g FROM p WHERE k > 3 ORDER BY k;
INSERT INTO h (k, t, n, b, a, d) SELECT k, t, n, b, a, d FROM p;
SELECT same('p', 'h');
COPY p TO STDOUT;
COPY (SELECT * FROM p ORDER BY k DESC) TO STDOUT (FORMAT csv, HEADER, FORCE_QUOTE (t));
COPY (DELETE FROM p WHERE k = 9 RETURNING k, t) TO STDOUT;
DELETE FROM h WHERE k = 9;
-- Errors in the middle: nothing of the statement stays, what was before it in the transaction does.
BEGIN;
INSERT INTO p (k, t) VALUES (20, 'before');
SAVEPOINT s;
COPY p (k, t, n) FROM STDIN;
21	good	1
22	bad	not a number
23	never	1
\.
ROLLBACK TO s;
SELECT k, t FROM p WHERE k >= 20;
COPY p (k, t) FROM STDIN;
24	after
\.
COMMIT;
COPY p (k, t) FROM STDIN;
25	good
\N	no key
\.
COPY p (k, t) FROM STDIN;
26	good	too much
\.
COPY p (k, g) FROM '/dev/null';
COPY p (k, nothing) FROM '/dev/null';
SELECT k, t FROM p WHERE k >= 20 ORDER BY k;
INSERT INTO h (k, t) VALUES (20, 'before'), (24, 'after');
SELECT same('p', 'h');

-- Binary through a file, more rows than a batch, long rows; and the other formats the same way.
SELECT current_setting('data_directory') || '/pg_stat_tmp/paimon_copy' AS file \gset
INSERT INTO p (k, t, n, b, a) SELECT g, repeat(md5(g::text), CASE g % 50 WHEN 0 THEN 300 ELSE g % 10 END), g / 7.0, decode(md5(g::text), 'hex'), ARRAY[g, g + 1] FROM generate_series(100, 5000) g;
INSERT INTO h (k, t, n, b, a, d) SELECT k, t, n, b, a, d FROM p WHERE k >= 100;
SELECT same('p', 'h');
CREATE TABLE p2 (LIKE p INCLUDING ALL) USING paimon WITH (bucket = 3, "write-buffer-size" = '64kb');
COPY p TO :'file' (FORMAT binary);
COPY p2 FROM :'file' (FORMAT binary);
SELECT same('p2', 'h');
COPY h TO :'file' (FORMAT binary);
TRUNCATE p2;
COPY p2 FROM :'file' (FORMAT binary);
SELECT same('p2', 'h');
COPY h TO :'file' (FORMAT csv, HEADER);
BEGIN;
TRUNCATE p2;
COPY p2 FROM :'file' (FORMAT csv, HEADER);
SELECT same('p2', 'h');
ROLLBACK;
SELECT same('p2', 'h');
-- Twice the same data: upserts.
COPY p2 FROM :'file' (FORMAT csv, HEADER);
SELECT same('p2', 'h');
SELECT paimon.flush('p2') > 0 AS flushed;
COPY p2 TO :'file';
TRUNCATE h;
COPY h FROM :'file';
SELECT same('p2', 'h'), same('p', 'h');
-- FREEZE asks for a table made or truncated in the transaction; rows are then seen by who could not see them on heap either.
COPY p2 FROM :'file' (FREEZE);
BEGIN;
TRUNCATE p2;
COPY p2 FROM :'file' (FREEZE);
SELECT same('p2', 'h');
COMMIT;
SELECT same('p2', 'h');
BEGIN;
CREATE TABLE p3 (LIKE p INCLUDING ALL) USING paimon;
COPY p3 FROM :'file' (FREEZE);
SELECT same('p3', 'h');
SAVEPOINT s;
DELETE FROM p3;
ROLLBACK TO s;
COMMIT;
SELECT same('p3', 'h');
DROP TABLE p3;
-- A table without a key keeps every row.
CREATE TABLE ap (k int, t text) USING paimon;
COPY ap FROM STDIN;
1	a
1	a
1	b
\.
COPY ap TO STDOUT;

-- Triggers, checks, row security, rules of a view.
CREATE TABLE log (what text) USING heap;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO log VALUES (concat_ws(' ', TG_WHEN, TG_LEVEL, CASE WHEN TG_LEVEL = 'ROW' THEN NEW::text END));
	IF TG_LEVEL = 'ROW' AND TG_WHEN = 'BEFORE' THEN
		IF NEW.v < 0 THEN RETURN NULL; END IF;
		NEW.v := NEW.v + 1;
	END IF;
	RETURN NEW;
END $$;
CREATE TABLE tp (k int PRIMARY KEY, v int CHECK (v < 100)) USING paimon;
CREATE TRIGGER a BEFORE INSERT ON tp FOR EACH STATEMENT EXECUTE FUNCTION note();
CREATE TRIGGER b BEFORE INSERT ON tp FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER c AFTER INSERT ON tp FOR EACH ROW EXECUTE FUNCTION note();
CREATE TRIGGER d AFTER INSERT ON tp FOR EACH STATEMENT EXECUTE FUNCTION note();
COPY tp FROM STDIN;
1	10
2	-1
3	30
1	11
\.
TABLE log;
SELECT * FROM tp ORDER BY k;
TRUNCATE log;
COPY tp FROM STDIN;
4	10
5	99
\.
TABLE log;
ALTER TABLE tp DISABLE TRIGGER USER;
COPY tp FROM STDIN;
6	10
7	100
\.
COPY tp FROM STDIN;
6	10
\.
SELECT * FROM tp ORDER BY k;
CREATE FUNCTION count_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO log SELECT 'new rows: ' || count(*) || ', sum ' || sum(v) FROM new_rows;
	RETURN NULL;
END $$;
CREATE TRIGGER e AFTER INSERT ON tp REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_new();
COPY tp FROM STDIN;
10	1
11	2
10	3
\.
TABLE log;
SELECT * FROM tp ORDER BY k;

-- Partitions of both kinds; rows find theirs.
CREATE TABLE parts (k int, t text, PRIMARY KEY (k)) PARTITION BY RANGE (k);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (1000) USING paimon WITH (bucket = 2);
CREATE TABLE parts_2 (t text, dropped int, k int NOT NULL) USING paimon;
ALTER TABLE parts_2 DROP COLUMN dropped;
ALTER TABLE parts ATTACH PARTITION parts_2 FOR VALUES FROM (1000) TO (2000);
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (2000) TO (3000) USING paimon WITH ("write-buffer-size" = '64kb');
CREATE TABLE parts_h (k int PRIMARY KEY, t text) USING heap;
INSERT INTO parts_h SELECT g, md5(g::text) FROM generate_series(0, 2999) g;
COPY (SELECT * FROM parts_h ORDER BY k % 7, k) TO :'file';
COPY parts FROM :'file';
SELECT same('parts', 'parts_h');
SELECT tableoid::regclass, count(*) FROM parts GROUP BY 1 ORDER BY 1;
COPY parts FROM STDIN;
5	replaced
1500	replaced
9000	nowhere
\.
COPY parts FROM STDIN;
5	replaced
1500	replaced
\.
UPDATE parts_h SET t = 'replaced' WHERE k IN (5, 1500);
SELECT same('parts', 'parts_h');
COPY parts_1 FROM STDIN;
1500	wrong
\.
COPY parts (t, k) FROM STDIN (FREEZE);
\.
COPY (SELECT * FROM parts WHERE k % 500 = 0 ORDER BY k) TO STDOUT;
-- Without a key a partition may be of either access method.
CREATE TABLE mix (k int, t text) PARTITION BY RANGE (k);
CREATE TABLE mix_1 PARTITION OF mix FOR VALUES FROM (0) TO (1000) USING paimon;
CREATE TABLE mix_2 PARTITION OF mix FOR VALUES FROM (1000) TO (3000) USING heap;
COPY mix FROM :'file';
COPY mix FROM :'file';
SELECT tableoid::regclass, count(*), count(DISTINCT k) FROM mix GROUP BY 1 ORDER BY 1;
-- Not left behind large.
COPY (SELECT 1 WHERE false) TO :'file';
DROP SCHEMA copying CASCADE;
