/*-------------------------------------------------------------------------
 *
 * memtable_iter.c
 *	  Iterators over a view: the visible records of a bucket in the order of keys, and look-ups of one key.
 *
 * A view has few sources (a handful of memtables), so the next record is found by comparing all of them.  Each
 * source stands on a record that the view shows, or is done.  Backward, a source stands within the group of its
 * present key, which it walks forward (newest first); the next group is found by a search.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "core/core_losertree.h"
#include "memtable/memtable_internal.h"
#include "merge/merge.h"
#include "stop.h"

#define MANY_VERSIONS 64 /* of one key in one memtable */
#define STEPS_BEFORE_SEARCH 8
#define MANY_RECORDS 512 /* so many are worth a look at all batches first */
#define PREFETCH_BYTES 128

typedef struct IterSource
{
	PaimonViewSource       *src;
	PaimonSkipIter          it;
	const PaimonSkipNode   *node;  /* NULL: done */
	PaimonRef               batch; /* asked last */
	bool                    shown; /* and the answer */
} IterSource;

struct PaimonMemIter
{
	PaimonMemView *view;
	bool           forward;
	int            nsources;
	int            current;  /* source of the record given last, or -1 */
	MemoryContext  external; /* payload read from the log, of the record given last; NULL before the first */
	IterSource     sources[FLEXIBLE_ARRAY_MEMBER];
};

/* Does the view show the record under the source's iterator? */
static bool
shows(PaimonMemView *view, IterSource *s, const PaimonSkipNode *n)
{
	if (n->pos < s->src->lo || n->pos >= s->src->hi)
		return false;
	if (n->pos < s->src->shown_before)
		return true;
	if (n->batch != s->batch)
	{
		s->shown = paimon_memview_shows(view, paimon_arena_ptr(s->src->arena, n->batch));
		s->batch = n->batch;
	}
	return s->shown;
}

static int
compare_nodes(const PaimonSkipNode *a, const PaimonSkipNode *b)
{
	return paimon_merge_key_cmp(a->prefix, paimon_skip_key(a), a->key_len, b->prefix, paimon_skip_key(b), b->key_len);
}

/* Opens the source's list of the bucket; false if it has none. */
static bool
open_source(IterSource *s, PaimonViewSource *src, int bucket)
{
	const PaimonSkipList *list = paimon_memtable_list(src->mt, src->arena, bucket);

	if (list == NULL)
		return false;
	s->src = src;
	s->node = NULL;
	s->batch = PAIMON_NO_REF;
	s->shown = false;
	paimon_skip_iter_init(&s->it, list, src->arena);
	return true;
}

/* Forward: from where the iterator is to the first record that shows. */
static void
settle_forward(PaimonMemView *view, IterSource *s)
{
	s->node = NULL;
	while (paimon_skip_valid(&s->it))
	{
		const PaimonSkipNode *n = paimon_skip_node(&s->it);

		if (shows(view, s, n))
		{
			s->node = n;
			return;
		}
		CHECK_FOR_INTERRUPTS();
		(void) paimon_skip_next(&s->it);
	}
}

/* From where the iterator is: the first record of the same key as `n`'s that shows.  False if none. */
static bool
settle_in_group(PaimonMemView *view, IterSource *s, const PaimonSkipNode *key)
{
	while (paimon_skip_valid(&s->it))
	{
		const PaimonSkipNode *n = paimon_skip_node(&s->it);

		if (n != key && compare_nodes(n, key) != 0)
			return false;
		if (shows(view, s, n))
		{
			s->node = n;
			return true;
		}
		CHECK_FOR_INTERRUPTS();
		(void) paimon_skip_next(&s->it);
	}
	return false;
}

/* Backward: from any record of a group, to the first that shows in this group or in one before it. */
static void
settle_backward(PaimonMemView *view, IterSource *s)
{
	s->node = NULL;
	while (paimon_skip_valid(&s->it))
	{
		const PaimonSkipNode *key = paimon_skip_node(&s->it);

		(void) paimon_skip_seek(&s->it, paimon_skip_key(key), key->key_len, PG_UINT64_MAX);
		if (settle_in_group(view, s, key))
			return;
		(void) paimon_skip_seek_last(&s->it, paimon_skip_key(key), key->key_len, false);
	}
}

