/*-------------------------------------------------------------------------
 *
 * compact_flush.c
 *	  Flush: the committed prefix of a table's delta log becomes level-0 runs and a snapshot; large commits get their snapshot ids.
 *
 * Under the flush lock nobody else changes head and left-over list of the log, only large commits raise its version.  The order of the first
 * three steps is what keeps a run from crossing a large commit's number: the log's row, then a cut, then the files.  A large commit whose
 * number lies below the cut was decided when the cut was taken (its empty batch was not running), so the files read afterwards show
 * it; one that comes later has a number at or behind the cut.
 *
 * While runs are written there is no snapshot and, in a worker, no xid (H13).  What is read cannot go: log from the manifest's head on
 * is not freed, and moving the head needs the flush lock.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compact/compact_progress.h"
#include "core/core_key.h"
#include "memtable/buffer.h"
#include "merge/merge.h"
#include "merge/merge_records.h"
#include "run/run.h"
#include "stop.h"

typedef struct Flush
{
	Relation	rel;
	PaimonTable *table;
	PaimonFlushMode mode;
	PaimonLogRow log;			/* as it was when the cut was taken */
	PaimonCut	cut;
	PaimonFileRow *old_files;	/* live files then */
	int			nold;
	int32		ordinal;		/* of the runs */
	PaimonFileRow *files;		/* written */
	int			nfiles;
	XLogRecPtr	lsn;
	int64		rows;
	PaimonAtEnd *end;
} Flush;

/* ---- the cut ---- */

/* The smallest number of a large commit that has no snapshot id; PG_UINT64_MAX if there is none. */
static uint64
first_unnumbered(const PaimonFileRow *files, int nfiles)
{
	uint64		number = PG_UINT64_MAX;

	for (int i = 0; i < nfiles; i++)
	{
		if (files[i].added_snapshot == 0)
			number = Min(number, files[i].max_position);
	}
	return number;
}

static void
take_cut(Flush *f)
{
	PaimonShared *shared = f->table->shared;
	Snapshot	snapshot = paimon_catalog_latest_snapshot();
	uint64		bulk;

	(void) paimon_catalog_log_get(f->table->storage_id, snapshot, &f->log);
	UnregisterSnapshot(snapshot);
	if (shared != NULL)
		paimon_shared_cut(shared, f->rel, &f->log, PG_UINT64_MAX, &f->cut);
	else
		f->cut.head = f->cut.cut = f->log.head;

	snapshot = paimon_catalog_latest_snapshot();
	f->old_files = paimon_catalog_files(f->table->storage_id, snapshot, &f->nold);
	UnregisterSnapshot(snapshot);
	bulk = first_unnumbered(f->old_files, f->nold);
	if (shared != NULL && bulk < f->cut.cut)
		paimon_shared_cut(shared, f->rel, &f->log, bulk, &f->cut);

	/*
	 * A flush that takes in nothing but left-over batches ends where an earlier one ended: it is newer than that.  Batches of prepared transactions
	 * may be younger than their position says, never older.
	 */
	for (int i = 0; i < f->nold; i++)
	{
		if (f->old_files[i].level == 0 && f->old_files[i].max_position + 1 == f->cut.cut)
			f->ordinal = Max(f->ordinal, f->old_files[i].ordinal + 1);
	}
}

static bool
log_unchanged(const Flush *f)
{
	return f->cut.cut == f->log.head && f->cut.nleftover == f->log.nleftover;
}

/* ---- runs ---- */

static void
run_params(const Flush *f, int bucket, PaimonRunParams *params)
{
	const PaimonOptions *options = &f->table->options;

	memset(params, 0, sizeof(*params));
	params->rel = f->rel;
	params->desc = f->table->desc;
	params->bucket = bucket;
	params->level = 0;
	params->source = PAIMON_SOURCE_FLUSH;
	params->xid = f->mode == PAIMON_FLUSH_WORKER ? InvalidFullTransactionId : GetTopFullTransactionId();
	params->target_file_size = options->target_file_size;
	params->target_file_rows = options->target_file_row_num;
	params->zstd_level = options->compression == PAIMON_COMPRESSION_ZSTD ? options->zstd_level : 0;
	params->max_position = f->cut.cut - 1;
	params->min_position = Min(f->cut.head, params->max_position);
	params->ordinal = f->ordinal;
	params->retracts_stay = paimon_table_retracts_stay(f->table);
	params->deletes_stay = paimon_table_deletes_stay(f->table);
}

