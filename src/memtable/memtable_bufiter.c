/*-------------------------------------------------------------------------
 *
 * memtable_bufiter.c
 *	  Reading the transaction's own unwritten rows in key order: the records in memory and each spilled run, merged.
 *
 * An iterator gives one record a key, the newest that its command may see; of a table that merges, what all of them come to, which may be several, newest
 * first.  Statements write while they read, and a write may
 * spill: then the memory under an iterator is gone.  It notices by the buffer's generation and seeks again, behind the last key it gave.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "memtable/buffer_internal.h"
#include "merge/merge_records.h"

struct PaimonBufferIter
{
	PaimonTable *table;
	Relation	rel;
	int			bucket;
	CommandId	cid;
	bool		forward;
	MemoryContext cxt;
	uint32		generation;		/* of the buffer when the sources were made; view is stale if it differs */
	WriteBuffer *wb;			/* NULL: nothing to give */
	SortedView *view;
	uint64		view_lo;		/* entries of the bucket: [view_lo, view_hi) */
	uint64		view_hi;
	uint64		at;				/* forward: next entry to look at; backward: one past it */
	BufRecord  *mem;			/* candidate from memory, or NULL */
	uint64		mem_lo;			/* entries of its key */
	uint64		mem_hi;
	int			ncursors;		/* spilled runs, newest first */
	SpillCursor *cursors;
	bool	   *cursor_valid;
	int			taken;			/* cursor whose present row was given last and is still to be stepped over, or -1 */
	StringInfoData last;		/* key given last */
	bool		started;
	/* tables that merge: records of the key given last */
	PaimonMerger *merger;
	MemoryContext key_cxt;
	PaimonBufferRecord *pending;
	int			npending;
	int			given;
	int			pending_room;
};

static bool
visible(const PaimonBufferIter *it, const BufRecord *rec)
{
	return rec->cid < it->cid && !paimon_ordinal_is_dead(rec->ordinal);
}

static bool
same_key(const BufRecord *a, const BufRecord *b)
{
	return a->keylen == b->keylen && memcmp(bufrecord_key(a), bufrecord_key(b), a->keylen) == 0;
}

/* Takes the next key's newest visible record from memory as candidate. */
static void
advance_memory(PaimonBufferIter *it)
{
	SortEntry  *e;

	it->mem = NULL;
	if (it->view == NULL)
		return;
	e = it->view->entries;
	if (it->forward)
	{
		while (it->at < it->view_hi)
		{
			BufRecord  *rec = entry_record(&e[it->at]);

			it->mem_lo = it->at;
			it->at++;
			if (!visible(it, rec))
				continue;
			it->mem = rec;
			/* older records of the key are of no interest */
			while (it->at < it->view_hi && same_key(entry_record(&e[it->at]), rec))
				it->at++;
			it->mem_hi = it->at;
			return;
		}
	}
	else
	{
		while (it->at > it->view_lo)
		{
			uint64		end = it->at;
			uint64		start = end - 1;

			/* the key's records lie newest first in [start, end) */
			while (start > it->view_lo && same_key(entry_record(&e[start - 1]), entry_record(&e[end - 1])))
				start--;
			it->at = start;
			it->mem_lo = start;
			it->mem_hi = end;
			for (uint64 i = start; i < end; i++)
			{
				if (visible(it, entry_record(&e[i])))
				{
					it->mem = entry_record(&e[i]);
					return;
				}
			}
		}
	}
}

static void
close_sources(PaimonBufferIter *it)
{
	if (it->view != NULL && it->wb != NULL && it->generation == it->wb->generation)
		paimon_view_release(it->view);
	it->view = NULL;
	it->mem = NULL;
	it->taken = -1;
	for (int i = 0; i < it->ncursors; i++)
		paimon_spillcursor_end(&it->cursors[i]);
	it->ncursors = 0;
	if (it->cursors != NULL)
	{
		pfree(it->cursors);
		pfree(it->cursor_valid);
		it->cursors = NULL;
	}
}

