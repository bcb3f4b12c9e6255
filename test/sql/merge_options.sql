-- Options of merging: every configuration that cannot be, by SQLSTATE and text; none leaves a table behind.

\set SHOW_CONTEXT never
CREATE TYPE mo_item AS (k int, t int, v text);
CREATE FUNCTION mo_longest(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT CASE WHEN length($2) > length($1) THEN $2 ELSE $1 END $$;
CREATE FUNCTION mo_stable(int, int) RETURNS int LANGUAGE sql STABLE AS $$ SELECT $1 $$;
CREATE FUNCTION mo_other(int, int) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT 'x' $$;
CREATE FUNCTION mo_set(int, int) RETURNS SETOF int LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;

-- try(options): a table with columns of all types and these options; what is said if it is refused
CREATE FUNCTION try(VARIADIC options text[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
	hint text;
	definition text;
BEGIN
	SELECT string_agg(format('%I = %L', split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)), ', ') INTO definition FROM unnest(options) o;
	EXECUTE 'CREATE TABLE mo_t (id int, id2 text, i int, j bigint, s smallint, n numeric(8,2), f real, b boolean, t text, t2 text, c varchar(9), p char(2), d date, ts timestamp, '
		'a int[], r mo_item[], m jsonb, u uuid, x xml, g int, g2 int, y bytea, PRIMARY KEY (id, id2)) USING paimon WITH (' || definition || ')';
	DROP TABLE mo_t;
	RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	IF to_regclass('mo_t') IS NOT NULL THEN
		RETURN 'a table is left';
	END IF;
	RETURN concat_ws(E'\n', SQLSTATE || ' ' || message, nullif(detail, ''), nullif(hint, ''));
END $$;
\pset format unaligned
\pset tuples_only on

-- the engine
SELECT try('merge-engine=newest');
SELECT try('merge-engine=DEDUPLICATE'), try('merge_engine=Partial-Update'), try('merge-engine= aggregation '), try('merge-engine=first-row');

-- sequence.field
SELECT try('sequence.field=nope');
SELECT try('sequence.field=i,i');
SELECT try('sequence.field=x');
SELECT try('sequence.field=m'), try('sequence.field=a'), try('sequence.field=i, n,t');
SELECT try('sequence.field=i', 'merge-engine=first-row');
SELECT try('sequence.field=i', 'merge-engine=aggregation', 'fields.i.aggregate-function=sum');
SELECT try('sequence.field=');
SELECT try('sequence.field.sort-order=descending');
SELECT try('sequence.field=i', 'sequence.field.sort-order=sideways');
SELECT try('sequence.field=i', 'sequence.field.sort-order=Descending');

-- rowkind.field, ignoring
SELECT try('rowkind.field=nope');
SELECT try('rowkind.field=i');
SELECT try('rowkind.field=t'), try('rowkind.field=c'), try('rowkind.field=p');
SELECT try('ignore-delete=perhaps');
SELECT try('ignore-delete=true'), try('ignore_delete=TRUE'), try('deduplicate.ignore-delete=true'), try('merge-engine=partial-update', 'partial-update.ignore-delete=true'),
	try('merge-engine=aggregation', 'aggregation.ignore-delete=true'), try('merge-engine=first-row', 'first-row.ignore-delete=true'), try('ignore-update-before=true');
SELECT try('ignore-delete=true', 'first-row.ignore-delete=true');

-- removing under partial-update
SELECT try('partial-update.remove-record-on-delete=true');
SELECT try('partial-update.remove-record-on-delete=true', 'merge-engine=aggregation');
SELECT try('merge-engine=partial-update', 'partial-update.remove-record-on-delete=true', 'ignore-delete=true');
SELECT try('merge-engine=partial-update', 'partial-update.remove-record-on-delete=true', 'fields.g.sequence-group=i');
SELECT try('merge-engine=partial-update', 'partial-update.remove-record-on-delete=true'), try('merge-engine=partial-update', 'partial-update.remove-record-on-delete=false', 'ignore-delete=true');

-- sequence groups
SELECT try('fields.g.sequence-group=i');
SELECT try('merge-engine=aggregation', 'fields.g.sequence-group=i');
SELECT try('merge-engine=partial-update', 'fields.nope.sequence-group=i');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=i,nope');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=i', 'fields.g2.sequence-group=i');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=i', 'fields.g,g2.sequence-group=j');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=i,i');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=g');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=g2', 'fields.g2.sequence-group=i');
SELECT try('merge-engine=partial-update', 'fields.id.sequence-group=i');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=id2');
SELECT try('merge-engine=partial-update', 'fields.t.sequence-group=i');
SELECT try('merge-engine=partial-update', 'fields.b.sequence-group=i'), try('merge-engine=partial-update', 'fields.m.sequence-group=i'), try('merge-engine=partial-update', 'fields.y.sequence-group=i');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=i', 'fields.g.aggregate-function=sum');
SELECT column1, try('merge-engine=partial-update', 'fields.' || column1 || '.sequence-group=t,t2') FROM (VALUES ('i'), ('j'), ('s'), ('n'), ('f'), ('d'), ('ts'), ('g,g2'), ('n, f,d')) v;

