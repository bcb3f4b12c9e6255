/*-------------------------------------------------------------------------
 *
 * am_index_scan.c
 *	  Scans of the index access method `paimon_key`.
 *
 * The conditions become segments of the key space (am_index_keys.c), which are visited in the order of the scan's direction: single keys by point
 * lookups, ranges by an ordered reader.  Rows come in the order of their encoded keys whatever the conditions are, so a scan stands at a key: it can
 * turn round there, and go back to one that was marked.
 *
 * Lookup and reader are kept over rescans with their snapshot, so that the inner side of a nested loop reads the manifest once.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "am/am_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/*
 * The first row of a range is decoded value by value, those behind it in blocks, and whole columns from the group on that begins after so many: a scan that has
 * come so far is long.
 */
#define ROWS_BEFORE_BLOCKS	1
#define ROWS_BEFORE_WHOLE	6000

/* Where a scan stands. */
typedef struct KeyPosition
{
	int			segment;		/* -1 before the first, nsegments behind the last */
	bool		on_row;			/* a row was given last */
	bool		in_range;		/* the segment is a range, and the reader (to be) within it */
} KeyPosition;

typedef struct KeyScan
{
	MemoryContext cxt;			/* of the scan */
	MemoryContext plan_cxt;		/* of the present plan */
	PaimonTable *table;
	PaimonLookup *lookup;
	bool		borrowed;		/* lookup is a statement's, not ours */
	PaimonOrdered *ordered;
	StringInfoData scratch;
	PaimonKeyPlan plan;
	bool		started;
	bool		forward;
	KeyPosition at;
	PaimonRowRef row;			/* given last */
	StringInfoData from;		/* bound of the reader, if the scan has turned round */
	const PaimonRunGroup *group;	/* of the last row, and how its columns are decoded */
	PaimonDecode decode;
	int64		range_rows;		/* given since the range was begun */
	/* mark and restore */
	KeyPosition mark;
	StringInfoData mark_key;
	bool		at_mark;		/* restored: the key at hand is mark_key, row means nothing */
	/* index-only scans */
	MemoryContext itup_cxt;
	TupleTableSlot *slot;
	AttrNumber	returned[INDEX_MAX_KEYS];	/* attribute of the table by index column, 0: not returned */
} KeyScan;

IndexScanDesc
paimon_key_beginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan = RelationGetIndexScan(index, nkeys, norderbys);
	KeyScan    *ks = palloc0(sizeof(KeyScan));
	MemoryContext old;

	ks->cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon key scan", ALLOCSET_DEFAULT_SIZES);
	ks->plan_cxt = AllocSetContextCreate(ks->cxt, "paimon key plan", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(ks->cxt);
	initStringInfo(&ks->scratch);
	MemoryContextSwitchTo(old);
	scan->opaque = ks;
	return scan;
}

static void
close_readers(KeyScan *ks)
{
	if (ks->ordered != NULL)
		paimon_ordered_end(ks->ordered);
	ks->ordered = NULL;
	if (ks->lookup != NULL && !ks->borrowed)
		paimon_lookup_end(ks->lookup);
	ks->lookup = NULL;
	ks->borrowed = false;
}

void
paimon_key_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys)
{
	KeyScan    *ks = scan->opaque;

	/* A reader sees what its snapshot saw when it was opened: right for MVCC snapshots only. */
	if (scan->xs_snapshot == NULL || !IsMVCCSnapshot(scan->xs_snapshot))
		close_readers(ks);
	ks->started = false;
	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, sizeof(ScanKeyData) * scan->numberOfKeys);
}

void
paimon_key_endscan(IndexScanDesc scan)
{
	KeyScan    *ks = scan->opaque;

	close_readers(ks);
	if (ks->slot != NULL)
		ExecDropSingleTupleTableSlot(ks->slot);
	MemoryContextDelete(ks->cxt);
	pfree(ks);
}

/* ---- index-only scans ---- */

/*
 * Can the column be given back?  What we give must fit an index tuple: blank-padded text and arrays may be much longer than their keys, and names are
 * declared as something else in an index.
 */
bool
paimon_key_canreturn(Relation index, int attno)
{
	Oid			type;

	if (attno > IndexRelationGetNumberOfKeyAttributes(index))
		return false;
	type = getBaseType(TupleDescAttr(RelationGetDescr(index), attno - 1)->atttypid);
	return type != BPCHAROID && type != CSTRINGOID && type != NAMEOID && !type_is_array(type);
}