static void
open_sources(PaimonBufferIter *it)
{
	MemoryContext old = MemoryContextSwitchTo(it->cxt);
	WriteBuffer *wb = paimon_wb_find(it->table->storage_id);
	int			n = 0;

	it->wb = wb;
	if (wb != NULL)
	{
		it->generation = wb->generation;
		if (wb->nrecords > 0 && wb->min_cid < it->cid)
		{
			it->view = paimon_wb_sorted(wb);
			it->view_lo = paimon_view_find(it->view, it->bucket, NULL, 0, false);
			it->view_hi = paimon_view_find(it->view, it->bucket, NULL, 0, true);
		}
		if (wb->spills != NIL)
		{
			it->cursors = palloc(sizeof(SpillCursor) * list_length(wb->spills));
			it->cursor_valid = palloc0(sizeof(bool) * list_length(wb->spills));
			for (int i = list_length(wb->spills) - 1; i >= 0; i--)
			{
				SpillRun   *run = list_nth(wb->spills, i);

				if (run->bucket == it->bucket && run->min_cid < it->cid)
					paimon_spillcursor_begin(&it->cursors[n++], run, it->table, it->rel, it->cid, it->forward);
			}
		}
	}
	it->ncursors = n;
	MemoryContextSwitchTo(old);
}

PaimonBufferIter *
paimon_bufiter_begin(PaimonTable *table, Relation rel, int bucket, CommandId cid, bool forward)
{
	PaimonBufferIter *it = palloc0(sizeof(PaimonBufferIter));

	it->table = table;
	it->rel = rel;
	it->bucket = bucket;
	it->cid = cid;
	it->forward = forward;
	it->cxt = CurrentMemoryContext;
	it->taken = -1;
	initStringInfo(&it->last);
	if (table->merges)
	{
		it->merger = paimon_merger_begin(RelationGetRelationName(rel), table->desc, table->plan, false);
		it->key_cxt = AllocSetContextCreate(it->cxt, "paimon write buffer key", ALLOCSET_SMALL_SIZES);
	}
	open_sources(it);
	return it;
}

/* Compares the present keys of memory (-1) and cursors. */
static int
compare_sources(PaimonBufferIter *it, PaimonBytes a, PaimonBytes b)
{
	int			c = paimon_bytes_cmp(a.data, a.len, b.data, b.len);

	return it->forward ? c : -c;
}

/*
 * Gives the smallest key's newest record and steps over that key in all sources.  A cursor's record lives in the cursor until it moves: the one that was
 * given moves at the next call.
 */
static bool
take(PaimonBufferIter *it, PaimonBufferRecord *out)
{
	int			best = -2;
	PaimonBytes best_key = {0};

	if (it->taken >= 0)
		it->cursor_valid[it->taken] = paimon_spillcursor_next(&it->cursors[it->taken]);
	it->taken = -1;

	if (it->mem != NULL)
	{
		best = -1;
		best_key.data = bufrecord_key(it->mem);
		best_key.len = it->mem->keylen;
	}
	/* Ties go to memory, then to the newest run: sources are in that order. */
	for (int i = 0; i < it->ncursors; i++)
	{
		PaimonBytes key;

		if (!it->cursor_valid[i])
			continue;
		key = paimon_spillcursor_key(&it->cursors[i]);
		if (best == -2 || compare_sources(it, key, best_key) < 0)
		{
			best = i;
			best_key = key;
		}
	}
	if (best == -2)
		return false;

	resetStringInfo(&it->last);
	appendBinaryStringInfo(&it->last, (const char *) best_key.data, best_key.len);
	it->started = true;
	if (best == -1)
	{
		out->key = best_key;
		out->kind = it->mem->kind;
		out->payload.data = bufrecord_payload(it->mem);
		out->payload.len = it->mem->len;
		paimon_ordinal_tid(it->mem->ordinal, &out->tid);
		it->wb->tids_given = true;
		advance_memory(it);
	}
	else
	{
		paimon_spillcursor_record(&it->cursors[best], out);
		it->taken = best;
	}
	for (int i = 0; i < it->ncursors; i++)
	{
		if (i != best && it->cursor_valid[i])
		{
			PaimonBytes key = paimon_spillcursor_key(&it->cursors[i]);

			if (key.len == (uint32) it->last.len && memcmp(key.data, it->last.data, key.len) == 0)
				it->cursor_valid[i] = paimon_spillcursor_next(&it->cursors[i]);
		}
	}
	return true;
}

