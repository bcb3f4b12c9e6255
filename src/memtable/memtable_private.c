/*-------------------------------------------------------------------------
 *
 * memtable_private.c
 *	  Memtables in a backend's own memory, for parts of the log that no shared memtable covers.
 *
 * Needed when the pool is full, when an old snapshot reads log that has been flushed and dropped since, and for
 * left-over batches of prepared transactions.  An index of a range holds all batches there, visible or not, so that
 * all views of the transaction can use it, and it is extended when a later view reaches further.  It lives until
 * the end of the transaction.
 *
 * Memory: keys with about 60 bytes each, and payloads as long as the index stays below max(work_mem, 64 MB); beyond
 * that payloads are read from the log when they are asked for.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "lib/ilist.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "memtable/memtable_internal.h"

#define MAX_KEPT 8             /* indexes kept without being used by a view */
#define MIN_BUDGET (64 * 1024) /* kB, with payloads */
#define STRETCH_BYTES (1024 * 1024)

struct PaimonPrivateIndex
{
	dlist_node       node;
	PaimonSharedKey  key;
	int              npositions; /* > 0: of just these batches */
	uint64          *positions;
	MemoryContext    cxt; /* holds this struct, too */
	PaimonAllocator  allocator;
	PaimonArenaState state;
	PaimonArena      arena;
	PaimonMemtable  *mt;
	int              pins;
	bool             usable; /* to views to come: complete as far as it says */
};

static dlist_head indexes = DLIST_STATIC_INIT(indexes); /* last used first */
static int        nindexes = 0;

static void *
private_alloc(void *arg, size_t size)
{
	return MemoryContextAllocHuge((MemoryContext) arg, size);
}

static void
delete_index(PaimonPrivateIndex *p)
{
	dlist_delete(&p->node);
	nindexes--;
	MemoryContextDelete(p->cxt);
}

/* Lets go of what is used least recently, so that few are kept besides those in use. */
static void
limit_kept(void)
{
	dlist_node *at = dlist_is_empty(&indexes) ? NULL : dlist_tail_node(&indexes);

	while (at != NULL && nindexes >= MAX_KEPT)
	{
		PaimonPrivateIndex *p = dlist_container(PaimonPrivateIndex, node, at);

		at = dlist_has_prev(&indexes, at) ? dlist_prev_node(&indexes, at) : NULL;
		if (p->pins == 0)
			delete_index(p);
	}
}

static PaimonPrivateIndex *
make_index(PaimonShared *shared, uint64 from, const uint64 *positions, int n)
{
	MemoryContext       cxt;
	PaimonPrivateIndex *p;

	limit_kept();
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon private index", ALLOCSET_SMALL_SIZES);
	p = MemoryContextAllocZero(cxt, sizeof(PaimonPrivateIndex));
	p->key = shared->key;
	p->cxt = cxt;
	p->allocator.alloc = private_alloc;
	p->allocator.arg = cxt;
	if (n > 0)
	{
		p->positions = MemoryContextAlloc(cxt, n * sizeof(uint64));
		memcpy(p->positions, positions, n * sizeof(uint64));
		p->npositions = n;
	}
	paimon_arena_init_private(&p->arena, &p->state, &p->allocator);
	p->mt = paimon_memtable_make(&p->arena, &p->state, from);
	MemoryContextSetParent(cxt, TopMemoryContext);
	dlist_push_head(&indexes, &p->node);
	nindexes++;
	return p;
}

static bool
over_budget(const PaimonPrivateIndex *p)
{
	return (uint64) p->mt->arena.nchunks * PAIMON_CHUNK_SIZE > (uint64) Max(work_mem, MIN_BUDGET) * 1024;
}

