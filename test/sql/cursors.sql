-- Cursors that turn round: rows backward are the rows forward, reversed; over write buffer, log and runs.
CREATE TABLE cur (id int PRIMARY KEY, v text) USING paimon WITH (bucket = 3);
INSERT INTO cur SELECT g, 'a' || g FROM generate_series(1, 5000) g;
SELECT paimon.flush('cur') AS snapshot;
INSERT INTO cur SELECT g, 'b' || g FROM generate_series(2000, 2100) g;
BEGIN;
INSERT INTO cur SELECT g, 'c' || g FROM generate_series(500, 520) g;
DELETE FROM cur WHERE id BETWEEN 100 AND 200;
-- Another scan may give rows in another order: a scrolling cursor that goes straight ahead tells what it is.
CREATE TEMP TABLE forward (n bigserial PRIMARY KEY, id int, v text);
DO $$
DECLARE
	c SCROLL CURSOR FOR SELECT id, v FROM cur;
	r record;
BEGIN
	FOR r IN c LOOP
		INSERT INTO forward (id, v) VALUES (r.id, r.v);
	END LOOP;
END $$;
SELECT count(*) FROM (TABLE cur EXCEPT SELECT id, v FROM forward) x;
CREATE FUNCTION pg_temp.walk(steps int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c refcursor;
	r record;
	expected record;
	at bigint := 0;
	total bigint := (SELECT count(*) FROM forward);
	step int;
	bad int := 0;
BEGIN
	OPEN c SCROLL FOR SELECT id, v FROM cur;
	FOREACH step IN ARRAY steps LOOP
		FOR i IN 1 .. abs(step) LOOP
			IF step > 0 THEN
				FETCH NEXT FROM c INTO r;
			ELSE
				FETCH PRIOR FROM c INTO r;
			END IF;
			at := least(greatest(at + sign(step)::int, 0), total + 1);
			SELECT f.id, f.v INTO expected FROM forward f WHERE n = at;
			IF r IS DISTINCT FROM expected THEN
				bad := bad + 1;
			END IF;
		END LOOP;
	END LOOP;
	RETURN format('at %s of %s, %s wrong', at, total, bad);
END $$;
SELECT pg_temp.walk('{5,-3,3,-2,10}');
SELECT pg_temp.walk('{4,-6,2}');
SELECT pg_temp.walk('{4905,-20,30,-10}');
SELECT pg_temp.walk('{1700,-100,50,-1000}');
ROLLBACK;
DROP TABLE cur;
