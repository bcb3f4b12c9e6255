-- Scans that need not give rows in the order of their keys: against heap, with keys close together, far apart, and of several columns.
CREATE SCHEMA scan_unordered;
SET client_min_messages = warning;
SET search_path = scan_unordered;

-- Makes k_p and k_h with the same rows; the first has them in runs and memtables, each with changes of those before.
CREATE PROCEDURE fill(kind text, number text) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('DROP TABLE IF EXISTS k_p, k_h');
	EXECUTE format('CREATE TABLE k_p (k %s PRIMARY KEY, v int, note text) USING paimon WITH ("write-only" = true)', kind);
	EXECUTE format('CREATE TABLE k_h (k %s PRIMARY KEY, v int, note text) USING heap', kind);
	EXECUTE format('INSERT INTO k_p SELECT %s, n, ''first'' FROM generate_series(-9000, 9000) n', number);
	EXECUTE format('INSERT INTO k_h SELECT %s, n, ''first'' FROM generate_series(-9000, 9000) n', number);
	FOR round IN 1 .. 6 LOOP
		EXECUTE format('INSERT INTO k_p SELECT %s, n, ''round %s'' FROM generate_series(-9900, 9900) n WHERE n %% %s = 0', number, round, round + 1);
		EXECUTE format('INSERT INTO k_h SELECT %s, n, ''round %s'' FROM generate_series(-9900, 9900) n WHERE n %% %s = 0
			ON CONFLICT (k) DO UPDATE SET v = excluded.v, note = excluded.note', number, round, round + 1);
		EXECUTE format('DELETE FROM k_p WHERE v %% 11 = %s', round);
		EXECUTE format('DELETE FROM k_h WHERE v %% 11 = %s', round);
		COMMIT;
		IF round < 5 THEN
			PERFORM paimon.flush('k_p');
		END IF;
	END LOOP;
END $$;
-- What one has and the other has not, rows that come twice, and how many there are.
CREATE FUNCTION compare(OUT missing bigint, OUT extra bigint, OUT twice bigint, OUT same_number boolean) LANGUAGE plpgsql AS $$
BEGIN
	SELECT count(*) INTO missing FROM (TABLE k_h EXCEPT TABLE k_p) x;
	SELECT count(*) INTO extra FROM (TABLE k_p EXCEPT TABLE k_h) x;
	SELECT count(*) INTO twice FROM (SELECT FROM k_p GROUP BY k HAVING count(*) > 1) x;
	same_number := (SELECT count(*) FROM k_p) = (SELECT count(*) FROM k_h);
END $$;

CALL fill('bigint', 'n');
SELECT sum(runs) AS runs FROM paimon.levels('k_p');
SELECT * FROM compare();
-- that the order is another one shows that it is this way that was tested
SELECT count(*) > 0 AS unordered FROM (SELECT k < lag(k) OVER () AS less FROM k_p) x WHERE less;
CALL fill('bigint', 'n * 922337203685477');
SELECT * FROM compare();
CALL fill('bigint', 'CASE WHEN n % 2 = 0 THEN 9223372036854775807 - 9900 + n ELSE n END');
SELECT * FROM compare();
CALL fill('int', 'n * 210000');
SELECT * FROM compare();
CALL fill('smallint', 'n');
SELECT * FROM compare();
CALL fill('date', '''2000-01-01''::date + n');
SELECT * FROM compare();
CALL fill('uuid', 'md5(n::text)::uuid');
SELECT * FROM compare();
CALL fill('text', 'n::text');
SELECT * FROM compare();

CALL fill('bigint', 'n');
-- Statements that change or lock rows, and cursors that scroll, get them in the order of their keys.
BEGIN;
SELECT count(*) FROM (SELECT k < lag(k) OVER () AS less FROM (SELECT k FROM k_p FOR UPDATE) y) x WHERE less;
DECLARE c SCROLL CURSOR FOR SELECT k FROM k_p;
FETCH ABSOLUTE 9000 FROM c;
FETCH RELATIVE -2 FROM c;
MOVE LAST FROM c;
FETCH BACKWARD 3 FROM c;
MOVE BACKWARD ALL FROM c;
FETCH 3 FROM c;
CLOSE c;
DECLARE c NO SCROLL CURSOR FOR SELECT k, v, note FROM k_p;
CREATE TEMP TABLE fetched (k bigint, v int, note text);
DO $$
DECLARE
	c refcursor := 'c';
	r record;
BEGIN
	LOOP
		FETCH c INTO r;
		EXIT WHEN NOT FOUND;
		INSERT INTO fetched VALUES (r.k, r.v, r.note);
		-- what is written meanwhile does not matter
		IF r.k % 1000 = 0 THEN
			UPDATE k_p SET note = 'later' WHERE k = r.k + 10;
		END IF;
	END LOOP;
END $$;
SELECT count(*) FROM (TABLE fetched EXCEPT TABLE k_h) x;
SELECT (SELECT count(*) FROM fetched) = (SELECT count(*) FROM k_h) AS same_number;
ROLLBACK;

-- With rows of this transaction, which nobody else has.
BEGIN;
INSERT INTO k_p SELECT n, -n, 'own' FROM generate_series(-20000, 20000, 3) n;
INSERT INTO k_h SELECT n, -n, 'own' FROM generate_series(-20000, 20000, 3) n ON CONFLICT (k) DO UPDATE SET v = excluded.v, note = excluded.note;
SELECT * FROM compare();
ROLLBACK;

-- In parallel.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT * FROM compare();
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;

DROP SCHEMA scan_unordered CASCADE;
