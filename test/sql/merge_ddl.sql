-- Definition of tables with merge engines: what may change and when, columns and functions that options name.

\set SHOW_CONTEXT never
CREATE TABLE md (id int PRIMARY KEY, a text, b int, g int, h int, f int, note text) USING paimon
	WITH ("merge-engine" = 'partial-update', "fields.g,h.sequence-group" = 'a, b', "fields.b.aggregate-function" = 'sum', "ignore-delete" = true);
\d md
SELECT * FROM paimon.options('md');
SELECT * FROM paimon.aggregation_fields('md');

-- what shapes stored rows is fixed once there are some; the rest is not
INSERT INTO md VALUES (1, 'x', 1, 1, 1, 1, 'n');
ALTER TABLE md SET ("merge-engine" = 'aggregation');
ALTER TABLE md RESET ("merge-engine");
ALTER TABLE md SET ("sequence.field" = 'f');
ALTER TABLE md SET ("rowkind.field" = 'note');
ALTER TABLE md SET ("partial-update.remove-record-on-sequence-group" = 'g'), RESET ("ignore-delete");
ALTER TABLE md SET ("fields.b.aggregate-function" = 'max');
ALTER TABLE md RESET ("fields.b.aggregate-function");
ALTER TABLE md SET ("fields.b.ignore-retract" = true);
ALTER TABLE md SET ("fields.g,h.sequence-group" = 'a');
ALTER TABLE md SET ("fields.f.sequence-group" = 'note');
ALTER TABLE md SET ("fields.default-aggregate-function" = 'last_non_null_value');
ALTER TABLE md SET ("fields.g,h.sequence-group" = 'a,b', "merge-engine" = 'Partial-Update', "fields.b.ignore-retract" = false);
ALTER TABLE md SET ("ignore-delete" = false, "ignore-update-before" = true);
ALTER TABLE md RESET ("ignore-delete", "ignore-update-before", "fields.b.ignore-retract");
-- of columns that come or go with the statement
ALTER TABLE md ADD COLUMN c int, ADD COLUMN gc int, SET ("fields.gc.sequence-group" = 'c', "fields.c.aggregate-function" = 'max');
ALTER TABLE md ADD COLUMN d int, SET ("fields.g,h.sequence-group" = 'a,b,d');
ALTER TABLE md ADD COLUMN e int, SET ("fields.e.sequence-group" = 'note');
ALTER TABLE md ADD COLUMN IF NOT EXISTS f int, SET ("fields.f.sequence-group" = 'note');
ALTER TABLE md DROP COLUMN d;
ALTER TABLE md DROP COLUMN d, SET ("fields.g,h.sequence-group" = 'a,b');
ALTER TABLE md DROP COLUMN gc, RESET ("fields.gc.sequence-group");
ALTER TABLE md DROP COLUMN gc, DROP COLUMN c, RESET ("fields.gc.sequence-group", "fields.c.aggregate-function");
ALTER TABLE md DROP COLUMN b, SET ("fields.g,h.sequence-group" = 'a');
SELECT * FROM paimon.options('md');
-- an empty table may change
TRUNCATE md;
ALTER TABLE md SET ("fields.b.aggregate-function" = 'max', "sequence.field" = 'f');
SELECT * FROM paimon.options('md');

-- columns that options name
ALTER TABLE md DROP COLUMN a;
ALTER TABLE md DROP COLUMN b;
ALTER TABLE md DROP COLUMN g CASCADE;
ALTER TABLE md DROP COLUMN f;
ALTER TABLE md RENAME COLUMN g TO "G 1";
ALTER TABLE md RENAME COLUMN b TO total;
ALTER TABLE md RENAME COLUMN f TO seq;
ALTER TABLE md RENAME COLUMN note TO remark;
SELECT * FROM paimon.options('md');
ALTER TABLE md ALTER COLUMN total TYPE bigint;
ALTER TABLE md ALTER COLUMN "G 1" TYPE text;
ALTER TABLE md ALTER COLUMN seq TYPE xml USING NULL;
SELECT * FROM paimon.aggregation_fields('md');
DROP TABLE md;

-- a rename to a name that options would take apart
CREATE TABLE md_names (id int PRIMARY KEY, v int, g int, kind text) USING paimon
	WITH ("merge-engine" = 'partial-update', "fields.g.sequence-group" = 'v', "rowkind.field" = 'kind', "partial-update.remove-record-on-sequence-group" = 'g');
