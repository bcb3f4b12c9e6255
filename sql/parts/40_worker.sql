-- Flushing and the background workers (src/worker).

CREATE FUNCTION paimon.flush("table" regclass) RETURNS bigint
AS 'MODULE_PATHNAME', 'paimon_flush'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION paimon.flush(regclass)
    IS 'writes what was committed to the table into run files now, and returns the id of its newest snapshot';

CREATE FUNCTION paimon.compact("table" regclass, "full" boolean DEFAULT true, bucket integer DEFAULT NULL) RETURNS bigint
AS 'MODULE_PATHNAME', 'paimon_compact'
LANGUAGE C VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION paimon.compact(regclass, boolean, integer)
    IS 'flushes the table and merges its run files now: into one run a bucket, or (full => false) as far as its options want it; returns the id of its newest snapshot';

-- Ownership of the table is checked.
GRANT EXECUTE ON FUNCTION paimon.flush(regclass), paimon.compact(regclass, boolean, integer) TO PUBLIC;

CREATE FUNCTION paimon.workers(OUT pid integer, OUT kind text, OUT dbid oid, OUT state text, OUT relid oid, OUT started timestamp with time zone,
    OUT flushes bigint, OUT rows_flushed bigint, OUT errors bigint, OUT last_error text, OUT last_error_time timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_workers_list'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE ROWS 5;
COMMENT ON FUNCTION paimon.workers() IS 'launcher and workers that run now, of all databases';

CREATE FUNCTION paimon.worker_failures(OUT dbid oid, OUT relid oid, OUT failures bigint, OUT sqlstate text, OUT message text,
    OUT last_failure timestamp with time zone, OUT next_try timestamp with time zone)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_worker_failures_list'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE ROWS 5;
COMMENT ON FUNCTION paimon.worker_failures() IS 'tables that a worker could not work on, until it can, of all databases';

CREATE VIEW paimon.worker_status AS
    SELECT w.pid, w.kind, d.datname AS database, w.state,
        CASE WHEN d.datname = pg_catalog.current_database() THEN w.relid::pg_catalog.regclass END AS "table",
        w.started, w.flushes, w.rows_flushed, w.errors, w.last_error, w.last_error_time
    FROM paimon.workers() w LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) w.dbid;
COMMENT ON VIEW paimon.worker_status IS 'launcher and workers that run now, and what they do';

CREATE VIEW paimon.worker_errors AS
    SELECT d.datname AS database, CASE WHEN d.datname = pg_catalog.current_database() THEN f.relid::pg_catalog.regclass END AS "table",
        f.failures, f.sqlstate, f.message, f.last_failure, f.next_try
    FROM paimon.worker_failures() f JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) f.dbid;
COMMENT ON VIEW paimon.worker_errors IS 'tables that a worker could not work on, and why; a table leaves the view when it could';

-- Messages may hold values of users' tables.
REVOKE ALL ON FUNCTION paimon.workers(), paimon.worker_failures() FROM PUBLIC;
REVOKE ALL ON paimon.worker_status, paimon.worker_errors FROM PUBLIC;
GRANT EXECUTE ON FUNCTION paimon.workers(), paimon.worker_failures() TO pg_monitor;
GRANT SELECT ON paimon.worker_status, paimon.worker_errors TO pg_monitor;

CREATE FUNCTION paimon.worker_created() RETURNS void
AS 'MODULE_PATHNAME', 'paimon_worker_created'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION paimon.worker_created() IS 'tells the launcher, at commit, that this database has the extension';
REVOKE ALL ON FUNCTION paimon.worker_created() FROM PUBLIC;
SELECT paimon.worker_created();