/* Finds out up to where all batches of a source are shown, so that their records need not ask. */
static void
know_shown(PaimonMemView *view, PaimonViewSource *src)
{
	PaimonRef ref = __atomic_load_n(&src->mt->first_batch, __ATOMIC_ACQUIRE);

	while (ref != PAIMON_NO_REF)
	{
		PaimonBatchInfo *b = paimon_arena_ptr(src->arena, ref);

		CHECK_FOR_INTERRUPTS();
		/* what lies in front of the view is not looked at, whatever it is */
		if (b->end > src->lo && !paimon_memview_shows(view, b))
			break;
		src->shown_before = b->end;
		ref = __atomic_load_n(&b->next, __ATOMIC_ACQUIRE);
	}
}

/* Nodes inserted together lie in memory in the order of their keys: what lies behind this one comes soon. */
static inline void
prefetch_behind(const PaimonSkipNode *n)
{
	const char *behind = (const char *) n + paimon_skip_payload_offset(n->height, n->key_len) + n->payload_len;

	__builtin_prefetch(behind + PREFETCH_BYTES);
	__builtin_prefetch(behind + PREFETCH_BYTES + 64);
}

/* Moves a source behind its record. */
static void
advance(PaimonMemIter *it, IterSource *s)
{
	const PaimonSkipNode *key = s->node;

	(void) paimon_skip_next(&s->it);
	if (it->forward)
	{
		prefetch_behind(key);
		settle_forward(it->view, s);
		return;
	}
	s->node = NULL;
	if (settle_in_group(it->view, s, key))
		return;
	(void) paimon_skip_seek_last(&s->it, paimon_skip_key(key), key->key_len, false);
	settle_backward(it->view, s);
}

/* The payload of a record that the list does not hold: read from the log, with its checksum. */
static void
read_external(PaimonMemView *view, PaimonMemRecord *rec)
{
	PaimonBatchHeader header;
	PaimonBatchRecord r;

	paimon_batch_load_record(view->rel, view->shared->key.storage_id, rec->position, view->tail, &header, &r);
	if (r.payload.len != rec->payload.len || r.key.len != rec->key.len || r.kind != rec->kind)
		paimon_batch_report_corrupt(view->rel, rec->position, "record differs from what was indexed");
	rec->payload = r.payload;
}

/* The record that the source stands on, without a payload that would have to be read. */
static void
describe_record(const IterSource *s, PaimonMemRecord *rec)
{
	const PaimonSkipNode *n = s->node;

	rec->key.data = paimon_skip_key(n);
	rec->key.len = n->key_len;
	rec->position = n->pos;
	rec->kind = n->kind;
	rec->external = (n->flags & PAIMON_SKIP_EXTERNAL) != 0;
	rec->payload.data = paimon_skip_payload(n);
	rec->payload.len = n->payload_len;
}

static void
fill_record(PaimonMemView *view, const IterSource *s, PaimonMemRecord *rec)
{
	describe_record(s, rec);
	if (rec->external)
		read_external(view, rec);
}

/* Finds the source whose record comes next; false if there is none. */
static bool
choose(PaimonMemIter *it)
{
	IterSource *best = NULL;

	it->current = -1;
	for (int i = 0; i < it->nsources; i++)
	{
		IterSource *s = &it->sources[i];
		int         c;

		if (s->node == NULL)
			continue;
		if (best != NULL)
		{
			c = compare_nodes(s->node, best->node);
			if (!it->forward)
				c = -c;
			if (c > 0 || (c == 0 && s->node->pos < best->node->pos))
				continue;
		}
		best = s;
		it->current = i;
	}
	return best != NULL;
}