ALTER TABLE md_names RENAME COLUMN kind TO op;
ALTER TABLE md_names RENAME COLUMN g TO "g.h";
ALTER TABLE md_names RENAME COLUMN v TO "v,w";
ALTER TABLE md_names DROP COLUMN op;
SELECT * FROM paimon.options('md_names');
DROP TABLE md_names;

-- types under functions
CREATE TABLE md_types (id int PRIMARY KEY, n int, t text) USING paimon
	WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum', "fields.t.aggregate-function" = 'listagg');
INSERT INTO md_types VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 5, 'c');
ALTER TABLE md_types ALTER COLUMN n TYPE text;
ALTER TABLE md_types ALTER COLUMN t TYPE varchar(10);
ALTER TABLE md_types ALTER COLUMN n TYPE numeric(10,2);
ALTER TABLE md_types ADD COLUMN k int, DROP CONSTRAINT md_types_pkey, ADD PRIMARY KEY (id, k);
TRUNCATE md_types;
ALTER TABLE md_types DROP CONSTRAINT md_types_pkey, ADD PRIMARY KEY (id, n);
\d md_types
DROP TABLE md_types;

-- a new column with a default
CREATE TABLE md_add (id int PRIMARY KEY, v int) USING paimon WITH ("merge-engine" = 'aggregation');
ALTER TABLE md_add ADD COLUMN empty int DEFAULT 1, SET ("fields.empty.aggregate-function" = 'sum');
INSERT INTO md_add VALUES (1, 1, 1), (1, 2, 1);
ALTER TABLE md_add ADD COLUMN s int DEFAULT 1, SET ("fields.s.aggregate-function" = 'sum');
ALTER TABLE md_add ADD COLUMN s text DEFAULT 'x', SET ("fields.s.aggregate-function" = 'listagg');
ALTER TABLE md_add ADD COLUMN s int, SET ("fields.s.aggregate-function" = 'sum');
ALTER TABLE md_add ADD COLUMN m int DEFAULT 1, SET ("fields.m.aggregate-function" = 'max');
ALTER TABLE md_add ADD COLUMN l int DEFAULT 2;
ALTER TABLE md_add ADD COLUMN later int DEFAULT 2;
DROP TABLE md_add;
CREATE TABLE md_add (id int PRIMARY KEY, v int, op text) USING paimon WITH ("merge-engine" = 'aggregation', "rowkind.field" = 'op');
INSERT INTO md_add VALUES (1, 1, '+I');
ALTER TABLE md_add ADD COLUMN l int DEFAULT 2;
ALTER TABLE md_add ADD COLUMN l int DEFAULT 2, SET ("fields.l.ignore-retract" = true);
DROP TABLE md_add;
CREATE TABLE md_add (id int PRIMARY KEY, v int, g int) USING paimon WITH ("merge-engine" = 'partial-update', "fields.g.sequence-group" = 'v');
INSERT INTO md_add VALUES (1, 1, 1);
ALTER TABLE md_add ADD COLUMN p int DEFAULT 1, SET ("fields.g.sequence-group" = 'v,p');
ALTER TABLE md_add ADD COLUMN free int DEFAULT 1;
DROP TABLE md_add;

