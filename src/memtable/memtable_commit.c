/*-------------------------------------------------------------------------
 *
 * memtable_commit.c
 *	  The end of a transaction that wrote: small buffers become one batch each in the delta log of their table, large ones become
 *	  registered level-0 runs.
 *
 * Order of things in pre-commit, and why it cannot deadlock unseen or lose anything, is in README.md.  In short: files first and their
 * WAL flushed; then the tables' modify locks (large commits), in OID order; then the appends, to all tables together, which may wait for holders of key locks;
 * last the publish locks, in OID order, held until the commit record is written.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "core/core_bloom.h"
#include "memtable/buffer_internal.h"
#include "memtable/stats.h"
#include "merge/merge.h"
#include "merge/merge_records.h"
#include "stop.h"

/* A storage in the course of pre-commit. */
typedef struct Commit
{
	WriteBuffer *wb;
	Relation	rel;
	bool		large;
	bool		upserts;		/* large: it has blind upserts */
	PaimonBatchBuilder *batch;	/* small */
	uint64		nrecords;		/* in the batch */
	PaimonLogBatch finished;
	/* keys of the batch that are blind upserts, to be looked up among the key locks */
	uint64		nkeys;
	struct
	{
		uint64		hash;
		uint32		bucket;
		uint8		kind;
	}		   *keys;
} Commit;

void		(*paimon_precommit_flush_hook) (PaimonTable *table, Relation rel) = NULL;
void		(*paimon_precommit_wait_hook) (PaimonTable *table, Relation rel) = NULL;

#define COMMIT_LOCKS 64			/* append locks that a commit holds at the same time, at most */

/* Large commits that hold their table's bulk slot. */
static List *bulks = NIL;		/* of PaimonShared */

/* ---- small commits ---- */

/* Size of the batch that the live records would make, newest of each key only; stops counting above `limit`. */
static uint64
live_size(const SortedView *view, uint64 limit)
{
	const BufRecord *last = NULL;
	uint64		size = 0;

	for (uint64 i = 0; i < view->n && size <= limit; i++)
	{
		const BufRecord *rec = entry_record(&view->entries[i]);

		if (paimon_ordinal_is_dead(rec->ordinal))
			continue;
		if (last != NULL && last->bucket == rec->bucket && last->keylen == rec->keylen &&
			memcmp(bufrecord_key(last), bufrecord_key(rec), rec->keylen) == 0)
			continue;
		last = rec;
		size += rec->keylen + rec->len + 8;
	}
	return size;
}

/* Notes that the batch has a blind upsert of a key. */
static void
note_key(Commit *c, const BufRecord *rec, uint8 kind)
{
	c->keys[c->nkeys].hash = paimon_key_hash(bufrecord_key(rec), rec->keylen);
	c->keys[c->nkeys].bucket = rec->bucket;
	c->keys[c->nkeys].kind = kind;
	c->nkeys++;
}

static void
build_batch(Commit *c, const SortedView *view)
{
	const BufRecord *last = NULL;
	bool		last_locked = false;

	c->batch = paimon_batch_begin(c->wb->table->desc->nbuckets);
	c->keys = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(*c->keys) * Max(view->n, 1));
	for (uint64 i = 0; i < view->n; i++)
	{
		const BufRecord *rec = entry_record(&view->entries[i]);

		if (paimon_ordinal_is_dead(rec->ordinal))
			continue;
		if (last != NULL && last->bucket == rec->bucket && last->keylen == rec->keylen &&
			memcmp(bufrecord_key(last), bufrecord_key(rec), rec->keylen) == 0)
		{
			/* An older record of the key: it only tells whether we hold the key's lock. */
			if (rec->locked && !last_locked)
			{
				last_locked = true;
				c->nkeys--;
			}
			continue;
		}
		last = rec;
		last_locked = rec->locked;
		c->nrecords++;
		paimon_batch_add(c->batch, rec->bucket, rec->kind, bufrecord_key(rec), rec->keylen, bufrecord_payload(rec), rec->len);
		if (!rec->locked)
			note_key(c, rec, rec->kind);
	}
}

