/*-------------------------------------------------------------------------
 *
 * scan_ordered.c
 *	  Ranges of keys in order, over all buckets and in both directions: what an index scan reads.
 *
 * A bucket's rows come in key order from a merge reader.  Several buckets have a reader each, and a loser tree takes the least of their keys; no two
 * buckets have the same one.  All readers share one state (snapshot, manifest, log), which stays open over any number of ranges, and are themselves kept for
 * the next range.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "scan/scan_internal.h"

/* A bucket with a row at hand. */
typedef struct OrderedSource
{
	PaimonMergeSource m;		/* first: the loser tree's part */
	PaimonReader *reader;
	PaimonRowRef row;
} OrderedSource;

struct PaimonOrdered
{
	MemoryContext cxt;
	PaimonScanState state;
	PaimonReadSpec spec;
	int			nsources;		/* made so far, at most one a bucket */
	OrderedSource **sources;
	PaimonReader *single;		/* of the present range, if it lies in one bucket: no merging */
	bool		started;		/* merging: the winner's row has been given */
	MemoryContext tree_cxt;
	PaimonLoserTree tree;
};

static void *
tree_alloc(void *arg, size_t size)
{
	return MemoryContextAlloc((MemoryContext) arg, Max(size, 1));
}

PaimonOrdered *
paimon_ordered_begin(PaimonTable *table, Relation rel, Snapshot snapshot)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon ordered reader", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	PaimonOrdered *ordered = palloc0_object(PaimonOrdered);

	ordered->cxt = cxt;
	ordered->tree_cxt = AllocSetContextCreate(cxt, "paimon ordered merge", ALLOCSET_SMALL_SIZES);
	ordered->spec.table = table;
	ordered->spec.rel = rel;
	ordered->spec.snapshot = snapshot;
	ordered->spec.bucket = -1;
	ordered->sources = palloc0_array(OrderedSource *, Max(table->desc->nbuckets, 1));
	paimon_scanstate_open(&ordered->state, table, rel, snapshot);
	MemoryContextSwitchTo(old);
	return ordered;
}

static OrderedSource *
get_source(PaimonOrdered *ordered, int i)
{
	MemoryContext old;

	Assert(i <= ordered->nsources);
	if (i < ordered->nsources)
		return ordered->sources[i];
	old = MemoryContextSwitchTo(ordered->cxt);
	ordered->sources[i] = palloc0_object(OrderedSource);
	ordered->sources[i]->m.rank = i;
	ordered->sources[i]->reader = paimon_reader_begin_shared(&ordered->spec, &ordered->state);
	ordered->nsources = i + 1;
	MemoryContextSwitchTo(old);
	return ordered->sources[i];
}

static void
aim_reader(PaimonReader *reader, PaimonBytes lower, PaimonBytes upper, int bucket, bool forward, bool nokey)
{
	paimon_reader_close_bucket(reader);
	reader->range.lower = lower;
	reader->range.upper = upper;
	reader->range.upper_excluded = true;
	reader->spec.forward = forward;
	reader->spec.nokey = nokey;
	reader->bucket = bucket;
	reader->bucket_end = bucket + 1;
}

/* A source's next row. */
static PaimonResult
source_advance(PaimonMergeSource *m)
{
	OrderedSource *s = (OrderedSource *) m;

	m->done = !paimon_reader_next(s->reader, &s->row);
	if (!m->done)
	{
		m->key = s->row.key.data;
		m->len = s->row.key.len;
		m->prefix = paimon_key_prefix(m->key, m->len);
	}
	return PAIMON_OK;
}

static void
seek_all(PaimonOrdered *ordered, PaimonBytes lower, PaimonBytes upper, bool forward)
{
	int			nbuckets = ordered->spec.table->desc->nbuckets;
	PaimonAllocator alloc = {tree_alloc, ordered->tree_cxt};
	PaimonMergeSource **sources;
	int			n = 0;

	MemoryContextReset(ordered->tree_cxt);
	sources = MemoryContextAlloc(ordered->tree_cxt, nbuckets * sizeof(PaimonMergeSource *));
	for (int bucket = 0; bucket < nbuckets; bucket++)
	{
		OrderedSource *s = get_source(ordered, n);

		CHECK_FOR_INTERRUPTS();
		aim_reader(s->reader, lower, upper, bucket, forward, false);
		s->m.advance = source_advance;
		(void) source_advance(&s->m);
		if (!s->m.done)
			sources[n++] = &s->m;
	}
	(void) paimon_losertree_init(&ordered->tree, sources, n, !forward, &alloc);
}

void
paimon_ordered_seek(PaimonOrdered *ordered, PaimonBytes lower, PaimonBytes upper, int bucket, bool forward)
{
	if (ordered->single != NULL)
		paimon_reader_close_bucket(ordered->single);
	ordered->single = NULL;
	ordered->started = false;
	ordered->tree.n = 0;
	if (ordered->spec.table->storage_id == 0)
		return;					/* nothing was ever written */
	if (bucket < 0 && ordered->spec.table->desc->nbuckets == 1)
		bucket = 0;
	if (bucket >= 0)
	{
		ordered->single = get_source(ordered, 0)->reader;
		aim_reader(ordered->single, lower, upper, bucket, forward, true);
	}
	else
		seek_all(ordered, lower, upper, forward);
}

bool
paimon_ordered_next(PaimonOrdered *ordered, PaimonRowRef *row)
{
	PaimonMergeSource *winner;

	if (ordered->single != NULL)
		return paimon_reader_next(ordered->single, row);
	if (ordered->tree.n == 0)
		return false;
	if (ordered->started)
		(void) paimon_losertree_advance(&ordered->tree);
	ordered->started = true;
	winner = paimon_losertree_winner(&ordered->tree);
	if (winner == NULL)
		return false;
	*row = ((OrderedSource *) winner)->row;
	return true;
}

void
paimon_ordered_end(PaimonOrdered *ordered)
{
	for (int i = 0; i < ordered->nsources; i++)
		paimon_reader_end(ordered->sources[i]->reader);
	paimon_scanstate_close(&ordered->state);
	MemoryContextDelete(ordered->cxt);
}
