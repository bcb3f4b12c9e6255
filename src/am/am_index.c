/*-------------------------------------------------------------------------
 *
 * am_index.c
 *	  The index access method `paimon_key`: the primary key of a paimon table.
 *
 * The index stores nothing: the table itself is ordered by the key.  Building it tells the storage how its rows are keyed.  Equality on the
 * whole key, also with lists of values (IN, = ANY), is answered by point lookups in the LSM tree; any other condition reads the table and leaves the check to the executor (and is
 * costed like that).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/amapi.h"
#include "access/genam.h"
#include "access/nbtree.h"
#include "access/reloptions.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "am/am.h"
#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

typedef enum KeyScanMode
{
	KEYSCAN_NOTHING,			/* cannot match anything */
	KEYSCAN_POINT,				/* equality on the whole key, or lists of values for it */
	KEYSCAN_ALL					/* anything else */
} KeyScanMode;

/* A key to look up. */
typedef struct KeyPoint
{
	PaimonBytes key;
	int			bucket;			/* -1: not to be told from the key */
} KeyPoint;

/* More combinations of listed values than this are not looked up one by one. */
#define MAX_POINTS 1000000

typedef struct KeyScan
{
	MemoryContext cxt;			/* of the scan */
	MemoryContext key_cxt;		/* of the present keys */
	PaimonTable *table;
	PaimonLookup *lookup;
	PaimonReader *reader;
	KeyScanMode mode;
	bool		started;
	/* POINT: the keys asked for, ascending, each once */
	int			npoints;
	KeyPoint   *points;
	int			point;			/* next one */
} KeyScan;

/* ---- building ---- */

static bool
same_key(const PaimonStorageRow *a, const PaimonStorageRow *b)
{
	return a->nkeys == b->nkeys && memcmp(a->keys, b->keys, sizeof(AttrNumber) * a->nkeys) == 0;
}

static bool
is_empty(PaimonTable *table, Relation heap)
{
	PaimonReadSpec spec = {0};
	PaimonReader *reader;
	PaimonRowRef row;
	bool		empty;

	spec.table = table;
	spec.rel = heap;
	spec.snapshot = SnapshotSelf;
	spec.bucket = -1;
	spec.forward = true;
	spec.deletes = true;
	reader = paimon_reader_begin(&spec);
	empty = !paimon_reader_next(reader, &row);
	paimon_reader_end(reader);
	return empty;
}

static void
put_row(Relation heap, const PaimonStorageRow *row)
{
	paimon_catalog_storage_put(row);
	CommandCounterIncrement();
	CacheInvalidateRelcache(heap);
}

/* Records how the storage is keyed and laid out, for which rows may have to be written anew; there is nothing else to build. */
static IndexBuildResult *
ambuild(Relation heap, Relation index, IndexInfo *info)
{
	IndexBuildResult *result = palloc0(sizeof(IndexBuildResult));
	PaimonStorageRow want = {0};
	PaimonStorageRow have = {0};
	PaimonTable *table = paimon_table_get(heap, true);

	want.storage_id = table->storage_id;
	want.relid = RelationGetRelid(heap);
	want.encoding = PAIMON_ENCODING_VERSION;
	want.nkeys = info->ii_NumIndexKeyAttrs;
	for (int i = 0; i < want.nkeys; i++)
		want.keys[i] = info->ii_IndexAttrNumbers[i];
	paimon_table_lay_out(&table->options, &want);

	if (!paimon_catalog_storage_get(table->storage_id, RelationGetRelid(heap), &have))
		have.nkeys = 0;
	if (same_key(&want, &have))
	{
		/* New storage that took over the old one's key, after TRUNCATE for one: its buckets are decided now. */
		if (have.nbucketkeys == 0)
		{
			want.copied = have.copied;
			put_row(heap, &want);
		}
		result->heap_tuples = result->index_tuples = rint(paimon_estimate_rows(table, heap));
		return result;
	}
	if (is_empty(table, heap))
	{
		put_row(heap, &want);
		return result;
	}
	result->heap_tuples = result->index_tuples = paimon_rekey(heap, index, &want);
	return result;
}

static void
ambuildempty(Relation index)
{
	/* The init fork of an unlogged index is as empty as its main fork. */
}

static bool
aminsert(Relation index, Datum *values, bool *isnull, ItemPointer tid, Relation heap, IndexUniqueCheck check_unique,
		 bool index_unchanged, IndexInfo *info)
{
	/* An INSERT of an existing key is an upsert, never a duplicate; ON CONFLICT has looked by itself. */
	return !paimon_is_conflict(tid);
}

static IndexBulkDeleteResult *
ambulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats, IndexBulkDeleteCallback callback, void *state)
{
	return stats;
}