/*
 * What the live records [lo, hi) of one key come to, oldest first, as the batch wants them: the transaction commits all of them at once, so nobody can tell
 * them apart.
 */
static void
add_merged_key(Commit *c, const SortEntry *e, uint64 lo, uint64 hi, PaimonMerger *merger, StringInfo payload)
{
	const BufRecord *newest = NULL;
	bool		locked = false;
	bool		removal = false;
	bool		more = true;
	int			live = 0;
	int			n;

	for (uint64 i = lo; i < hi; i++)
	{
		const BufRecord *rec = entry_record(&e[i]);

		if (paimon_ordinal_is_dead(rec->ordinal))
			continue;
		locked |= rec->locked;
		removal |= paimon_kind_is_removal(rec->kind);
		if (++live == 1)
		{
			newest = rec;
			continue;
		}
		if (live == 2)
		{
			paimon_merger_key(merger, bufrecord_key(newest), newest->keylen);
			more = paimon_merger_add(merger, newest->kind, bufrecord_payload(newest), newest->len, false);
		}
		if (more)
			more = paimon_merger_add(merger, rec->kind, bufrecord_payload(rec), rec->len, false);
	}
	if (live == 0)
		return;
	if (live == 1)
	{
		paimon_batch_add(c->batch, newest->bucket, newest->kind, bufrecord_key(newest), newest->keylen, bufrecord_payload(newest), newest->len);
		c->nrecords++;
	}
	else
	{
		n = paimon_merger_partial(merger, false);
		for (int i = n - 1; i >= 0; i--)
		{
			uint8		kind;

			resetStringInfo(payload);
			kind = paimon_merger_encode(merger, i, payload);
			paimon_batch_add(c->batch, newest->bucket, kind, bufrecord_key(newest), newest->keylen, (const uint8 *) payload->data, payload->len);
		}
		c->nrecords += n;
	}
	if (!locked)
		note_key(c, newest, removal ? PAIMON_KIND_REMOVE : newest->kind);
}

/* The batch of a table that merges; false if it is larger than `limit`. */
static bool
build_merged_batch(Commit *c, const SortedView *view, uint64 limit)
{
	PaimonTable *table = c->wb->table;
	PaimonMerger *merger = paimon_merger_begin(RelationGetRelationName(c->rel), table->desc, table->plan, false);
	StringInfoData payload;
	uint64		end;

	initStringInfo(&payload);
	c->nkeys = c->nrecords = 0;
	c->batch = paimon_batch_begin(table->desc->nbuckets);
	c->keys = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(*c->keys) * Max(view->n, 1));
	for (uint64 start = 0; start < view->n; start = end)
	{
		const BufRecord *first = entry_record(&view->entries[start]);
		uint64		size = paimon_batch_size(c->batch);

		CHECK_FOR_INTERRUPTS();
		for (end = start; end < view->n; end++)
		{
			const BufRecord *rec = entry_record(&view->entries[end]);

			if (view->entries[end].prefix != view->entries[start].prefix || rec->bucket != first->bucket || rec->keylen != first->keylen ||
				memcmp(bufrecord_key(rec), bufrecord_key(first), rec->keylen) != 0)
				break;
			if (!paimon_ordinal_is_dead(rec->ordinal))
				size += rec->len + rec->keylen + 64;
		}
		/* what a key comes to is seldom larger than its records together */
		if (size > PAIMON_BATCH_MAX / 2 || paimon_batch_size(c->batch) > limit)
		{
			paimon_merger_end(merger);
			c->batch = NULL;
			return false;
		}
		add_merged_key(c, view->entries, start, end, merger, &payload);
	}
	paimon_merger_end(merger);
	return true;
}