/* Is there a file that may hold something a delete marker of this flush deletes?  Large commits behind the cut are newer. */
static bool
has_older(const Flush *f, int bucket)
{
	for (int i = 0; i < f->nold; i++)
	{
		if (f->old_files[i].bucket == bucket && f->old_files[i].max_position < f->cut.cut)
			return true;
	}
	return false;
}

static void
add_files(Flush *f, PaimonRunWriter *writer)
{
	PaimonFileRow *files;
	int			nfiles;
	XLogRecPtr	lsn;

	paimon_run_finish(writer, &files, &nfiles, &lsn);
	if (nfiles == 0)
		return;
	if (f->mode == PAIMON_FLUSH_WORKER)
		paimon_at_end_guards(f->end, files, nfiles);
	f->lsn = Max(f->lsn, lsn);
	f->files = f->files == NULL ? palloc(sizeof(PaimonFileRow) * nfiles) :
		repalloc_huge(f->files, sizeof(PaimonFileRow) * ((Size) f->nfiles + nfiles));
	memcpy(&f->files[f->nfiles], files, sizeof(PaimonFileRow) * nfiles);
	f->nfiles += nfiles;
	for (int i = 0; i < nfiles; i++)
		f->rows += files[i].row_count;
}

/* A record that the iterator will not keep is copied. */
static void
keep_record(PaimonMemRecord *rec, MemoryContext cxt)
{
	if (rec->external && rec->payload.len > 0)
		rec->payload.data = memcpy(MemoryContextAllocHuge(cxt, rec->payload.len), rec->payload.data, rec->payload.len);
}

/* What the fold of a key comes to. */
static void
write_folded(PaimonRunWriter *writer, PaimonMerger *merger, bool oldest)
{
	PaimonBytes key = paimon_merger_key_bytes(merger);
	int			n = paimon_merger_partial(merger, oldest);

	for (int i = 0; i < n; i++)
	{
		const Datum *values;
		const bool *isnull;
		uint8		kind = paimon_merger_record(merger, i, &values, &isnull);

		(void) paimon_run_add_values(writer, key.data, key.len, kind, values, isnull);
	}
}

/* A bucket of a table that merges: what all records of a key come to. */
static void
write_merged(Flush *f, PaimonMemIter *it, PaimonRunWriter *writer, bool oldest)
{
	PaimonMerger *merger = paimon_merger_begin(RelationGetRelationName(f->rel), f->table->desc, f->table->plan, false);
	MemoryContext key_cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon flush key", ALLOCSET_DEFAULT_SIZES);
	PaimonMemRecord next;
	bool		more = paimon_memiter_first(it, &next);

	while (more)
	{
		PaimonMemRecord rec = next;
		bool		matters;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(key_cxt);
		keep_record(&rec, key_cxt);
		more = paimon_memiter_next(it, &next);
		if ((!more || paimon_bytes_cmp(next.key.data, next.key.len, rec.key.data, rec.key.len) != 0) && paimon_merge_stores_alone(rec.kind))
		{
			(void) paimon_run_add(writer, rec.key.data, rec.key.len, rec.kind, rec.payload.data, rec.payload.len);
			continue;
		}
		paimon_merger_key(merger, rec.key.data, rec.key.len);
		matters = paimon_merger_add(merger, rec.kind, rec.payload.data, rec.payload.len, false);
		while (more && paimon_bytes_cmp(next.key.data, next.key.len, rec.key.data, rec.key.len) == 0)
		{
			if (matters)
				matters = paimon_merger_add(merger, next.kind, next.payload.data, next.payload.len, next.external);
			more = matters ? paimon_memiter_next(it, &next) : paimon_memiter_next_key(it, &next);
		}
		write_folded(writer, merger, oldest);
	}
	MemoryContextDelete(key_cxt);
	paimon_merger_end(merger);
}