/* Columns that an index-only scan will give back, and a slot that decodes nothing else. */
static void
prepare_index_only(IndexScanDesc scan, KeyScan *ks)
{
	MemoryContext old = MemoryContextSwitchTo(ks->cxt);
	TupleDesc	desc = RelationGetDescr(scan->heapRelation);
	int16	   *columns = palloc(sizeof(int16) * (desc->natts + 1));
	int			n = 0;

	scan->xs_itupdesc = RelationGetDescr(scan->indexRelation);
	for (int i = 0; i < scan->xs_itupdesc->natts; i++)
		if (paimon_key_canreturn(scan->indexRelation, i + 1))
			ks->returned[i] = scan->indexRelation->rd_index->indkey.values[i];
	for (int c = 0; c < desc->natts; c++)
		for (int i = 0; i < scan->xs_itupdesc->natts; i++)
			if (ks->returned[i] == c + 1)
				columns[n++] = c;
	ks->itup_cxt = AllocSetContextCreate(ks->cxt, "paimon index tuple", ALLOCSET_SMALL_SIZES);
	ks->slot = MakeSingleTupleTableSlot(desc, &paimon_slot_ops);
	paimon_slot_set_columns(ks->slot, columns, n);
	MemoryContextSwitchTo(old);
}

/* The present row's key columns as an index tuple. */
static void
form_index_tuple(IndexScanDesc scan, KeyScan *ks)
{
	TupleDesc	desc = scan->xs_itupdesc;
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];
	MemoryContext old;

	MemoryContextReset(ks->itup_cxt);
	paimon_slot_store(ks->slot, ks->table, &ks->row, ks->decode);
	for (int i = 0; i < desc->natts; i++)
	{
		values[i] = (Datum) 0;
		nulls[i] = true;
		if (ks->returned[i] != 0)
			values[i] = slot_getattr(ks->slot, ks->returned[i], &nulls[i]);
	}
	old = MemoryContextSwitchTo(ks->itup_cxt);
	scan->xs_itup = index_form_tuple(desc, values, nulls);
	MemoryContextSwitchTo(old);
}

/* ---- walking ---- */

/*
 * A dirty snapshot (ON CONFLICT, replication) does not want to know what running transactions make of a row, but what has become of it.  ON CONFLICT
 * has a lookup for many scans.
 */
static void
look_dirty(IndexScanDesc scan, KeyScan *ks)
{
	const PaimonKeySegment *point = &ks->plan.segments[0];

	if (ks->plan.nsegments == 1 && point->point && point->bucket >= 0)
	{
		close_readers(ks);
		ks->lookup = paimon_conflict_lookup(ks->table, scan->heapRelation, point->bucket, point->lower);
		ks->borrowed = ks->lookup != NULL;
		if (ks->borrowed)
		{
			/* there is nobody to wait for any more */
			scan->xs_snapshot->xmin = InvalidTransactionId;
			scan->xs_snapshot->xmax = InvalidTransactionId;
			scan->xs_snapshot->speculativeToken = 0;
			return;
		}
	}
	for (int i = 0; i < ks->plan.nsegments && ks->plan.segments[i].point; i++)
	{
		int			first;
		int			last;

		point = &ks->plan.segments[i];
		first = point->bucket >= 0 ? point->bucket : 0;
		last = point->bucket >= 0 ? point->bucket : ks->table->desc->nbuckets - 1;
		for (int bucket = first; bucket <= last; bucket++)
			paimon_wait_for_writers(ks->table, scan->heapRelation, bucket, point->lower);
	}
}

static void
start(IndexScanDesc scan, KeyScan *ks, bool forward)
{
	MemoryContext old;

	MemoryContextReset(ks->plan_cxt);
	old = MemoryContextSwitchTo(ks->plan_cxt);
	ks->table = paimon_table_get(scan->heapRelation, false);
	paimon_key_plan(ks->table->desc, scan->keyData, scan->numberOfKeys, &ks->scratch, &ks->plan);
	MemoryContextSwitchTo(ks->cxt);
	if (scan->xs_snapshot != NULL && scan->xs_snapshot->snapshot_type == SNAPSHOT_DIRTY)
		look_dirty(scan, ks);
	if (ks->plan.nsegments > 0)
	{
		/* points and ranges never mix */
		if (ks->plan.segments[0].point && ks->lookup == NULL)
			ks->lookup = paimon_lookup_begin(ks->table, scan->heapRelation, scan->xs_snapshot);
		else if (!ks->plan.segments[0].point && ks->ordered == NULL)
			ks->ordered = paimon_ordered_begin(ks->table, scan->heapRelation, scan->xs_snapshot);
	}
	if (scan->xs_want_itup && ks->slot == NULL)
		prepare_index_only(scan, ks);
	MemoryContextSwitchTo(old);
	ks->forward = forward;
	ks->at.segment = forward ? -1 : ks->plan.nsegments;
	ks->at.on_row = ks->at.in_range = ks->at_mark = false;
	ks->group = NULL;
	ks->range_rows = 0;
	ks->decode = PAIMON_DECODE_SINGLE;
	ks->started = true;
	if (scan->xs_snapshot != NULL)
		PredicateLockRelation(scan->heapRelation, scan->xs_snapshot);
	pgstat_count_index_scan(scan->indexRelation);
}

/* Looks up a key.  If its bucket cannot be told: keys are unique, so the first bucket that has it ends the search. */
static bool
look_up(KeyScan *ks, const PaimonKeySegment *point)
{
	int			first = point->bucket >= 0 ? point->bucket : 0;
	int			last = point->bucket >= 0 ? point->bucket : ks->table->desc->nbuckets - 1;

	for (int bucket = first; bucket <= last; bucket++)
	{
		CHECK_FOR_INTERRUPTS();
		if (paimon_lookup_get(ks->lookup, bucket, point->lower.data, point->lower.len, &ks->row))
			return true;
	}
	return false;
}