static LockTupleMode
mode_of_kind(uint8 kind)
{
	return kind == PAIMON_KIND_REMOVE || kind == PAIMON_KIND_DELETE ? LockTupleExclusive : LockTupleNoKeyExclusive;
}

/* Is one of the batch's keys locked by somebody else?  Called under the append lock. */
static bool
find_blocker(Commit *c, TransactionId *blocker)
{
	PaimonShared *shared = c->wb->table->shared;

	if (paimon_keylock_none(shared))
		return false;
	for (uint64 i = 0; i < c->nkeys; i++)
	{
		if (paimon_keylock_check(shared, c->keys[i].bucket, c->keys[i].hash, mode_of_kind(c->keys[i].kind), blocker) != PAIMON_KEYLOCK_OK)
			return true;
	}
	return false;
}

/*
 * A prepared transaction holds locks against other writers, large commits too, on all that it wrote: flush and readers rely on it (H1).
 */
static void
lock_batch_keys(Commit *c)
{
	PaimonShared *shared = c->wb->table->shared;
	TransactionId blocker;

	if (c->nkeys > 0)
		paimon_lock_modify(c->wb->storage_id, false);
	for (uint64 i = 0; i < c->nkeys; i++)
	{
		while (paimon_keylock_try(shared, c->keys[i].bucket, c->keys[i].hash, mode_of_kind(c->keys[i].kind), true,
								  &blocker) != PAIMON_KEYLOCK_OK)
			XactLockTableWait(blocker, NULL, NULL, XLTW_None);
		CHECK_FOR_INTERRUPTS();
	}
}

/* What goes into the log, before any lock of it is taken. */
static void
finish_batch(Commit *c, bool prepare)
{
	paimon_batch_finish(c->batch, &c->finished);
	c->finished.header.flags = prepare ? PAIMON_BATCH_PREPARED : 0;
	paimon_log_pack(c->rel, &c->finished);
	CheckForSerializableConflictIn(c->rel, NULL, InvalidBlockNumber);
	if (prepare)
		lock_batch_keys(c);
}

/*
 * Takes the append locks of all.  False, and none is taken, if one of the batches' keys is locked by somebody else.
 */
static bool
lock_appends(Commit **small, int n, bool prepare, TransactionId *blocker)
{
	for (int i = 0; i < n; i++)
	{
		paimon_append_lock(small[i]->wb->table->shared);
		if (prepare || !find_blocker(small[i], blocker))
			continue;
		for (; i >= 0; i--)
			paimon_append_unlock(small[i]->wb->table->shared);
		return false;
	}
	return true;
}

/*
 * Appends the batches of up to COMMIT_LOCKS tables, all of which are locked meanwhile, in the order given: so of two transactions that write to several tables the same one is
 * the later in each of them.
 */
static void
append_small(Commit **small, int n, bool prepare)
{
	TransactionId blocker;

	for (int i = 0; i < n; i++)
		finish_batch(small[i], prepare);
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (lock_appends(small, n, prepare, &blocker))
			break;
		PAIMON_STOP_POINT("append-blocked");
		XactLockTableWait(blocker, NULL, NULL, XLTW_None);
	}
	for (int i = 0; i < n; i++)
		(void) paimon_shared_append(small[i]->wb->table->shared, small[i]->rel, GetTopFullTransactionId(), &small[i]->finished);
	for (int i = n - 1; i >= 0; i--)
		paimon_append_unlock(small[i]->wb->table->shared);
	PAIMON_STOP_POINT("append-done");

	for (int i = 0; i < n; i++)
	{
		Commit	   *c = small[i];

		paimon_shared_appended(c->wb->table->shared, c->rel, c->finished.header.len);
		CheckForSerializableConflictIn(c->rel, NULL, InvalidBlockNumber);
		for (uint64 k = 0; k < c->nkeys; k++)
			paimon_predicate_check(c->rel, c->keys[k].hash);
	}
}

