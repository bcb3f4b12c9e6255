/*-------------------------------------------------------------------------
 *
 * memtable_sort.c
 *	  The order of a write buffer: made when somebody needs it.
 *
 * A view is an immutable array of the records that existed when it was made, ordered by (bucket, key, newest first).  Later records go into the
 * next view, which is the old one merged with the sorted rest.  Iterators keep the view they began on.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "memtable/buffer_internal.h"

static inline int
compare_keys(const SortEntry *a, const SortEntry *b)
{
	const BufRecord *x = entry_record(a);
	const BufRecord *y = entry_record(b);

	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	if (x->keylen <= 8 && y->keylen <= 8)
		return (int) x->keylen - (int) y->keylen;
	return paimon_bytes_cmp(bufrecord_key(x), x->keylen, bufrecord_key(y), y->keylen);
}

static inline int
compare_entries(const SortEntry *a, const SortEntry *b)
{
	int			c;

	if (entry_record(a)->bucket != entry_record(b)->bucket)
		return entry_record(a)->bucket < entry_record(b)->bucket ? -1 : 1;
	c = compare_keys(a, b);
	if (c != 0)
		return c;
	return entry_record(a)->ordinal > entry_record(b)->ordinal ? -1 : (entry_record(a)->ordinal < entry_record(b)->ordinal ? 1 : 0);
}

/* Of one bucket: looks at the records only when the prefixes are equal. */
static inline int
compare_in_bucket(const SortEntry *a, const SortEntry *b)
{
	int			c = compare_keys(a, b);

	if (c != 0)
		return c;
	return entry_record(a)->ordinal > entry_record(b)->ordinal ? -1 : (entry_record(a)->ordinal < entry_record(b)->ordinal ? 1 : 0);
}

#define ST_SORT sort_bucket
#define ST_ELEMENT_TYPE SortEntry
#define ST_COMPARE(a, b) compare_in_bucket(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/* Sorts the entries of one bucket. */
static void
sort_entries(SortEntry *entries, uint64 n)
{
	int			unsorted = 64;

	if (n >= PAIMON_RADIX_MIN)
	{
		SortEntry  *spare = palloc_extended(sizeof(SortEntry) * n, MCXT_ALLOC_HUGE);

		unsorted = paimon_radix_sort(entries, spare, n);
		pfree(spare);
		CHECK_FOR_INTERRUPTS();
	}
	for (uint64 lo = 0; lo < n;)
	{
		uint64		hi = paimon_radix_group_end(entries, n, lo, unsorted);

		if (hi - lo > 1)
			sort_bucket(entries + lo, hi - lo);
		lo = hi;
	}
}

static SortedView *
view_alloc(WriteBuffer *wb, uint64 n)
{
	SortedView *view = MemoryContextAlloc(wb->cxt, sizeof(SortedView));

	view->refcount = 1;
	view->n = n;
	view->entries = MemoryContextAllocHuge(wb->cxt, sizeof(SortEntry) * Max(n, 1));
	return view;
}

void
paimon_view_release(SortedView *view)
{
	if (--view->refcount == 0)
	{
		pfree(view->entries);
		pfree(view);
	}
}

/* The two sorted stretches [0, split) and [split, n) of b, merged into a. */
static void
merge(SortEntry *a, const SortEntry *old, uint64 nold, const SortEntry *fresh, uint64 nfresh)
{
	uint64		i = 0;
	uint64		j = 0;

	while (i < nold && j < nfresh)
		*a++ = compare_entries(&old[i], &fresh[j]) < 0 ? old[i++] : fresh[j++];
	memcpy(a, old + i, sizeof(SortEntry) * (nold - i));
	a += nold - i;
	memcpy(a, fresh + j, sizeof(SortEntry) * (nfresh - j));
}

/* Entries of the records from the given one on, ordered: distributed to their buckets first, then sorted in each. */
static void
fill_sorted(WriteBuffer *wb, uint64 from, SortEntry *entries, uint64 n)
{
	int			nbuckets = wb->table->desc->nbuckets;
	uint64	   *start = palloc0(sizeof(uint64) * (nbuckets + 1));

	if (nbuckets > 1)
	{
		for (uint64 i = 0; i < n; i++)
			start[paimon_wb_record(wb, from + i)->bucket + 1]++;
		for (int b = 0; b < nbuckets; b++)
			start[b + 1] += start[b];
	}
	for (uint64 i = 0; i < n; i++)
	{
		BufRecord  *rec = paimon_wb_record(wb, from + i);
		SortEntry  *e = &entries[nbuckets > 1 ? start[rec->bucket]++ : i];

		e->prefix = paimon_key_prefix(bufrecord_key(rec), rec->keylen);
		e->ptr = rec;
	}
	if (nbuckets == 1)
		sort_entries(entries, n);
	else
	{
		/* start[b] has moved to the end of bucket b */
		for (int b = 0; b < nbuckets; b++)
		{
			uint64		first = b == 0 ? 0 : start[b - 1];

			sort_entries(entries + first, start[b] - first);
		}
	}
	pfree(start);
}

/* A view of all records in memory now; the caller owns a reference. */
SortedView *
paimon_wb_sorted(WriteBuffer *wb)
{
	SortedView *old = wb->sorted;
	uint64		nold = old == NULL ? 0 : old->n;
	uint64		nfresh = wb->nrecords - nold;
	SortedView *fresh;

	if (old == NULL || nfresh > 0)
	{
		fresh = view_alloc(wb, nfresh);
		fill_sorted(wb, nold, fresh->entries, nfresh);
		if (nold > 0)
		{
			SortedView *both = view_alloc(wb, wb->nrecords);

			merge(both->entries, old->entries, nold, fresh->entries, nfresh);
			paimon_view_release(fresh);
			paimon_view_release(old);
			fresh = both;
		}
		else if (old != NULL)
			paimon_view_release(old);
		wb->sorted = fresh;
	}
	wb->sorted->refcount++;
	return wb->sorted;
}

/*
 * First entry of the bucket with key >= the given one, or > with `after`; key NULL: the bucket's first entry (after: one past its
 * last).
 */
uint64
paimon_view_find(const SortedView *view, int bucket, const uint8 *key, uint32 len, bool after)
{
	uint64		lo = 0;
	uint64		hi = view->n;

	while (lo < hi)
	{
		uint64		mid = lo + (hi - lo) / 2;
		const BufRecord *rec = entry_record(&view->entries[mid]);
		int			c;

		if (rec->bucket != (uint32) bucket)
			c = rec->bucket < (uint32) bucket ? -1 : 1;
		else if (key == NULL)
			c = 0;
		else
			c = paimon_bytes_cmp(bufrecord_key(rec), rec->keylen, key, len);
		if (c < 0 || (c == 0 && after))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
