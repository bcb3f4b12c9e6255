/*-------------------------------------------------------------------------
 *
 * memtable_listener.c
 *	  Who is woken when a table of a database wants a flush.
 *
 * A small array of (database, latch) under a spinlock.  The latch is one of a PGPROC, so setting it is harmless
 * even if its owner has just gone.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/shmem.h"
#include "storage/latch.h"

#include "memtable/memtable_internal.h"

#define MAX_LISTENERS 256

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