/* ---- tables that merge ---- */

static PaimonBufferRecord *
add_pending(PaimonBufferIter *it)
{
	if (it->npending == it->pending_room)
	{
		int			room = Max(16, 2 * it->pending_room);

		it->pending = it->pending == NULL ? MemoryContextAlloc(it->cxt, room * sizeof(PaimonBufferRecord)) :
			repalloc_huge(it->pending, room * sizeof(PaimonBufferRecord));
		it->pending_room = room;
	}
	return &it->pending[it->npending++];
}

/* A record of a spilled run: copied, since the cursor moves on. */
static bool
gather_spilled(void *arg, const PaimonBufferRecord *rec)
{
	PaimonBufferIter *it = arg;
	PaimonBufferRecord *copy = add_pending(it);

	*copy = *rec;
	copy->key.data = memcpy(MemoryContextAlloc(it->key_cxt, Max(rec->key.len, 1)), rec->key.data, rec->key.len);
	copy->payload.data = memcpy(MemoryContextAllocHuge(it->key_cxt, Max(rec->payload.len, 1)), rec->payload.data, rec->payload.len);
	return true;
}

static void
gather_memory(PaimonBufferIter *it)
{
	for (uint64 i = it->mem_lo; i < it->mem_hi; i++)
	{
		const BufRecord *rec = entry_record(&it->view->entries[i]);
		PaimonBufferRecord *out;

		if (!visible(it, rec))
			continue;
		out = add_pending(it);
		out->key.data = bufrecord_key(rec);
		out->key.len = rec->keylen;
		out->kind = rec->kind;
		out->payload.data = bufrecord_payload(rec);
		out->payload.len = rec->len;
		paimon_ordinal_tid(rec->ordinal, &out->tid);
	}
	it->wb->tids_given = true;
}

/*
 * Several records are given as what they come to, in memory of our own: a spill that comes between two of them takes nothing away, and joins nothing that
 * has been given in part.
 */
static void
fold_pending(PaimonBufferIter *it)
{
	MemoryContext old = MemoryContextSwitchTo(it->key_cxt);
	ItemPointerData tid = it->pending[0].tid;
	bool		more = true;
	int			n;

	paimon_merger_key(it->merger, (const uint8 *) it->last.data, it->last.len);
	for (int i = 0; i < it->npending && more; i++)
		more = paimon_merger_add(it->merger, it->pending[i].kind, it->pending[i].payload.data, it->pending[i].payload.len, false);
	n = paimon_merger_partial(it->merger, false);
	it->npending = 0;
	for (int i = 0; i < n; i++)
	{
		PaimonBufferRecord *out = add_pending(it);
		StringInfoData payload;

		initStringInfo(&payload);
		out->kind = paimon_merger_encode(it->merger, i, &payload);
		out->payload.data = (const uint8 *) payload.data;
		out->payload.len = payload.len;
		out->key.data = memcpy(palloc(Max(it->last.len, 1)), it->last.data, it->last.len);
		out->key.len = it->last.len;
		out->tid = tid;
	}
	MemoryContextSwitchTo(old);
}

