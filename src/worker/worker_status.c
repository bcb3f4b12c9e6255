/*-------------------------------------------------------------------------
 *
 * worker_status.c
 *	  Views over launcher, workers and tables with failures.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "paimon_am.h"
#include "worker/worker_internal.h"

PG_FUNCTION_INFO_V1(paimon_workers_list);
PG_FUNCTION_INFO_V1(paimon_worker_failures_list);

#define WORKERS_COLUMNS 11
#define FAILURES_COLUMNS 7

static void
put_time(Datum *value, bool *isnull, TimestampTz t)
{
	*value = TimestampTzGetDatum(t);
	*isnull = t == 0;
}

static const char *
state_name(const PaimonWorkerSlot *slot)
{
	if (slot->state == PAIMON_SLOT_STARTING)
		return "starting";
	if (!OidIsValid(slot->relid))
		return "idle";
	if (slot->work & (PAIMON_WORK_COMPACT | PAIMON_WORK_COMPACT_NEXT))
		return "compacting";
	if (slot->work & PAIMON_WORK_FLUSH)
		return "flushing";
	if (slot->work & PAIMON_WORK_CHECK)
		return "looking";
	return "reclaiming";
}

static void
put_worker(ReturnSetInfo *rsinfo, const PaimonWorkerSlot *slot)
{
	Datum		values[WORKERS_COLUMNS] = {0};
	bool		nulls[WORKERS_COLUMNS] = {0};

	values[0] = Int32GetDatum(slot->pid);
	nulls[0] = slot->pid == 0;
	values[1] = CStringGetTextDatum(slot->helper ? "helper" : "worker");
	values[2] = ObjectIdGetDatum(slot->dbid);
	values[3] = CStringGetTextDatum(state_name(slot));
	values[4] = ObjectIdGetDatum(slot->relid);
	nulls[4] = !OidIsValid(slot->relid);
	put_time(&values[5], &nulls[5], slot->started);
	values[6] = Int64GetDatum(slot->flushes);
	values[7] = Int64GetDatum(slot->rows);
	values[8] = Int64GetDatum(slot->errors);
	values[9] = CStringGetTextDatum(slot->error);
	nulls[9] = slot->error_time == 0;
	put_time(&values[10], &nulls[10], slot->error_time);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static void
put_launcher(ReturnSetInfo *rsinfo, pid_t pid, TimestampTz started)
{
	Datum		values[WORKERS_COLUMNS] = {0};
	bool		nulls[WORKERS_COLUMNS];

	memset(nulls, true, sizeof(nulls));
	values[0] = Int32GetDatum(pid);
	values[1] = CStringGetTextDatum("launcher");
	values[3] = CStringGetTextDatum("idle");
	put_time(&values[5], &nulls[5], started);
	nulls[0] = nulls[1] = nulls[3] = false;
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

Datum
paimon_workers_list(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PaimonWorkerSlot *slots = palloc(sizeof(PaimonWorkerSlot) * PAIMON_WORKERS_LIMIT);
	pid_t		launcher;
	TimestampTz started;

	paimon_require_preload();
	InitMaterializedSRF(fcinfo, 0);
	paimon_workers_lock();
	memcpy(slots, paimon_workers->slots, sizeof(PaimonWorkerSlot) * PAIMON_WORKERS_LIMIT);
	launcher = paimon_workers->launcher_pid;
	started = paimon_workers->launcher_started;
	paimon_workers_unlock();
	if (launcher != 0)
		put_launcher(rsinfo, launcher, started);
	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
	{
		if (slots[i].state != PAIMON_SLOT_FREE)
			put_worker(rsinfo, &slots[i]);
	}
	return (Datum) 0;
}

static void
put_failure(ReturnSetInfo *rsinfo, const PaimonFailure *f)
{
	Datum		values[FAILURES_COLUMNS];
	bool		nulls[FAILURES_COLUMNS] = {0};

	values[0] = ObjectIdGetDatum(f->dbid);
	values[1] = ObjectIdGetDatum(f->relid);
	values[2] = Int64GetDatum(f->count);
	values[3] = CStringGetTextDatum(unpack_sql_state(f->sqlerrcode));
	values[4] = CStringGetTextDatum(f->message);
	put_time(&values[5], &nulls[5], f->last);
	put_time(&values[6], &nulls[6], f->next_try);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

Datum
paimon_worker_failures_list(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PaimonFailure *failures = palloc(sizeof(PaimonFailure) * PAIMON_FAILURES);

	paimon_require_preload();
	InitMaterializedSRF(fcinfo, 0);
	paimon_workers_lock();
	memcpy(failures, paimon_workers->failures, sizeof(PaimonFailure) * PAIMON_FAILURES);
	paimon_workers_unlock();
	for (int i = 0; i < PAIMON_FAILURES; i++)
	{
		if (OidIsValid(failures[i].dbid))
			put_failure(rsinfo, &failures[i]);
	}
	return (Datum) 0;
}
