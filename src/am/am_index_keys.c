/*-------------------------------------------------------------------------
 *
 * am_index_keys.c
 *	  Conditions on key columns as ranges of encoded keys.
 *
 * Columns from the first on that are given by equality, or by a list of values, make prefixes that the wanted keys begin with: one for each
 * combination of values.  On the next column <, <=, >= and > narrow the ranges behind the prefixes, where the encoding sorts as the
 * condition's operators do.  Whatever else there is makes the plan inexact: the executor checks the rows then.
 *
 * All bounds are "from here on" and "before here": "> v" begins at the smallest byte string above all that begin with v, and so on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "am/am_index.h"
#include "core/core_key.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

/* More combinations of listed values than this are not looked for one by one. */
#define MAX_COMBINATIONS 1000000

/* What the conditions say about one key column. */
typedef struct ColumnBounds
{
	bool		listed;			/* it must be one of: */
	int			n;
	Datum	   *values;
	bool		has_lower;		/* encodings of the column alone: from lower on, before upper */
	bool		has_upper;
	PaimonBytes lower;
	PaimonBytes upper;
} ColumnBounds;

typedef struct KeyPlanner
{
	const PaimonRowDesc *desc;
	StringInfo	scratch;
	ColumnBounds columns[INDEX_MAX_KEYS];
	int			nprefix;		/* columns given by equality */
	int64		combinations;
	bool		exact;
	bool		nothing;		/* no key can do */
} KeyPlanner;

static PaimonBytes
copy_bytes(const char *data, int len)
{
	PaimonBytes b;

	b.data = memcpy(palloc(Max(len, 1)), data, len);
	b.len = len;
	return b;
}

/* Makes of the bytes in buf, from `from` on, the smallest string above all that begin with them; false if there is none. */
static bool
step_over(StringInfo buf, int from)
{
	PaimonKeyBuf key;

	paimon_keybuf_init(&key, (uint8 *) buf->data + from, buf->len - from, NULL);
	key.len = buf->len - from;
	if (!paimon_key_prefix_end(&key))
		return false;
	buf->len = from + key.len;
	return true;
}

/* ---- equality ---- */

/* Adds an argument to the values of a column, if one can equal it.  False: that cannot be told. */
static bool
add_value(ColumnBounds *c, Oid column, Oid argument, Datum in)
{
	Datum		out;
	PaimonArgument said = paimon_key_argument(column, argument, in, &out);

	if (said == PAIMON_ARG_EXACT)
		c->values[c->n++] = out;
	return said != PAIMON_ARG_UNKNOWN;
}

/* Takes an equality condition, with one value or a list, as the values of its column; false if that cannot be done. */
static bool
take_equality(const PaimonKeyColumn *column, ScanKey k, ColumnBounds *c)
{
	ColumnBounds list = *c;

	/* a collation that compares more loosely than the key's bytes do */
	if (OidIsValid(k->sk_collation) && k->sk_collation != column->collation && !get_collation_isdeterministic(k->sk_collation))
		return false;
	list.listed = true;
	list.n = 0;
	if (k->sk_flags & SK_SEARCHARRAY)
	{
		ArrayType  *array = DatumGetArrayTypeP(k->sk_argument);
		Oid			type = OidIsValid(k->sk_subtype) ? k->sk_subtype : ARR_ELEMTYPE(array);
		int16		len;
		bool		byval;
		char		align;
		Datum	   *elements;
		bool	   *nulls;
		int			n;

		get_typlenbyvalalign(ARR_ELEMTYPE(array), &len, &byval, &align);
		deconstruct_array(array, ARR_ELEMTYPE(array), len, byval, align, &elements, &nulls, &n);
		list.values = palloc(sizeof(Datum) * Max(n, 1));
		for (int i = 0; i < n; i++)
			if (!nulls[i] && !add_value(&list, column->type, type, elements[i]))
				return false;
	}
	else
	{
		list.values = palloc(sizeof(Datum));
		if (!add_value(&list, column->type, k->sk_subtype, k->sk_argument))
			return false;
	}
	*c = list;
	return true;
}

/* ---- ranges ---- */

static void
raise_lower(ColumnBounds *c, const char *data, int len)
{
	if (c->has_lower && paimon_bytes_cmp(c->lower.data, c->lower.len, (const uint8 *) data, len) >= 0)
		return;
	c->has_lower = true;
	c->lower = copy_bytes(data, len);
}

