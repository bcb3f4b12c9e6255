/* Built from sql/parts; paimon_am 0.1 */

\echo Use "CREATE EXTENSION paimon_am" to load this file. \quit

-- Everything of the extension lives in one schema that it creates itself: a schema of that
-- name that somebody else owns makes CREATE EXTENSION fail instead of lending its objects to him.
CREATE SCHEMA paimon;
COMMENT ON SCHEMA paimon IS 'objects of the extension paimon_am';
GRANT USAGE ON SCHEMA paimon TO PUBLIC;

CREATE FUNCTION paimon.check_preload() RETURNS void
AS 'MODULE_PATHNAME', 'paimon_check_preload'
LANGUAGE C STRICT VOLATILE PARALLEL SAFE;
COMMENT ON FUNCTION paimon.check_preload()
    IS 'raises an error unless paimon_am is loaded via shared_preload_libraries';
REVOKE ALL ON FUNCTION paimon.check_preload() FROM PUBLIC;

-- Before anything else: an extension that is not preloaded cannot work.
SELECT paimon.check_preload();
