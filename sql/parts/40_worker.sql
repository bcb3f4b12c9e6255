-- Flushing and the background workers (src/worker).

CREATE FUNCTION paimon.flush("table" regclass) RETURNS bigint
AS 'MODULE_PATHNAME', 'paimon_flush'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE;
COMMENT ON FUNCTION paimon.flush(regclass)
    IS 'writes what was committed to the table into run files now, and returns the id of its newest snapshot';

-- Ownership of the table is checked.
GRANT EXECUTE ON FUNCTION paimon.flush(regclass) TO PUBLIC;