static void
cut_upper(ColumnBounds *c, const char *data, int len)
{
	if (c->has_upper && paimon_bytes_cmp(c->upper.data, c->upper.len, (const uint8 *) data, len) <= 0)
		return;
	c->has_upper = true;
	c->upper = copy_bytes(data, len);
}

/* Takes a comparison as a bound of its column; false if that cannot be done. */
static bool
take_range(KeyPlanner *p, int column, ScanKey k)
{
	ColumnBounds *c = &p->columns[column];
	const PaimonKeyColumn *key = &p->desc->keys[column];
	bool		below = k->sk_strategy == BTLessStrategyNumber || k->sk_strategy == BTLessEqualStrategyNumber;
	bool		inclusive = k->sk_strategy == BTLessEqualStrategyNumber || k->sk_strategy == BTGreaterEqualStrategyNumber;
	Datum		value;

	if (!paimon_key_orders(key, k->sk_collation))
		return false;
	switch (paimon_key_argument(key->type, k->sk_subtype, k->sk_argument, &value))
	{
		case PAIMON_ARG_UNKNOWN:
			return false;
		case PAIMON_ARG_BELOW_ALL:
			p->nothing |= below;
			return true;
		case PAIMON_ARG_ABOVE_ALL:
			p->nothing |= !below;
			return true;
		case PAIMON_ARG_BETWEEN:
			inclusive = below;
			break;
		case PAIMON_ARG_EXACT:
			break;
	}
	resetStringInfo(p->scratch);
	if (!paimon_key_encode_columns(p->desc, column, 1, &value, p->scratch))
		return false;			/* longer than any key, but not nowhere among them */
	if (below)
	{
		if (!inclusive || step_over(p->scratch, 0))
			cut_upper(c, p->scratch->data, p->scratch->len);
	}
	else if (inclusive || step_over(p->scratch, 0))
		raise_lower(c, p->scratch->data, p->scratch->len);
	else
		p->nothing = true;
	return true;
}

/* ---- all conditions ---- */

static void
take_equalities(KeyPlanner *p, ScanKey keys, int nkeys, bool *taken)
{
	for (int i = 0; i < nkeys; i++)
	{
		ScanKey		k = &keys[i];
		int			column = k->sk_attno - 1;

		taken[i] = false;
		if (k->sk_flags & SK_SEARCHNOTNULL)
			taken[i] = true;	/* keys are never null */
		else if (k->sk_flags & SK_ISNULL)
		{
			taken[i] = true;
			p->nothing = true;
		}
		else if (k->sk_strategy == BTEqualStrategyNumber && column < p->desc->nkeys && !(k->sk_flags & SK_ROW_HEADER) &&
				 !p->columns[column].listed)
			taken[i] = take_equality(&p->desc->keys[column], k, &p->columns[column]);
	}
}

/* How many columns make up the prefixes, and how many prefixes there are. */
static void
count_prefixes(KeyPlanner *p)
{
	p->combinations = 1;
	for (p->nprefix = 0; p->nprefix < p->desc->nkeys; p->nprefix++)
	{
		const ColumnBounds *c = &p->columns[p->nprefix];

		if (!c->listed || c->n * p->combinations > MAX_COMBINATIONS)
			break;
		p->combinations *= c->n;
	}
	for (int c = 0; c < p->desc->nkeys; c++)
		if (p->columns[c].listed && p->columns[c].n == 0)
			p->nothing = true;
}

static void
take_ranges(KeyPlanner *p, ScanKey keys, int nkeys, const bool *taken)
{
	for (int i = 0; i < nkeys; i++)
	{
		ScanKey		k = &keys[i];
		int			column = k->sk_attno - 1;

		if (taken[i])
		{
			/* equality with a column that no prefix reaches */
			if (!(k->sk_flags & SK_ISNULL) && column >= p->nprefix)
				p->exact = false;
		}
		else if (column != p->nprefix || column >= p->desc->nkeys || k->sk_strategy == BTEqualStrategyNumber ||
				 (k->sk_flags & (SK_SEARCHARRAY | SK_ROW_HEADER)) || !take_range(p, column, k))
			p->exact = false;
	}
}

/* ---- segments ---- */

