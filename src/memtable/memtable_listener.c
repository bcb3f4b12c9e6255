/*-------------------------------------------------------------------------
 *
 * memtable_listener.c
 *	  Who is woken when a table of a database wants a flush; when a log that is not long wants one.
 *
 * A small array of (database, latch) under a spinlock.  The latch is one of a PGPROC, so setting it is harmless
 * even if its owner has just gone.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/shmem.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

#include "memtable/memtable_internal.h"

#define MAX_LISTENERS 256

/* What is not flushed though it is not much is flushed all the same if it is this large, this share of the table, and this old. */
#define LONE_BYTES ((uint64) 1024 * 1024)
#define LONE_SHARE 16
#define LONE_MS 30000

typedef struct Listener
{
	Oid    dbid;
	Latch *latch;
} Listener;

typedef struct Listeners
{
	slock_t  mutex;
	int      n;
	Listener list[MAX_LISTENERS];
} Listeners;

static Listeners *listeners = NULL;

Size
paimon_listener_shmem_size(void)
{
	return MAXALIGN(sizeof(Listeners));
}

/* Called with AddinShmemInitLock held. */
void
paimon_listener_shmem_init(void)
{
	bool found;

	listeners = ShmemInitStruct("paimon flush listeners", sizeof(Listeners), &found);
	if (found)
		return;
	SpinLockInit(&listeners->mutex);
	listeners->n = 0;
}

/*
 * Registers the latch of a database's scheduler, in place of one that is there; NULL unregisters.  With more
 * databases than fit, the newest is not woken and finds requests when it looks by itself.
 */
void
paimon_shared_set_listener(Oid dbid, Latch *latch)
{
	int i;

	SpinLockAcquire(&listeners->mutex);
	for (i = 0; i < listeners->n && listeners->list[i].dbid != dbid; i++)
		;
	if (latch == NULL)
	{
		if (i < listeners->n)
			listeners->list[i] = listeners->list[--listeners->n];
	}
	else if (i < MAX_LISTENERS)
	{
		listeners->list[i].dbid = dbid;
		listeners->list[i].latch = latch;
		if (i == listeners->n)
			listeners->n++;
	}
	SpinLockRelease(&listeners->mutex);
}

/* Never fails; may be called with any lock but is meant for none. */
void
paimon_listener_wake(Oid dbid)
{
	Latch *latch = NULL;
	Latch *fallback = NULL;

	SpinLockAcquire(&listeners->mutex);
	for (int i = 0; i < listeners->n; i++)
	{
		if (listeners->list[i].dbid == dbid)
			latch = listeners->list[i].latch;
		else if (listeners->list[i].dbid == InvalidOid)
			fallback = listeners->list[i].latch;
	}
	SpinLockRelease(&listeners->mutex);
	if (latch == NULL)
		latch = fallback;
	if (latch != NULL)
		SetLatch(latch);
}

/* See shared.h. */
void
paimon_shared_set_live_bytes(PaimonShared *shared, uint64 bytes)
{
	SpinLockAcquire(&shared->mutex);
	shared->live_bytes = bytes + 1;
	SpinLockRelease(&shared->mutex);
}

/*
 * Is what the log holds large beside the table, and old?  Then it would be most of the table, or what it deletes would be, for as long as nothing else is
 * written.
 */
bool
paimon_log_outweighs(const PaimonSharedInfo *info, uint64 live_bytes)
{
	return live_bytes > 0 && info->unflushed >= LONE_BYTES && info->unflushed >= live_bytes / LONE_SHARE && info->oldest != 0 &&
		   TimestampDifferenceExceeds(info->oldest, GetCurrentTimestamp(), LONE_MS);
}