static IndexBulkDeleteResult *
amvacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	return stats;
}

static bytea *
amoptions(Datum reloptions, bool validate)
{
	return NULL;				/* btree's parameters, accepted when the index was defined, mean nothing here */
}

static bool
key_validate(Oid opclass)
{
	return true;
}

/* ---- scanning ---- */

static IndexScanDesc
ambeginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	KeyScan    *ks = palloc0(sizeof(KeyScan));

	ks->cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon key scan", ALLOCSET_SMALL_SIZES);
	ks->key_cxt = AllocSetContextCreate(ks->cxt, "paimon key", ALLOCSET_SMALL_SIZES);
	scan->opaque = ks;
	return scan;
}

static void
close_readers(KeyScan *ks, bool lookup_too)
{
	if (ks->reader != NULL)
		paimon_reader_end(ks->reader);
	ks->reader = NULL;
	if (lookup_too && ks->lookup != NULL)
	{
		paimon_lookup_end(ks->lookup);
		ks->lookup = NULL;
	}
}

/*
 * We return no columns, but an index-only scan that needs none, as of count(*), is planned on any index that can be read whole: it wants a tuple, and
 * looks at nothing in it.
 */
static void
promise_nothing(IndexScanDesc scan, KeyScan *ks)
{
	MemoryContext old = MemoryContextSwitchTo(ks->cxt);
	TupleDesc	desc = RelationGetDescr(scan->indexRelation);
	Datum		values[INDEX_MAX_KEYS] = {0};
	bool		nulls[INDEX_MAX_KEYS];

	memset(nulls, true, sizeof(nulls));
	scan->xs_itupdesc = desc;
	scan->xs_itup = index_form_tuple(desc, values, nulls);
	MemoryContextSwitchTo(old);
}

static void
amrescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	KeyScan    *ks = scan->opaque;

	/* A lookup sees what its snapshot saw when it was opened: right for MVCC snapshots only. */
	close_readers(ks, scan->xs_snapshot == NULL || !IsMVCCSnapshot(scan->xs_snapshot));
	ks->started = false;
	if (scan->xs_want_itup && scan->xs_itup == NULL)
		promise_nothing(scan, ks);
	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, sizeof(ScanKeyData) * scan->numberOfKeys);
}

static void
amendscan(IndexScanDesc scan)
{
	KeyScan    *ks = scan->opaque;

	close_readers(ks, true);
	MemoryContextDelete(ks->cxt);
	pfree(ks);
}

/*
 * A scan key's argument as a value of the column's type.  Returns 1 if that can be said exactly, 0 if no value of the column can
 * equal it, -1 if we do not know (then the executor will check).
 */
static int
convert_argument(Oid column, Oid argument, Datum in, Datum *out)
{
	int64		i;

	*out = in;
	if (!OidIsValid(argument) || argument == column || IsBinaryCoercible(argument, column))
		return 1;
	switch (argument)
	{
		case INT2OID:
			i = DatumGetInt16(in);
			break;
		case INT4OID:
			i = DatumGetInt32(in);
			break;
		case INT8OID:
			i = DatumGetInt64(in);
			break;
		case FLOAT4OID:
			if (column != FLOAT8OID)
				return -1;
			*out = Float8GetDatum((float8) DatumGetFloat4(in));
			return 1;
		case FLOAT8OID:
			if (column != FLOAT4OID)
				return -1;
			*out = Float4GetDatum((float4) DatumGetFloat8(in));
			return float8_eq((float8) DatumGetFloat4(*out), DatumGetFloat8(in)) ? 1 : 0;
		default:
			return -1;
	}
	switch (column)
	{
		case INT2OID:
			*out = Int16GetDatum((int16) i);
			return i >= PG_INT16_MIN && i <= PG_INT16_MAX ? 1 : 0;
		case INT4OID:
			*out = Int32GetDatum((int32) i);
			return i >= PG_INT32_MIN && i <= PG_INT32_MAX ? 1 : 0;
		case INT8OID:
			*out = Int64GetDatum(i);
			return 1;
		default:
			return -1;
	}
}

/* Values that a condition allows for one key column. */
typedef struct KeyValues
{
	bool		given;
	int			n;
	Datum	   *values;
} KeyValues;

/* Appends a scan key's argument, if it can equal a value of the column.  False: we cannot tell. */
static bool
add_value(KeyValues *v, Oid column, Oid argument, Datum in)
{
	Datum		out;
	int			said = convert_argument(column, argument, in, &out);

	if (said > 0)
		v->values[v->n++] = out;
	return said >= 0;
}