void
paimon_memiter_payload(PaimonMemIter *it, PaimonMemRecord *rec)
{
	MemoryContext old;

	if (it->external == NULL)
		it->external = AllocSetContextCreate(GetMemoryChunkContext(it), "paimon large record", ALLOCSET_DEFAULT_SIZES);
	MemoryContextReset(it->external);
	old = MemoryContextSwitchTo(it->external);
	read_external(it->view, rec);
	MemoryContextSwitchTo(old);
}

/* Gives the record that comes next. */
static bool
emit(PaimonMemIter *it, PaimonMemRecord *rec)
{
	if (!choose(it))
		return false;
	describe_record(&it->sources[it->current], rec);
	if (rec->external)
		paimon_memiter_payload(it, rec);
	return true;
}

/* The iterator stands on no record yet; memory in the current context. */
static PaimonMemIter *
begin(PaimonMemView *view, PaimonViewSource *sources, int nsources, int bucket, bool forward)
{
	PaimonMemIter *it = palloc(offsetof(PaimonMemIter, sources) + Max(nsources, 1) * sizeof(IterSource));

	it->view = view;
	it->forward = forward;
	it->nsources = 0;
	it->current = -1;
	it->external = NULL;
	for (int i = 0; i < nsources; i++)
	{
		if (open_source(&it->sources[it->nsources], &sources[i], bucket))
			it->nsources++;
	}
	return it;
}

PaimonMemIter *
paimon_memiter_begin(PaimonMemView *view, int bucket, bool forward)
{
	return begin(view, view->sources, view->nsources, bucket, forward);
}

int
paimon_memview_nparts(const PaimonMemView *view)
{
	return view->nsources;
}

bool
paimon_memview_part_has(const PaimonMemView *view, int part, uint64 lo, uint64 hi)
{
	return view->sources[part].lo < hi && view->sources[part].hi > lo;
}

PaimonMemIter *
paimon_memiter_begin_part(PaimonMemView *view, int part, int bucket, bool forward)
{
	return begin(view, &view->sources[part], 1, bucket, forward);
}

bool
paimon_memiter_first(PaimonMemIter *it, PaimonMemRecord *rec)
{
	for (int i = 0; i < it->nsources; i++)
	{
		IterSource *s = &it->sources[i];

		if (it->forward)
		{
			/* a flush wants all of them */
			if (it->view->mode == PAIMON_VIEW_FLUSH && s->src->shown_before == 0)
				know_shown(it->view, s->src);
			(void) paimon_skip_first(&s->it);
			settle_forward(it->view, s);
		}
		else
		{
			(void) paimon_skip_last(&s->it);
			settle_backward(it->view, s);
		}
	}
	return emit(it, rec);
}

bool
paimon_memiter_seek(PaimonMemIter *it, const uint8 *key, uint32 len, PaimonMemRecord *rec)
{
	for (int i = 0; i < it->nsources; i++)
	{
		IterSource *s = &it->sources[i];

		if (it->forward)
		{
			(void) paimon_skip_seek(&s->it, key, len, PG_UINT64_MAX);
			settle_forward(it->view, s);
		}
		else
		{
			(void) paimon_skip_seek_last(&s->it, key, len, true);
			settle_backward(it->view, s);
		}
	}
	return emit(it, rec);
}

/* The record behind the one given last; there must have been one. */
bool
paimon_memiter_next(PaimonMemIter *it, PaimonMemRecord *rec)
{
	if (it->current < 0)
		return false;
	advance(it, &it->sources[it->current]);
	return emit(it, rec);
}

/* Forward: moves a source behind all records of the key of `n`, with one search. */
static void
search_next_key(PaimonMemIter *it, IterSource *s, const PaimonSkipNode *n)
{
	/* records of a key come newest first: this is behind all but one at 0 */
	(void) paimon_skip_seek(&s->it, paimon_skip_key(n), n->key_len, 0);
	while (paimon_skip_valid(&s->it) && compare_nodes(paimon_skip_node(&s->it), n) == 0)
		(void) paimon_skip_next(&s->it);
	settle_forward(it->view, s);
}

