/*-------------------------------------------------------------------------
 *
 * table.h
 *	  A backend's handle of one storage: how its rows are keyed, its options, its entry in shared memory.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_TABLE_H
#define PAIMON_TABLE_H

#include "postgres.h"

#include "utils/rel.h"

#include "memtable/shared.h"
#include "merge/merge_fold.h"
#include "options/options.h"
#include "row/row.h"

typedef struct PaimonTable
{
	PaimonLocator locator;		/* hash key */
	Oid			relid;
	uint64		storage_id;		/* 0: a reborn unlogged storage that holds nothing yet */
	PaimonRowDesc *desc;
	PaimonOptions options;
	const PaimonMergePlan *plan;	/* how records of a key are merged; NULL: deduplicate, with no option that would change anything */
	bool		merges;			/* the newest record of a key does not decide alone: plan says what does */
	PaimonShared *shared;		/* pinned while a transaction uses the handle; NULL for temporary relations and while storage_id is 0 */
	bool		istemp;
	bool		copied;			/* made by VACUUM FULL, see manifest.h */
	bool		valid;			/* private to memtable_table.c, as the next two */
	bool		pinned;			/* shared is: between transactions it may become another table's */
	struct PaimonTable *next_pinned;
	MemoryContext cxt;
} PaimonTable;

/*
 * The handle of a relation's present storage; rebuilt when the relation's definition, options or storage changed.  Valid as long as the
 * caller holds its lock on the relation and until the next CommandCounterIncrement that changes the relation's definition: pointers into
 * it stay allocated until the end of the transaction.  for_write: gives a reborn unlogged storage its id.
 */
extern PaimonTable *paimon_table_get(Relation rel, bool for_write);

/*
 * Is that the relation's storage now?  It may have another one since a row was written, or, after a change of its access method, none of ours.  Nothing is
 * read of a relation that is not ours.
 */
extern bool paimon_storage_is_of(Relation rel, uint64 storage_id);

/* Lets go of a handle, and its pin on shared memory, at the end of the transaction: for who visits many tables and stays. */
extern void paimon_table_release(PaimonTable *table);

/*
 * Do taken back rows stay for good (PaimonRunParams.retracts_stay, deletes_stay)?  Where rows are aggregated a retract on nothing is a row that is seen.  What
 * counts as a delete marker must go when nothing is older, or it would be compacted again and again.
 */
static inline bool
paimon_table_retracts_stay(const PaimonTable *table)
{
	return table->merges && table->plan->engine == PAIMON_FOLD_AGGREGATION;
}

static inline bool
paimon_table_deletes_stay(const PaimonTable *table)
{
	return paimon_table_retracts_stay(table) && !table->plan->remove_on_delete;
}

/* Buckets that a storage keyed by row->keys gets by the options: fills in nbuckets, nbucketkeys and bucketkeys. */
extern void paimon_table_lay_out(const PaimonOptions *options, PaimonStorageRow *row);

extern PaimonTable *paimon_table_get_as(Relation rel, TupleDesc tupdesc);

extern void paimon_table_init(void);	/* relcache callback */
extern void paimon_table_at_end(void);	/* transaction end: frees what invalidations left, lets go of entries in shared memory */

#endif							/* PAIMON_TABLE_H */