static int
by_lock(const void *a, const void *b)
{
	const PaimonShared *x = (*(Commit *const *) a)->wb->table->shared;
	const PaimonShared *y = (*(Commit *const *) b)->wb->table->shared;

	return x < y ? -1 : (x > y ? 1 : 0);
}

static void
commit_small(Commit *commits, int n, bool prepare)
{
	Commit	  **small = palloc_array(Commit *, Max(n, 1));
	int			nsmall = 0;

	for (int i = 0; i < n; i++)
	{
		if (!commits[i].large && commits[i].nrecords > 0)
			small[nsmall++] = &commits[i];
	}
	qsort(small, nsmall, sizeof(Commit *), by_lock);
	for (int i = 0; i < nsmall; i += COMMIT_LOCKS)
		append_small(small + i, Min(nsmall - i, COMMIT_LOCKS), prepare);
}

/* A write by a callback that runs after our pre-commit: a batch of its own (H29). */
void
paimon_precommit_append_one(PaimonTable *table, Relation rel, int bucket, uint8 kind,
							const uint8 *key, uint32 keylen, const uint8 *payload, uint32 len)
{
	PaimonBatchBuilder *builder;
	PaimonLogBatch batch;

	if (table->shared == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot write to temporary table \"%s\" while its transaction is being committed",
						RelationGetRelationName(rel))));
	builder = paimon_batch_begin(table->desc->nbuckets);
	paimon_batch_add(builder, bucket, kind, key, keylen, payload, len);
	paimon_batch_finish(builder, &batch);
	paimon_append_lock(table->shared);
	(void) paimon_shared_append(table->shared, rel, GetTopFullTransactionId(), &batch);
	paimon_append_unlock(table->shared);
}

/* ---- large commits ---- */

/* Position and manifest version of a temporary table's next run: nobody else writes there, and it has no log. */
static uint64
temporary_number(uint64 storage_id)
{
	Snapshot	snapshot = paimon_catalog_latest_snapshot();
	int			nfiles;
	PaimonFileRow *files = paimon_catalog_files(storage_id, snapshot, &nfiles);
	uint64		number = 0;

	for (int i = 0; i < nfiles; i++)
		number = Max(number, files[i].max_position + 1);
	UnregisterSnapshot(snapshot);
	return number;
}

/*
 * Takes the number of a large commit: the position of an empty batch of its own in the log, so that no two have the same and a flush
 * stops there while we are running.
 */
static uint64
take_number(PaimonTable *table, Relation rel)
{
	PaimonLogBatch empty = {.npieces = 0};
	MemoryContext old;
	uint64		number;

	if (table->shared == NULL)
		return temporary_number(table->storage_id);

	old = MemoryContextSwitchTo(TopMemoryContext);
	bulks = lappend(bulks, table->shared);
	MemoryContextSwitchTo(old);
	paimon_append_lock(table->shared);
	number = paimon_bulk_enter(table->shared, GetTopTransactionId());
	(void) paimon_shared_append(table->shared, rel, GetTopFullTransactionId(), &empty);
	paimon_append_unlock(table->shared);
	return number;
}

/* For the table's statistics, and for writers who look how many runs there are: it is one more, in whichever bucket. */
static void
note_bulk(PaimonShared *shared, const PaimonFileRow *files, int nfiles)
{
	uint64		bytes = 0;

	for (int i = 0; i < nfiles; i++)
		bytes += files[i].bytes;
	paimon_stats_note(shared, PAIMON_STAT_LARGE, 1);
	paimon_stats_note(shared, PAIMON_STAT_LARGE_BYTES, bytes);
	paimon_runs_note(shared, PAIMON_RUNS_ONE_MORE);
}

/*
 * Registers the files of a large write as what the present transaction adds to the table: takes the publish lock (kept until the transaction
 * ends), a number, and inserts the manifest rows.  The files' WAL must have been flushed.
 */