-- users' functions: full names, dependencies, renames
CREATE SCHEMA md_s;
CREATE FUNCTION md_s.longest(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT CASE WHEN length($2) > length($1) THEN $2 ELSE $1 END $$;
CREATE FUNCTION md_s.other(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1 $$;
SET search_path = md_s, public;
CREATE TABLE public.md_user (id int PRIMARY KEY, a text, b text, n int) USING paimon
	WITH ("merge-engine" = 'aggregation', "fields.a.aggregate-function" = 'longest', "fields.b.aggregate-function" = 'LONGEST', "fields.n.aggregate-function" = 'int4larger');
RESET search_path;
SELECT * FROM paimon.aggregation_fields('md_user');
INSERT INTO md_user VALUES (1, 'x', 'y', 1);
ALTER TABLE md_user SET ("fields.a.aggregate-function" = 'md_s.longest');
ALTER TABLE md_user SET ("fields.a.aggregate-function" = 'md_s.other');
DROP FUNCTION md_s.longest(text, text);
DROP FUNCTION md_s.longest(text, text) CASCADE;
DROP SCHEMA md_s CASCADE;
ALTER FUNCTION md_s.longest(text, text) VOLATILE;
CREATE OR REPLACE FUNCTION md_s.longest(text, text) RETURNS text LANGUAGE sql STABLE STRICT AS $$ SELECT $1 $$;
CREATE OR REPLACE FUNCTION md_s.longest(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT CASE WHEN length($2) > length($1) THEN $2 ELSE $1 END $$;
ALTER FUNCTION md_s.longest(text, text) RENAME TO "long est";
SELECT * FROM paimon.options('md_user');
ALTER SCHEMA md_s RENAME TO md_s2;
SELECT * FROM paimon.options('md_user');
ALTER FUNCTION md_s2."long est"(text, text) SET SCHEMA public;
SELECT * FROM paimon.options('md_user');
TRUNCATE md_user;
ALTER TABLE md_user SET ("fields.a.aggregate-function" = 'md_s2.other', "fields.b.aggregate-function" = 'md_s2.other');
DROP FUNCTION "long est"(text, text);
DROP FUNCTION md_s2.other(text, text);
ALTER TABLE md_user RESET ("fields.a.aggregate-function", "fields.b.aggregate-function", "fields.n.aggregate-function");
DROP FUNCTION md_s2.other(text, text);
DROP TABLE md_user;
-- with the table's owner
CREATE ROLE md_owner;
CREATE FUNCTION md_s2.larger(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT greatest($1, $2) $$;
REVOKE ALL ON FUNCTION md_s2.larger(int, int) FROM PUBLIC;
CREATE TABLE md_owned (id int PRIMARY KEY, n int) USING paimon WITH ("merge-engine" = 'aggregation', "fields.default-aggregate-function" = 'md_s2.larger');
ALTER TABLE md_owned OWNER TO md_owner;
GRANT EXECUTE ON FUNCTION md_s2.larger(int, int) TO md_owner;
ALTER TABLE md_owned OWNER TO md_owner;
ALTER TABLE md_owned ADD COLUMN t text;
ALTER TABLE md_owned ADD COLUMN n2 int;
DROP FUNCTION md_s2.larger(int, int);
DROP TABLE md_owned;
DROP FUNCTION md_s2.larger(int, int);
DROP SCHEMA md_s2;
DROP ROLE md_owner;

-- LIKE, inheritance, partitions, tables out of queries
CREATE TABLE md_source (id int PRIMARY KEY, n int, t text) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum');
CREATE TABLE md_like (LIKE md_source INCLUDING ALL) USING paimon;
SELECT * FROM paimon.options('md_like');
CREATE TABLE md_like2 (LIKE md_source INCLUDING ALL) USING paimon WITH ("merge-engine" = 'first-row');
CREATE TABLE md_child (PRIMARY KEY (id)) INHERITS (md_source) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'max');
ALTER TABLE md_source RENAME COLUMN n TO total;
SELECT * FROM paimon.options('md_child');
ALTER TABLE md_source DROP COLUMN total;
ALTER TABLE md_source ALTER COLUMN total TYPE text;
INSERT INTO md_child VALUES (1, 1);
ALTER TABLE md_source ADD COLUMN late text DEFAULT 'x', SET ("fields.late.aggregate-function" = 'last_value');
DROP TABLE md_child, md_source, md_like;
CREATE TABLE md_parts (id int, p int, n int, PRIMARY KEY (id, p)) PARTITION BY LIST (p) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum');
CREATE TABLE md_parts1 PARTITION OF md_parts FOR VALUES IN (1);
CREATE TABLE md_parts2 PARTITION OF md_parts FOR VALUES IN (2) WITH ("fields.n.aggregate-function" = 'listagg');
CREATE TABLE md_parts2 PARTITION OF md_parts FOR VALUES IN (2) WITH ("fields.n.aggregate-function" = 'max');
ALTER TABLE md_parts RENAME COLUMN n TO total;
SELECT 1 AS part, * FROM paimon.options('md_parts1') UNION ALL SELECT 2, * FROM paimon.options('md_parts2') UNION ALL SELECT 0, * FROM paimon.options('md_parts') ORDER BY 1, 2;
INSERT INTO md_parts VALUES (1, 1, 1), (1, 2, 1);
ALTER TABLE md_parts ADD COLUMN c int DEFAULT 5;
ALTER TABLE md_parts ALTER COLUMN total TYPE text;
CREATE TABLE md_parts3 (id int NOT NULL, p int NOT NULL, total int, c int, PRIMARY KEY (id, p)) USING paimon;
ALTER TABLE md_parts ATTACH PARTITION md_parts3 FOR VALUES IN (3);
SELECT * FROM paimon.options('md_parts3');
SELECT field_name, function FROM paimon.aggregation_fields('md_parts');
DROP TABLE md_parts;
CREATE TABLE md_as USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum') AS SELECT 1 AS id, 2 AS n;
ALTER TABLE md_as ADD PRIMARY KEY (id);
CREATE TABLE md_as2 USING paimon WITH ("merge-engine" = 'aggregation', "fields.nope.aggregate-function" = 'sum') AS SELECT 1 AS id, 2 AS n;
CREATE MATERIALIZED VIEW md_view USING paimon WITH ("merge-engine" = 'first-row', "sequence.field" = 'n') AS SELECT 1 AS id, 2 AS n;
SELECT to_regclass('md_as2'), to_regclass('md_view');
DROP TABLE md_as;

-- to paimon and back
CREATE TABLE md_heap (id int PRIMARY KEY, n int, t text);
INSERT INTO md_heap VALUES (1, 1, 'a');
ALTER TABLE md_heap SET ACCESS METHOD paimon, SET ("merge-engine" = 'aggregation', "fields.t.aggregate-function" = 'sum');
SELECT amname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE relname = 'md_heap';
CREATE FUNCTION md_concat(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT $1 || $2 $$;
ALTER TABLE md_heap SET ACCESS METHOD paimon, SET ("merge-engine" = 'aggregation', "fields.t.aggregate-function" = 'md_concat');
SELECT * FROM paimon.options('md_heap');
DROP FUNCTION md_concat(text, text);
ALTER TABLE md_heap SET ACCESS METHOD heap;
SELECT reloptions FROM pg_class WHERE relname = 'md_heap';
DROP FUNCTION md_concat(text, text);
DROP TABLE md_heap;

-- who may see it
SELECT * FROM paimon.aggregation_fields('pg_class');
SELECT * FROM paimon.aggregation_fields(0);
CREATE TABLE md_comment (id int PRIMARY KEY, ts int, v numeric(5,1), arr text[] NOT NULL, s text) USING paimon
	WITH ("merge-engine" = 'aggregation', "sequence.field" = 'ts', "fields.default-aggregate-function" = 'first_value', "fields.s.aggregate-function" = 'listagg',
		"fields.s.list-agg-delimiter" = ' = ', "fields.s.distinct" = true, "fields.s.ignore-retract" = true);
COMMENT ON COLUMN md_comment.s IS 'all that was said';
CREATE ROLE md_reader;
SET ROLE md_reader;
SELECT * FROM paimon.aggregation_fields('md_comment');
RESET ROLE;
DROP ROLE md_reader;
DROP TABLE md_comment;

-- fields of nested rows that options name
CREATE TYPE md_item AS (k int, t int, v text);
CREATE TABLE md_nested (id int PRIMARY KEY, r md_item[]) USING paimon
	WITH ("merge-engine" = 'aggregation', "fields.r.aggregate-function" = 'nested_update', "fields.r.nested-key" = 'k', "fields.r.nested-sequence-field" = 't');
INSERT INTO md_nested VALUES (1, '{"(1,1,a)"}'), (1, '{"(2,1,b)","(1,0,late)"}');
ALTER TYPE md_item RENAME ATTRIBUTE k TO key;
ALTER TYPE md_item DROP ATTRIBUTE t;
ALTER TYPE md_item RENAME ATTRIBUTE v TO value;
ALTER TYPE md_item ADD ATTRIBUTE w text;
INSERT INTO md_nested VALUES (1, '{"(2,1,c,w)"}');
SELECT * FROM md_nested;
ALTER TYPE md_item DROP ATTRIBUTE w;
SELECT * FROM md_nested;
DROP TYPE md_item CASCADE;
DROP TABLE md_nested;
DROP TYPE md_item;

-- types of columns that a user's function merges
CREATE FUNCTION md_less(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT least($1, $2) $$;
CREATE FUNCTION md_less(numeric, numeric) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT least($1, $2) $$;
CREATE TABLE md_retype (id int, p int, n int, PRIMARY KEY (id, p)) PARTITION BY LIST (p) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'md_less');
CREATE TABLE md_retype1 PARTITION OF md_retype DEFAULT;
INSERT INTO md_retype VALUES (1, 1, 5), (1, 1, 7), (1, 1, 4);
ALTER TABLE md_retype ALTER COLUMN n TYPE text;
ALTER TABLE md_retype ALTER COLUMN n TYPE numeric;
INSERT INTO md_retype VALUES (1, 1, 3.5);
SELECT * FROM md_retype;
DROP FUNCTION md_less(int, int);
DROP FUNCTION md_less(numeric, numeric);
DROP TABLE md_retype;
DROP FUNCTION md_less(numeric, numeric);
