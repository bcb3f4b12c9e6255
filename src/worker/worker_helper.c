/*-------------------------------------------------------------------------
 *
 * worker_helper.c
 *	  A helper: a second, third, ... worker of a database whose scheduler has more to do than it can.
 *
 * It serves requests, flushes what is due and takes compactions that the scheduler has posted; what comes next of it is for the scheduler to decide, which is
 * told (news).  The launcher starts one when there is something for it; it ends soon after there is nothing left.  Flagged as a scheduler is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "worker/worker_internal.h"

#define IDLE_EXIT_MS 5000

/* Told to, or fewer workers are allowed now. */
static bool
has_to_go(void)
{
	int			used = 0;
	bool		result;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
		used += paimon_workers->slots[i].state != PAIMON_SLOT_FREE;
	result = paimon_my_slot->give_way || used > paimon_max_workers;
	paimon_workers_unlock();
	return result;
}

static void
loop(void)
{
	MemoryContext cxt = AllocSetContextCreate(TopMemoryContext, "paimon helper pass", ALLOCSET_DEFAULT_SIZES);
	TimestampTz active = GetCurrentTimestamp();

	while (!has_to_go())
	{
		bool		any;
		bool		later = false;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		MemoryContextSwitchTo(cxt);
		any = paimon_worker_serve_requests();
		any |= paimon_worker_flush_due(&later);
		any |= paimon_worker_run_job();
		MemoryContextSwitchTo(TopMemoryContext);
		MemoryContextReset(cxt);
		pgstat_report_stat(true);
		if (any)
		{
			active = GetCurrentTimestamp();
			continue;
		}
		if (TimestampDifferenceExceeds(active, GetCurrentTimestamp(), IDLE_EXIT_MS) || !paimon_worker_extension_here())
			return;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, Min(paimon_naptime, 1000), PG_WAIT_EXTENSION);
	}
}

void
paimon_helper_main(Datum arg)
{
	Oid			dbid = DatumGetObjectId(arg);

	if (!paimon_worker_enter(dbid, true))
		return;
	paimon_worker_connect(dbid);
	if (!paimon_worker_extension_here())
		return;
	loop();
}
