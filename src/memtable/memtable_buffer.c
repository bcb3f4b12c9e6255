/*-------------------------------------------------------------------------
 *
 * memtable_buffer.c
 *	  The write buffer: records in order of arrival, found again by ctid and by key.
 *
 * All buffers of a backend share one byte budget, the write-buffer-size of the table being written; when it is used up the fattest buffer is
 * spilled (memtable_spill.c).  Records of a transaction are numbered by arrival (ordinals); ROLLBACK TO kills all ordinals from the
 * sub-transaction's first on, which is enough because sub-transactions nest.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "core/core_bloom.h"
#include "memtable/buffer_internal.h"

#define CHUNK_SIZE		(256 * 1024)
#define FIRST_CHUNK_SIZE (8 * 1024)
/* what a record costs beside its bytes: segment pointer, sort entry, share of the hash */
#define RECORD_OVERHEAD (sizeof(BufRecord *) * 3 + sizeof(SortEntry))

BufferXact	paimon_bufxact;

/* ---- ordinals ---- */

void
paimon_ordinal_tid(uint64 ordinal, ItemPointer tid)
{
	uint64		block = ordinal / PAIMON_BUFFER_ROWS_PER_BLOCK;

	if (block >= (uint64) (MaxBlockNumber - PAIMON_BUFFER_FIRST_BLOCK))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("cannot write more rows to tables using access method paimon in one transaction")));
	ItemPointerSet(tid, PAIMON_BUFFER_FIRST_BLOCK + (BlockNumber) block,
				   (OffsetNumber) (ordinal % PAIMON_BUFFER_ROWS_PER_BLOCK + 1));
}

static uint64
tid_ordinal(ItemPointer tid)
{
	return (uint64) (ItemPointerGetBlockNumberNoCheck(tid) - PAIMON_BUFFER_FIRST_BLOCK) * PAIMON_BUFFER_ROWS_PER_BLOCK +
		ItemPointerGetOffsetNumberNoCheck(tid) - 1;
}

bool
paimon_buffer_is_tid(ItemPointer tid)
{
	BlockNumber block = ItemPointerGetBlockNumberNoCheck(tid);

	return block >= PAIMON_BUFFER_FIRST_BLOCK && block != InvalidBlockNumber;
}

bool
paimon_ordinal_is_dead(uint64 ordinal)
{
	int			lo = 0;
	int			hi = paimon_bufxact.ndead;

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (ordinal >= paimon_bufxact.dead[mid].end)
			lo = mid + 1;
		else if (ordinal < paimon_bufxact.dead[mid].start)
			hi = mid;
		else
			return true;
	}
	return false;
}

/* Runs that were begun after that are dead as a whole.  They are not looked at any more: their columns may have been rolled back, too. */
static void
drop_runs_from(uint64 start)
{
	ListCell   *lc,
			   *lc2;

	foreach(lc, paimon_bufxact.buffers)
	{
		WriteBuffer *wb = lfirst(lc);

		foreach(lc2, wb->spills)
		{
			SpillRun   *run = lfirst(lc2);

			if (run->min_ordinal < start || run->nfiles == 0)
				continue;
			run->nfiles = 0;
			run->rows = 0;
			run->repeats = false;
			wb->left_files = true;
		}
	}
}

/* Kills all ordinals given out from `start` on; earlier dead ranges inside are swallowed. */
void
paimon_wb_kill_from(uint64 start)
{
	BufferXact *x = &paimon_bufxact;

	if (start >= x->next_ordinal)
		return;
	drop_runs_from(start);
	while (x->ndead > 0 && x->dead[x->ndead - 1].start >= start)
		x->ndead--;
	if (x->ndead > 0 && x->dead[x->ndead - 1].end >= start)
	{
		x->dead[x->ndead - 1].end = x->next_ordinal;
		return;
	}
	if (x->ndead == x->dead_room)
	{
		x->dead_room = x->dead_room == 0 ? 16 : x->dead_room * 2;
		x->dead = x->dead == NULL ?
			MemoryContextAlloc(x->cxt, sizeof(*x->dead) * x->dead_room) :
			repalloc(x->dead, sizeof(*x->dead) * x->dead_room);
	}
	x->dead[x->ndead].start = start;
	x->dead[x->ndead].end = x->next_ordinal;
	x->ndead++;
}

