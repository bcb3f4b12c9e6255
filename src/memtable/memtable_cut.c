/*-------------------------------------------------------------------------
 *
 * memtable_cut.c
 *	  Where a flush may cut the log (H1).
 *
 * The longest prefix, from the manifest's head on, in which no batch belongs to a running transaction, prepared
 * ones excepted; not beyond the number of a large commit that is not decided, nor beyond the caller's limit.  It
 * never waits: what stops it is taken by a later flush.
 *
 * A batch found not running stays so, which makes the answer stable.  Prepared batches that are undecided are
 * listed, and the list decides: the flush leaves out just those, even if one is committed a moment later.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/timestamp.h"

#include "memtable/memtable_internal.h"
#include "stop.h"

typedef struct CutState
{
	PaimonShared   *shared;
	Relation        rel;
	uint64          end; /* do not pass */
	PaimonCut      *cut;
	int             cap;  /* of cut->leftover */
	PaimonViewPins *pins; /* memtables, whose lists of batches save reading the log */
} CutState;

static void
add_leftover(CutState *c, uint64 position)
{
	PaimonCut *cut = c->cut;

	if (cut->nleftover == c->cap)
	{
		c->cap = Max(2 * c->cap, 8);
		cut->leftover =
			cut->leftover == NULL ? palloc(c->cap * sizeof(uint64)) : repalloc(cut->leftover, c->cap * sizeof(uint64));
	}
	cut->leftover[cut->nleftover++] = position;
}

/* What the log's header says of a batch. */
static void
peek(CutState *c, uint64 position, PaimonBatchInfo *b)
{
	PaimonBatchHeader header;

	memset(b, 0, sizeof(*b));
	b->position = position;
	b->end = paimon_batch_peek(c->rel, c->shared->key.storage_id, position, PG_UINT64_MAX, &header);
	b->flags = header.flags;
	b->xid = XidFromFullTransactionId(FullTransactionIdFromU64(header.xid));
	if (header.flags & (PAIMON_BATCH_COMMITTED | PAIMON_BATCH_ABORTED))
		b->hint = PAIMON_HINT_COMMITTED; /* or aborted: not running */
}

/* Takes a batch in, if it may be; false if the cut ends in front of it. */
static bool
take(CutState *c, PaimonBatchInfo *b)
{
	CHECK_FOR_INTERRUPTS();
	if (b->end > c->end)
		return false;
	if (paimon_batch_running(b))
	{
		if (!(b->flags & PAIMON_BATCH_PREPARED))
			return false;
		add_leftover(c, b->position);
	}
	c->cut->cut = b->end;
	return true;
}

/* As far as the memtable that holds the cut's present end goes.  False if the cut ends in it. */
static bool
walk_memtable(CutState *c, PaimonMemtable *mt)
{
	PaimonArena arena;
	PaimonRef   ref = __atomic_load_n(&mt->first_batch, __ATOMIC_ACQUIRE);
	uint64      to = paimon_memtable_end(mt);

	paimon_memtable_reader(mt, &arena);
	while (ref != PAIMON_NO_REF)
	{
		PaimonBatchInfo *b = paimon_arena_ptr(&arena, ref);

		if (b->position >= to)
			break;
		if (b->position >= c->cut->cut && !take(c, b))
			return false;
		ref = __atomic_load_n(&b->next, __ATOMIC_ACQUIRE);
	}
	return true;
}

static void
walk_log(CutState *c)
{
	while (c->cut->cut < c->end)
	{
		uint64          before = c->cut->cut;
		PaimonBatchInfo b;
		int             i;

		for (i = 0; i < c->pins->nmemtables; i++)
		{
			PaimonMemtable *mt = c->pins->memtables[i];

			if (mt->from <= before && paimon_memtable_end(mt) > before)
				break;
		}
		if (i < c->pins->nmemtables)
		{
			if (!walk_memtable(c, c->pins->memtables[i]) || c->cut->cut == before)
				return;
			continue;
		}
		peek(c, before, &b);
		if (!take(c, &b))
			return;
	}
}

/*
 * See shared.h.  `log` was read under the publish lock, or at least is the newest: an older one gives a cut that
 * cannot be published.  Takes back the request for a flush: what comes later is for the next.
 */
void
paimon_shared_cut(PaimonShared *shared, Relation rel, const PaimonLogRow *log, uint64 limit, PaimonCut *cut)
{
	CutState c;
	uint64   tail;
	uint64   number = PG_UINT64_MAX;
	bool     bulk;

	memset(cut, 0, sizeof(*cut));
	memset(&c, 0, sizeof(c));
	paimon_keylock_sweep();
	paimon_shared_ready(shared, rel);
	paimon_shared_advance_head(shared, log->head);
	LWLockAcquire(&shared->append_lock, LW_EXCLUSIVE);
	tail = shared->tail.position;
	bulk = paimon_bulk_pending(shared, NULL, &number);
	shared->requested = false;
	shared->size_noticed = false;
	shared->cut_time = GetCurrentTimestamp();
	LWLockRelease(&shared->append_lock);
	if (bulk)
		limit = Min(limit, number);
	PAIMON_STOP_POINT("cut_walk");

	cut->head = cut->cut = log->head;
	c.shared = shared;
	c.rel = rel;
	c.cut = cut;
	c.end = Min(tail, limit);
	for (int i = 0; i < log->nleftover; i++)
	{
		PaimonBatchInfo b;

		peek(&c, log->leftover[i], &b);
		if (paimon_batch_running(&b))
			add_leftover(&c, log->leftover[i]);
	}
	c.pins = paimon_pins_make();
	c.pins->nmemtables = paimon_memtable_pin_range(shared, log->head, PG_UINT64_MAX, c.pins->memtables);
	walk_log(&c);
	paimon_pins_release(c.pins);
	cut->stopped_by_bulk = cut->cut == limit;
}
