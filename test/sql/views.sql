-- paimon.files, buckets, snapshots: who may ask, and about what.
SET client_min_messages = warning;
CREATE SCHEMA views;
SET search_path = views, public;
CREATE TABLE t (id int PRIMARY KEY, a text, b text) USING paimon WITH (bucket = 2, "write-only" = true);
CREATE TABLE h (id int PRIMARY KEY);
CREATE VIEW v AS SELECT * FROM t;
SELECT count(*) FROM paimon.files('t');
SELECT count(*) FROM paimon.buckets('t');
SELECT count(*) FROM paimon.snapshots('t');
SELECT * FROM paimon.files('h');
SELECT * FROM paimon.buckets('v');
SELECT * FROM paimon.snapshots('pg_class');
SELECT * FROM paimon.files(0);
SELECT count(*) FROM paimon.files(NULL);

-- What they say: two flushes.
INSERT INTO t SELECT i, 'a', 'b' FROM generate_series(1, 10) i;
SELECT paimon.flush('t');
DELETE FROM t WHERE id = 2;
SELECT paimon.flush('t');
SELECT partition, bucket, file_path, file_format, level, record_count, file_size_in_bytes > 0 AS has_size, min_key, max_key,
       creation_time <= clock_timestamp() AS created, "deleteRowCount", file_source FROM paimon.files('t');
SELECT partition, bucket, record_count, file_size_in_bytes > 0 AS has_size, file_count, last_update_time <= clock_timestamp() AS updated
FROM paimon.buckets('t');
SELECT snapshot_id, commit_kind, commit_time <= clock_timestamp() AS committed, total_record_count, delta_record_count FROM paimon.snapshots('t');
-- Rolled back, nothing of it is left; TRUNCATE begins anew.
BEGIN;
TRUNCATE t;
SELECT count(*) FROM paimon.files('t');
ROLLBACK;
SELECT count(*) FROM paimon.files('t');
TRUNCATE t;
SELECT count(*) FROM paimon.files('t');
-- Long keys are cut: lower bounds down, upper bounds up; short ones are shown whole.
CREATE TABLE l (k text COLLATE "C", n numeric, PRIMARY KEY (k, n)) USING paimon;
INSERT INTO l VALUES (repeat('k', 100), 1), ('b', 2.50), (repeat('z', 100), 3);
SELECT paimon.flush('l');
SELECT min_key, max_key LIKE '\\x%' AS cut FROM paimon.files('l');

-- SELECT on all columns, and no row security.
CREATE ROLE regress_views_user;
GRANT USAGE ON SCHEMA views TO regress_views_user;
SET ROLE regress_views_user;
SELECT count(*) FROM paimon.files('t');
RESET ROLE;
GRANT SELECT (id, a) ON t TO regress_views_user;
SET ROLE regress_views_user;
SELECT count(*) FROM paimon.buckets('t');
RESET ROLE;
GRANT SELECT (b) ON t TO regress_views_user;
SET ROLE regress_views_user;
SELECT count(*) FROM paimon.files('t');
RESET ROLE;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
SET ROLE regress_views_user;
SELECT count(*) FROM paimon.snapshots('t');
RESET ROLE;
-- The owner is not subject to it.
SELECT count(*) FROM paimon.snapshots('t');
DROP OWNED BY regress_views_user;
DROP ROLE regress_views_user;

-- Partitions: those of the whole tree, each by its name.
CREATE TABLE p (day text, n int, PRIMARY KEY (day, n)) PARTITION BY LIST (day) USING paimon WITH (bucket = 2, "write-only" = true);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN ('monday', 'tuesday') USING paimon;
SELECT count(*) FROM paimon.files('p');
SELECT paimon.flush('p');
CREATE TABLE p2 PARTITION OF p FOR VALUES IN ('sunday') PARTITION BY RANGE (n);
CREATE TABLE p21 PARTITION OF p2 FOR VALUES FROM (0) TO (10) USING paimon WITH (bucket = 1);
CREATE TABLE p22 PARTITION OF p2 DEFAULT USING paimon;
INSERT INTO p VALUES ('monday', 1), ('sunday', 2), ('sunday', 3), ('sunday', 30), ('tuesday', 4);
SELECT paimon.flush('p');
INSERT INTO p VALUES ('sunday', 2);
SELECT paimon.flush('p2');
SELECT relation, partition, bucket, sum(record_count) AS rows, min(min_key) AS min_key FROM paimon.files('p')
GROUP BY relation, partition, bucket ORDER BY relation::text, bucket;
SELECT relation, bucket, record_count, file_count FROM paimon.buckets('p') ORDER BY relation::text, bucket;
SELECT relation, bucket, record_count, file_count FROM paimon.buckets('p2') ORDER BY relation::text, bucket;
SELECT relation, snapshot_id, delta_record_count FROM paimon.snapshots('p') ORDER BY relation::text, snapshot_id;
SELECT relation, count(*) FROM paimon.files('p1') GROUP BY relation;
SELECT paimon.compact('p');
SELECT relation, bucket, runs, record_count FROM paimon.levels('p') ORDER BY relation::text, bucket, level;
SELECT paimon.compact('p', bucket => 1);
SELECT paimon.compact('p1', bucket => -1);
-- Options are each relation's own.
SELECT * FROM paimon.options('p');
SELECT * FROM paimon.options('p21');
-- Partitions of another kind are left out.
CREATE TABLE mixed (day text, n int) PARTITION BY LIST (day);
CREATE TABLE mixed1 PARTITION OF mixed FOR VALUES IN ('a') USING heap;
CREATE TABLE mixed2 PARTITION OF mixed FOR VALUES IN ('b') USING paimon;
SELECT * FROM paimon.files('mixed');
SELECT paimon.flush('mixed');
CREATE TABLE marked (day text, n int) PARTITION BY LIST (day) USING paimon;
CREATE TABLE marked1 PARTITION OF marked FOR VALUES IN ('a') USING heap;
CREATE TABLE marked2 PARTITION OF marked FOR VALUES IN ('b') USING paimon;
INSERT INTO marked VALUES ('a', 1), ('b', 2);
SELECT paimon.flush('marked');
SELECT relation, record_count FROM paimon.files('marked');
-- Privileges are asked for on the table that is named.
CREATE ROLE regress_views_user;
GRANT USAGE ON SCHEMA views TO regress_views_user;
GRANT SELECT ON p TO regress_views_user;
SET ROLE regress_views_user;
SELECT count(*) FROM paimon.files('p');
SELECT count(*) FROM paimon.files('p1');
SELECT paimon.flush('p');
RESET ROLE;
GRANT CREATE ON SCHEMA views TO regress_views_user;
ALTER TABLE p OWNER TO regress_views_user;
SET ROLE regress_views_user;
SELECT paimon.flush('p');
RESET ROLE;
ALTER TABLE p OWNER TO CURRENT_USER;
DROP OWNED BY regress_views_user;
DROP ROLE regress_views_user;
-- Made in this transaction: flushed by the session itself.
BEGIN;
CREATE TABLE p3 PARTITION OF p DEFAULT USING paimon;
INSERT INTO p VALUES ('someday', 1);
SELECT paimon.flush('p');
COMMIT;
SELECT paimon.flush('p');
SELECT relation, sum(record_count) FROM paimon.buckets('p') GROUP BY relation ORDER BY relation::text;
DROP SCHEMA views CASCADE;