/* Remembers where the running sub-transaction began to write. */
static void
note_subtransaction(void)
{
	BufferXact *x = &paimon_bufxact;
	SubTransactionId subid = GetCurrentSubTransactionId();

	if (subid == TopSubTransactionId || (x->nsubs > 0 && x->subs[x->nsubs - 1].subid == subid))
		return;
	if (x->nsubs == x->subs_room)
	{
		x->subs_room = x->subs_room == 0 ? 16 : x->subs_room * 2;
		x->subs = x->subs == NULL ?
			MemoryContextAlloc(x->cxt, sizeof(*x->subs) * x->subs_room) :
			repalloc(x->subs, sizeof(*x->subs) * x->subs_room);
	}
	x->subs[x->nsubs].subid = subid;
	x->subs[x->nsubs].start = x->next_ordinal;
	x->nsubs++;
}

/* ---- buffers ---- */

WriteBuffer *
paimon_wb_find(uint64 storage_id)
{
	ListCell   *lc;

	/* The list is short, and the last used is first. */
	foreach(lc, paimon_bufxact.buffers)
	{
		WriteBuffer *wb = lfirst(lc);

		if (wb->storage_id == storage_id)
		{
			if (foreach_current_index(lc) > 8)
			{
				paimon_bufxact.buffers = foreach_delete_current(paimon_bufxact.buffers, lc);
				paimon_bufxact.buffers = lcons(wb, paimon_bufxact.buffers);
			}
			return wb;
		}
	}
	return NULL;
}

/* First write of the transaction: from here on nothing that it has seen may be reused before it ends (H10). */
static void
begin_transaction(void)
{
	BufferXact *x = &paimon_bufxact;

	memset(x, 0, sizeof(*x));
	x->cxt = AllocSetContextCreate(TopMemoryContext, "paimon write buffers", ALLOCSET_DEFAULT_SIZES);
	x->active = true;
	(void) GetTopTransactionId();
	if (ActiveSnapshotSet())
	{
		/* Only its xmin matters.  A copy: the server changes the active one between the statements of a rule or an SQL function. */
		SnapshotData copy = *GetActiveSnapshot();

		copy.copied = false;
		x->snapshot = RegisterSnapshotOnOwner(&copy, TopTransactionResourceOwner);
	}
}

static bool
same_columns(TupleDesc a, TupleDesc b)
{
	if (a->natts != b->natts)
		return false;
	for (int i = 0; i < a->natts; i++)
	{
		if (TupleDescAttr(a, i)->attisdropped != TupleDescAttr(b, i)->attisdropped)
			return false;
	}
	return true;
}

/*
 * Columns that a sub-transaction has added or dropped may come back, or go, with it.  What was written before is then spilled as it was: a run holds only rows that
 * are rolled back with the columns it was written for, or none of them.
 */
static WriteBuffer *
wb_get(PaimonTable *table, Relation rel)
{
	WriteBuffer *wb = paimon_wb_find(table->storage_id);
	MemoryContext old;

	if (wb != NULL)
	{
		if (unlikely(wb->table != table) && GetCurrentTransactionNestLevel() > 1 && !same_columns(wb->table->desc->tupdesc, table->desc->tupdesc))
			paimon_wb_spill(wb, rel);
		wb->table = table;
		return wb;
	}
	old = MemoryContextSwitchTo(paimon_bufxact.cxt);
	wb = palloc0(sizeof(WriteBuffer));
	wb->storage_id = table->storage_id;
	wb->relid = RelationGetRelid(rel);
	wb->table = table;
	wb->cxt = AllocSetContextCreate(paimon_bufxact.cxt, "paimon write buffer", ALLOCSET_DEFAULT_SIZES);
	wb->min_cid = InvalidCommandId;
	paimon_bufxact.buffers = lcons(wb, paimon_bufxact.buffers);
	MemoryContextSwitchTo(old);
	return wb;
}

