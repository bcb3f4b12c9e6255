
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

-- Both show what any user may see in pg_class.
GRANT EXECUTE ON FUNCTION paimon.options(regclass), paimon.known_options() TO PUBLIC;
