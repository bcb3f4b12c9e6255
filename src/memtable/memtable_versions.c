/*-------------------------------------------------------------------------
 *
 * memtable_versions.c
 *	  Manifest versions: which one a snapshot sees, told without reading the manifest (H17).
 *
 * Publishers of a storage are serial, so its manifest versions form a line, and a snapshot sees a beginning of it.  Each publisher announces its version and
 * transaction here before it commits.  Whoever has once read version v, written by transaction x, knows that another snapshot sees exactly v too if it sees x
 * and none of the versions announced after v.  A publisher that fails leaves its announcement: the next one has the same version and takes its place.
 *
 * The announcements of a standby's primary do not come here, nor do those from before the entry was made: then nothing is known, and the rows are read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "compat.h"
#include "storage/lwlock.h"
#include "utils/snapmgr.h"

#include "memtable/memtable_internal.h"

/* Transactions as old as this are not judged: their ids may mean others by now. */
#define XID_AGE_MAX (UINT64CONST(1) << 30)

/* The full form of a transaction id that a row version has; frozen ones are Invalid. */
FullTransactionId
paimon_version_writer(TransactionId xid)
{
	uint64		next = U64FromFullTransactionId(ReadNextFullTransactionId());
	uint64		full;

	if (!TransactionIdIsNormal(xid))
		return InvalidFullTransactionId;
	full = (next & ~UINT64CONST(0xFFFFFFFF)) | xid;
	if (full >= next)
		full -= UINT64CONST(1) << 32;
	return FullTransactionIdFromU64(full);
}

/* A number that only grows. */
static void
raise_to(pg_atomic_uint64 *number, uint64 value)
{
	uint64		old = pg_atomic_read_u64(number);

	while (old < value && !pg_atomic_compare_exchange_u64(number, &old, value))
		;
}

/*
 * Before the publisher commits, under the publish lock, in the (sub)transaction that wrote the log's row.  One that fails leaves its version announced: readers then
 * know less, never too much.
 */
void
paimon_shared_announce(PaimonShared *shared, uint64 version)
{
	PaimonVersion *v = &shared->versions[version % PAIMON_VERSIONS];
	FullTransactionId writer = GetCurrentFullTransactionId();

	SpinLockAcquire(&shared->mutex);
	v->version = version;
	v->writer = writer;
	SpinLockRelease(&shared->mutex);
	raise_to(&shared->announced, version);
}

/* Read in the manifest as committed: not announced here, but known. */
void
paimon_shared_learn_version(PaimonShared *shared, uint64 version)
{
	raise_to(&shared->announced, version);
}

uint64
paimon_shared_announced(PaimonShared *shared)
{
	uint64		version = pg_atomic_read_u64(&shared->announced);

	pg_read_barrier();
	return version;
}

/*
 * Did a transaction that is not running any more commit?  False with *unsure set if clog does not go back so far: it is cut off only up to what is frozen, but an
 * announcement stays after its publisher's rows are gone.
 */
static bool
did_commit(TransactionId xid, bool *unsure)
{
	bool		committed = false;

	LWLockAcquire(XactTruncationLock, LW_SHARED);
	*unsure = TransactionIdPrecedes(xid, PAIMON_OLDEST_CLOG_XID);
	if (!*unsure)
		committed = TransactionIdDidCommit(xid);
	LWLockRelease(XactTruncationLock);
	return committed;
}

/* Is it certain that the snapshot does not see what the transaction wrote?  Our own is not judged: that depends on the command. */
static bool
surely_not_seen(FullTransactionId writer, Snapshot snapshot, uint64 next)
{
	TransactionId xid = XidFromFullTransactionId(writer);
	bool		unsure;

	if (next - U64FromFullTransactionId(writer) > XID_AGE_MAX || TransactionIdIsCurrentTransactionId(xid))
		return false;
	return XidInMVCCSnapshot(xid, snapshot) || (!did_commit(xid, &unsure) && !unsure);
}

/* Does the snapshot see what a transaction wrote that has committed? */
static bool
sees_committed(FullTransactionId writer, Snapshot snapshot, uint64 next)
{
	return next - U64FromFullTransactionId(writer) <= XID_AGE_MAX &&
		!XidInMVCCSnapshot(XidFromFullTransactionId(writer), snapshot);
}

bool
paimon_shared_sees_version(PaimonShared *shared, Snapshot snapshot, uint64 version, FullTransactionId writer)
{
	uint64		announced;
	uint64		next;

	Assert(IsMVCCSnapshot(snapshot));
	if (pg_atomic_read_u32(&shared->state) != PAIMON_STATE_PRIMARY || RecoveryInProgress())
		return false;

	/* After the snapshot was taken: who had committed by then had announced. */
	pg_memory_barrier();
	announced = paimon_shared_announced(shared);
	if (announced > version + PAIMON_VERSIONS)
		return false;
	next = U64FromFullTransactionId(ReadNextFullTransactionId());
	if (FullTransactionIdIsValid(writer) && !sees_committed(writer, snapshot, next))
		return false;
	for (uint64 newer = version + 1; newer <= announced; newer++)
	{
		PaimonVersion v;

		SpinLockAcquire(&shared->mutex);
		v = shared->versions[newer % PAIMON_VERSIONS];
		SpinLockRelease(&shared->mutex);
		if (v.version != newer || !surely_not_seen(v.writer, snapshot, next))
			return false;
	}
	return true;
}