/* Forgets all records in memory (they have been spilled, or the transaction is over). */
void
paimon_wb_forget_memory(WriteBuffer *wb)
{
	MemoryContextReset(wb->cxt);
	paimon_bufxact.bytes -= wb->bytes;
	wb->bytes = 0;
	wb->chunk = NULL;
	wb->chunk_left = 0;
	wb->segments = NULL;
	wb->nsegments = wb->segments_room = 0;
	wb->nrecords = 0;
	wb->min_cid = InvalidCommandId;
	wb->max_cid = FirstCommandId;
	wb->upserts = false;
	wb->tids_given = false;
	wb->sorted = NULL;
	wb->hash = NULL;
	wb->hash_size = wb->hash_used = 0;
	wb->generation++;
}

BufRecord *
paimon_wb_record(WriteBuffer *wb, uint64 n)
{
	return wb->segments[n / SEGMENT_RECORDS][n % SEGMENT_RECORDS];
}

static char *
arena_alloc(WriteBuffer *wb, Size size)
{
	char	   *p;

	if (size > wb->chunk_left)
	{
		/* As much again as there is: what is taken counts in full, and a small budget must not be gone with the second chunk. */
		Size		chunk = wb->chunk == NULL ? FIRST_CHUNK_SIZE : MAXALIGN(Min(Max(wb->bytes, FIRST_CHUNK_SIZE), CHUNK_SIZE));

		/* A large record gets a chunk of its own and leaves the open one alone. */
		if (size > chunk / 4)
		{
			p = MemoryContextAllocHuge(wb->cxt, size);
			wb->bytes += size;
			paimon_bufxact.bytes += size;
			return p;
		}
		wb->chunk = MemoryContextAlloc(wb->cxt, chunk);
		wb->chunk_left = chunk;
		wb->bytes += chunk;
		paimon_bufxact.bytes += chunk;
	}
	p = wb->chunk;
	wb->chunk += size;
	wb->chunk_left -= size;
	return p;
}

static void
remember_record(WriteBuffer *wb, BufRecord *rec)
{
	if (wb->nrecords == (uint64) wb->nsegments * SEGMENT_RECORDS)
	{
		if (wb->nsegments == wb->segments_room)
		{
			wb->segments_room = wb->segments_room == 0 ? 16 : wb->segments_room * 2;
			wb->segments = wb->segments == NULL ?
				MemoryContextAlloc(wb->cxt, sizeof(BufRecord **) * wb->segments_room) :
				repalloc(wb->segments, sizeof(BufRecord **) * wb->segments_room);
		}
		wb->segments[wb->nsegments++] = MemoryContextAlloc(wb->cxt, sizeof(BufRecord *) * SEGMENT_RECORDS);
	}
	wb->segments[wb->nrecords / SEGMENT_RECORDS][wb->nrecords % SEGMENT_RECORDS] = rec;
	wb->nrecords++;
	wb->bytes += RECORD_OVERHEAD;
	paimon_bufxact.bytes += RECORD_OVERHEAD;
}

/* See buffer.h. */
bool
paimon_buffer_is_precommitted(void)
{
	return paimon_bufxact.precommitted;
}

/* ---- by key ---- */

static bool
same_key(const BufRecord *rec, uint32 hash, int bucket, const uint8 *key, uint32 len)
{
	return rec->hash == hash && rec->bucket == (uint32) bucket && rec->keylen == len &&
		memcmp(bufrecord_key(rec), key, len) == 0;
}

static void
hash_insert(WriteBuffer *wb, BufRecord *rec)
{
	uint32		mask = wb->hash_size - 1;
	uint32		i = rec->hash & mask;

	while (wb->hash[i] != NULL)
	{
		if (same_key(wb->hash[i], rec->hash, rec->bucket, bufrecord_key(rec), rec->keylen))
		{
			rec->older = wb->hash[i];
			wb->hash[i] = rec;
			return;
		}
		i = (i + 1) & mask;
	}
	rec->older = NULL;
	wb->hash[i] = rec;
	wb->hash_used++;
}

