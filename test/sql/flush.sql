-- paimon.flush: contents stay the same, snapshots are prefixes, markers go when nothing is older.
CREATE TABLE flush_t (a int PRIMARY KEY, b text) USING paimon WITH (bucket = 3, "write-only" = true);
SELECT paimon.flush('flush_t');
INSERT INTO flush_t SELECT i, 'x' || i FROM generate_series(1, 300) i;
-- deleted before anything is in files: no marker remains
DELETE FROM flush_t WHERE a > 290;
SELECT paimon.flush('flush_t');
SELECT count(*), sum(a) FROM flush_t;
SELECT sum(row_count), sum(delete_count) FROM paimon.file f JOIN paimon.storage s USING (storage_id) WHERE s.relid = 'flush_t'::regclass;
-- nothing new: the same snapshot
SELECT paimon.flush('flush_t');
UPDATE flush_t SET b = 'y' WHERE a <= 10;
DELETE FROM flush_t WHERE a BETWEEN 11 AND 20;
BEGIN;
INSERT INTO flush_t VALUES (1000, 'rolled back');
ROLLBACK;
SELECT paimon.flush('flush_t');
SELECT count(*), sum(a), count(*) FILTER (WHERE b = 'y') FROM flush_t;
SELECT n.snapshot_id, n.total_record_count, n.delta_record_count FROM paimon.snapshot n JOIN paimon.storage s USING (storage_id)
    WHERE s.relid = 'flush_t'::regclass ORDER BY 1;
-- a large commit between small ones is a snapshot of its own
ALTER TABLE flush_t SET ("write-buffer-size" = '1MB');
INSERT INTO flush_t VALUES (2000, 'before');
INSERT INTO flush_t SELECT i, repeat('large', 20) FROM generate_series(3000, 12999) i;
INSERT INTO flush_t VALUES (2001, 'after'), (3000, 'newer');
SELECT paimon.flush('flush_t');
SELECT count(*), sum(a) FROM flush_t;
SELECT b FROM flush_t WHERE a = 3000;
SELECT max(snapshot_id) FROM paimon.snapshot n JOIN paimon.storage s USING (storage_id) WHERE s.relid = 'flush_t'::regclass;
-- in the session: created, truncated or locked here; temporary tables
BEGIN;
TRUNCATE flush_t;
SELECT paimon.flush('flush_t');
ROLLBACK;
SELECT count(*) FROM flush_t;
CREATE TEMP TABLE flush_temp (a int PRIMARY KEY) USING paimon;
INSERT INTO flush_temp VALUES (1), (2);
INSERT INTO flush_temp VALUES (3);
SELECT paimon.flush('flush_temp');
SELECT sum(a) FROM flush_temp;
-- what is refused
SELECT paimon.flush('pg_class');
CREATE ROLE flush_other;
SET ROLE flush_other;
SELECT paimon.flush('flush_t');
RESET ROLE;
BEGIN READ ONLY;
SELECT paimon.flush('flush_t');
ROLLBACK;
DROP ROLE flush_other;
DROP TABLE flush_t, flush_temp;