/* Reads batches from `position` on and adds them: `bytes` or more of them, at least one, none beyond `limit`. */
static void
add_stretch(PaimonPrivateIndex *p, Relation rel, uint64 position, uint64 limit, uint64 bytes, MemoryContext scratch)
{
	MemoryContext      old = MemoryContextSwitchTo(scratch);
	uint32             inline_max = over_budget(p) ? 0 : PAIMON_INLINE_MAX;
	PaimonStretch     *stretch;
	bool               broken;

	MemoryContextReset(scratch);
	stretch = paimon_stretch_load(rel, p->key.storage_id, position, limit, bytes, inline_max);
	if (!paimon_memtable_add(p->mt, &p->arena, stretch, &broken))
	{
		/* More than 32 GB of keys; or broken, which does not happen.  No later view may find it. */
		p->usable = false;
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY),
						errmsg("out of memory for the unflushed rows of table \"%s\"", RelationGetRelationName(rel)),
						errhint("Flush the table, or increase paimon.memtable_memory.")));
	}
	MemoryContextSwitchTo(old);
}

static MemoryContext
make_scratch(void)
{
	return AllocSetContextCreate(CurrentMemoryContext, "paimon private index batch", ALLOCSET_DEFAULT_SIZES);
}

/*
 * Finds or makes an index and extends it up to `to`.  Errors leave it as far as it got.  The relation must be the
 * entry's; a snapshot or xmin of the transaction must protect the log from `from` on.
 */
PaimonPrivateIndex *
paimon_private_range(PaimonShared *shared, Relation rel, uint64 from, uint64 to)
{
	PaimonPrivateIndex *p = NULL;
	dlist_iter          it;
	MemoryContext       scratch;
	uint64              position;

	dlist_foreach (it, &indexes)
	{
		PaimonPrivateIndex *c = dlist_container(PaimonPrivateIndex, node, it.cur);

		if (c->usable && c->npositions == 0 && memcmp(&c->key, &shared->key, sizeof(c->key)) == 0 &&
			c->mt->from <= from && paimon_memtable_end(c->mt) >= from)
		{
			p = c;
			break;
		}
	}
	if (p == NULL)
	{
		p = make_index(shared, from, NULL, 0);
		p->usable = true;
	}
	else
		dlist_move_head(&indexes, &p->node);

	if (paimon_memtable_end(p->mt) >= to)
		return p;
	scratch = make_scratch();
	while ((position = paimon_memtable_end(p->mt)) < to)
	{
		CHECK_FOR_INTERRUPTS();
		add_stretch(p, rel, position, to, STRETCH_BYTES, scratch);
	}
	MemoryContextDelete(scratch);
	return p;
}

/* positions[] ascending, n > 0. */
PaimonPrivateIndex *
paimon_private_batches(PaimonShared *shared, Relation rel, const uint64 *positions, int n)
{
	PaimonPrivateIndex *p;
	dlist_iter          it;
	MemoryContext       scratch;

	dlist_foreach (it, &indexes)
	{
		p = dlist_container(PaimonPrivateIndex, node, it.cur);
		if (p->usable && p->npositions == n && memcmp(&p->key, &shared->key, sizeof(p->key)) == 0 &&
			memcmp(p->positions, positions, n * sizeof(uint64)) == 0)
		{
			dlist_move_head(&indexes, &p->node);
			return p;
		}
	}
	p = make_index(shared, positions[0], positions, n);

	scratch = make_scratch();
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		pg_atomic_write_u64(&p->mt->to, positions[i]);
		add_stretch(p, rel, positions[i], PG_UINT64_MAX, 1, scratch);
	}
	p->usable = true;
	MemoryContextDelete(scratch);
	return p;
}

PaimonMemtable *
paimon_private_memtable(PaimonPrivateIndex *p)
{
	return p->mt;
}

const PaimonArena *
paimon_private_arena(PaimonPrivateIndex *p)
{
	return &p->arena;
}

void
paimon_private_pin(PaimonPrivateIndex *p)
{
	p->pins++;
}

void
paimon_private_unpin(PaimonPrivateIndex *p)
{
	Assert(p->pins > 0);
	p->pins--;
}

/* No view is open any more. */
void
paimon_private_forget_all(void)
{
	dlist_mutable_iter it;

	dlist_foreach_modify (it, &indexes)
	{
		delete_index(dlist_container(PaimonPrivateIndex, node, it.cur));
	}
}
