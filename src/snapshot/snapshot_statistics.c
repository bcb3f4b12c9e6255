/*-------------------------------------------------------------------------
 *
 * snapshot_statistics.c
 *	  Value statistics of run files: number of nulls, least and greatest value of each column.
 *
 * They come from the directories of row groups, where bounds are signed 64-bit words.  So they are known for columns whose order is that of such
 * words (integers, dates and times, booleans, numerics of fixed scale) and, while no word is negative, for floating point and oids.  The first
 * column of the key has the bounds of the keys.  Everything else is null.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "run/run.h"
#include "snapshot/snapshot.h"

/* How words of a column compare. */
typedef enum StatsOrder
{
	ORDER_UNKNOWN,
	ORDER_SIGNED,
	ORDER_POSITIVE,				/* as words, if none is negative */
	ORDER_NUMERIC				/* words are scaled; bounds are kept as numerics */
} StatsOrder;

typedef struct ColumnStats
{
	StatsOrder	order;
	bool		known;			/* bounds: all that was seen so far had them */
	bool		any;			/* a value was seen */
	int64		nulls;
	Datum		min;
	Datum		max;
} ColumnStats;

static StatsOrder
order_of_type(Oid type)
{
	switch (type)
	{
		case BOOLOID:
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return ORDER_SIGNED;
		case FLOAT4OID:
		case FLOAT8OID:
		case OIDOID:
			return ORDER_POSITIVE;
		case NUMERICOID:
			return ORDER_NUMERIC;
		default:
			return ORDER_UNKNOWN;
	}
}

static int
compare(StatsOrder order, Datum a, Datum b)
{
	if (order == ORDER_NUMERIC)
		return DatumGetInt32(DirectFunctionCall2(numeric_cmp, a, b));
	return (int64) a < (int64) b ? -1 : (int64) a > (int64) b;
}

static void
add_bounds(ColumnStats *s, Datum min, Datum max)
{
	if (s->order == ORDER_POSITIVE && (int64) min < 0)
		s->known = false;
	if (!s->known)
		return;
	if (!s->any || compare(s->order, min, s->min) < 0)
		s->min = min;
	if (!s->any || compare(s->order, max, s->max) > 0)
		s->max = max;
	s->any = true;
}

/* A column that all rows of the group are too old to have. */
static void
add_missing(ColumnStats *s, const PaimonRowDesc *desc, int c, uint32 nrows)
{
	Datum		value;
	bool		isnull;

	paimon_row_missing(desc, c, &value, &isnull);
	if (isnull)
		s->nulls += nrows;
	else
		add_bounds(s, value, value);
}

static void
add_group(ColumnStats *stats, const PaimonRowDesc *desc, PaimonGroup *g)
{
	for (int c = 0; c < desc->tupdesc->natts; c++)
	{
		ColumnStats *s = &stats[c];
		PaimonColumnStats column;
		PaimonColumnDesc stored;

		if (TupleDescAttr(desc->tupdesc, c)->attisdropped || desc->in_key[c])
			continue;
		if ((uint32) c >= paimon_group_ncolumns(g))
		{
			add_missing(s, desc, c, paimon_group_nrows(g));
			continue;
		}
		paimon_group_column_stats(g, c, &column);
		s->nulls += column.null_count;
		if (column.null_count == paimon_group_nrows(g))
			continue;
		stored = paimon_group_column_desc(g, c);
		if (!column.has_minmax || (s->order == ORDER_NUMERIC) != (stored.phys == PAIMON_PHYS_SCALED))
			s->known = false;
		else if (!s->known)
			continue;
		else if (s->order == ORDER_NUMERIC)
			add_bounds(s, paimon_numeric_from_scaled(column.min, stored.width), paimon_numeric_from_scaled(column.max, stored.width));
		else
			add_bounds(s, (Datum) column.min, (Datum) column.max);
	}
}

/* Keys are sorted by their first column first; the file's footer has the least and the greatest key. */
static void
add_key(ColumnStats *stats, const PaimonRowDesc *desc, const PaimonRunFile *file)
{
	const PaimonBytes *min = paimon_run_min_key(file);
	const PaimonBytes *max = paimon_run_max_key(file);
	int			c;

	if (desc->nkeys == 0 || !desc->keys[0].lossless || !desc->keys[0].sql_order)
		return;
	c = desc->keys[0].attno - 1;
	stats[c].known = stats[c].any = true;
	stats[c].min = paimon_key_decode_column(desc, min->data, min->len, c);
	stats[c].max = paimon_key_decode_column(desc, max->data, max->len, c);
}