/*
 * The newest record of each key.  Markers stay unless the bucket has nothing older: nothing older can come later, since only flushes (we hold the lock)
 * and large commits (newer, see the top) add files.
 */
static void
write_bucket(Flush *f, PaimonMemView *view, int bucket)
{
	PaimonRunParams params;
	PaimonRunWriter *writer;
	PaimonMemIter *it;
	PaimonMemRecord rec;
	bool		keep_markers = has_older(f, bucket);
	PaimonBytes last = {NULL, 0};	/* lies where the view holds it */

	run_params(f, bucket, &params);
	writer = paimon_run_begin(&params);
	it = paimon_memiter_begin(view, bucket, true);
	InvalidateCatalogSnapshot();
	if (f->table->merges)
	{
		write_merged(f, it, writer, !keep_markers);
		paimon_memiter_end(it);
		add_files(f, writer);
		return;
	}
	for (bool more = paimon_memiter_first(it, &rec); more; more = paimon_memiter_next(it, &rec))
	{
		CHECK_FOR_INTERRUPTS();
		if (last.data != NULL && paimon_bytes_equal(rec.key.data, rec.key.len, last.data, last.len))
			continue;
		last = rec.key;
		if (keep_markers || !paimon_kind_is_removal(rec.kind))
			(void) paimon_run_add(writer, rec.key.data, rec.key.len, rec.kind, rec.payload.data, rec.payload.len);
	}
	paimon_memiter_end(it);
	add_files(f, writer);
}

static void
write_runs(Flush *f)
{
	PaimonMemView *view;

	paimon_shared_seal(f->table->shared);

	/* No snapshot from here on; a backend has its own, and does not care. */
	InvalidateCatalogSnapshot();
	view = paimon_memview_open_flush(f->table->shared, f->rel, &f->log, &f->cut);
	for (int bucket = 0; bucket < f->table->desc->nbuckets; bucket++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!paimon_memview_empty(view, bucket))
			write_bucket(f, view, bucket);
	}
	paimon_memview_close(view);
	PAIMON_STOP_POINT("flush-run-written");
}

/* ---- publishing ---- */

static void
add_snapshot(Flush *f, PaimonSnapshotRow *last, uint64 position, int64 delta, PaimonFlushResult *result)
{
	last->storage_id = f->table->storage_id;
	last->snapshot_id++;
	last->kind = PAIMON_COMMIT_APPEND;
	last->commit_time = GetCurrentTimestamp();
	last->position = position;
	last->total_record_count += delta;
	last->delta_record_count = delta;
	last->append_count++;
	last->schema_natts = RelationGetNumberOfAttributes(f->rel);
	paimon_catalog_snapshot_insert(last);
	result->nsnapshots++;
}

/* Gives the large commit with this number the next id; false if there is none. */
static bool
number_bulk(Flush *f, PaimonFileRow *files, int nfiles, uint64 number, uint64 position, PaimonSnapshotRow *last,
			PaimonFlushResult *result)
{
	int64		rows = 0;
	bool		any = false;

	for (int i = 0; i < nfiles; i++)
	{
		if (files[i].added_snapshot != 0 || files[i].max_position != number)
			continue;
		any = true;
		rows += files[i].row_count;
		files[i].added_snapshot = last->snapshot_id + 1;
		paimon_catalog_file_set_snapshot(files[i].storage_id, files[i].file_no, files[i].added_snapshot);
	}
	if (any)
		add_snapshot(f, last, position, rows, result);
	return any;
}

/*
 * Large commits that begin where the log has been flushed to: each is a snapshot of its own, and the head passes its empty batch.  Those of a
 * temporary table, which has no log, just follow one another.
 */
