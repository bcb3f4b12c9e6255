/*-------------------------------------------------------------------------
 *
 * compact_history.c
 *	  Which compactions run, and what became of those that have ended.
 *
 * Both are in shared memory: a compaction that fails could not write a row about it.  The ring of ended ones (paimon.compaction_history_size) is empty
 * after a restart.  A compaction is "done" when its transaction has committed, so its record is kept by its process until then; if the transaction or the
 * process ends otherwise, the transaction callback writes what is known.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/instrument.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compact/compact_progress.h"
#include "compat.h"
#include "paimon_am.h"

PG_FUNCTION_INFO_V1(paimon_compactions_running);
PG_FUNCTION_INFO_V1(paimon_compactions_ended);

#define RUNNING_COLUMNS 18
#define ENDED_COLUMNS 25

PaimonCompactions *paimon_compactions = NULL;

static int	history_size = 1000;
static int	log_min_duration = 600000;
static List *notes = NIL;		/* of this transaction, in TopMemoryContext */

static const char *const phase_names[] = {"choosing", "merging", "publishing", "committing"};
static const char *const outcome_names[] = {"running", "done", "lost", "yielded", "cancelled", "terminated", "rolled back", "failed"};

/* ---- the owner's side ---- */

static void
take_entry(PaimonCompactionNote *note, bool throttled)
{
	LWLockAcquire(&paimon_compactions->lock, LW_EXCLUSIVE);
	for (int i = 0; i < PAIMON_COMPACTIONS_RUNNING && note->entry == NULL; i++)
	{
		PaimonCompactionEntry *e = &paimon_compactions->entries[i];

		if (e->used)
			continue;
		e->used = true;
		e->throttled = throttled;
		e->record = note->record;
		pg_atomic_write_u64(&e->pages_in, 0);
		pg_atomic_write_u64(&e->pages_out, 0);
		pg_atomic_write_u64(&e->rows_out, 0);
		pg_atomic_write_u64(&e->delay_us, 0);
		pg_atomic_write_u64(&e->lifted_until, 0);
		note->entry = e;
	}
	LWLockRelease(&paimon_compactions->lock);
}

/* No longer running.  Must not fail. */
static void
release_entry(PaimonCompactionNote *note)
{
	paimon_throttle_end(note);
	if (note->entry == NULL)
		return;
	LWLockAcquire(&paimon_compactions->lock, LW_EXCLUSIVE);
	note->entry->used = false;
	LWLockRelease(&paimon_compactions->lock);
	note->entry = NULL;
}

static void
show(PaimonCompactionNote *note)
{
	if (note->entry == NULL)
		return;
	LWLockAcquire(&paimon_compactions->lock, LW_EXCLUSIVE);
	note->entry->record = note->record;
	LWLockRelease(&paimon_compactions->lock);
}

/* Into the ring.  Must not fail. */
static void
keep(PaimonCompactionNote *note)
{
	note->record.wal_bytes = (int64) (pgWalUsage.wal_bytes - note->wal_start);
	if (note->record.ended == 0)
		note->record.ended = GetCurrentTimestamp();
	LWLockAcquire(&paimon_compactions->lock, LW_EXCLUSIVE);
	note->record.id = ++paimon_compactions->last_id;
	if (paimon_compactions->size > 0)
		paimon_compactions->ring[note->record.id % paimon_compactions->size] = note->record;
	LWLockRelease(&paimon_compactions->lock);
}

static void
drop(PaimonCompactionNote *note)
{
	release_entry(note);
	notes = list_delete_ptr(notes, note);
	pfree(note);
}

PaimonCompactionNote *
paimon_compaction_begin(const PaimonCompaction *c, bool requested, bool throttled)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	PaimonCompactionNote *note = palloc0(sizeof(PaimonCompactionNote));

	note->subid = GetCurrentSubTransactionId();
	note->wal_start = pgWalUsage.wal_bytes;
	note->record.pid = MyProcPid;
	note->record.dbid = MyDatabaseId;
	note->record.relid = RelationGetRelid(c->rel);
	note->record.storage_id = c->table->storage_id;
	note->record.bucket = c->bucket;
	note->record.requested = requested;
	note->record.started = GetCurrentTimestamp();
	notes = lappend(notes, note);
	MemoryContextSwitchTo(old);
	take_entry(note, throttled);
	paimon_throttle_begin(note, throttled);
	return note;
}

void
paimon_compaction_forget(PaimonCompactionNote *note)
{
	drop(note);
}

