-- Statistics of tables: src/worker/worker_stats.c.

CREATE FUNCTION paimon.stats("table" regclass,
    OUT relation regclass, OUT write_amplification double precision, OUT rewrite_factor double precision,
    OUT read_amplification double precision, OUT space_amplification double precision,
    OUT runs integer, OUT stop_trigger bigint, OUT stalls bigint, OUT stall_time interval, OUT writers_waiting bigint,
    OUT memtable_bytes bigint, OUT unflushed_bytes bigint, OUT file_bytes bigint,
    OUT rows_written bigint, OUT bytes_written bigint, OUT flushes bigint, OUT flush_bytes bigint,
    OUT large_commits bigint, OUT large_commit_bytes bigint,
    OUT compactions bigint, OUT compaction_bytes_read bigint, OUT compaction_bytes_written bigint,
    OUT groups_hit bigint, OUT groups_read bigint,
    OUT stats_since timestamp with time zone) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_stats'
LANGUAGE C STRICT VOLATILE PARALLEL RESTRICTED ROWS 1;
COMMENT ON FUNCTION paimon.stats(regclass)
    IS 'what a paimon table has cost since the server''s start: amplification, stalls of writers, memory';

REVOKE ALL ON FUNCTION paimon.stats(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION paimon.stats(regclass) TO PUBLIC;