/* Forward: moves the source behind the key of its record.  A few records are passed over faster step by step. */
static void
pass_key(PaimonMemIter *it, IterSource *s)
{
	const PaimonSkipNode *n = s->node;

	for (int steps = 0; s->node != NULL && (s->node == n || compare_nodes(s->node, n) == 0); steps++)
	{
		if (steps < STEPS_BEFORE_SEARCH)
			advance(it, s);
		else
			search_next_key(it, s, n);
		PAIMON_STOP_POINT("reader-leaves-record");
	}
}

int
paimon_memiter_newest(PaimonMemIter *it, uint64 lo, uint64 hi, PaimonMemRecord *recs, int max)
{
	IterSource *s = &it->sources[0];
	int         n = 0;

	Assert(it->forward && it->nsources <= 1);
	if (it->current < 0)
		return 0;
	if (max >= MANY_RECORDS && s->src->shown_before == 0)
		know_shown(it->view, s->src);
	while (s->node != NULL && n < max)
	{
		CHECK_FOR_INTERRUPTS();
		if (s->node->pos >= lo && s->node->pos < hi)
		{
			describe_record(s, &recs[n++]);
			pass_key(it, s);
		}
		else
			advance(it, s);
	}
	if (s->node == NULL)
		it->current = -1;
	return n;
}

bool
paimon_memiter_next_key(PaimonMemIter *it, PaimonMemRecord *rec)
{
	IterSource           *s;
	const PaimonSkipNode *n;

	if (it->current < 0)
		return false;
	s = &it->sources[it->current];
	n = s->node;
	if (it->forward)
		search_next_key(it, s, n);
	else
	{
		(void) paimon_skip_seek_last(&s->it, paimon_skip_key(n), n->key_len, false);
		settle_backward(it->view, s);
	}
	return emit(it, rec);
}

void
paimon_memiter_end(PaimonMemIter *it)
{
	if (it->external != NULL)
		MemoryContextDelete(it->external);
	pfree(it);
}

bool
paimon_memview_empty(PaimonMemView *view, int bucket)
{
	for (int i = 0; i < view->nsources; i++)
	{
		IterSource s;

		if (!open_source(&s, &view->sources[i], bucket))
			continue;
		(void) paimon_skip_first(&s.it);
		settle_forward(view, &s);
		if (s.node != NULL)
			return false;
	}
	return true;
}

/* Stands on the first record of exactly this key that shows; false if there is none. */
static bool
find_key(PaimonMemView *view, IterSource *s, const uint8 *key, uint32 len)
{
	const PaimonSkipNode *n;

	if (!paimon_skip_seek(&s->it, key, len, PG_UINT64_MAX))
		return false;
	n = paimon_skip_node(&s->it);
	if (n->key_len != len || memcmp(paimon_skip_key(n), key, len) != 0)
		return false;
	return settle_in_group(view, s, n);
}

/*
 * Newest visible record of a key.  Sources have disjoint ranges and come newest first, so the first hit is it.  A
 * payload that is not in the list is read into the current context.
 */
bool
paimon_memview_get(PaimonMemView *view, int bucket, const uint8 *key, uint32 len, PaimonMemRecord *rec)
{
	for (int i = 0; i < view->nsources; i++)
	{
		IterSource s;

		if (open_source(&s, &view->sources[i], bucket) && find_key(view, &s, key, len))
		{
			fill_record(view, &s, rec);
			return true;
		}
	}
	return false;
}

/* Payloads that are not in the list are read into the current context, one by one. */
void
paimon_memview_each(PaimonMemView *view, int bucket, const uint8 *key, uint32 len, PaimonMemGive give, void *arg)
{
	for (int i = 0; i < view->nsources; i++)
	{
		IterSource s;
		bool       found = open_source(&s, &view->sources[i], bucket) && find_key(view, &s, key, len);

		while (found)
		{
			const PaimonSkipNode *n = s.node;
			PaimonMemRecord       rec;

			fill_record(view, &s, &rec);
			if (!give(arg, &rec))
				return;
			(void) paimon_skip_next(&s.it);
			found = settle_in_group(view, &s, n);
		}
	}
}