static uint64
number_bulks(Flush *f, PaimonFileRow *files, int nfiles, uint64 head, PaimonSnapshotRow *last, PaimonFlushResult *result)
{
	for (;;)
	{
		uint64		number = first_unnumbered(files, nfiles);
		uint64		next;

		CHECK_FOR_INTERRUPTS();
		if (number == PG_UINT64_MAX)
			return head;
		if (f->table->shared != NULL)
		{
			PaimonBatchHeader header;

			if (number != head)
				return head;
			paimon_log_read_header(f->rel, f->table->storage_id, number, &header);
			next = number + header.len;
		}
		else
			next = number + 1;
		(void) number_bulk(f, files, nfiles, number, next, last, result);
		head = next;
	}
}

/* Is a left-over batch of the log no longer one? */
static bool
takes_leftover(const Flush *f)
{
	for (int i = 0; i < f->log.nleftover; i++)
	{
		bool		stays = false;

		for (int j = 0; j < f->cut.nleftover && !stays; j++)
			stays = f->cut.leftover[j] == f->log.leftover[i];
		if (!stays)
			return true;
	}
	return false;
}

/*
 * Adds (head, our xid) to the ring: the log below may be freed once nobody can see less than us.  Entries that are not the newest past
 * the horizon are of no use.  If left-over batches went into runs, readers who do not see us still need them: then nothing
 * may be freed before our xid is past the horizon.
 */
static void
close_head(Flush *f, PaimonLogRow *log, uint64 head)
{
	FullTransactionId xid = GetTopFullTransactionId();
	FullTransactionId horizon = paimon_horizon(f->rel);
	int			useless = 0;

	for (int i = 0; i < log->nclosed; i++)
	{
		if (FullTransactionIdPrecedes(log->closed_xid[i], horizon))
			useless = i;
	}
	if (useless > 0)
	{
		log->nclosed -= useless;
		memmove(log->closed_head, &log->closed_head[useless], sizeof(uint64) * log->nclosed);
		memmove(log->closed_xid, &log->closed_xid[useless], sizeof(FullTransactionId) * log->nclosed);
	}
	if (takes_leftover(f))
	{
		for (int i = 0; i < log->nclosed; i++)
			log->closed_xid[i] = xid;
	}

	/* Full, since an old snapshot stays: the newest says the least that we do not say ourselves. */
	if (log->nclosed == PAIMON_LOG_CLOSED_MAX)
		log->nclosed--;
	log->closed_head[log->nclosed] = head;
	log->closed_xid[log->nclosed] = xid;
	log->nclosed++;
}

static void
report_moved(Flush *f)
{
	ereport(ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("the delta log of table \"%s\" was flushed by somebody else meanwhile", RelationGetRelationName(f->rel)),
			 errdetail("It begins at " UINT64_FORMAT " where it began at " UINT64_FORMAT " before.", f->cut.head, f->log.head)));
}

/* Writes the manifest rows.  The publish lock stays till the end of the transaction. */
static void
publish(Flush *f, PaimonFlushResult *result)
{
	uint64		storage_id = f->table->storage_id;
	Snapshot	snapshot;
	PaimonLogRow log;
	PaimonSnapshotRow last;
	PaimonFileRow *files;
	int			nfiles;
	uint64		head;

	if (!XLogRecPtrIsInvalid(f->lsn))
		XLogFlush(f->lsn);
	PAIMON_STOP_POINT("flush-before-publish");
	paimon_lock_publish(storage_id);

	snapshot = paimon_catalog_latest_snapshot();
	files = paimon_catalog_files(storage_id, snapshot, &nfiles);
	(void) paimon_catalog_log_get(storage_id, snapshot, &log);
	(void) paimon_catalog_snapshot_latest(storage_id, snapshot, &last);
	if (log.head != f->log.head || log.nleftover != f->log.nleftover)
		report_moved(f);

	for (int i = 0; i < f->nfiles; i++)
	{
		f->files[i].added_snapshot = last.snapshot_id + 1;
		paimon_catalog_file_insert(&f->files[i]);
	}
	if (f->nfiles > 0)
		add_snapshot(f, &last, f->cut.cut, f->rows, result);
	head = number_bulks(f, files, nfiles, f->cut.cut, &last, result);

	close_head(f, &log, head);
	log.head = head;
	log.nleftover = f->cut.nleftover;
	log.leftover = f->cut.leftover;
	log.version++;
	paimon_catalog_log_put(&log);
	UnregisterSnapshot(snapshot);
	CommandCounterIncrement();
	if (f->table->shared != NULL)
	{
		paimon_shared_announce(f->table->shared, log.version);
		/* A rollback to a savepoint would take it back; readers find out by themselves then. */
		if (GetCurrentTransactionNestLevel() == 1)
			f->end->head = head;
	}
	paimon_note_flush(f->table->shared, files, nfiles, f->files, f->nfiles);
	result->snapshot_id = last.snapshot_id;
	result->rows += f->rows;
	result->progress = true;
	PAIMON_STOP_POINT("flush-published-before-commit");
}

