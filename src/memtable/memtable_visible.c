/*-------------------------------------------------------------------------
 *
 * memtable_visible.c
 *	  Fate of a batch: running, committed, aborted; and who sees it.
 *
 * The order of questions is heap's: snapshot or list of running transactions first, clog after, so that a
 * transaction is never taken for aborted while it commits.  What clog says once is kept in the batch's hint: it
 * lives in memory only, so asynchronous commits need no care here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "storage/procarray.h"
#include "utils/snapmgr.h"

#include "memtable/memtable_internal.h"

static inline uint32
get_hint(const PaimonBatchInfo *b)
{
	return __atomic_load_n(&b->hint, __ATOMIC_RELAXED);
}

static inline void
set_hint(PaimonBatchInfo *b, uint32 hint)
{
	__atomic_store_n(&b->hint, hint, __ATOMIC_RELAXED);
}

/* For a transaction that is known not to run any more. */
static bool
ask_clog(PaimonBatchInfo *b)
{
	bool committed = TransactionIdDidCommit(b->xid);

	/* A hint stays, and what is aborted is dropped for good: so it is worth a second question. */
	if (committed || !TransactionIdIsInProgress(b->xid))
		set_hint(b, committed ? PAIMON_HINT_COMMITTED : PAIMON_HINT_ABORTED);
	return committed;
}

bool
paimon_batch_running(PaimonBatchInfo *b)
{
	if (get_hint(b) != PAIMON_HINT_UNKNOWN)
		return false;
	return TransactionIdIsInProgress(b->xid);
}

bool
paimon_batch_committed(PaimonBatchInfo *b)
{
	uint32 hint = get_hint(b);

	if (hint != PAIMON_HINT_UNKNOWN)
		return hint == PAIMON_HINT_COMMITTED;
	if (TransactionIdIsInProgress(b->xid))
		return false;
	return ask_clog(b);
}

bool
paimon_batch_visible(PaimonBatchInfo *b, Snapshot snapshot)
{
	uint32 hint = get_hint(b);

	if (hint == PAIMON_HINT_ABORTED)
		return false;
	if (!TransactionIdIsValid(b->xid))
		return true; /* frozen; aborted ones ended above */
	if (!TransactionIdPrecedes(b->xid, snapshot->xmin))
	{
		/* Our own xid is never below xmin. */
		if (TransactionIdIsCurrentTransactionId(b->xid))
			return true;
		if (XidInMVCCSnapshot(b->xid, snapshot))
			return false;
	}
	if (hint == PAIMON_HINT_COMMITTED)
		return true;
	return ask_clog(b);
}