/* The bucket of the keys that begin with these values; those behind the prefix are known if a condition gives them. */
static int
bucket_of(const KeyPlanner *p, Datum *values)
{
	const PaimonRowDesc *desc = p->desc;

	if (desc->nbuckets <= 1 || desc->nbucketkeys == 0)
		return 0;
	for (int i = 0; i < desc->nbucketkeys; i++)
	{
		int			c = desc->key_index[desc->bucketkeys[i] - 1];

		if (c < 0)
			return -1;
		if (c < p->nprefix)
			continue;
		if (!p->columns[c].listed || p->columns[c].n != 1)
			return -1;
		values[c] = p->columns[c].values[0];
	}
	return paimon_scankey_bucket(desc, values);
}

/* The segment behind one combination of values; false if there can be no key in it. */
static bool
make_segment(KeyPlanner *p, Datum *values, PaimonKeySegment *segment)
{
	StringInfo	buf = p->scratch;
	int			prefix_len;

	memset(segment, 0, sizeof(*segment));
	resetStringInfo(buf);
	if (!paimon_key_encode_columns(p->desc, 0, p->nprefix, values, buf))
		return false;
	prefix_len = buf->len;
	segment->bucket = bucket_of(p, values);
	segment->point = p->nprefix > 0 && p->nprefix == p->desc->nkeys;
	if (!segment->point)
	{
		const ColumnBounds *c = &p->columns[p->nprefix];

		if (c->has_lower)
			appendBinaryStringInfo(buf, (const char *) c->lower.data, c->lower.len);
		if (c->has_lower || prefix_len > 0)
			segment->lower = copy_bytes(buf->data, buf->len);
		buf->len = prefix_len;
		if (c->has_upper)
			appendBinaryStringInfo(buf, (const char *) c->upper.data, c->upper.len);
		if (c->has_upper || (prefix_len > 0 && step_over(buf, 0)))
			segment->upper = copy_bytes(buf->data, buf->len);
		return segment->lower.data == NULL || segment->upper.data == NULL ||
			paimon_bytes_cmp(segment->lower.data, segment->lower.len, segment->upper.data, segment->upper.len) < 0;
	}
	segment->lower = copy_bytes(buf->data, buf->len);
	return true;
}

static int
compare_segments(const void *a, const void *b)
{
	const PaimonKeySegment *x = a;
	const PaimonKeySegment *y = b;

	return paimon_bytes_cmp(x->lower.data, x->lower.len, y->lower.data, y->lower.len);
}

/* A segment for every combination of the prefix columns' values, in order, each once. */
static void
make_segments(KeyPlanner *p, PaimonKeyPlan *plan)
{
	int			made = 0;

	plan->segments = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(PaimonKeySegment) * p->combinations);
	for (int64 i = 0; i < p->combinations; i++)
	{
		Datum		values[INDEX_MAX_KEYS];
		int64		rest = i;

		CHECK_FOR_INTERRUPTS();
		for (int c = 0; c < p->nprefix; c++)
		{
			values[c] = p->columns[c].values[rest % p->columns[c].n];
			rest /= p->columns[c].n;
		}
		if (make_segment(p, values, &plan->segments[made]))
			made++;
	}
	if (made > 1)
	{
		int			unique = 1;

		qsort(plan->segments, made, sizeof(PaimonKeySegment), compare_segments);
		for (int i = 1; i < made; i++)
			if (compare_segments(&plan->segments[unique - 1], &plan->segments[i]) != 0)
				plan->segments[unique++] = plan->segments[i];
		made = unique;
	}
	plan->nsegments = made;
}

void
paimon_key_plan(const PaimonRowDesc *desc, ScanKey keys, int nkeys, StringInfo scratch, PaimonKeyPlan *plan)
{
	KeyPlanner	p;
	bool	   *taken = palloc(nkeys + 1);

	p.desc = desc;
	p.scratch = scratch;
	p.exact = true;
	p.nothing = false;
	memset(p.columns, 0, sizeof(ColumnBounds) * Max(desc->nkeys, 1));
	take_equalities(&p, keys, nkeys, taken);
	count_prefixes(&p);
	if (!p.nothing)
		take_ranges(&p, keys, nkeys, taken);
	plan->exact = p.exact;
	plan->nsegments = 0;
	plan->segments = NULL;
	if (!p.nothing)
		make_segments(&p, plan);
}