static void
hash_grow(WriteBuffer *wb, uint32 size)
{
	BufRecord **old = wb->hash;
	uint32		old_size = wb->hash_size;

	wb->hash = MemoryContextAllocExtended(wb->cxt, sizeof(BufRecord *) * (Size) size, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	wb->hash_size = size;
	if (old == NULL)
	{
		wb->hash_used = 0;
		for (uint64 n = 0; n < wb->nrecords; n++)
		{
			BufRecord  *rec = paimon_wb_record(wb, n);

			rec->hash = (uint32) paimon_key_hash(bufrecord_key(rec), rec->keylen);
			hash_insert(wb, rec);
		}
		return;
	}
	for (uint32 i = 0; i < old_size; i++)
	{
		if (old[i] != NULL)
		{
			uint32		j = old[i]->hash & (size - 1);

			while (wb->hash[j] != NULL)
				j = (j + 1) & (size - 1);
			wb->hash[j] = old[i];
		}
	}
	pfree(old);
}

/* Newest record in memory of a key, whatever its fate; builds the hash at first use. */
BufRecord *
paimon_wb_newest(WriteBuffer *wb, int bucket, const uint8 *key, uint32 len)
{
	uint32		hash;
	uint32		mask;

	if (wb->nrecords == 0)
		return NULL;
	if (wb->hash == NULL)
	{
		uint32		size = 1024;

		while (size < wb->nrecords * 2)
			size *= 2;
		hash_grow(wb, size);
	}
	hash = (uint32) paimon_key_hash(key, len);
	mask = wb->hash_size - 1;
	for (uint32 i = hash & mask; wb->hash[i] != NULL; i = (i + 1) & mask)
	{
		if (same_key(wb->hash[i], hash, bucket, key, len))
			return wb->hash[i];
	}
	return NULL;
}

/* ---- writing ---- */

/*
 * The leader may write while a parallel plan runs, if its transaction has an id already: CREATE TABLE AS and REFRESH MATERIALIZED VIEW do.
 */
static void
refuse_in_parallel(Relation rel)
{
	if (IsParallelWorker() || (IsInParallelMode() && !TransactionIdIsValid(GetCurrentTransactionIdIfAny())))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot write to table \"%s\" during a parallel operation", RelationGetRelationName(rel))));
}

/* Spills the fattest buffer of the backend. */
static void
make_room(WriteBuffer *wb, Relation rel)
{
	WriteBuffer *fattest = wb;
	ListCell   *lc;

	foreach(lc, paimon_bufxact.buffers)
	{
		WriteBuffer *other = lfirst(lc);

		if (other->bytes > fattest->bytes)
			fattest = other;
	}
	if (fattest == wb)
		paimon_wb_spill(wb, rel);
	else
	{
		Relation	other_rel = RelationIdGetRelation(fattest->relid);

		if (other_rel == NULL || !paimon_storage_is_of(other_rel, fattest->storage_id))
		{
			/* Truncated or dropped by this transaction; might come back by ROLLBACK TO, so it is kept. */
			if (other_rel != NULL)
				RelationClose(other_rel);
			paimon_wb_spill(wb, rel);
			return;
		}
		paimon_wb_spill(fattest, other_rel);
		RelationClose(other_rel);
	}
}

