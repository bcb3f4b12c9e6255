-- Which plans are chosen: lookups for points, ranges for ranges, scans for scans, with and without statistics.
CREATE TABLE kc (id int PRIMARY KEY, v int, n numeric(10,2), t text) USING paimon;
CREATE TABLE kc4 (id int, k text COLLATE "C", v int, t text, PRIMARY KEY (id, k)) USING paimon WITH (bucket = 4);
INSERT INTO kc SELECT g, g % 100, g / 7.0, md5(g::text) || md5((-g)::text) FROM generate_series(1, 100000) g;
INSERT INTO kc4 SELECT g / 10, 'k' || g % 10, g, md5(g::text) FROM generate_series(0, 99999) g;
SELECT paimon.compact('kc') AS kc, paimon.compact('kc4') AS kc4;
CREATE FUNCTION kc_plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	node text;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	node := substring(plan::text FROM '(PaimonScan|Index Only Scan|Index Scan)');
	RETURN node;
END $$;
CREATE FUNCTION kc_plans() RETURNS TABLE (share text, one_column text, wide text, key_only text, buckets text, ordered text) LANGUAGE sql AS $$
	SELECT trim_scale(f * 100) || ' %',
		kc_plan(format('SELECT sum(v) FROM kc WHERE id BETWEEN 1 AND %s', (100000 * f)::int)),
		kc_plan(format('SELECT max(t), max(n), max(v) FROM kc WHERE id BETWEEN 1 AND %s', (100000 * f)::int)),
		kc_plan(format('SELECT count(*) FROM kc WHERE id BETWEEN 1 AND %s', (100000 * f)::int)),
		kc_plan(format('SELECT sum(v) FROM kc4 WHERE id BETWEEN 0 AND %s', (10000 * f)::int)),
		kc_plan(format('SELECT * FROM kc WHERE id BETWEEN 1 AND %s ORDER BY id LIMIT 10', (100000 * f)::int))
	FROM unnest('{0.00001,0.0001,0.001,0.01,0.05,0.1,0.5,0.75,1}'::numeric[]) f $$;
SET max_parallel_workers_per_gather = 0;
SET plan_cache_mode = force_custom_plan;
ALTER TABLE kc SET (autovacuum_enabled = off); ALTER TABLE kc4 SET (autovacuum_enabled = off);
SELECT * FROM kc_plans();
ANALYZE kc; ANALYZE kc4;
SELECT * FROM kc_plans();
SELECT q, kc_plan(q) FROM unnest(ARRAY[
	'SELECT * FROM kc WHERE id = 5',
	'SELECT * FROM kc WHERE id IN (1, 2, 3)',
	'SELECT * FROM kc WHERE id < 5 AND v = 3',
	'SELECT * FROM kc WHERE v = 3',
	'SELECT * FROM kc WHERE v = 3 ORDER BY id LIMIT 5',
	'SELECT * FROM kc ORDER BY id',
	'SELECT count(*) FROM kc',
	'SELECT sum(v) FROM kc',
	'SELECT min(id), max(id) FROM kc',
	'SELECT * FROM kc4 WHERE id = 5',
	'SELECT * FROM kc4 WHERE id = 5 AND k = ''k1''',
	'SELECT * FROM kc4 WHERE id = 5 AND k > ''k1''',
	'SELECT * FROM kc4 WHERE k = ''k1''',
	'SELECT * FROM kc4 WHERE id IN (5, 6, 7) AND k IN (''k1'', ''k2'')',
	'SELECT * FROM kc4 ORDER BY id, k LIMIT 100',
	'SELECT id FROM kc4 GROUP BY id ORDER BY id LIMIT 3'
]) q;
EXPLAIN (COSTS OFF) SELECT * FROM kc JOIN kc4 ON kc4.id = kc.v WHERE kc.id BETWEEN 10 AND 12;
EXPLAIN (COSTS OFF) SELECT count(*) FROM kc x JOIN kc y ON y.id = x.id + 1 WHERE x.id < 10;
EXPLAIN (COSTS OFF) SELECT count(*) FROM kc x JOIN kc y ON y.id = x.v;
DROP TABLE kc, kc4;
DROP FUNCTION kc_plan, kc_plans;