void
paimon_compaction_picked(PaimonCompactionNote *note, const PaimonCompaction *c)
{
	PaimonCompactionRecord *r = &note->record;
	const PaimonSortedRun *runs = &c->runs->runs[c->plan.first];

	r->reason = c->plan.reason;
	r->output_level = c->plan.output_level;
	r->runs_in = c->plan.nruns;
	for (int i = 0; i < c->plan.nruns; i++)
	{
		r->levels_in |= UINT64CONST(1) << Min(runs[i].level, 63);
		r->files_in += runs[i].nfiles;
		r->bytes_in += runs[i].bytes;
		r->rows_in += runs[i].rows;
	}
	r->phase = PAIMON_PHASE_MERGING;
	show(note);
}

void
paimon_compaction_phase(PaimonCompactionNote *note, PaimonCompactionPhase phase)
{
	note->record.phase = phase;
	show(note);
}

static void
log_line(const PaimonCompaction *c, const PaimonCompactionNote *note)
{
	const PaimonCompactionRecord *r = &note->record;
	int64		ms = (r->ended - r->started) / 1000;

	if (log_min_duration < 0 || ms < log_min_duration)
		return;
	ereport(LOG,
			(errmsg("compacted table \"%s\", bucket %d: %d runs to level %d, %d files merged into %d, %d lifted", RelationGetRelationName(c->rel),
					r->bucket, r->runs_in, r->output_level, r->files_merged, r->files_out, r->files_lifted),
			 errdetail("Because of %s. Rows: " INT64_FORMAT " read, " INT64_FORMAT " written. Bytes: " INT64_FORMAT " read, " INT64_FORMAT
					   " written, " INT64_FORMAT " of WAL. Elapsed: " INT64_FORMAT " ms, of them " INT64_FORMAT " ms held back.",
					   paimon_compaction_reason_name(r->reason), r->rows_in, r->rows_out, r->bytes_in, r->bytes_out,
					   (int64) (pgWalUsage.wal_bytes - note->wal_start), ms, r->delay_us / 1000)));
}

void
paimon_compaction_done(PaimonCompactionNote *note, const PaimonCompaction *c, const PaimonCompactResult *result)
{
	PaimonCompactionRecord *r = &note->record;

	/* files that only move are neither read nor written */
	r->rows_in = 0;
	for (int i = 0; i < c->nmerged; i++)
		r->rows_in += c->merged[i]->row_count;
	r->bytes_in = result->bytes_in;
	r->rows_out = result->rows_out;
	r->bytes_out = result->bytes_out;
	r->files_merged = result->files_in;
	r->files_out = result->files_out;
	r->files_lifted = result->files_lifted;
	r->outcome = PAIMON_COMPACTION_DONE;
	r->phase = PAIMON_PHASE_COMMITTING;
	r->ended = GetCurrentTimestamp();
	paimon_throttle_end(note);
	show(note);
	log_line(c, note);
}

/*
 * It came to nothing, whatever the transaction does.  Called while an error is being handled: locks of whoever raised it may still be held, so all else is
 * left to the end of the (sub)transaction.
 */
void
paimon_compaction_failed(PaimonCompactionNote *note, PaimonCompactionOutcome outcome, const ErrorData *edata)
{
	note->record.outcome = outcome;
	if (edata != NULL)
	{
		note->record.sqlerrcode = edata->sqlerrcode;
		strlcpy(note->record.message, edata->message ? edata->message : "", PAIMON_HISTORY_MESSAGE);
	}
	note->record.ended = GetCurrentTimestamp();
}

/* ---- ends of transactions.  Must not fail. ---- */

static void
finish(PaimonCompactionNote *note, bool commit)
{
	/* of the files that an abort leaves the sweep must know */
	if (!commit && note->record.phase != PAIMON_PHASE_CHOOSING)
		paimon_shared_request_sweep(MyDatabaseId, note->record.relid);
	if (note->record.outcome == PAIMON_COMPACTION_RUNNING)
		note->record.outcome = PAIMON_COMPACTION_TERMINATED;	/* no error was caught: the process ends */
	else if (!commit && note->record.outcome == PAIMON_COMPACTION_DONE)
		note->record.outcome = PAIMON_COMPACTION_ROLLED_BACK;
	if (note->record.outcome == PAIMON_COMPACTION_TERMINATED)
		strlcpy(note->record.message, "its process was ended", PAIMON_HISTORY_MESSAGE);
	keep(note);
	release_entry(note);
}

static void
xact_callback(XactEvent event, void *arg)
{
	ListCell   *lc;

	if (notes == NIL || (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE))
		return;
	foreach(lc, notes)
	{
		PaimonCompactionNote *note = lfirst(lc);

		finish(note, event != XACT_EVENT_ABORT);
		pfree(note);
	}
	list_free(notes);
	notes = NIL;
}

