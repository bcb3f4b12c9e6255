
-- Options (src/options).

CREATE FUNCTION paimon.options("table" regclass, OUT key text, OUT value text) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_options'
LANGUAGE C STRICT STABLE PARALLEL SAFE;
COMMENT ON FUNCTION paimon.options(regclass)
    IS 'options of a paimon table that were set explicitly';

CREATE FUNCTION paimon.known_options(OUT name text, OUT type text, OUT "default" text, OUT allowed text,
    OUT scope text, OUT takes_effect text, OUT state text, OUT description text) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_known_options'
LANGUAGE C STRICT IMMUTABLE PARALLEL SAFE ROWS 350;
COMMENT ON FUNCTION paimon.known_options()
    IS 'all options that are known, and whether they are implemented';

-- How the columns of a table are merged (src/merge).
CREATE FUNCTION paimon.aggregation_fields("table" regclass, OUT field_name text, OUT field_type text, OUT function text,
    OUT function_options text[], OUT comment text) RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_aggregation_fields'
LANGUAGE C STRICT STABLE PARALLEL SAFE ROWS 20;
COMMENT ON FUNCTION paimon.aggregation_fields(regclass)
    IS 'columns of a paimon table and the aggregate functions that merge them';

REVOKE ALL ON FUNCTION paimon.options(regclass), paimon.known_options(), paimon.aggregation_fields(regclass) FROM PUBLIC;

-- They show what any user may see in pg_class.
GRANT EXECUTE ON FUNCTION paimon.options(regclass), paimon.known_options(), paimon.aggregation_fields(regclass) TO PUBLIC;
