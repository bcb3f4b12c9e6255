-- Compactions that run, and those that have ended (src/compact/compact_history.c).

CREATE FUNCTION paimon.compactions_running(OUT pid integer, OUT dbid oid, OUT relid oid, OUT bucket integer, OUT phase text,
    OUT started timestamp with time zone, OUT requested boolean, OUT reason text, OUT runs integer, OUT files integer, OUT output_level integer,
    OUT bytes_total bigint, OUT bytes_read bigint, OUT bytes_written bigint, OUT rows_total bigint, OUT rows_written bigint,
    OUT throttled boolean, OUT delay_time double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_compactions_running'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE ROWS 5;
COMMENT ON FUNCTION paimon.compactions_running() IS 'compactions that run now: of all databases for members of pg_read_all_stats, of own tables for others';

CREATE FUNCTION paimon.compactions_ended(OUT id bigint, OUT dbid oid, OUT relid oid, OUT bucket integer, OUT started timestamp with time zone,
    OUT duration double precision, OUT outcome text, OUT reason text, OUT requested boolean, OUT pid integer,
    OUT input_runs integer, OUT input_levels integer[], OUT input_files integer, OUT output_level integer, OUT output_files integer, OUT lifted_files integer,
    OUT rows_in bigint, OUT rows_out bigint, OUT rows_merged_away bigint, OUT bytes_in bigint, OUT bytes_out bigint, OUT wal_bytes bigint,
    OUT delay_time double precision, OUT sqlstate text, OUT error text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_compactions_ended'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE ROWS 1000;
COMMENT ON FUNCTION paimon.compactions_ended() IS 'compactions that have ended since the server started, as many as are remembered; visible as those that run';

CREATE VIEW paimon.compaction_progress AS
    SELECT c.pid, c.dbid AS datid, d.datname, c.relid, CASE WHEN d.datname = pg_catalog.current_database() THEN c.relid::pg_catalog.regclass END AS "table",
        c.bucket, c.phase, c.started, c.requested, c.reason, c.runs, c.files, c.output_level, c.bytes_total, c.bytes_read, c.bytes_written,
        c.rows_total, c.rows_written, c.throttled, c.delay_time
    FROM paimon.compactions_running() c LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) c.dbid;
COMMENT ON VIEW paimon.compaction_progress IS 'compactions that run now, one row for each';

CREATE VIEW paimon.compaction_history AS
    SELECT c.id, d.datname AS database, c.relid, CASE WHEN d.datname = pg_catalog.current_database() THEN c.relid::pg_catalog.regclass END AS "table",
        c.bucket, c.started, c.duration, c.outcome, c.reason, c.requested, c.pid, c.input_runs, c.input_levels, c.input_files, c.output_level, c.output_files,
        c.lifted_files, c.rows_in, c.rows_out, c.rows_merged_away, c.bytes_in, c.bytes_out, c.wal_bytes, c.delay_time, c.sqlstate, c.error
    FROM paimon.compactions_ended() c LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) c.dbid;
COMMENT ON VIEW paimon.compaction_history IS 'compactions that have ended since the server started, newest last';

-- The functions leave out what a user has no business with.
GRANT EXECUTE ON FUNCTION paimon.compactions_running(), paimon.compactions_ended() TO PUBLIC;
GRANT SELECT ON paimon.compaction_progress, paimon.compaction_history TO PUBLIC;