void
paimon_buffer_put(PaimonTable *table, Relation rel, CommandId cid, int bucket, uint8 kind, bool locked,
				  const uint8 *key, uint32 keylen, const uint8 *payload, uint32 len, ItemPointer tid)
{
	BufferXact *x = &paimon_bufxact;
	WriteBuffer *wb;
	BufRecord  *rec;
	Size		size = MAXALIGN(sizeof(BufRecord)) + MAXALIGN(keylen) + MAXALIGN(len);

	refuse_in_parallel(rel);
	if (x->precommitted)
	{
		paimon_precommit_append_one(table, rel, bucket, kind, key, keylen, payload, len);
		paimon_ordinal_tid(0, tid);
		return;
	}
	if (!x->active)
		begin_transaction();
	(void) GetCurrentTransactionId();	/* a written sub-transaction must have an xid for key locks to end with it */

	wb = wb_get(table, rel);
	if (x->bytes + size + RECORD_OVERHEAD > (Size) table->options.write_buffer_size && x->bytes > 0)
		make_room(wb, rel);

	note_subtransaction();
	if (rel->trigdesc != NULL &&
		(rel->trigdesc->trig_insert_after_row || rel->trigdesc->trig_update_after_row || rel->trigdesc->trig_delete_after_row))
		wb->row_triggers = true;

	rec = (BufRecord *) arena_alloc(wb, size);
	rec->ordinal = x->next_ordinal++;
	rec->older = NULL;
	rec->cid = cid;
	rec->hash = 0;
	rec->bucket = bucket;
	rec->len = len;
	rec->keylen = (uint16) keylen;
	rec->kind = kind;
	rec->locked = locked;
	memcpy((void *) bufrecord_key(rec), key, keylen);
	if (len > 0)
		memcpy((void *) bufrecord_payload(rec), payload, len);
	remember_record(wb, rec);
	wb->put_rows++;
	wb->put_bytes += keylen + len;
	if (cid < wb->min_cid)
		wb->min_cid = cid;
	if (cid > wb->max_cid)
		wb->max_cid = cid;
	if (!locked)
		wb->upserts = true;
	if (wb->hash != NULL)
	{
		if (wb->hash_used * 2 > wb->hash_size)
			hash_grow(wb, wb->hash_size * 2);
		rec->hash = (uint32) paimon_key_hash(key, keylen);
		hash_insert(wb, rec);
	}
	paimon_ordinal_tid(rec->ordinal, tid);
}

void
paimon_buffer_adopt(uint64 storage_id, Oid relid)
{
	WriteBuffer *wb = paimon_wb_find(storage_id);

	if (wb != NULL)
		wb->relid = relid;
}

/* ---- looking ---- */

bool
paimon_buffer_has_rows(uint64 storage_id)
{
	WriteBuffer *wb = paimon_wb_find(storage_id);

	return wb != NULL && (wb->nrecords > 0 || wb->spills != NIL);
}

uint64
paimon_buffer_put_rows(uint64 storage_id)
{
	WriteBuffer *wb = paimon_wb_find(storage_id);

	return wb == NULL ? 0 : wb->put_rows;
}

uint64
paimon_buffer_puts(void)
{
	return paimon_bufxact.next_ordinal;
}

static void
record_out(const BufRecord *rec, PaimonBufferRecord *out)
{
	out->key.data = bufrecord_key(rec);
	out->key.len = rec->keylen;
	out->kind = rec->kind;
	out->payload.data = bufrecord_payload(rec);
	out->payload.len = rec->len;
	paimon_ordinal_tid(rec->ordinal, &out->tid);
}

bool
paimon_buffer_get(PaimonTable *table, Relation rel, int bucket, CommandId cid, const uint8 *key, uint32 len,
				  PaimonBufferRecord *out)
{
	WriteBuffer *wb = paimon_wb_find(table->storage_id);
	SpillOrigin origin;

	if (wb == NULL)
		return false;
	if (wb->min_cid < cid)
	{
		for (BufRecord *rec = paimon_wb_newest(wb, bucket, key, len); rec != NULL; rec = rec->older)
		{
			if (rec->cid < cid && !paimon_ordinal_is_dead(rec->ordinal))
			{
				record_out(rec, out);
				wb->tids_given = true;
				return true;
			}
		}
	}
	for (int i = list_length(wb->spills) - 1; i >= 0; i--)
	{
		SpillRun   *run = list_nth(wb->spills, i);

		if (run->bucket == bucket && run->min_cid < cid &&
			paimon_spill_get(run, table, rel, cid, key, len, out, &origin))
			return true;
	}
	return false;
}

bool
paimon_buffer_touched(PaimonTable *table, Relation rel, int bucket, const uint8 *key, uint32 len, CommandId *cid, uint8 *kind)
{
	WriteBuffer *wb = paimon_wb_find(table->storage_id);
	CommandId	now = GetCurrentCommandId(false);
	PaimonBufferRecord rec;
	SpillOrigin origin;

	if (wb == NULL)
		return false;
	for (BufRecord *r = paimon_wb_newest(wb, bucket, key, len); r != NULL; r = r->older)
	{
		if (!paimon_ordinal_is_dead(r->ordinal))
		{
			*cid = r->cid;
			*kind = r->kind;
			return true;
		}
	}
	/* Only what the running command itself has spilled matters to it. */
	for (int i = list_length(wb->spills) - 1; i >= 0; i--)
	{
		SpillRun   *run = list_nth(wb->spills, i);

		if (run->bucket == bucket && run->max_cid >= now &&
			paimon_spill_get(run, table, rel, InvalidCommandId, key, len, &rec, &origin))
		{
			*cid = origin.cid;
			*kind = rec.kind;
			return true;
		}
	}
	return false;
}

