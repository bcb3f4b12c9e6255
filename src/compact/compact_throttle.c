/*-------------------------------------------------------------------------
 *
 * compact_throttle.c
 *	  Holds compactions back so that others get at disk and processor: by cost, as vacuum does.
 *
 * A page that is read costs COST_READ, a page that is written COST_WRITE; when the sum reaches paimon.compaction_cost_limit (shared by all compactions that
 * are held back), the compaction sleeps paimon.compaction_cost_delay, more if it is over the limit by more.  Not held back are compactions that a user asked
 * for, those of buckets near the stop trigger, and all of a table as long as somebody waits for it (paimon_throttle_lift).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "executor/instrument.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "compact/compact.h"
#include "compact/compact_progress.h"
#include "compat.h"

#define COST_READ	2
#define COST_WRITE	20
#define MAX_DELAYS	4			/* sleeps at most so many delays at once */

bool		(*paimon_compaction_yield_hook) (int64 done, int64 total) = NULL;

static double cost_delay = 2;
static int	cost_limit = 2000;

/* ---- lifting ---- */

/*
 * Compactions of this storage of our database are not held back for the next `ms` milliseconds: somebody waits for them.  Whoever waits calls it again
 * before that is over, and when he has ended it ends by itself.  One that begins later is not concerned before the next call.
 */
void
paimon_throttle_lift(uint64 storage_id, int ms)
{
	TimestampTz until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), ms);

	LWLockAcquire(&paimon_compactions->lock, LW_SHARED);
	for (int i = 0; i < PAIMON_COMPACTIONS_RUNNING; i++)
	{
		PaimonCompactionEntry *e = &paimon_compactions->entries[i];

		if (e->used && e->record.dbid == MyDatabaseId && e->record.storage_id == storage_id)
			pg_atomic_write_u64(&e->lifted_until, (uint64) until);
	}
	LWLockRelease(&paimon_compactions->lock);
}

static bool
is_lifted(const PaimonCompactionNote *note)
{
	TimestampTz until;

	if (note->entry == NULL)
		return false;
	until = (TimestampTz) pg_atomic_read_u64(&note->entry->lifted_until);
	return until != 0 && until > GetCurrentTimestamp();
}

/* ---- holding back ---- */

static void
pages(int64 *accessed, int64 *dirtied)
{
	*accessed = pgBufferUsage.shared_blks_hit + pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_hit +
		pgBufferUsage.local_blks_read;
	*dirtied = pgBufferUsage.shared_blks_dirtied + pgBufferUsage.local_blks_dirtied;
}

void
paimon_throttle_begin(PaimonCompactionNote *note, bool throttled)
{
	note->throttled = throttled;
	note->balance = 0;
	pages(&note->pages_seen, &note->dirtied_seen);
	if (throttled)
		pg_atomic_fetch_add_u32(&paimon_compactions->nthrottled, 1);
}

/* Must not fail. */
void
paimon_throttle_end(PaimonCompactionNote *note)
{
	if (note->throttled)
		pg_atomic_fetch_sub_u32(&paimon_compactions->nthrottled, 1);
	note->throttled = false;
}

/* Interruptibly, and no longer than until somebody waits for us.  Other things may set our latch. */
static void
nap(PaimonCompactionNote *note, double ms)
{
	TimestampTz start = GetCurrentTimestamp();
	TimestampTz end = start + (TimestampTz) (ms * 1000);
	TimestampTz now = start;

	while (now < end && !is_lifted(note))
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, (long) ((end - now + 999) / 1000),
						 paimon_wait_event_throttle());
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		now = GetCurrentTimestamp();
	}
	note->record.delay_us += now - start;
}

static void
hold_back(PaimonCompactionNote *note, int64 accessed, int64 dirtied)
{
	double		limit;
	uint32		sharers;

	if (!note->throttled || cost_delay <= 0)
	{
		note->balance = 0;
		return;
	}
	/* what is written was accessed, too */
	note->balance += (double) (accessed - dirtied) * COST_READ + (double) dirtied * COST_WRITE;
	sharers = pg_atomic_read_u32(&paimon_compactions->nthrottled);
	limit = Max((double) cost_limit / Max(sharers, 1), 1);
	if (note->balance < limit)
		return;
	if (!is_lifted(note))
		nap(note, Min(cost_delay * note->balance / limit, cost_delay * MAX_DELAYS));
	note->balance = 0;
}

/*
 * The transaction is given up: nothing of a merge can be kept, since a file that is merged only in part must stay as it is.  The code is that of a lock that
 * could not be had, which for a worker means: later.
 */
static void
make_room(PaimonCompactionNote *note)
{
	note->yielding = true;
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("compaction was given up for other work, or because nobody waits for it any more")));
}

void
paimon_throttle_point(PaimonCompactionNote *note, int64 rows)
{
	int64		accessed;
	int64		dirtied;
	int64		read;

	CHECK_FOR_INTERRUPTS();
	pages(&accessed, &dirtied);
	read = Max((accessed - note->pages_seen) - (dirtied - note->dirtied_seen), 0);
	if (note->entry != NULL)
	{
		pg_atomic_write_u64(&note->entry->pages_in, pg_atomic_read_u64(&note->entry->pages_in) + read);
		pg_atomic_write_u64(&note->entry->pages_out, pg_atomic_read_u64(&note->entry->pages_out) + (dirtied - note->dirtied_seen));
		pg_atomic_write_u64(&note->entry->rows_out, rows);
		pg_atomic_write_u64(&note->entry->delay_us, note->record.delay_us);
	}
	hold_back(note, accessed - note->pages_seen, dirtied - note->dirtied_seen);
	note->pages_seen = accessed;
	note->dirtied_seen = dirtied;
	if (paimon_compaction_yield_hook != NULL &&
		paimon_compaction_yield_hook(note->entry != NULL ? (int64) pg_atomic_read_u64(&note->entry->pages_in) * BLCKSZ : 0, note->record.bytes_in))
		make_room(note);
}

void
paimon_throttle_init(void)
{
	DefineCustomRealVariable("paimon.compaction_cost_delay",
							 "Sets the time that a compaction sleeps when it has read and written as much as paimon.compaction_cost_limit allows.",
							 "0 turns it off. Compactions that a user asked for, and those that writers wait for, do not sleep.",
							 &cost_delay,
							 2, 0, 100,
							 PGC_SIGHUP, GUC_UNIT_MS,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("paimon.compaction_cost_limit",
							"Sets the cost at which compactions sleep: a page read costs 2, a page written 20.",
							"It is divided among the compactions that run.",
							&cost_limit,
							2000, 1, 1000000,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
}
