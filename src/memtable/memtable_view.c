/*-------------------------------------------------------------------------
 *
 * memtable_view.c
 *	  Views: the part of a log that is not yet in files, as one snapshot sees it.
 *
 * Opening: the caller took its snapshot and read the log's manifest row with it; here the tail is read after that
 * (H2), the memtables catch up, those that overlap [head, tail) are pinned, and what none of them covers is indexed
 * privately.  A view dereferences only positions >= its own head, and left-over batches that its own manifest row
 * lists.
 *
 * Pins are noted in TopMemoryContext and released by a resource owner callback: at an abort a view's own memory may
 * be gone before that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "memtable/memtable_internal.h"
#include "stop.h"

static dlist_head      all_pins = DLIST_STATIC_INIT(all_pins);
static PaimonViewPins *spare_pins = NULL; /* one kept for the next view */

/* ---- pins ---- */

PaimonViewPins *
paimon_pins_make(void)
{
	PaimonViewPins *pins = spare_pins;

	Assert(CurrentResourceOwner != NULL);
	if (pins != NULL)
		spare_pins = NULL;
	else
		pins = MemoryContextAlloc(TopMemoryContext, sizeof(PaimonViewPins));
	pins->owner = CurrentResourceOwner;
	pins->nmemtables = 0;
	pins->nprivate = 0;
	dlist_push_head(&all_pins, &pins->node);
	return pins;
}

void
paimon_pins_release(PaimonViewPins *pins)
{
	for (int i = 0; i < pins->nmemtables; i++)
		paimon_memtable_unpin(pins->memtables[i]);
	for (int i = 0; i < pins->nprivate; i++)
		paimon_private_unpin(pins->private[i]);
	dlist_delete(&pins->node);
	if (spare_pins == NULL)
		spare_pins = pins;
	else
		pfree(pins);
}

/* Called for each owner that is released; CurrentResourceOwner is that owner. */
static void
release_callback(ResourceReleasePhase phase, bool isCommit, bool isTopLevel, void *arg)
{
	dlist_mutable_iter it;

	if (phase != RESOURCE_RELEASE_AFTER_LOCKS)
		return;
	dlist_foreach_modify (it, &all_pins)
	{
		PaimonViewPins *pins = dlist_container(PaimonViewPins, node, it.cur);

		if (pins->owner == CurrentResourceOwner)
			paimon_pins_release(pins);
	}
	if (isTopLevel && CurrentResourceOwner == TopTransactionResourceOwner && dlist_is_empty(&all_pins))
		paimon_private_forget_all();
}

void
paimon_memview_init(void)
{
	RegisterResourceReleaseCallback(release_callback, NULL);
}

/* ---- opening ---- */

static void
add_source(PaimonMemView *view, PaimonMemtable *mt, const PaimonArena *arena, uint64 lo, uint64 hi)
{
	PaimonViewSource *s = &view->sources[view->nsources++];

	Assert(view->nsources <= PAIMON_MAX_SOURCES);
	s->mt = mt;
	s->arena = arena;
	s->lo = lo;
	s->hi = hi;
	s->shown_before = 0;
}

static void
add_private(PaimonMemView *view, PaimonPrivateIndex *p, uint64 lo, uint64 hi)
{
	paimon_private_pin(p);
	view->pins->private[view->pins->nprivate++] = p;
	add_source(view, paimon_private_memtable(p), paimon_private_arena(p), lo, hi);
}

/* The batch at a left-over position, as far as its header tells. */
static void
peek_batch(PaimonMemView *view, uint64 position, PaimonBatchInfo *b)
{
	PaimonBatchHeader header;

	memset(b, 0, sizeof(*b));
	b->position = position;
	b->end = paimon_batch_peek(view->rel, view->shared->key.storage_id, position, PG_UINT64_MAX, &header);
	b->flags = header.flags;
	b->xid = XidFromFullTransactionId(FullTransactionIdFromU64(header.xid));
	if (header.flags & (PAIMON_BATCH_COMMITTED | PAIMON_BATCH_ABORTED))
	{
		b->xid = InvalidTransactionId;
		b->hint = (header.flags & PAIMON_BATCH_COMMITTED) ? PAIMON_HINT_COMMITTED : PAIMON_HINT_ABORTED;
	}
}

/* Left-over batches that the view shows; the oldest source. */
static void
add_leftover(PaimonMemView *view, const PaimonLogRow *log)
{
	uint64 *positions;
	int     n = 0;

	if (log->nleftover == 0)
		return;
	positions = palloc(log->nleftover * sizeof(uint64));
	for (int i = 0; i < log->nleftover; i++)
	{
		PaimonBatchInfo b;

		peek_batch(view, log->leftover[i], &b);
		if (paimon_memview_shows(view, &b))
			positions[n++] = log->leftover[i];
	}
	if (n > 0)
		add_private(view, paimon_private_batches(view->shared, view->rel, positions, n), 0, PG_UINT64_MAX);
	pfree(positions);
}

/* Sources for [from, to), ascending: memtables, and private indexes for what they leave. */
static void
add_range(PaimonMemView *view, uint64 from, uint64 to)
{
	PaimonViewPins *pins = view->pins;
	uint64          position = from;

	pins->nmemtables = paimon_memtable_pin_range(view->shared, from, to, pins->memtables);
	PAIMON_STOP_POINT("view_pinned");
	for (int i = 0; i < pins->nmemtables; i++)
	{
		PaimonMemtable *mt = pins->memtables[i];
		uint64          end = Min(paimon_memtable_end(mt), to);

		if (end <= position)
			continue;
		if (mt->from > position)
			add_private(view, paimon_private_range(view->shared, view->rel, position, mt->from), position, mt->from);
		position = Max(position, mt->from);
		add_source(view, mt, &view->pool, position, end);
		position = end;
	}
	if (position < to)
		add_private(view, paimon_private_range(view->shared, view->rel, position, to), position, to);
}