/* Takes an equality condition (with one value or a list) as the values of its column; leaves v alone if that cannot be done. */
static void
take_values(const PaimonKeyColumn *column, ScanKey k, KeyValues *v)
{
	KeyValues	values = {.given = true};

	if (k->sk_flags & SK_SEARCHARRAY)
	{
		ArrayType  *array = DatumGetArrayTypeP(k->sk_argument);
		int16		len;
		bool		byval;
		char		align;
		Datum	   *elements;
		bool	   *nulls;
		int			n;

		get_typlenbyvalalign(ARR_ELEMTYPE(array), &len, &byval, &align);
		deconstruct_array(array, ARR_ELEMTYPE(array), len, byval, align, &elements, &nulls, &n);
		values.values = palloc(sizeof(Datum) * Max(n, 1));
		for (int i = 0; i < n; i++)
		{
			if (!nulls[i] && !add_value(&values, column->type, OidIsValid(k->sk_subtype) ? k->sk_subtype : ARR_ELEMTYPE(array), elements[i]))
				return;
		}
	}
	else
	{
		values.values = palloc(sizeof(Datum));
		if (!add_value(&values, column->type, k->sk_subtype, k->sk_argument))
			return;
	}
	*v = values;
}

static int
compare_points(const void *a, const void *b)
{
	const KeyPoint *x = a;
	const KeyPoint *y = b;

	return paimon_bytes_cmp(x->key.data, x->key.len, y->key.data, y->key.len);
}

/* Every combination of the columns' values as an encoded key, in order, each once. */
static void
make_points(KeyScan *ks, const KeyValues *columns, int n)
{
	const PaimonRowDesc *desc = ks->table->desc;
	bool		isnull[INDEX_MAX_KEYS] = {false};
	int			made = 0;

	ks->points = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(KeyPoint) * n);
	for (int i = 0; i < n; i++)
	{
		Datum		values[INDEX_MAX_KEYS];
		StringInfoData key;
		int			rest = i;

		CHECK_FOR_INTERRUPTS();
		for (int c = 0; c < desc->nkeys; c++)
		{
			values[c] = columns[c].values[rest % columns[c].n];
			rest /= columns[c].n;
		}
		initStringInfo(&key);
		if (!paimon_key_encode_scan(desc, values, isnull, &key))
			continue;
		ks->points[made].key.data = (const uint8 *) key.data;
		ks->points[made].key.len = key.len;
		ks->points[made].bucket = paimon_scankey_bucket(desc, values);
		made++;
	}
	qsort(ks->points, made, sizeof(KeyPoint), compare_points);
	ks->npoints = 0;
	for (int i = 0; i < made; i++)
	{
		if (ks->npoints == 0 || compare_points(&ks->points[ks->npoints - 1], &ks->points[i]) != 0)
			ks->points[ks->npoints++] = ks->points[i];
	}
	ks->point = 0;
}

/* Decides how to answer the present scan keys; for points, encodes the keys. */
static KeyScanMode
choose_mode(IndexScanDesc scan, KeyScan *ks)
{
	const PaimonRowDesc *desc = ks->table->desc;
	KeyValues	columns[INDEX_MAX_KEYS] = {{0}};
	int64		n = 1;

	for (int i = 0; i < scan->numberOfKeys; i++)
	{
		ScanKey		k = &scan->keyData[i];
		int			column = k->sk_attno - 1;

		if (k->sk_flags & SK_ISNULL)
			return KEYSCAN_NOTHING;
		if (k->sk_strategy != BTEqualStrategyNumber || column >= desc->nkeys || columns[column].given ||
			(k->sk_flags & SK_ROW_HEADER))
			continue;
		if (OidIsValid(k->sk_collation) && k->sk_collation != desc->keys[column].collation &&
			!get_collation_isdeterministic(k->sk_collation))
			continue;			/* compares more loosely than the key's bytes do */
		take_values(&desc->keys[column], k, &columns[column]);
	}
	for (int c = 0; c < desc->nkeys; c++)
	{
		if (columns[c].given && columns[c].n == 0)
			return KEYSCAN_NOTHING;
	}
	for (int c = 0; c < desc->nkeys; c++)
	{
		if (!columns[c].given)
			return KEYSCAN_ALL;
		n *= columns[c].n;
		if (n > MAX_POINTS)
			return KEYSCAN_ALL;
	}
	if (desc->nkeys == 0)
		return KEYSCAN_ALL;
	make_points(ks, columns, (int) n);
	return KEYSCAN_POINT;
}

/* A dirty snapshot (ON CONFLICT, replication) does not want to know what running transactions make of a row, but what has become of it. */
static void
wait_for_writers(IndexScanDesc scan, KeyScan *ks)
{
	for (int i = 0; i < ks->npoints; i++)
	{
		const KeyPoint *p = &ks->points[i];
		int			first = p->bucket >= 0 ? p->bucket : 0;
		int			last = p->bucket >= 0 ? p->bucket : ks->table->desc->nbuckets - 1;

		for (int bucket = first; bucket <= last; bucket++)
			paimon_wait_for_writers(ks->table, scan->heapRelation, bucket, p->key);
	}
}

