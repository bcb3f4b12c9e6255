/*-------------------------------------------------------------------------
 *
 * am_index.c
 *	  The index access method `paimon_key`: the primary key of a paimon table.
 *
 * The index stores nothing: the table itself is ordered by the key.  Building it tells the storage how its rows are keyed.  am_index_scan.c reads by it,
 * am_path.c and am_cost.c tell the planner what that can do and costs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/amapi.h"
#include "access/genam.h"
#include "access/nbtree.h"
#include "access/reloptions.h"
#include "access/xact.h"
#include "am/am.h"
#include "am/am_index.h"
#include "catalog/index.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"

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
	am->amcanorder = true;		/* but see am_path.c */
	am->amcanbackward = true;
	am->amcanunique = true;
	am->amcanmulticol = true;
	am->amoptionalkey = true;
	am->amsearcharray = true;
	am->amsearchnulls = true;
	am->amcaninclude = true;
	am->amclusterable = true;	/* rows are stored in its order: CLUSTER is a rewrite */
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
	am->amcanreturn = paimon_key_canreturn;
	am->ambeginscan = paimon_key_beginscan;
	am->amrescan = paimon_key_rescan;
	am->amgettuple = paimon_key_gettuple;
	am->ammarkpos = paimon_key_markpos;
	am->amrestrpos = paimon_key_restrpos;
	am->amendscan = paimon_key_endscan;
}