void
paimon_bulk_register(PaimonTable *table, Relation rel, PaimonFileRow *files, int nfiles)
{
	uint64		number;
	Snapshot	snapshot;
	PaimonLogRow log;

	paimon_lock_publish(table->storage_id);
	number = take_number(table, rel);
	PAIMON_STOP_POINT("bulk-numbered");
	for (int i = 0; i < nfiles; i++)
	{
		files[i].min_position = files[i].max_position = number;
		files[i].source = PAIMON_SOURCE_BULK;
		paimon_catalog_file_insert(&files[i]);
	}
	snapshot = paimon_catalog_latest_snapshot();
	if (!paimon_catalog_log_get(table->storage_id, snapshot, &log))
		log.storage_id = table->storage_id;
	UnregisterSnapshot(snapshot);
	log.version++;
	paimon_catalog_log_put(&log);
	if (table->shared != NULL)
		paimon_shared_announce(table->shared, log.version);
	note_bulk(table->shared, files, nfiles);
	PAIMON_STOP_POINT("bulk-registered");
}

/* All spilled runs of a buffer: each keeps its place among them by its sequence number. */
static void
register_runs(Commit *c)
{
	ListCell   *lc;
	int			n = 0;
	PaimonFileRow *files;

	foreach(lc, c->wb->spills)
		n += ((SpillRun *) lfirst(lc))->nfiles;
	if (n == 0)
		return;
	files = palloc(sizeof(PaimonFileRow) * n);
	n = 0;
	foreach(lc, c->wb->spills)
	{
		SpillRun   *run = lfirst(lc);

		for (int i = 0; i < run->nfiles; i++)
		{
			files[n] = run->files[i];
			files[n++].ordinal = run->seq;
		}
	}
	paimon_bulk_register(c->wb->table, c->rel, files, n);
}

static void
commit_large(Commit *c)
{
	CheckForSerializableConflictIn(c->rel, NULL, InvalidBlockNumber);
	register_runs(c);

	/* with whoever has read or written anything of the table */
	if (IsolationIsSerializable() && c->wb->table->desc->nkeys > 0)
		CheckTableForSerializableConflictIn(c->rel);
	else
		CheckForSerializableConflictIn(c->rel, NULL, InvalidBlockNumber);
}

/* ---- all of a transaction ---- */

static int
compare_commits(const void *a, const void *b)
{
	Oid			x = ((const Commit *) a)->wb->relid;
	Oid			y = ((const Commit *) b)->wb->relid;

	return x < y ? -1 : (x > y ? 1 : 0);
}

/* Does anything of the buffer survive the rollbacks to savepoints? */
static bool
has_live(WriteBuffer *wb)
{
	ListCell   *lc;

	/* A run may have live rows between dead ones at its ends. */
	foreach(lc, wb->spills)
	{
		SpillRun   *run = lfirst(lc);
		bool		dead = false;

		for (int i = 0; i < paimon_bufxact.ndead && !dead; i++)
			dead = paimon_bufxact.dead[i].start <= run->min_ordinal && paimon_bufxact.dead[i].end > run->max_ordinal;
		if (!dead)
			return true;
	}
	for (uint64 i = 0; i < wb->nrecords; i++)
	{
		if (!paimon_ordinal_is_dead(paimon_wb_record(wb, i)->ordinal))
			return true;
	}
	return false;
}

/*
 * Buffers whose storage is still the relation's own and that hold anything: opened, in OID order.  We hold a lock on each of these relations,
 * since a row of it that lives was written by a (sub)transaction that kept its lock.
 */