static void
start(IndexScanDesc scan, KeyScan *ks)
{
	MemoryContext old;

	MemoryContextReset(ks->key_cxt);
	old = MemoryContextSwitchTo(ks->key_cxt);
	ks->table = paimon_table_get(scan->heapRelation, false);
	ks->mode = choose_mode(scan, ks);
	MemoryContextSwitchTo(ks->cxt);
	if (ks->mode == KEYSCAN_POINT && scan->xs_snapshot != NULL && scan->xs_snapshot->snapshot_type == SNAPSHOT_DIRTY)
		wait_for_writers(scan, ks);
	if (ks->mode == KEYSCAN_POINT && ks->lookup == NULL)
		ks->lookup = paimon_lookup_begin(ks->table, scan->heapRelation, scan->xs_snapshot);
	else if (ks->mode == KEYSCAN_ALL)
	{
		PaimonReadSpec spec = {0};

		spec.table = ks->table;
		spec.rel = scan->heapRelation;
		spec.snapshot = scan->xs_snapshot;
		spec.bucket = -1;
		spec.forward = true;
		ks->reader = paimon_reader_begin(&spec);
	}
	MemoryContextSwitchTo(old);
	ks->started = true;
	if (scan->xs_snapshot != NULL)
		PredicateLockRelation(scan->heapRelation, scan->xs_snapshot);
	pgstat_count_index_scan(scan->indexRelation);
}

/* Looks up the keys from the present one on, until one is there.  Keys are unique: the first bucket that has it ends the search. */
static bool
next_point(KeyScan *ks, PaimonRowRef *row)
{
	int			nbuckets = ks->table->desc->nbuckets;

	while (ks->point < ks->npoints)
	{
		const KeyPoint *p = &ks->points[ks->point++];
		int			first = p->bucket >= 0 ? p->bucket : 0;
		int			last = p->bucket >= 0 ? p->bucket : nbuckets - 1;

		for (int bucket = first; bucket <= last; bucket++)
		{
			CHECK_FOR_INTERRUPTS();
			if (paimon_lookup_get(ks->lookup, bucket, p->key.data, p->key.len, row))
				return true;
		}
	}
	return false;
}

static bool
next_row(KeyScan *ks, PaimonRowRef *row)
{
	switch (ks->mode)
	{
		case KEYSCAN_NOTHING:
			return false;
		case KEYSCAN_POINT:
			return next_point(ks, row);
		case KEYSCAN_ALL:
			return paimon_reader_next(ks->reader, row);
	}
	return false;
}

static bool
amgettuple(IndexScanDesc scan, ScanDirection direction)
{
	KeyScan    *ks = scan->opaque;
	PaimonIndexFetch *fetch = (PaimonIndexFetch *) scan->xs_heapfetch;
	PaimonRowRef row;

	if (!ks->started)
		start(scan, ks);
	if (!next_row(ks, &row))
		return false;
	scan->xs_heaptid = row.tid;
	/* The lookup compared encoded keys; other conditions on key columns may still be there. */
	scan->xs_recheck = ks->mode == KEYSCAN_ALL || scan->numberOfKeys > ks->table->desc->nkeys;
	if (fetch != NULL)
	{
		fetch->row = row;
		fetch->has_row = true;
	}
	return true;
}

void
paimon_index_routine(IndexAmRoutine *am)
{
	/*
	 * Indexes of ours have btree's operator classes, and the server caches an operator class's support functions in an array as long as the access method
	 * says that looked first: another number than btree's would make it read behind the end.
	 */
	am->amstrategies = BTMaxStrategyNumber;
	am->amsupport = BTNProcs;
	am->amoptsprocnum = BTOPTIONS_PROC;
	am->amcanorder = false;
	am->amcanunique = true;
	am->amcanmulticol = true;
	am->amoptionalkey = true;
	am->amsearcharray = true;
	am->amcaninclude = true;
	am->amstorage = true;		/* for the operator class over anyelement */
	am->ampredlocks = true;		/* we lock the relation */
	am->amkeytype = InvalidOid;
	am->ambuild = ambuild;
	am->ambuildempty = ambuildempty;
	am->aminsert = aminsert;
	am->ambulkdelete = ambulkdelete;
	am->amvacuumcleanup = amvacuumcleanup;
	am->amcostestimate = paimon_key_cost_estimate;
	am->amoptions = amoptions;
	am->amvalidate = key_validate;
	am->ambeginscan = ambeginscan;
	am->amrescan = amrescan;
	am->amgettuple = amgettuple;
	am->amendscan = amendscan;
}
