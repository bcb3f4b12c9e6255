-- Event triggers hear of DDL on paimon tables as of that on heap tables: the same commands, objects and drops
CREATE SCHEMA ev;
CREATE TABLE ev.log (n int GENERATED ALWAYS AS IDENTITY, event text, tag text, what text);
CREATE FUNCTION ev.on_end() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ev.log (event, tag, what) SELECT tg_event, command_tag, object_type || ' ' || object_identity FROM pg_event_trigger_ddl_commands();
END $$;
CREATE FUNCTION ev.on_drop() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ev.log (event, tag, what) SELECT tg_event, tg_tag, object_type || ' ' || object_identity FROM pg_event_trigger_dropped_objects()
	WHERE object_type NOT IN ('type', 'default value', 'toast table', 'index') ;
END $$;
CREATE FUNCTION ev.on_rewrite() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO ev.log (event, tag, what) VALUES (tg_event, tg_tag, pg_event_trigger_table_rewrite_oid()::regclass || ' ' || pg_event_trigger_table_rewrite_reason());
END $$;
CREATE FUNCTION ev.run(am text) RETURNS void LANGUAGE plpgsql SET search_path = ev AS $$
BEGIN
	EXECUTE 'SET LOCAL default_table_access_method = ' || am;
	CREATE TABLE t (k int PRIMARY KEY, v int);
	INSERT INTO t VALUES (1, 1);
	ALTER TABLE t ADD COLUMN w text DEFAULT 'w';
	ALTER TABLE t ALTER COLUMN v TYPE bigint;
	ALTER TABLE t RENAME COLUMN w TO x;
	ALTER TABLE t DROP COLUMN x, ADD CHECK (v > 0);
	ALTER TABLE t SET (fillfactor = 70);
	ALTER TABLE t RESET (fillfactor);
	ALTER TABLE t ALTER COLUMN v SET STATISTICS 10;
	CREATE TABLE u AS SELECT * FROM t;
	ALTER TABLE u ADD PRIMARY KEY (k);
	CREATE TABLE l (LIKE t INCLUDING ALL);
	CREATE MATERIALIZED VIEW m AS SELECT * FROM t;
	REFRESH MATERIALIZED VIEW m;
	COMMENT ON TABLE t IS 'a table';
	CREATE TABLE p (k int PRIMARY KEY, v int) PARTITION BY RANGE (k);
	CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (10);
	ALTER TABLE p DETACH PARTITION p1;
	ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (1) TO (10);
	TRUNCATE t;
	ALTER TABLE t SET UNLOGGED;
	ALTER TABLE t SET SCHEMA public;
	ALTER TABLE public.t RENAME TO ev_t;
	DROP TABLE u, l, p;
	DROP MATERIALIZED VIEW m;
	DROP TABLE public.ev_t;
END $$;
CREATE EVENT TRIGGER ev_end ON ddl_command_end EXECUTE FUNCTION ev.on_end();
CREATE EVENT TRIGGER ev_drop ON sql_drop EXECUTE FUNCTION ev.on_drop();
CREATE EVENT TRIGGER ev_rewrite ON table_rewrite EXECUTE FUNCTION ev.on_rewrite();
SET client_min_messages = warning;
SELECT ev.run('heap');
CREATE TEMP TABLE heap AS SELECT row_number() OVER (ORDER BY n) AS n, event, tag, what FROM ev.log WHERE what !~ 'toast|pg_temp';
TRUNCATE ev.log;
SELECT ev.run('paimon');
CREATE TEMP TABLE paimon AS SELECT row_number() OVER (ORDER BY n) AS n, event, tag, what FROM ev.log WHERE what !~ 'toast|pg_temp';
SELECT count(*) > 40 AS enough FROM paimon;
SELECT 'heap only', event, tag, what FROM heap EXCEPT ALL SELECT 'heap only', event, tag, what FROM paimon;
SELECT 'paimon only', event, tag, what FROM paimon EXCEPT ALL SELECT 'paimon only', event, tag, what FROM heap;
SELECT h.n, h.tag, h.what, p.tag, p.what FROM heap h FULL JOIN paimon p USING (n) WHERE (h.tag, h.what) IS DISTINCT FROM (p.tag, p.what) ORDER BY n LIMIT 3;
-- what only paimon has
TRUNCATE ev.log;
CREATE TABLE ev.t (k int PRIMARY KEY, v int) USING paimon WITH (bucket = 2);
ALTER TABLE ev.t SET ("write-buffer-size" = '1 mb');
ALTER TABLE ev.t SET ("write-buffer-size" = '2 mb', fillfactor = 50);
ALTER TABLE ev.t RESET ("write-buffer-size"), SET ("snapshot.time-retained" = '2 h');
ALTER TABLE ev.t RESET (fillfactor), ADD COLUMN w int;
SELECT reloptions FROM pg_class WHERE oid = 'ev.t'::regclass;
ALTER TABLE ev.t SET ACCESS METHOD heap;
ALTER TABLE ev.t SET ACCESS METHOD paimon, SET (bucket = 3);
SELECT event, tag, what FROM ev.log ORDER BY n;
DROP EVENT TRIGGER ev_end;
DROP EVENT TRIGGER ev_drop;
DROP EVENT TRIGGER ev_rewrite;
-- an option of ours alone waits for no reader, and is for the owner only
CREATE ROLE ev_other;
GRANT USAGE ON SCHEMA ev TO ev_other;
SET ROLE ev_other;
ALTER TABLE ev.t SET ("write-buffer-size" = '3 mb');
RESET ROLE;
BEGIN;
ALTER TABLE ev.t SET ("write-buffer-size" = '3 mb');
SELECT mode FROM pg_locks WHERE relation = 'ev.t'::regclass AND mode <> 'AccessShareLock';
ROLLBACK;
DROP SCHEMA ev CASCADE;
DROP ROLE ev_other;
