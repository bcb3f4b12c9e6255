-- Commits leave their batches to whoever looks first, until there are many; whoever it is puts all of them in together.
SET synchronous_commit = off;
CREATE TABLE stretch_p (a int, b text, v int, w text, PRIMARY KEY (a, b)) USING paimon WITH (bucket = 3);
CREATE TABLE stretch_h (a int, b text, v int, w text, PRIMARY KEY (a, b));

-- n commits, of up to `rows` rows each; some keys again and again, some in one commit several times, some deleted
CREATE PROCEDURE stretch_write(n int, rows int, seed int) LANGUAGE plpgsql AS $$
DECLARE
	t text;
BEGIN
	FOR i IN 1 .. n LOOP
		FOREACH t IN ARRAY ARRAY['stretch_h', 'stretch_p'] LOOP
			EXECUTE format('INSERT INTO %I SELECT DISTINCT ON (1, 2) hashint4($3 * 7919 + $1 * 31 + g) %% (CASE WHEN g %% 3 = 0 THEN 5 ELSE 3000 END),
					repeat(''k'', g %% 4 * 5) || g %% 7, $1 * 1000 + g, repeat(''x'', CASE WHEN g = 2 AND $1 %% 500 = 0 THEN 9000 ELSE 3 END)
				FROM generate_series(1, $2) g ORDER BY 1, 2, 3 DESC ON CONFLICT (a, b) DO UPDATE SET v = excluded.v, w = excluded.w', t) USING i, 1 + i % rows, seed;
			IF i % 700 = 699 THEN
				EXECUTE format('DELETE FROM %I WHERE a %% 10 = 3', t);
			END IF;
		END LOOP;
		COMMIT;
	END LOOP;
END $$;

CREATE FUNCTION stretch_indexed() RETURNS bool LANGUAGE sql AS $$ SELECT memtable_bytes > 0 FROM paimon.stats('stretch_p') $$;

-- commits alone leave them, a reader takes them in, and the next commits do it themselves
CALL stretch_write(3, 5, 1);
SELECT stretch_indexed();
SELECT count(*) > 0 AS rows, stretch_indexed() AS before FROM stretch_p;
SELECT stretch_indexed();

-- thousands of small ones, then some large ones, and a few on top of many
CALL stretch_write(6000, 3, 2);
SELECT * FROM stretch_h EXCEPT SELECT * FROM stretch_p;
SELECT count(*) = (SELECT count(*) FROM stretch_h) AS same, sum(v) = (SELECT sum(v) FROM stretch_h) AS sums FROM stretch_p;
CALL stretch_write(40, 3000, 3);
SELECT count(*) = (SELECT count(*) FROM stretch_h) AS same FROM stretch_p;
CALL stretch_write(70, 40, 4);
SELECT * FROM stretch_p EXCEPT SELECT * FROM stretch_h;
SELECT count(*) = (SELECT count(*) FROM stretch_h) AS same, sum(length(w)) = (SELECT sum(length(w)) FROM stretch_h) AS lengths FROM stretch_p;

-- by key in both directions, and after a flush
SELECT bool_and(p = h) AS same FROM (SELECT row_number() OVER () n, s AS p FROM (SELECT * FROM stretch_p ORDER BY a, b) s) x
	JOIN (SELECT row_number() OVER () n, s AS h FROM (SELECT * FROM stretch_h ORDER BY a, b) s) y USING (n);
SELECT bool_and(p = h) AS same FROM (SELECT row_number() OVER () n, s AS p FROM (SELECT * FROM stretch_p WHERE a BETWEEN -5 AND 40 ORDER BY a DESC, b DESC) s) x
	JOIN (SELECT row_number() OVER () n, s AS h FROM (SELECT * FROM stretch_h WHERE a BETWEEN -5 AND 40 ORDER BY a DESC, b DESC) s) y USING (n);
SELECT paimon.flush('stretch_p') > 0 AS flushed;
SELECT * FROM stretch_p EXCEPT SELECT * FROM stretch_h;
SELECT count(*) = (SELECT count(*) FROM stretch_h) AS same FROM stretch_p;

DROP TABLE stretch_p, stretch_h;
DROP PROCEDURE stretch_write;
DROP FUNCTION stretch_indexed;