static Commit *
collect(int *n)
{
	Commit	   *commits = palloc0(sizeof(Commit) * list_length(paimon_bufxact.buffers));
	ListCell   *lc;

	*n = 0;
	foreach(lc, paimon_bufxact.buffers)
	{
		WriteBuffer *wb = lfirst(lc);
		Relation	rel;

		if (!has_live(wb))
			continue;
		rel = RelationIdGetRelation(wb->relid);
		if (rel == NULL)
			continue;			/* dropped in this transaction */
		if (!paimon_storage_is_of(rel, wb->storage_id))
		{
			RelationClose(rel); /* truncated or rewritten in this transaction (H21) */
			continue;
		}
		wb->table = paimon_table_get(rel, true);
		commits[*n].wb = wb;
		commits[*n].rel = rel;
		(*n)++;
	}
	qsort(commits, *n, sizeof(Commit), compare_commits);
	return commits;
}

static void
refuse_prepare(Commit *c)
{
	/* Core would say so, but asks later; temporary tables always write files. */
	if (c->wb->table->istemp)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has operated on temporary objects")));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot PREPARE a transaction that has written run files of table \"%s\"", RelationGetRelationName(c->rel)),
			 errdetail("The transaction has written more than the write buffer of %lld bytes holds.",
					   (long long) c->wb->table->options.write_buffer_size),
			 errhint("Commit it in one phase, or raise the option \"write-buffer-size\" of the table.")));
}

/* Small or large?  Prepares what is to be appended, or writes what is still in memory. */
static void
classify(Commit *c, bool prepare)
{
	PaimonTable *table = c->wb->table;
	uint64		limit = (uint64) table->options.write_buffer_size / 16;
	ListCell   *lc;

	if (c->wb->spills == NIL && table->shared != NULL)
	{
		SortedView *view = paimon_wb_sorted(c->wb);

		if (prepare)
			limit = PAIMON_BATCH_MAX / 2;
		if (live_size(view, limit) <= limit)
		{
			if (table->merges)
			{
				if (build_merged_batch(c, view, limit))
					return;
			}
			else
			{
				build_batch(c, view);
				return;
			}
		}
	}
	if (prepare)
		refuse_prepare(c);
	c->large = true;
	paimon_wb_spill(c->wb, c->rel);
	paimon_spill_clean(c->wb, c->rel);
	foreach(lc, c->wb->spills)
	{
		SpillRun   *run = lfirst(lc);

		if (run->nfiles > 0 && run->upserts)
			c->upserts = true;
	}
}

/*
 * Tables whose worker does not keep up are flushed by those who write to them (H31).  Not by a transaction that holds publish locks already: they
 * are taken in the order of OIDs.
 */
static void
flush_overflow(Commit *commits, int n)
{
	if (paimon_precommit_flush_hook == NULL)
		return;
	for (int i = 0; i < n; i++)
	{
		if (commits[i].large)
			return;
	}
	for (int i = 0; i < n; i++)
	{
		PaimonTable *table = commits[i].wb->table;

		if (paimon_shared_unflushed(table->shared) >= (uint64) table->options.write_buffer_spill_size)
			paimon_precommit_flush_hook(table, commits[i].rel);
	}
}

static void
precommit(bool prepare)
{
	BufferXact *x = &paimon_bufxact;
	XLogRecPtr	lsn = InvalidXLogRecPtr;
	MemoryContext cxt;
	MemoryContext old;
	Commit	   *commits;
	int			n;

	if (!x->active)
		return;
	cxt = AllocSetContextCreate(x->cxt, "paimon pre-commit", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	PushActiveSnapshot(GetTransactionSnapshot());

	commits = collect(&n);
	for (int i = 0; i < n; i++)
	{
		const PaimonTable *table = commits[i].wb->table;

		if (!table->options.compaction_async && table->shared != NULL && paimon_precommit_wait_hook != NULL)
			paimon_precommit_wait_hook(commits[i].wb->table, commits[i].rel);
	}
	for (int i = 0; i < n; i++)
	{
		classify(&commits[i], prepare);
		if (commits[i].large)
			lsn = Max(lsn, paimon_spill_lsn(commits[i].wb));
	}
	if (!XLogRecPtrIsInvalid(lsn))
	{
		/* Not while holding the publish lock: others' commits would wait for all of it (H24). */
		XLogFlush(lsn);
		PAIMON_STOP_POINT("bulk-files-flushed");
	}
	for (int i = 0; i < n; i++)
	{
		if (commits[i].large && commits[i].upserts && commits[i].wb->table->shared != NULL)
			paimon_lock_modify(commits[i].wb->storage_id, true);
	}
	commit_small(commits, n, prepare);
	for (int i = 0; i < n; i++)
	{
		if (commits[i].large)
			commit_large(&commits[i]);
	}
	paimon_spill_end();
	if (!prepare)
		flush_overflow(commits, n);
	for (int i = 0; i < n; i++)
		RelationClose(commits[i].rel);

	PopActiveSnapshot();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);

	/* From here on no row is asked for by ctid any more. */
	if (x->snapshot != NULL)
		UnregisterSnapshotFromOwner(x->snapshot, TopTransactionResourceOwner);
	x->snapshot = NULL;
	x->precommitted = true;
}