/* A large commit that a running transaction's batch keeps from its id: the cut has taken back the request that its commit made. */
static void
ask_for_bulk(const Flush *f, uint64 bulk)
{
	if (bulk != PG_UINT64_MAX && f->table->shared != NULL && bulk > f->cut.cut)
		paimon_shared_request_flush(f->table->shared);
}

bool
paimon_flush_step(Relation rel, PaimonTable *table, PaimonFlushMode mode, PaimonFlushResult *result)
{
	MemoryContext cxt;
	MemoryContext old;
	Flush		f = {.rel = rel, .table = table, .mode = mode};
	uint64		bulk;
	bool		again = false;

	result->progress = false;
	if (table->storage_id == 0)
		return false;
	PAIMON_STOP_POINT("flush-begin");
	paimon_lock_flush(table->storage_id);
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon flush", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);

	f.end = paimon_at_end_begin(table);
	take_cut(&f);
	bulk = first_unnumbered(f.old_files, f.nold);
	if (!log_unchanged(&f))
		write_runs(&f);
	if (!log_unchanged(&f) || (bulk != PG_UINT64_MAX && (table->shared == NULL || bulk == f.cut.cut)))
	{
		publish(&f, result);
		/* Behind a large commit the log may go on. */
		again = bulk == f.cut.cut && table->shared != NULL;
	}
	else
	{
		Snapshot	snapshot = paimon_catalog_latest_snapshot();

		result->snapshot_id = paimon_catalog_snapshot_latest(table->storage_id, snapshot, NULL);
		UnregisterSnapshot(snapshot);
	}
	ask_for_bulk(&f, bulk);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return again;
}

/* ---- in a backend ---- */

void
paimon_flush_in_backend(Relation rel, PaimonTable *table, PaimonFlushResult *result)
{
	/*
	 * Our manifest rows are ours to see at once, and the run holds what others have committed since our snapshot.  Unless they could not,
	 * because the storage came into being in this transaction.
	 */
	if (IsolationUsesXactSnapshot() && table->shared != NULL && !paimon_storage_is_own(rel))
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot flush table \"%s\" in a transaction with isolation level %s",
						RelationGetRelationName(rel), IsolationIsSerializable() ? "SERIALIZABLE" : "REPEATABLE READ"),
				 errdetail("No worker can do it: the table is locked by this transaction, or workers are off."),
				 errhint("Flush it in a READ COMMITTED transaction.")));
	while (paimon_flush_step(rel, table, PAIMON_FLUSH_BACKEND, result))
		CHECK_FOR_INTERRUPTS();
}

/*
 * H31: a small commit that finds too much unflushed log flushes it, all of it that was committed before, as part of its own transaction.  If somebody
 * else is at it, that will do.
 */
static void
precommit_flush(PaimonTable *table, Relation rel)
{
	PaimonFlushResult result = {0};

	if (paimon_try_lock_flush(table->storage_id))
		(void) paimon_flush_step(rel, table, PAIMON_FLUSH_BACKEND, &result);
}

void
paimon_compact_init(void)
{
	paimon_at_end_init();
	paimon_history_init();
	paimon_throttle_init();
	paimon_precommit_flush_hook = precommit_flush;
}
