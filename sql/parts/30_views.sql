
-- What a table, or each partition of one, consists of (src/snapshot).  The functions check that the caller may read the table.

CREATE FUNCTION paimon.files("table" regclass,
    OUT partition text, OUT bucket integer, OUT file_path text, OUT file_format text, OUT schema_id bigint, OUT level integer,
    OUT record_count bigint, OUT file_size_in_bytes bigint, OUT min_key text, OUT max_key text, OUT null_value_counts jsonb,
    OUT min_value_stats jsonb, OUT max_value_stats jsonb, OUT min_sequence_number bigint, OUT max_sequence_number bigint,
    OUT creation_time timestamp with time zone, OUT "deleteRowCount" bigint, OUT file_source text, OUT first_row_id bigint,
    OUT write_cols text[], OUT relation regclass) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_files'
LANGUAGE C STRICT STABLE PARALLEL RESTRICTED ROWS 50;
COMMENT ON FUNCTION paimon.files(regclass)
    IS 'run files of a paimon table';

CREATE FUNCTION paimon.buckets("table" regclass,
    OUT partition text, OUT bucket integer, OUT record_count bigint, OUT file_size_in_bytes bigint, OUT file_count bigint,
    OUT last_update_time timestamp with time zone, OUT relation regclass) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_buckets'
LANGUAGE C STRICT STABLE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION paimon.buckets(regclass)
    IS 'buckets of a paimon table that have run files';

CREATE FUNCTION paimon.levels("table" regclass,
    OUT bucket integer, OUT level integer, OUT runs integer, OUT files integer, OUT record_count bigint, OUT delete_count bigint,
    OUT file_size_in_bytes bigint, OUT min_key text, OUT max_key text, OUT relation regclass) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_levels'
LANGUAGE C STRICT STABLE PARALLEL RESTRICTED ROWS 10;
COMMENT ON FUNCTION paimon.levels(regclass)
    IS 'sorted runs of a paimon table by bucket and level: what a read has to merge';

CREATE FUNCTION paimon.snapshots("table" regclass,
    OUT snapshot_id bigint, OUT commit_kind text, OUT commit_time timestamp with time zone, OUT total_record_count bigint,
    OUT delta_record_count bigint, OUT changelog_record_count bigint, OUT watermark bigint, OUT relation regclass) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_snapshots'
LANGUAGE C STRICT STABLE PARALLEL RESTRICTED ROWS 50;
COMMENT ON FUNCTION paimon.snapshots(regclass)
    IS 'snapshots of a paimon table';

REVOKE ALL ON FUNCTION paimon.files(regclass), paimon.buckets(regclass), paimon.levels(regclass), paimon.snapshots(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION paimon.files(regclass), paimon.buckets(regclass), paimon.levels(regclass), paimon.snapshots(regclass) TO PUBLIC;