static void
newest_first(PaimonMemView *view)
{
	for (int i = 0, j = view->nsources - 1; i < j; i++, j--)
	{
		PaimonViewSource s = view->sources[i];

		view->sources[i] = view->sources[j];
		view->sources[j] = s;
	}
}

/* `tail` was read after the snapshot and the manifest row; positions from `limit` on do not count. */
static PaimonMemView *
open_view(PaimonShared *shared, Relation rel, PaimonViewMode mode, Snapshot snapshot, const PaimonLogRow *log,
		  uint64 tail, uint64 limit, const PaimonCut *cut)
{
	PaimonMemView *view = palloc0(sizeof(PaimonMemView));

	paimon_shared_advance_head(shared, log->head);
	view->shared = shared;
	view->rel = rel;
	view->mode = mode;
	view->snapshot = snapshot;
	view->tail = tail;
	view->sources = palloc(PAIMON_MAX_SOURCES * sizeof(PaimonViewSource));
	paimon_arena_attach(&view->pool, NULL, paimon_pool_base(), NULL, NULL);
	if (cut != NULL && cut->nleftover > 0)
	{
		view->nexcluded = cut->nleftover;
		view->excluded = palloc(cut->nleftover * sizeof(uint64));
		memcpy(view->excluded, cut->leftover, cut->nleftover * sizeof(uint64));
	}
	view->pins = paimon_pins_make();
	add_leftover(view, log);
	tail = Min(tail, limit);
	if (log->head < tail)
	{
		paimon_shared_catch_up(shared, rel, mode != PAIMON_VIEW_FLUSH);
		add_range(view, log->head, tail);
	}
	newest_first(view);
	return view;
}

PaimonMemView *
paimon_memview_open(PaimonShared *shared, Relation rel, Snapshot snapshot, const PaimonLogRow *log, uint64 limit)
{
	if (snapshot == NULL || !IsMVCCSnapshot(snapshot))
		elog(ERROR, "a view of the delta log of \"%s\" needs an MVCC snapshot", RelationGetRelationName(rel));
	return open_view(shared, rel, PAIMON_VIEW_SNAPSHOT, snapshot, log, paimon_shared_read_tail(shared, rel), limit,
					 NULL);
}

PaimonMemView *
paimon_memview_open_flush(PaimonShared *shared, Relation rel, const PaimonLogRow *log, const PaimonCut *cut)
{
	Assert(cut->head == log->head);
	return open_view(shared, rel, PAIMON_VIEW_FLUSH, NULL, log, paimon_shared_read_tail(shared, rel), cut->cut, cut);
}

PaimonMemView *
paimon_memview_open_all(PaimonShared *shared, Relation rel, const PaimonLogRow *log)
{
	return open_view(shared, rel, PAIMON_VIEW_ALL, NULL, log, paimon_shared_tail(shared, rel), PG_UINT64_MAX, NULL);
}

/* Must be called in the (sub)transaction that opened the view; iterators on it are dead after. */
void
paimon_memview_close(PaimonMemView *view)
{
	paimon_pins_release(view->pins);
	pfree(view->sources);
	if (view->excluded != NULL)
		pfree(view->excluded);
	pfree(view);
}

/* Reports the writer of a batch that the view's snapshot does not see. */
static void
check_conflict(PaimonMemView *view, PaimonBatchInfo *b)
{
	if (!paimon_batch_visible(b, view->snapshot) && (paimon_batch_running(b) || paimon_batch_committed(b)))
		CheckForSerializableConflictOut(view->rel, b->xid, view->snapshot);
}

void
paimon_memview_check_conflicts(PaimonMemView *view, const PaimonLogRow *log)
{
	Assert(view->mode == PAIMON_VIEW_SNAPSHOT);
	for (int i = 0; i < log->nleftover; i++)
	{
		PaimonBatchInfo b;

		peek_batch(view, log->leftover[i], &b);
		check_conflict(view, &b);
	}
	for (int i = 0; i < view->nsources; i++)
	{
		PaimonViewSource *s = &view->sources[i];
		PaimonRef         ref = __atomic_load_n(&s->mt->first_batch, __ATOMIC_ACQUIRE);

		while (ref != PAIMON_NO_REF)
		{
			PaimonBatchInfo *b = paimon_arena_ptr(s->arena, ref);

			CHECK_FOR_INTERRUPTS();
			if (b->position >= s->lo && b->position < s->hi)
				check_conflict(view, b);
			ref = __atomic_load_n(&b->next, __ATOMIC_ACQUIRE);
		}
	}
}

static int
compare_u64(const void *a, const void *b)
{
	uint64 x = *(const uint64 *) a;
	uint64 y = *(const uint64 *) b;

	return x < y ? -1 : (x > y ? 1 : 0);
}

bool
paimon_memview_shows(PaimonMemView *view, PaimonBatchInfo *b)
{
	switch (view->mode)
	{
		case PAIMON_VIEW_SNAPSHOT:
			/* One that nobody holds any more would take running transactions for aborted ones, and note it. */
			PAIMON_MUST(view->snapshot->regd_count > 0 || view->snapshot->active_count > 0);
			return paimon_batch_visible(b, view->snapshot);
		case PAIMON_VIEW_FLUSH:
			if (view->nexcluded > 0 &&
				bsearch(&b->position, view->excluded, view->nexcluded, sizeof(uint64), compare_u64) != NULL)
				return false;
			return paimon_batch_committed(b);
		case PAIMON_VIEW_ALL:
			return __atomic_load_n(&b->hint, __ATOMIC_RELAXED) != PAIMON_HINT_ABORTED;
	}
	return false;
}