/* The key of the row at hand. */
static PaimonBytes
current_key(const KeyScan *ks)
{
	PaimonBytes key;

	if (!ks->at_mark)
		return paimon_rowref_key(&ks->row);
	key.data = (const uint8 *) ks->mark_key.data;
	key.len = ks->mark_key.len;
	return key;
}

static void
set_key(KeyScan *ks, StringInfo buf, PaimonBytes key)
{
	if (buf->data == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(ks->cxt);

		initStringInfo(buf);
		MemoryContextSwitchTo(old);
	}
	resetStringInfo(buf);
	appendBinaryStringInfo(buf, (const char *) key.data, key.len);
}

/* Within a range: lets the reader go on from a key, which is not given (again), in the scan's direction. */
static void
continue_from(KeyScan *ks, PaimonBytes key)
{
	const PaimonKeySegment *segment = &ks->plan.segments[ks->at.segment];
	PaimonBytes lower = segment->lower;
	PaimonBytes upper = segment->upper;
	PaimonBytes bound;

	set_key(ks, &ks->from, key);
	if (ks->forward)
		appendStringInfoChar(&ks->from, '\0');	/* no key is the beginning of another: the least string above */
	bound.data = (const uint8 *) ks->from.data;
	bound.len = ks->from.len;
	if (ks->forward)
		lower = bound;
	else
		upper = bound;
	paimon_ordered_seek(ks->ordered, lower, upper, segment->bucket, ks->forward);
}

/* Goes to the next row in the scan's direction; false at that end, where the scan may turn round. */
static bool
next_row(KeyScan *ks)
{
	for (;;)
	{
		const PaimonKeySegment *segment;
		int			next;

		if (ks->at.in_range && paimon_ordered_next(ks->ordered, &ks->row))
			return true;
		ks->at.in_range = false;
		next = ks->at.segment + (ks->forward ? 1 : -1);
		if (next < 0 || next >= ks->plan.nsegments)
		{
			ks->at.segment = ks->forward ? ks->plan.nsegments : -1;
			return false;
		}
		ks->at.segment = next;
		segment = &ks->plan.segments[next];
		if (!segment->point)
		{
			paimon_ordered_seek(ks->ordered, segment->lower, segment->upper, segment->bucket, ks->forward);
			ks->at.in_range = true;
		}
		else if (look_up(ks, segment))
			return true;
		CHECK_FOR_INTERRUPTS();
	}
}

/* How the columns of the row at hand are to be decoded. */
static void
choose_decoding(KeyScan *ks)
{
	if (!ks->at.in_range)
	{
		ks->decode = PAIMON_DECODE_SINGLE;
		return;
	}
	ks->range_rows++;
	if (ks->row.group != ks->group && ks->row.group != NULL)
	{
		ks->group = ks->row.group;
		ks->decode = ks->range_rows > ROWS_BEFORE_WHOLE ? PAIMON_DECODE_WHOLE : PAIMON_DECODE_SINGLE;
	}
	if (ks->decode == PAIMON_DECODE_SINGLE && ks->range_rows > ROWS_BEFORE_BLOCKS)
		ks->decode = PAIMON_DECODE_BLOCK;
}

bool
paimon_key_gettuple(IndexScanDesc scan, ScanDirection direction)
{
	KeyScan    *ks = scan->opaque;
	PaimonIndexFetch *fetch = (PaimonIndexFetch *) scan->xs_heapfetch;
	bool		forward = !ScanDirectionIsBackward(direction);

	if (!ks->started)
		start(scan, ks, forward);
	else if (forward != ks->forward)
	{
		ks->forward = forward;
		if (ks->at.on_row && ks->at.in_range)
			continue_from(ks, current_key(ks));
	}
	if (fetch != NULL)
		fetch->row = NULL;
	ks->at.on_row = next_row(ks);
	ks->at_mark = false;
	if (!ks->at.on_row)
		return false;
	choose_decoding(ks);
	scan->xs_heaptid = ks->row.tid;
	scan->xs_recheck = !ks->plan.exact;
	if (scan->xs_want_itup)
		form_index_tuple(scan, ks);
	if (fetch != NULL)
	{
		fetch->row = &ks->row;
		fetch->decode = ks->decode;
		fetch->key_only = scan->xs_want_itup;
	}
	return true;
}

void
paimon_key_markpos(IndexScanDesc scan)
{
	KeyScan    *ks = scan->opaque;

	if (ks->at.on_row && ks->at.in_range && !ks->at_mark)
		set_key(ks, &ks->mark_key, current_key(ks));
	ks->mark = ks->at;
}

void
paimon_key_restrpos(IndexScanDesc scan)
{
	KeyScan    *ks = scan->opaque;

	ks->at = ks->mark;
	ks->at_mark = ks->at.on_row && ks->at.in_range;
	if (ks->at_mark)
		continue_from(ks, current_key(ks));
}
