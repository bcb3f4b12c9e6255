/*-------------------------------------------------------------------------
 *
 * memtable_bufiter.c
 *	  Reading the transaction's own unwritten rows in key order: the records in memory and each spilled run, merged.
 *
 * An iterator gives one record a key, the newest that its command may see.  Statements write while they read, and a write may
 * spill: then the memory under an iterator is gone.  It notices by the buffer's generation and seeks again, behind the last key it gave.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "memtable/buffer_internal.h"

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
	int			ncursors;		/* spilled runs, newest first */
	SpillCursor *cursors;
	bool	   *cursor_valid;
	int			taken;			/* cursor whose present row was given last and is still to be stepped over, or -1 */
	StringInfoData last;		/* key given last */
	bool		started;
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
			BufRecord  *rec = e[it->at].rec;

			it->at++;
			if (!visible(it, rec))
				continue;
			it->mem = rec;
			/* older records of the key are of no interest */
			while (it->at < it->view_hi && same_key(e[it->at].rec, rec))
				it->at++;
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
			while (start > it->view_lo && same_key(e[start - 1].rec, e[end - 1].rec))
				start--;
			it->at = start;
			for (uint64 i = start; i < end; i++)
			{
				if (visible(it, e[i].rec))
				{
					it->mem = e[i].rec;
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

/* Positions all sources; strictly: behind the key. */
static void
position(PaimonBufferIter *it, const uint8 *key, uint32 len, bool strictly)
{
	it->taken = -1;
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
	return take(it, rec);
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
	return take(it, rec);
}

bool
paimon_bufiter_next(PaimonBufferIter *it, PaimonBufferRecord *rec)
{
	if (it->wb == NULL || !it->started)
		return false;
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
	return take(it, rec);
}

void
paimon_bufiter_end(PaimonBufferIter *it)
{
	close_sources(it);
	pfree(it->last.data);
	pfree(it);
}
