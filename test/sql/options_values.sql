-- Options: spellings of names and values, and what is said about wrong ones.
CREATE SCHEMA options_values;
SET search_path = options_values;

-- Dashed names in quotes, underscores without, namespaces folded; values as Paimon spells them.
CREATE TABLE spelled (a int, b text, c int, PRIMARY KEY (a, b)) USING paimon
    WITH (bucket = 4, "bucket-key" = 'a', WRITE_BUFFER_SIZE = '1 MB', "write-buffer-spill-size" = '256kb',
          compaction.target_file_size = '1 GibiBytes', target_file_row_num = 1000,
          file_compression = 'ZSTD', file.compression_zstd_level = 3,
          snapshot.interval = '1 MIN', merge_engine = 'Deduplicate', bucket_function_type = 'DEFAULT');
SELECT * FROM paimon.options('spelled');
SELECT reloptions FROM pg_class WHERE oid = 'spelled'::regclass;

-- A name that is near, one that is not.
CREATE TABLE bad (a int) USING paimon WITH (bukket = 4);
CREATE TABLE bad (a int) USING paimon WITH ("write-bufer-size" = '1 mb');
CREATE TABLE bad (a int) USING paimon WITH (mergeengine = 'deduplicate');
CREATE TABLE bad (a int) USING paimon WITH ("something else altogether" = 1);
CREATE TABLE bad (a int) USING paimon WITH ("fields.a.no-such" = 1);
CREATE TABLE bad (a int) USING paimon WITH ("a=b" = 1);
CREATE TABLE bad (a int) USING paimon WITH (bucket = 1, "bucket" = 2);

-- Known, but not built.
CREATE TABLE bad (a int) USING paimon WITH ("changelog-producer" = 'input');
CREATE TABLE bad (a int) USING paimon WITH (bucket_append_ordered = false);
CREATE TABLE bad (a int) USING paimon WITH ("tag.num-retained-max" = 5);
CREATE TABLE bad (a int) USING paimon WITH ("fields.a.aggregate-function" = 'sum');
CREATE TABLE bad (a int, b int) USING paimon WITH ("fields.a,b.sequence-group" = 'c');
CREATE TABLE bad (a int) USING paimon WITH ("file-index.bloom-filter.columns" = 'a');
CREATE TABLE bad (a int) USING paimon WITH (bucket = -1);
CREATE TABLE bad (a int) USING paimon WITH ("bucket-function.type" = 'mod');
CREATE TABLE bad (a int) USING paimon WITH ("file.compression" = 'lz4');

-- Known, but without meaning here.
CREATE TABLE bad (a int) USING paimon WITH ("file.format" = 'parquet');
CREATE TABLE bad (a int) USING paimon WITH ("scan.snapshot-id" = 1);
CREATE TABLE bad (a int) USING paimon WITH ("primary-key" = 'a');
CREATE TABLE bad (a int) USING paimon WITH (partition = 'a');
CREATE TABLE bad (a int) USING paimon WITH ("variant.inferShreddingSchema" = true);
CREATE TABLE bad (a int) USING paimon WITH ("commit.callback.x.param" = 'y');

-- Values.
CREATE TABLE bad (a int) USING paimon WITH (bucket = 0);
CREATE TABLE bad (a int) USING paimon WITH (bucket = 32768);
CREATE TABLE bad (a int) USING paimon WITH (bucket = 'four');
CREATE TABLE bad (a int) USING paimon WITH (bucket);
CREATE TABLE bad (a int) USING paimon WITH (bucket = 1.5);
CREATE TABLE bad (a int) USING paimon WITH (bucket = 99999999999999999999);
CREATE TABLE bad (a int) USING paimon WITH ("merge-engine" = 'dedup');
CREATE TABLE bad (a int) USING paimon WITH ("write-buffer-size" = '1 kb');
CREATE TABLE bad (a int) USING paimon WITH ("write-buffer-size" = '1 zb');
CREATE TABLE bad (a int) USING paimon WITH ("write-buffer-size" = '-1 mb');
CREATE TABLE bad (a int) USING paimon WITH ("write-buffer-size" = '8388608 tb');
CREATE TABLE bad (a int) USING paimon WITH ("target-file-row-num" = 0);
CREATE TABLE bad (a int) USING paimon WITH ("file.compression.zstd-level" = 23);
CREATE TABLE bad (a int) USING paimon WITH ("snapshot.interval" = '5 parsecs');
CREATE TABLE bad (a int) USING paimon WITH ("snapshot.interval" = '');
CREATE TABLE bad (a int) USING paimon WITH (num_levels = 1);
CREATE TABLE bad (a int) USING paimon WITH ("num-sorted-run.compaction-trigger" = 0);
CREATE TABLE bad (a int) USING paimon WITH ("compaction.small-file-ratio" = '1.5');
CREATE TABLE bad (a int) USING paimon WITH ("compaction.small-file-ratio" = 'half');
CREATE TABLE bad (a int) USING paimon WITH ("compaction.offpeak.start.hour" = 24);
CREATE TABLE bad (a int) USING paimon WITH (write_only = 'perhaps');
CREATE TABLE bad (a int) USING paimon WITH ("bucket-key" = 'a,,a');
CREATE TABLE bad (a int) USING paimon WITH ("bucket-key" = 'a, a');
CREATE TABLE bad (a int) USING paimon WITH ("bucket-key" = 'b');
CREATE TABLE bad (a int PRIMARY KEY, b int) USING paimon WITH ("bucket-key" = 'a,b');
CREATE TABLE bad (a int) USING paimon WITH ("table-am" = 'paimon');

-- Other tables are none of our business.
CREATE TABLE heap (a int) USING heap WITH (bucket = 4);
CREATE TABLE heap (a int) USING heap;
SELECT * FROM paimon.options('heap');
SELECT * FROM paimon.options(0);

-- The list of all options: states, no name twice, all that is built is fully described.
SELECT state, count(*) > 10 AS many FROM paimon.known_options() GROUP BY state ORDER BY state COLLATE "C";
SELECT name FROM paimon.known_options() GROUP BY name HAVING count(*) > 1;
SELECT name FROM paimon.known_options() WHERE description !~ '^[A-Z].*\.$' AND description !~ '^[a-z-]+(\.[a-z-]+)* .*\.$';
SELECT name, type, "default", allowed, scope, takes_effect
FROM paimon.known_options() WHERE state = 'implemented' ORDER BY name COLLATE "C";

SET client_min_messages = warning;
DROP SCHEMA options_values CASCADE;