static void
subxact_callback(SubXactEvent event, SubTransactionId mySubid, SubTransactionId parentSubid, void *arg)
{
	ListCell   *lc;

	if (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB)
		return;
	foreach(lc, notes)
	{
		PaimonCompactionNote *note = lfirst(lc);

		if (note->subid != mySubid)
			continue;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
		{
			note->subid = parentSubid;
			continue;
		}
		finish(note, false);
		notes = foreach_delete_current(notes, lc);
		pfree(note);
	}
}

/* ---- views ---- */

/* Who may read all statistics sees all; others what concerns tables of their own.  (Messages may hold values of rows.) */
static bool
may_see(const PaimonCompactionRecord *r)
{
	if (has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS))
		return true;
	return r->dbid == MyDatabaseId && get_rel_relkind(r->relid) != '\0' && paimon_owns_relation(r->relid);
}

static void
put_running(ReturnSetInfo *rsinfo, const PaimonCompactionEntry *e)
{
	const PaimonCompactionRecord *r = &e->record;
	Datum		values[RUNNING_COLUMNS];
	bool		nulls[RUNNING_COLUMNS] = {0};
	TimestampTz lifted = (TimestampTz) pg_atomic_read_u64((pg_atomic_uint64 *) &e->lifted_until);
	int			n = 0;

	values[n++] = Int32GetDatum(r->pid);
	values[n++] = ObjectIdGetDatum(r->dbid);
	values[n++] = ObjectIdGetDatum(r->relid);
	values[n++] = Int32GetDatum(r->bucket);
	values[n++] = CStringGetTextDatum(phase_names[r->phase]);
	values[n++] = TimestampTzGetDatum(r->started);
	values[n++] = BoolGetDatum(r->requested);
	nulls[n] = r->phase == PAIMON_PHASE_CHOOSING;
	values[n++] = CStringGetTextDatum(paimon_compaction_reason_name(r->reason));
	values[n++] = Int32GetDatum(r->runs_in);
	values[n++] = Int32GetDatum(r->files_in);
	nulls[n] = r->phase == PAIMON_PHASE_CHOOSING;
	values[n++] = Int32GetDatum(r->output_level);
	values[n++] = Int64GetDatum(r->bytes_in);
	/* pages are read more than once now and then */
	values[n++] = Int64GetDatum(Min((int64) pg_atomic_read_u64((pg_atomic_uint64 *) &e->pages_in) * BLCKSZ, r->bytes_in));
	values[n++] = Int64GetDatum((int64) pg_atomic_read_u64((pg_atomic_uint64 *) &e->pages_out) * BLCKSZ);
	values[n++] = Int64GetDatum(r->rows_in);
	values[n++] = Int64GetDatum((int64) pg_atomic_read_u64((pg_atomic_uint64 *) &e->rows_out));
	values[n++] = BoolGetDatum(e->throttled && (lifted == 0 || lifted <= GetCurrentTimestamp()));
	values[n++] = Float8GetDatum((double) pg_atomic_read_u64((pg_atomic_uint64 *) &e->delay_us) / 1000);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

Datum
paimon_compactions_running(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PaimonCompactionEntry *entries = palloc(sizeof(PaimonCompactionEntry) * PAIMON_COMPACTIONS_RUNNING);

	paimon_require_preload();
	InitMaterializedSRF(fcinfo, 0);
	LWLockAcquire(&paimon_compactions->lock, LW_SHARED);
	memcpy(entries, paimon_compactions->entries, sizeof(PaimonCompactionEntry) * PAIMON_COMPACTIONS_RUNNING);
	LWLockRelease(&paimon_compactions->lock);
	for (int i = 0; i < PAIMON_COMPACTIONS_RUNNING; i++)
	{
		if (entries[i].used && may_see(&entries[i].record))
			put_running(rsinfo, &entries[i]);
	}
	return (Datum) 0;
}

static Datum
levels_array(uint64 mask)
{
	Datum		levels[64];
	int			n = 0;

	for (int i = 0; i < 64; i++)
	{
		if (mask & (UINT64CONST(1) << i))
			levels[n++] = Int32GetDatum(i);
	}
	return PointerGetDatum(construct_array(levels, n, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

static void
put_ended(ReturnSetInfo *rsinfo, const PaimonCompactionRecord *r)
{
	Datum		values[ENDED_COLUMNS];
	bool		nulls[ENDED_COLUMNS] = {0};
	int			n = 0;
	bool		done = r->outcome == PAIMON_COMPACTION_DONE;
	bool		error = r->message[0] != '\0';

	values[n++] = Int64GetDatum(r->id);
	values[n++] = ObjectIdGetDatum(r->dbid);
	values[n++] = ObjectIdGetDatum(r->relid);
	values[n++] = Int32GetDatum(r->bucket);
	values[n++] = TimestampTzGetDatum(r->started);
	values[n++] = Float8GetDatum((double) (r->ended - r->started) / 1000);
	values[n++] = CStringGetTextDatum(outcome_names[r->outcome]);
	nulls[n] = r->reason == PAIMON_COMPACT_NOTHING;
	values[n++] = CStringGetTextDatum(paimon_compaction_reason_name(r->reason));
	values[n++] = BoolGetDatum(r->requested);
	values[n++] = Int32GetDatum(r->pid);
	values[n++] = Int32GetDatum(r->runs_in);
	values[n++] = levels_array(r->levels_in);
	values[n++] = Int32GetDatum(r->files_in);
	nulls[n] = r->reason == PAIMON_COMPACT_NOTHING;
	values[n++] = Int32GetDatum(r->output_level);
	values[n++] = Int32GetDatum(r->files_out);
	values[n++] = Int32GetDatum(r->files_lifted);
	values[n++] = Int64GetDatum(r->rows_in);
	values[n++] = Int64GetDatum(r->rows_out);
	nulls[n] = !done;
	values[n++] = Int64GetDatum(r->rows_in - r->rows_out);
	values[n++] = Int64GetDatum(r->bytes_in);
	values[n++] = Int64GetDatum(r->bytes_out);
	values[n++] = Int64GetDatum(r->wal_bytes);
	values[n++] = Float8GetDatum((double) r->delay_us / 1000);
	nulls[n] = r->sqlerrcode == 0;
	values[n++] = CStringGetTextDatum(unpack_sql_state(r->sqlerrcode));
	nulls[n] = !error;
	values[n++] = CStringGetTextDatum(r->message);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

Datum
paimon_compactions_ended(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	PaimonCompactionRecord *ring;
	int64		first;
	int64		last;

	paimon_require_preload();
	InitMaterializedSRF(fcinfo, 0);
	if (paimon_compactions->size == 0)
		return (Datum) 0;
	ring = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(PaimonCompactionRecord) * paimon_compactions->size);
	LWLockAcquire(&paimon_compactions->lock, LW_SHARED);
	memcpy(ring, paimon_compactions->ring, sizeof(PaimonCompactionRecord) * paimon_compactions->size);
	last = paimon_compactions->last_id;
	LWLockRelease(&paimon_compactions->lock);
	first = Max(last - paimon_compactions->size + 1, 1);
	for (int64 id = first; id <= last; id++)
	{
		const PaimonCompactionRecord *r = &ring[id % paimon_compactions->size];

		CHECK_FOR_INTERRUPTS();
		if (may_see(r))
			put_ended(rsinfo, r);
	}
	return (Datum) 0;
}

/* ---- set-up ---- */

Size
paimon_history_shmem_size(void)
{
	return MAXALIGN(offsetof(PaimonCompactions, ring) + sizeof(PaimonCompactionRecord) * (Size) history_size);
}

/* Called with AddinShmemInitLock held. */
void
paimon_history_shmem_init(void)
{
	bool		found;

	paimon_compactions = ShmemInitStruct("paimon compactions", paimon_history_shmem_size(), &found);
	if (!found)
	{
		memset(paimon_compactions, 0, paimon_history_shmem_size());
		paimon_compactions->size = history_size;
		paimon_compactions->tranche = LWLockNewTrancheId();
		LWLockInitialize(&paimon_compactions->lock, paimon_compactions->tranche);
		pg_atomic_init_u32(&paimon_compactions->nthrottled, 0);
		for (int i = 0; i < PAIMON_COMPACTIONS_RUNNING; i++)
		{
			PaimonCompactionEntry *e = &paimon_compactions->entries[i];

			pg_atomic_init_u64(&e->pages_in, 0);
			pg_atomic_init_u64(&e->pages_out, 0);
			pg_atomic_init_u64(&e->rows_out, 0);
			pg_atomic_init_u64(&e->delay_us, 0);
			pg_atomic_init_u64(&e->lifted_until, 0);
		}
	}
	LWLockRegisterTranche(paimon_compactions->tranche, "PaimonCompactions");
}

void
paimon_history_init(void)
{
	DefineCustomIntVariable("paimon.compaction_history_size",
							"Sets the number of compactions that paimon.compaction_history remembers.",
							"They are kept in shared memory, of all databases together, until the server restarts.",
							&history_size,
							1000, 0, 100000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("paimon.log_compaction_min_duration",
							"Sets the minimum execution time above which compactions are logged.",
							"0 logs all of them, -1 none.",
							&log_min_duration,
							600000, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}
