-- Joins that look many keys up do so in the order of the keys.
CREATE TABLE oj (k int, g int, v int, t text, PRIMARY KEY (k, g)) USING paimon;
INSERT INTO oj SELECT i / 4, i % 4, i, repeat(md5(i::text), 2) FROM generate_series(1, 100000) i;
SELECT paimon.flush('oj');
CREATE TABLE oj_h AS SELECT * FROM oj;
CREATE TABLE oj_keys AS SELECT (i * 7919) % 26000 AS k, i % 4 AS g FROM generate_series(1, 600) i;
ANALYZE oj; ANALYZE oj_h; ANALYZE oj_keys;
EXPLAIN (COSTS OFF) UPDATE oj SET v = v + 1 FROM oj_keys s WHERE oj.k = s.k AND oj.g = s.g;
EXPLAIN (COSTS OFF) SELECT s.k, oj.t FROM oj_keys s LEFT JOIN oj ON oj.k = s.k AND oj.g = s.g;
-- the order of the outer side is kept for what comes above
EXPLAIN (COSTS OFF) SELECT s.k, oj.t FROM oj_keys s JOIN oj ON oj.k = s.k AND oj.g = s.g ORDER BY s.k;
-- one column of the key is not enough; a few keys need no order
EXPLAIN (COSTS OFF) SELECT oj.t FROM (SELECT * FROM oj_keys LIMIT 1) s JOIN oj ON oj.k = s.k AND oj.g = s.g;
UPDATE oj SET v = v + 1 FROM oj_keys s WHERE oj.k = s.k AND oj.g = s.g;
UPDATE oj_h SET v = v + 1 FROM oj_keys s WHERE oj_h.k = s.k AND oj_h.g = s.g;
DELETE FROM oj USING oj_keys s WHERE oj.k = s.k + 1 AND oj.g = s.g;
DELETE FROM oj_h USING oj_keys s WHERE oj_h.k = s.k + 1 AND oj_h.g = s.g;
SELECT count(*) FROM ((TABLE oj EXCEPT TABLE oj_h) UNION ALL (TABLE oj_h EXCEPT TABLE oj)) d;
SELECT count(*), count(oj.k) FROM oj_keys s LEFT JOIN oj ON oj.k = s.k AND oj.g = s.g;
SELECT count(*), count(oj_h.k) FROM oj_keys s LEFT JOIN oj_h ON oj_h.k = s.k AND oj_h.g = s.g;
SELECT count(*) FROM oj_keys s WHERE NOT EXISTS (SELECT 1 FROM oj WHERE oj.k = s.k AND oj.g = s.g);
SELECT count(*) FROM oj_keys s WHERE NOT EXISTS (SELECT 1 FROM oj_h WHERE oj_h.k = s.k AND oj_h.g = s.g);
DROP TABLE oj, oj_h, oj_keys;
