
-- Whether a table is as it should be (src/verify).  The function checks that the caller may read the table, or owns it.

CREATE FUNCTION paimon.verify("table" regclass, OUT severity text, OUT object text, OUT problem text, OUT relation regclass)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'paimon_verify'
LANGUAGE C STRICT VOLATILE PARALLEL UNSAFE ROWS 1;
COMMENT ON FUNCTION paimon.verify(regclass)
    IS 'reads everything a paimon table, or each partition of one, consists of, and returns what is wrong: no rows if nothing is';

REVOKE ALL ON FUNCTION paimon.verify(regclass) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION paimon.verify(regclass) TO PUBLIC;