/* Files that nobody will know: a worker need not wait for its next look at all tables. */
static void
ask_for_sweeps(const BufferXact *x, bool commit)
{
	ListCell   *lc;

	foreach(lc, x->buffers)
	{
		WriteBuffer *wb = lfirst(lc);

		if (wb->wrote_files && (!commit || wb->left_files || x->ndead > 0))
			paimon_shared_request_sweep(MyDatabaseId, wb->relid);
	}
}

/* The user's rows, for the tables' statistics. */
static void
count_rows(const BufferXact *x)
{
	ListCell   *lc;

	foreach(lc, x->buffers)
	{
		WriteBuffer *wb = lfirst(lc);

		if (wb->table->shared == NULL)
			continue;
		paimon_stats_add(wb->table->shared, PAIMON_STAT_ROWS, wb->put_rows);
		paimon_stats_add(wb->table->shared, PAIMON_STAT_BYTES, wb->put_bytes);
	}
}

/* Must not fail. */
static void
finish(bool commit, bool prepared)
{
	BufferXact *x = &paimon_bufxact;
	ListCell   *lc;

	foreach(lc, bulks)
	{
		PaimonShared *shared = lfirst(lc);

		paimon_bulk_clear(shared);
		if (commit)
			paimon_shared_request_flush(shared);
	}
	list_free(bulks);
	bulks = NIL;
	paimon_keylock_end(prepared);
	if (x->active)
	{
		if (commit || prepared)
			count_rows(x);
		ask_for_sweeps(x, commit);
		MemoryContextDelete(x->cxt);
		memset(x, 0, sizeof(*x));
	}
	paimon_stats_at_end(commit || prepared);
	paimon_table_at_end();
}

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			precommit(false);
			break;
		case XACT_EVENT_PRE_PREPARE:
			precommit(true);
			paimon_keylock_prepare();
			break;
		case XACT_EVENT_COMMIT:
			finish(true, false);
			break;
		case XACT_EVENT_PREPARE:
			finish(false, true);
			break;
		case XACT_EVENT_ABORT:
			finish(false, false);
			break;
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
			break;
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			paimon_table_at_end();
			break;
	}
}

static void
subxact_callback(SubXactEvent event, SubTransactionId mySubid, SubTransactionId parentSubid, void *arg)
{
	BufferXact *x = &paimon_bufxact;

	if (!x->active || x->nsubs == 0 || x->subs[x->nsubs - 1].subid != mySubid)
		return;
	if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		/* Its records are the parent's now; an entry of the parent starts lower already. */
		if (parentSubid == TopSubTransactionId || (x->nsubs > 1 && x->subs[x->nsubs - 2].subid == parentSubid))
			x->nsubs--;
		else
			x->subs[x->nsubs - 1].subid = parentSubid;
	}
	else if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		paimon_wb_kill_from(x->subs[x->nsubs - 1].start);
		x->nsubs--;
	}
}

void
paimon_buffer_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
}