/* As take, for tables that merge: the next record of the key at hand, or the first one of the next key. */
static bool
take_merged(PaimonBufferIter *it, PaimonBufferRecord *out)
{
	while (it->given >= it->npending)
	{
		PaimonBytes best = {0};

		CHECK_FOR_INTERRUPTS();
		it->given = it->npending = 0;
		MemoryContextReset(it->key_cxt);
		if (it->mem != NULL)
		{
			best.data = bufrecord_key(it->mem);
			best.len = it->mem->keylen;
		}
		for (int i = 0; i < it->ncursors; i++)
		{
			PaimonBytes key;

			if (!it->cursor_valid[i])
				continue;
			key = paimon_spillcursor_key(&it->cursors[i]);
			if (best.data == NULL || compare_sources(it, key, best) < 0)
				best = key;
		}
		if (best.data == NULL)
			return false;
		resetStringInfo(&it->last);
		appendBinaryStringInfo(&it->last, (const char *) best.data, best.len);
		best.data = (const uint8 *) it->last.data;
		it->started = true;
		if (it->mem != NULL && paimon_bytes_cmp(bufrecord_key(it->mem), it->mem->keylen, best.data, best.len) == 0)
		{
			gather_memory(it);
			advance_memory(it);
		}
		for (int i = 0; i < it->ncursors; i++)
		{
			PaimonBytes key;

			if (!it->cursor_valid[i])
				continue;
			key = paimon_spillcursor_key(&it->cursors[i]);
			if (paimon_bytes_cmp(key.data, key.len, best.data, best.len) == 0)
				it->cursor_valid[i] = paimon_spillcursor_take_key(&it->cursors[i], gather_spilled, it);
		}
		if (it->npending > 1)
			fold_pending(it);
	}
	*out = it->pending[it->given++];
	return true;
}

/* Positions all sources; strictly: behind the key. */
static void
position(PaimonBufferIter *it, const uint8 *key, uint32 len, bool strictly)
{
	it->taken = -1;
	it->given = it->npending = 0;
	if (it->view != NULL)
	{
		if (key == NULL)
			it->at = it->forward ? it->view_lo : it->view_hi;
		else
			it->at = paimon_view_find(it->view, it->bucket, key, len, it->forward ? strictly : !strictly);
		advance_memory(it);
	}
	for (int i = 0; i < it->ncursors; i++)
	{
		it->cursor_valid[i] = paimon_spillcursor_seek(&it->cursors[i], key, len);
		if (strictly && it->cursor_valid[i])
		{
			PaimonBytes k = paimon_spillcursor_key(&it->cursors[i]);

			if (k.len == len && memcmp(k.data, key, len) == 0)
				it->cursor_valid[i] = paimon_spillcursor_next(&it->cursors[i]);
		}
	}
}

bool
paimon_bufiter_first(PaimonBufferIter *it, PaimonBufferRecord *rec)
{
	if (it->wb == NULL)
		return false;
	if (it->generation != it->wb->generation)
	{
		close_sources(it);
		open_sources(it);
	}
	position(it, NULL, 0, false);
	return it->merger != NULL ? take_merged(it, rec) : take(it, rec);
}

bool
paimon_bufiter_seek(PaimonBufferIter *it, const uint8 *key, uint32 len, PaimonBufferRecord *rec)
{
	if (it->wb == NULL)
		return false;
	if (it->generation != it->wb->generation)
	{
		close_sources(it);
		open_sources(it);
	}
	position(it, key, len, false);
	return it->merger != NULL ? take_merged(it, rec) : take(it, rec);
}

bool
paimon_bufiter_next(PaimonBufferIter *it, PaimonBufferRecord *rec)
{
	if (it->wb == NULL || !it->started)
		return false;
	if (it->given < it->npending)
		return take_merged(it, rec);
	if (it->generation != it->wb->generation)
	{
		char	   *last;
		int			len = it->last.len;

		if (it->mem == NULL && it->ncursors == 0)
			return false;		/* was at its end already */
		/* a key has zero bytes, and position() leads to take(), which writes to it->last */
		last = memcpy(palloc(Max(len, 1)), it->last.data, len);
		close_sources(it);
		open_sources(it);
		position(it, (const uint8 *) last, len, true);
		pfree(last);
	}
	return it->merger != NULL ? take_merged(it, rec) : take(it, rec);
}

void
paimon_bufiter_end(PaimonBufferIter *it)
{
	close_sources(it);
	if (it->merger != NULL)
	{
		paimon_merger_end(it->merger);
		MemoryContextDelete(it->key_cxt);
	}
	pfree(it->last.data);
	pfree(it);
}