-- ... that remove
SELECT try('partial-update.remove-record-on-sequence-group=g');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=i', 'partial-update.remove-record-on-sequence-group=i');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=i', 'partial-update.remove-record-on-sequence-group=nope');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=i', 'partial-update.remove-record-on-sequence-group=g', 'ignore-delete=true');
SELECT try('merge-engine=partial-update', 'fields.g.sequence-group=i', 'fields.g2.sequence-group=j', 'partial-update.remove-record-on-sequence-group=g,g2');

-- functions under partial-update
SELECT try('merge-engine=partial-update', 'fields.i.aggregate-function=sum');
SELECT try('merge-engine=partial-update', 'fields.default-aggregate-function=sum');
SELECT try('merge-engine=partial-update', 'fields.i.aggregate-function=last_non_null_value'), try('merge-engine=partial-update', 'fields.default-aggregate-function=last_non_null_value'),
	try('merge-engine=partial-update', 'fields.g.sequence-group=i', 'fields.i.aggregate-function=sum');

-- aggregation
SELECT try('fields.i.aggregate-function=sum');
SELECT try('merge-engine=first-row', 'fields.i.aggregate-function=sum');
SELECT try('fields.default-aggregate-function=sum');
SELECT try('aggregation.remove-record-on-delete=true');
SELECT try('merge-engine=aggregation', 'aggregation.remove-record-on-delete=true', 'fields.i.ignore-retract=true');
SELECT try('merge-engine=aggregation', 'fields.id.aggregate-function=sum');
SELECT try('merge-engine=aggregation', 'fields.nope.aggregate-function=sum');
SELECT try('merge-engine=aggregation', 'fields.r.k.aggregate-function=sum');
SELECT try('merge-engine=aggregation', 'fields.nope.ignore-retract=true');
SELECT try('merge-engine=aggregation', 'fields.i.agregate-function=sum');
SELECT try('merge-engine=aggregation', 'fields.i.aggregate-function=median');
SELECT try('merge-engine=aggregation', 'fields.i.aggregate-function=count');
SELECT f, try('merge-engine=aggregation', 'fields.y.aggregate-function=' || f) FROM unnest(ARRAY['rbm32', 'rbm64', 'hll_sketch', 'theta_sketch']) f;

-- types of functions
SELECT f, c, try('merge-engine=aggregation', format('fields.%s.aggregate-function=%s', c, f)) FROM (VALUES ('sum', 't'), ('product', 'b'), ('max', 'm'), ('min', 'a'), ('bool_and', 'i'),
	('bool_or', 't'), ('listagg', 'c'), ('listagg', 'p'), ('listagg', 'i'), ('collect', 'i'), ('collect', 'm'), ('merge_map', 't'), ('merge_map_with_keytime', 'a'), ('nested_update', 'a'),
	('nested_partial_update', 't'), ('max', 'x')) v(f, c);
SELECT try('merge-engine=aggregation', 'fields.default-aggregate-function=sum');
SELECT f, string_agg(c, ' ' ORDER BY o) FROM unnest(ARRAY['sum', 'product', 'max', 'min', 'last_value', 'last_non_null_value', 'first_value', 'first_non_null_value', 'first_not_null_value',
	'listagg', 'bool_and', 'bool_or', 'collect', 'merge_map', 'nested_update']) WITH ORDINALITY AS f(f, fo),
	unnest(ARRAY['i', 'j', 's', 'n', 'f', 'b', 't', 'c', 'p', 'd', 'ts', 'a', 'r', 'm', 'u', 'x', 'y']) WITH ORDINALITY AS c(c, o)
WHERE try('merge-engine=aggregation', format('fields.%s.aggregate-function=%s', c, f)) = 'accepted' GROUP BY f, fo ORDER BY fo;