/* Adds a transaction that runs to the list, unless it is there. */
static void
add_writer(TransactionId **xids, int *n, int *cap, TransactionId xid)
{
	for (int i = 0; i < *n; i++)
	{
		if ((*xids)[i] == xid)
			return;
	}
	if (*n == *cap)
	{
		*cap *= 2;
		*xids = repalloc(*xids, *cap * sizeof(TransactionId));
	}
	(*xids)[(*n)++] = xid;
}

/*
 * Position below which all batches of the memtable are of transactions that the snapshot knows to be over: none of them runs, none is invisible. What
 * is known of shared memtables is remembered, so that each batch is looked at once; the lists of batches only grow.
 */
static uint64
settled_before(const PaimonViewSource *src, Snapshot snapshot)
{
	typedef struct Settled
	{
		uint64        created; /* which memtable */
		PaimonRef     last;
		uint64        before;
		TransactionId newest; /* of the batches up to `last` */
	} Settled;
	static Settled known[64]; /* numbers of memtables are consecutive: this much is room for many hot tables */
	Settled       *k = &known[src->mt->created % lengthof(known)];

	if (src->mt->created == 0)
		return 0; /* a private index, which is not there for long */
	if (k->created != src->mt->created)
	{
		k->created = src->mt->created;
		k->last = PAIMON_NO_REF;
		k->before = 0;
		k->newest = InvalidTransactionId;
	}
	if (TransactionIdIsValid(k->newest) && !TransactionIdPrecedes(k->newest, snapshot->xmin))
		return 0; /* an old snapshot */
	for (;;)
	{
		const PaimonRef       *link = k->last == PAIMON_NO_REF ? &src->mt->first_batch
															   : &((const PaimonBatchInfo *) paimon_arena_ptr(src->arena, k->last))->next;
		PaimonRef              ref = __atomic_load_n(link, __ATOMIC_ACQUIRE);
		const PaimonBatchInfo *b;

		if (ref == PAIMON_NO_REF)
			break;
		b = paimon_arena_ptr(src->arena, ref);
		if (TransactionIdIsValid(b->xid))
		{
			if (!TransactionIdPrecedes(b->xid, snapshot->xmin))
				break;
			if (!TransactionIdIsValid(k->newest) || TransactionIdFollows(b->xid, k->newest))
				k->newest = b->xid;
		}
		k->last = ref;
		k->before = b->end;
	}
	return k->before;
}

/* See shared.h. */
TransactionId *
paimon_key_writers(PaimonShared *shared, Relation rel, Snapshot snapshot, const PaimonLogRow *log, int bucket,
				   const uint8 *key, uint32 len, LockTupleMode mode, int *nxids, bool *invisible)
{
	PaimonMemView *view = paimon_memview_open_all(shared, rel, log);
	int            cap = 4;
	TransactionId *xids = palloc(cap * sizeof(TransactionId));

	*nxids = 0;
	*invisible = false;
	for (int i = 0; i < view->nsources; i++)
	{
		IterSource s;
		bool       found = open_source(&s, &view->sources[i], bucket) && find_key(view, &s, key, len);
		uint64     settled = 0;
		int        versions = 0;

		while (found)
		{
			const PaimonSkipNode *n = s.node;
			PaimonBatchInfo      *b = paimon_arena_ptr(s.src->arena, n->batch);

			/* Newest first.  A row that is written again and again must not cost more each time. */
			if (++versions == MANY_VERSIONS)
				settled = settled_before(s.src, snapshot);
			if (n->pos < settled)
				break;
			if (TransactionIdIsValid(b->xid) && !TransactionIdIsCurrentTransactionId(b->xid))
			{
				/* Running first: what ends in between is then seen as invisible, never missed. */
				if ((mode != LockTupleKeyShare || paimon_kind_is_removal(n->kind)) && paimon_batch_running(b))
					add_writer(&xids, nxids, &cap, b->xid);
				if (!paimon_batch_visible(b, snapshot))
					*invisible = true;
			}
			(void) paimon_skip_next(&s.it);
			found = settle_in_group(view, &s, n);
		}
	}
	paimon_memview_close(view);
	return xids;
}
