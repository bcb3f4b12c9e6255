-- Access methods

CREATE FUNCTION paimon.paimon_handler(internal) RETURNS table_am_handler
AS 'MODULE_PATHNAME', 'paimon_handler'
LANGUAGE C STRICT;
COMMENT ON FUNCTION paimon.paimon_handler(internal) IS 'handler of the table access method paimon';
REVOKE ALL ON FUNCTION paimon.paimon_handler(internal) FROM PUBLIC;

CREATE ACCESS METHOD paimon TYPE TABLE HANDLER paimon.paimon_handler;
COMMENT ON ACCESS METHOD paimon IS 'tables stored as Apache Paimon stores them: bucketed LSM trees';

CREATE FUNCTION paimon.paimon_key_handler(internal) RETURNS index_am_handler
AS 'MODULE_PATHNAME', 'paimon_key_handler'
LANGUAGE C STRICT;
COMMENT ON FUNCTION paimon.paimon_key_handler(internal) IS 'handler of the index access method paimon_key';
REVOKE ALL ON FUNCTION paimon.paimon_key_handler(internal) FROM PUBLIC;

CREATE ACCESS METHOD paimon_key TYPE INDEX HANDLER paimon.paimon_key_handler;
COMMENT ON ACCESS METHOD paimon_key IS 'primary key of a table using access method paimon: stores nothing, reads the table';

-- Only named when core clones an index definition; the index itself keeps the btree operator classes of its columns.
CREATE OPERATOR CLASS paimon.any_ops DEFAULT FOR TYPE anyelement USING paimon_key AS STORAGE anyelement;
COMMENT ON OPERATOR CLASS paimon.any_ops USING paimon_key IS 'any type that may be a key column';
