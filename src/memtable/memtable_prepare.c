/*-------------------------------------------------------------------------
 *
 * memtable_prepare.c
 *	  Key locks of a transaction that prepares go into the delta log, for those who come after a restart (H16).
 *
 * One batch a storage, with lock records only.  It holds the keys that were written, too, which the transaction's other batch names
 * already: telling them apart would cost more than the few bytes.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "memtable/memtable_internal.h"
#include "memtable/table.h"
#include "stop.h"

static void
append_locks(PaimonShared *shared, Relation rel)
{
	PaimonBatchBuilder *builder;
	PaimonLogBatch      batch;
	int                 n;
	PaimonKeyLock      *locks = paimon_keylock_mine(shared, &n);

	if (n == 0)
		return;
	builder = paimon_batch_begin(PAIMON_LEAVES * PAIMON_LEAF_BUCKETS);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		paimon_batch_add_lock(builder, &locks[i]);
	}
	paimon_batch_finish(builder, &batch);
	batch.header.flags = PAIMON_BATCH_PREPARED | PAIMON_BATCH_LOCKS;
	paimon_log_pack(rel, &batch);
	paimon_append_lock(shared);
	(void) paimon_shared_append(shared, rel, GetTopFullTransactionId(), &batch);
	paimon_append_unlock(shared);
	PAIMON_STOP_POINT("locks-appended");
}

/*
 * See shared.h.  We hold a lock on each of the relations, since a key of it is locked by a (sub)transaction that is not rolled
 * back.  Storages that the transaction has dropped or replaced need no locks.
 */
void
paimon_keylock_prepare(void)
{
	uint64 *storage_ids;
	Oid    *relids;
	int     n = paimon_keylock_storages(&storage_ids, &relids);

	for (int i = 0; i < n; i++)
	{
		Relation      rel = RelationIdGetRelation(relids[i]);
		PaimonShared *shared;

		if (rel == NULL)
			continue;
		if (paimon_storage_is_of(rel, storage_ids[i]))
		{
			shared = paimon_shared_attach(rel, storage_ids[i], PAIMON_LEAVES * PAIMON_LEAF_BUCKETS);
			append_locks(shared, rel);
			paimon_shared_unpin(shared);
		}
		RelationClose(rel);
	}
	pfree(storage_ids);
	pfree(relids);
}