-- options of functions
SELECT try('merge-engine=aggregation', 'fields.i.list-agg-delimiter=;');
SELECT try('merge-engine=aggregation', 'fields.i.distinct=true');
SELECT try('merge-engine=aggregation', 'fields.m.ts-field=t');
SELECT try('merge-engine=aggregation', 'fields.m.aggregate-function=merge_map_with_keytime');
SELECT try('merge-engine=aggregation', 'fields.r.nested-key=k');
SELECT try('merge-engine=aggregation', 'fields.r.aggregate-function=nested_partial_update');
SELECT try('merge-engine=aggregation', 'fields.r.aggregate-function=nested_update', 'fields.r.nested-sequence-field=t');
SELECT try('merge-engine=aggregation', 'fields.r.aggregate-function=nested_update', 'fields.r.nested-key-null-strategy=ignore');
SELECT try('merge-engine=aggregation', 'fields.r.aggregate-function=nested_update', 'fields.r.nested-key=k', 'fields.r.nested-key-null-strategy=sometimes');
SELECT try('merge-engine=aggregation', 'fields.r.aggregate-function=nested_update', 'fields.r.nested-key=k,nope');
SELECT try('merge-engine=aggregation', 'fields.r.aggregate-function=nested_update', 'fields.r.nested-key=k', 'fields.r.nested-sequence-field=nope');
SELECT try('merge-engine=aggregation', 'fields.r.aggregate-function=nested_update', 'fields.r.count-limit=0');
SELECT try('merge-engine=aggregation', 'fields.r.aggregate-function=nested_update', 'fields.r.count-limit=many');
SELECT try('merge-engine=aggregation', 'fields.i.count-limit=5');
SELECT try('merge-engine=aggregation', 'fields.i.ignore-retract=2');
SELECT try('merge-engine=aggregation', 'fields.t.aggregate-function=listagg', 'fields.t.list-agg-delimiter= | ', 'fields.t.distinct=true'),
	try('merge-engine=aggregation', 'fields.m.aggregate-function=merge_map_with_keytime', 'fields.m.ts-field=t'),
	try('merge-engine=aggregation', 'fields.r.aggregate-function=nested_update', 'fields.r.nested-key=k,v', 'fields.r.nested-key-null-strategy=error', 'fields.r.nested-sequence-field=t', 'fields.r.count-limit=3'),
	try('merge-engine=aggregation', 'fields.m.aggregate-function=nested_partial_update', 'fields.m.nested-key=any,thing');

-- users' functions
SELECT try('merge-engine=aggregation', 'fields.i.aggregate-function=mo_longest');
SELECT try('merge-engine=aggregation', 'fields.i.aggregate-function=mo_stable');
SELECT try('merge-engine=aggregation', 'fields.i.aggregate-function=mo_other');
SELECT try('merge-engine=aggregation', 'fields.i.aggregate-function=mo_set');
SELECT try('merge-engine=aggregation', 'fields.t.aggregate-function=not.there');
SELECT try('merge-engine=aggregation', 'fields.t.aggregate-function=a..b');
SELECT try('merge-engine=aggregation', 'fields.t.aggregate-function=mo_longest'), try('merge-engine=aggregation', 'fields.t.aggregate-function=public.mo_longest'),
	try('merge-engine=aggregation', 'fields.i.aggregate-function=int4larger');

-- what is not built
SELECT try('sequence.snapshot-ordering=true');

-- later: the same checks, and the table stays as it was
CREATE TABLE mo_late (id int PRIMARY KEY, i int, t text, g int) USING paimon WITH ("merge-engine" = 'partial-update');
ALTER TABLE mo_late SET ("fields.g.sequence-group" = 'i,nope');
ALTER TABLE mo_late SET ("fields.t.sequence-group" = 'i');
ALTER TABLE mo_late SET ("fields.i.aggregate-function" = 'sum');
ALTER TABLE mo_late SET ("fields.g.sequence-group" = 'i', "fields.i.aggregate-function" = 'sum');
ALTER TABLE mo_late RESET ("fields.g.sequence-group");
ALTER TABLE mo_late RESET ("merge-engine");
ALTER TABLE mo_late SET ("merge-engine" = 'aggregation');
SELECT * FROM paimon.options('mo_late');
DROP TABLE mo_late;

-- without a key the options wait for one, and are checked against it
CREATE TABLE mo_keyless (id int, i int, g int) USING paimon WITH ("merge-engine" = 'partial-update', "fields.g.sequence-group" = 'i,id');
ALTER TABLE mo_keyless ADD PRIMARY KEY (id);
ALTER TABLE mo_keyless SET ("fields.g.sequence-group" = 'i'), ADD PRIMARY KEY (id);
SELECT * FROM paimon.options('mo_keyless');
DROP TABLE mo_keyless;

DROP TYPE mo_item;
DROP FUNCTION mo_longest, mo_stable, mo_other, mo_set, try;