/* Records of one buffer are in order of their ordinals. */
static BufRecord *
find_ordinal(WriteBuffer *wb, uint64 ordinal)
{
	uint64		lo = 0;
	uint64		hi = wb->nrecords;

	while (lo < hi)
	{
		uint64		mid = (lo + hi) / 2;
		BufRecord  *rec = paimon_wb_record(wb, mid);

		if (rec->ordinal == ordinal)
			return rec;
		if (rec->ordinal < ordinal)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

bool
paimon_buffer_fetch_tid(PaimonTable *table, Relation rel, ItemPointer tid, int *bucket, PaimonBufferRecord *out)
{
	WriteBuffer *wb = paimon_wb_find(table->storage_id);
	uint64		ordinal = tid_ordinal(tid);
	BufRecord  *rec;
	ListCell   *lc;

	if (wb == NULL)
		return false;
	rec = find_ordinal(wb, ordinal);
	if (rec != NULL)
	{
		*bucket = rec->bucket;
		record_out(rec, out);
		return true;
	}
	foreach(lc, wb->spills)
	{
		SpillRun   *run = lfirst(lc);

		if (run->row_of_ordinal != NULL && ordinal >= run->min_ordinal && ordinal <= run->max_ordinal &&
			run->row_of_ordinal[ordinal - run->min_ordinal] != 0)
		{
			*bucket = run->bucket;
			return paimon_spill_fetch_row(run, table, rel, run->row_of_ordinal[ordinal - run->min_ordinal] - 1, out);
		}
	}
	return false;
}

/* ---- all records of a key ---- */

void
paimon_buffer_each(PaimonTable *table, Relation rel, int bucket, CommandId cid, uint64 end, const uint8 *key, uint32 len,
				   PaimonBufferGive give, void *arg)
{
	WriteBuffer *wb = paimon_wb_find(table->storage_id);
	PaimonBufferRecord out;

	if (wb == NULL)
		return;
	if (wb->min_cid < cid)
	{
		for (BufRecord *rec = paimon_wb_newest(wb, bucket, key, len); rec != NULL; rec = rec->older)
		{
			CHECK_FOR_INTERRUPTS();
			if (rec->cid >= cid || rec->ordinal >= end || paimon_ordinal_is_dead(rec->ordinal))
				continue;
			record_out(rec, &out);
			out.cid = rec->cid;
			wb->tids_given = true;
			if (!give(arg, &out))
				return;
		}
	}
	for (int i = list_length(wb->spills) - 1; i >= 0; i--)
	{
		SpillRun   *run = list_nth(wb->spills, i);

		if (run->bucket == bucket && run->min_cid < cid && run->min_ordinal < end &&
			!paimon_spill_each(run, table, rel, cid, end, key, len, give, arg))
			return;
	}
}

bool
paimon_buffer_changed_after(PaimonTable *table, int bucket, const uint8 *key, uint32 len, uint64 end)
{
	WriteBuffer *wb = paimon_wb_find(table->storage_id);
	const BufRecord *next = NULL;

	if (wb == NULL)
		return false;
	for (BufRecord *rec = paimon_wb_newest(wb, bucket, key, len); rec != NULL && rec->ordinal >= end; rec = rec->older)
	{
		if (!paimon_ordinal_is_dead(rec->ordinal))
			next = rec;
	}
	return next != NULL && (next->kind == PAIMON_KIND_REPLACE || next->kind == PAIMON_KIND_REMOVE);
}

uint64
paimon_buffer_tid_end(ItemPointer tid)
{
	return tid_ordinal(tid) + 1;
}
