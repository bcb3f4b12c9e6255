-- Options over the life of a table: SET and RESET, what follows them and what holds on to them.
CREATE SCHEMA ddl_options;
SET search_path = ddl_options;
CREATE VIEW opts AS
    SELECT relname, reloptions FROM pg_class
    WHERE relnamespace = 'ddl_options'::regnamespace AND relkind IN ('r', 'm', 'p') AND relname <> 'opts' ORDER BY relname;

-- Core's options and ours, in one command and across several.
CREATE TABLE t (a int, b text, PRIMARY KEY (a)) USING paimon WITH (fillfactor = 70, bucket = 2);
ALTER TABLE t SET (autovacuum_enabled = false, "write-buffer-size" = '1 mb'), SET (fillfactor = 60);
TABLE opts;
ALTER TABLE t RESET (fillfactor, bucket), ADD COLUMN c int, SET (target_file_size = '2 mb');
TABLE opts;
ALTER TABLE t RESET (autovacuum_enabled);
ALTER TABLE t SET (bucket = 2), RESET (bucket), SET (bucket = 3);
TABLE opts;
ALTER TABLE t SET (bucket = 2, bucket = 3);
ALTER TABLE t SET (nonsense = 1);
ALTER TABLE t RESET (nonsense);
ALTER TABLE t RESET (bucket = 2);
ALTER TABLE t SET (fillfactor = 1);
TABLE opts;

-- All of it rolls back.
BEGIN;
ALTER TABLE t SET (bucket = 9, fillfactor = 90);
SAVEPOINT s;
ALTER TABLE t RESET (bucket, fillfactor);
ROLLBACK TO s;
TABLE opts;
ROLLBACK;
TABLE opts;

-- What shapes stored data is fixed while there is some; the rest is not.
INSERT INTO t VALUES (1, 'one', 1);
ALTER TABLE t SET (bucket = 4);
ALTER TABLE t RESET (bucket);
ALTER TABLE t SET ("bucket-key" = 'a');
ALTER TABLE t SET (bucket = 3, "merge-engine" = 'DEDUPLICATE', "target-file-size" = '3 mb');
TABLE opts;
SELECT * FROM t;
BEGIN;
TRUNCATE t;
ALTER TABLE t SET (bucket = 4);
INSERT INTO t VALUES (2, 'two', 2);
SELECT * FROM t;
ROLLBACK;
SELECT * FROM t;
TRUNCATE t;
ALTER TABLE t SET (bucket = 4, "bucket-key" = 'a');
INSERT INTO t VALUES (3, 'three', 3);
SELECT * FROM t;

-- Names of columns in options follow the columns.
ALTER TABLE t RENAME a TO "A b";
TABLE opts;
ALTER TABLE t RENAME b TO bb;
TABLE opts;
ALTER TABLE t RENAME c TO "_KEY_c";
TRUNCATE t;
ALTER TABLE t DROP COLUMN "A b";
ALTER TABLE t RESET ("bucket-key");
ALTER TABLE t DROP COLUMN "A b";
TABLE opts;

CREATE TYPE pair AS (x int, y int);
CREATE TABLE typed OF pair (PRIMARY KEY (x)) USING paimon WITH ("bucket-key" = 'x');
ALTER TYPE pair RENAME ATTRIBUTE x TO xx CASCADE;
SELECT * FROM paimon.options('typed');
ALTER TYPE pair DROP ATTRIBUTE xx CASCADE;
ALTER TYPE pair ADD ATTRIBUTE "_LEVEL" int CASCADE;
DROP TABLE typed;

-- Only the owner.
CREATE ROLE regress_paimon_ddl;
GRANT USAGE ON SCHEMA ddl_options TO regress_paimon_ddl;
SET ROLE regress_paimon_ddl;
ALTER TABLE t SET (bucket = 1);
ALTER TABLE t RESET (bucket);
RESET ROLE;
ALTER TABLE IF EXISTS missing SET (bucket = 1);
ALTER TABLE missing SET (bucket = 1);
REVOKE ALL ON SCHEMA ddl_options FROM regress_paimon_ddl;
DROP ROLE regress_paimon_ddl;
DROP TABLE t;

-- Other ways to make a table.
SET default_table_access_method = paimon;
CREATE TABLE by_default (a int PRIMARY KEY) WITH (bucket = 2);
CREATE TABLE as_default WITH (bucket = 2) AS SELECT 1 AS a;
RESET default_table_access_method;
CREATE TABLE as_select USING paimon WITH (bucket = 3, fillfactor = 50) AS SELECT g AS a, 'x' || g AS b FROM generate_series(1, 3) g;
CREATE TABLE IF NOT EXISTS as_select USING paimon WITH (bucket = 9) AS SELECT 1 AS a;
CREATE TABLE IF NOT EXISTS as_select (a int) USING paimon WITH (bucket = 9);
CREATE TABLE as_bad USING paimon WITH (bucket = 0) AS SELECT 1 AS a;
DO $$ BEGIN
    EXECUTE 'EXPLAIN ANALYZE CREATE TABLE as_explained USING paimon WITH (bucket = 4) AS SELECT 1 AS a WHERE false';
END $$;
CREATE MATERIALIZED VIEW mat USING paimon WITH (bucket = 5) AS SELECT count(*) AS n FROM as_select;
INSERT INTO as_select VALUES (4, 'x4');
REFRESH MATERIALIZED VIEW mat;
SELECT * FROM mat;
CREATE TABLE like_all (LIKE by_default INCLUDING ALL) USING paimon;
CREATE TABLE like_more (LIKE as_select INCLUDING ALL) USING paimon WITH (bucket = 8);
CREATE TABLE like_plain (LIKE by_default INCLUDING INDEXES) USING paimon;
CREATE TABLE like_heap (LIKE by_default INCLUDING ALL) USING heap;
CREATE TEMP TABLE temporary (a int PRIMARY KEY) USING paimon WITH (bucket = 2) ON COMMIT DROP;
CREATE UNLOGGED TABLE unlogged (a int PRIMARY KEY) USING paimon WITH (bucket = 2);
DO $$ BEGIN
    BEGIN
        CREATE TABLE in_block (a int) USING paimon WITH (bucket = 0);
    EXCEPTION WHEN invalid_parameter_value THEN RAISE NOTICE 'refused: %', SQLERRM;
    END;
    CREATE TABLE in_block (a int) USING paimon WITH (bucket = 6);
END $$;
CREATE SCHEMA ddl_options_2 CREATE TABLE inside (a int PRIMARY KEY) USING paimon WITH (bucket = 7);
SELECT * FROM paimon.options('ddl_options_2.inside');
TABLE opts;
SELECT * FROM as_select ORDER BY a;

SET client_min_messages = warning;
DROP SCHEMA ddl_options, ddl_options_2 CASCADE;
