/*-------------------------------------------------------------------------
 *
 * memtable_runs.c
 *	  How many sorted runs the fullest bucket of a storage has, and waiting for them to get fewer.
 *
 * The number is kept with a counter of its changes in one atomic word, so that whoever counts in the manifest can tell whether something was published
 * meanwhile.  Publishers change it when their transaction has committed and before they let go of the publish lock, hence one after the other.  It
 * may be too large for a moment or until somebody counts, never too small: large commits say "one more" without looking which buckets they touch.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "memtable/memtable_internal.h"
#include "memtable/stats.h"

#define RUNS_OF(state) ((uint32) (state))
#define CHANGED(state, runs) ((((state) >> 32) + 1) << 32 | (runs))

uint32
paimon_runs(PaimonShared *shared, uint64 *state)
{
	uint64		now = pg_atomic_read_u64(&shared->runs);

	if (state != NULL)
	{
		*state = now;
		pg_memory_barrier();	/* the snapshot is taken after this */
	}
	return RUNS_OF(now);
}

/* Never fails: called when the transaction has committed. */
void
paimon_runs_change(PaimonShared *shared, bool one_more, uint32 runs)
{
	uint64		old = pg_atomic_read_u64(&shared->runs);
	uint64		new;

	do
	{
		uint32		n = runs;

		if (one_more)
			n = RUNS_OF(old) == PAIMON_RUNS_UNKNOWN ? PAIMON_RUNS_UNKNOWN : RUNS_OF(old) + 1;
		new = CHANGED(old, n);
	} while (!pg_atomic_compare_exchange_u64(&shared->runs, &old, new));
	ConditionVariableBroadcast(&shared->runs_cv);
}

void
paimon_runs_counted(PaimonShared *shared, uint64 state, uint32 runs)
{
	uint64		expected = state;

	(void) pg_atomic_compare_exchange_u64(&shared->runs, &expected, CHANGED(state, runs));
}

void
paimon_runs_forget(PaimonShared *shared)
{
	uint64		old = pg_atomic_read_u64(&shared->runs);

	while (!pg_atomic_compare_exchange_u64(&shared->runs, &old, CHANGED(old, PAIMON_RUNS_UNKNOWN)))
		;
}

/* ---- waiting ---- */

uint32
paimon_runs_waiting(PaimonShared *shared)
{
	return pg_atomic_read_u32(&shared->runs_waiting);
}

void
paimon_runs_wait_begin(PaimonShared *shared)
{
	pg_atomic_fetch_add_u32(&shared->runs_waiting, 1);
	ConditionVariablePrepareToSleep(&shared->runs_cv);
}

void
paimon_runs_wait_end(PaimonShared *shared)
{
	ConditionVariableCancelSleep();
	pg_atomic_fetch_sub_u32(&shared->runs_waiting, 1);
}

bool
paimon_runs_sleep(PaimonShared *shared, long timeout_ms, uint32 wait_event)
{
	return ConditionVariableTimedSleep(&shared->runs_cv, timeout_ms, wait_event);
}

uint32
paimon_shared_times_blocked(PaimonShared *shared)
{
	return pg_atomic_read_u32(&shared->times_blocked);
}