/* ---- as JSON ---- */

static bool
is_json_number(Oid type, const char *text)
{
	switch (type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
			return strspn(text, "0123456789+-.e") == strlen(text);	/* neither NaN nor Infinity */
		default:
			return false;
	}
}

/* As to_jsonb would show it. */
static void
append_value(StringInfo buf, Oid type, Datum value)
{
	char		time[MAXDATELEN + 1];
	Oid			output;
	bool		varlena;
	char	   *text;

	switch (type)
	{
		case BOOLOID:
			appendStringInfoString(buf, DatumGetBool(value) ? "true" : "false");
			return;
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			escape_json(buf, JsonEncodeDateTime(time, value, type, NULL));
			return;
		default:
			break;
	}
	getTypeOutputInfo(type, &output, &varlena);
	text = OidOutputFunctionCall(output, value);
	if (is_json_number(type, text))
		appendStringInfoString(buf, text);
	else
		escape_json(buf, text);
}

typedef enum StatsPart
{
	PART_NULLS,
	PART_MIN,
	PART_MAX
} StatsPart;

static Datum
to_jsonb_object(const ColumnStats *stats, const PaimonRowDesc *desc, StatsPart part)
{
	StringInfoData buf;
	const char *comma = "";

	initStringInfo(&buf);
	appendStringInfoChar(&buf, '{');
	for (int c = 0; c < desc->tupdesc->natts; c++)
	{
		Form_pg_attribute att = TupleDescAttr(desc->tupdesc, c);
		const ColumnStats *s = &stats[c];

		if (att->attisdropped)
			continue;
		appendStringInfoString(&buf, comma);
		comma = ",";
		escape_json(&buf, NameStr(att->attname));
		appendStringInfoChar(&buf, ':');
		if (part == PART_NULLS)
			appendStringInfo(&buf, INT64_FORMAT, s->nulls);
		else if (!s->known || !s->any)
			appendStringInfoString(&buf, "null");
		else
			append_value(&buf, getBaseType(att->atttypid), part == PART_MIN ? s->min : s->max);
	}
	appendStringInfoChar(&buf, '}');
	return DirectFunctionCall1(jsonb_in, CStringGetDatum(buf.data));
}

static void
close_file(void *arg)
{
	paimon_run_close((PaimonRunFile *) arg);
}

/* Opens a file until the context is reset or deleted, by an error perhaps. */
static PaimonRunFile *
open_file(MemoryContext cxt, Relation rel, const PaimonRowDesc *desc, const PaimonFileRow *row)
{
	MemoryContextCallback *callback = MemoryContextAlloc(cxt, sizeof(MemoryContextCallback));

	callback->func = close_file;
	callback->arg = paimon_run_open(rel, desc, row);
	MemoryContextRegisterResetCallback(cxt, callback);
	return callback->arg;
}

/* See snapshot.h. */
void
paimon_value_stats(Relation rel, PaimonTable *table, const PaimonFileRow *row, PaimonValueStats *out)
{
	const PaimonRowDesc *desc = table->desc;
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext cxt = AllocSetContextCreate(caller, "paimon value statistics", ALLOCSET_DEFAULT_SIZES);
	ColumnStats *stats;
	PaimonRunFile *file;

	MemoryContextSwitchTo(cxt);
	stats = palloc0_array(ColumnStats, Max(desc->tupdesc->natts, 1));
	for (int c = 0; c < desc->tupdesc->natts; c++)
	{
		Form_pg_attribute att = TupleDescAttr(desc->tupdesc, c);

		if (!att->attisdropped)
			stats[c].order = order_of_type(getBaseType(att->atttypid));
		stats[c].known = stats[c].order != ORDER_UNKNOWN && !desc->in_key[c];
	}

	file = open_file(cxt, rel, desc, row);
	for (uint32 i = 0; i < paimon_run_ngroups(file); i++)
	{
		PaimonRunGroup *g;

		CHECK_FOR_INTERRUPTS();
		g = paimon_run_group(file, i);
		add_group(stats, desc, paimon_run_group_core(g));
		paimon_run_group_unref(g);
	}
	add_key(stats, desc, file);
	MemoryContextSwitchTo(caller);
	out->null_counts = to_jsonb_object(stats, desc, PART_NULLS);
	out->min = to_jsonb_object(stats, desc, PART_MIN);
	out->max = to_jsonb_object(stats, desc, PART_MAX);
	MemoryContextDelete(cxt);
}
