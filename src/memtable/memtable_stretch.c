/*-------------------------------------------------------------------------
 *
 * memtable_stretch.c
 *	  A stretch of the log: some batches one behind the other, put into a memtable together.
 *
 * A search in a large skip list is mostly waiting for memory.  So the records of a stretch are sorted first and inserted in the order of keys.  Where they lie
 * close together in the list, a place moves on from one to the next in a few steps; else places are found from the top, several at a time, and neighbours
 * share most of their way.  Either way neighbours in the list become neighbours in memory, which is what a scan or a flush of it wants.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "miscadmin.h"

#include "core/core_radix.h"
#include "memtable/memtable_internal.h"

#define STRETCH_BATCHES 4096 /* at most */
#define PREFETCH_DISTANCE 8
#define DENSE           32   /* the stretch has at least one of so many of the memtable's bytes: its places are near each other */

typedef struct StretchBatch
{
	uint64            position;
	PaimonBatchHeader header;
	uint8            *body;
	PaimonRef         info;
} StretchBatch;

struct PaimonStretch
{
	uint64             from;
	uint64             end;
	uint32             inline_max;
	PaimonMemtableCost cost;
	StretchBatch      *batches;
	uint32             nbatches;
	PaimonSortItem    *items;
	uint32             nitems; /* records; those with a key lock for a prepared transaction left out */
	uint32             max_items;
	uint32             max_bucket; /* the highest of a record */
	uint32             min_key;    /* lengths of keys */
	uint32             max_key;
};

/* ---- records ---- */

static bool
is_external(uint32 keylen, uint32 len, uint32 inline_max)
{
	return len > inline_max || paimon_skip_node_size(keylen, len, false) > PAIMON_SKIP_MAX_NODE;
}

/* A record is named by its batch's index and its offset there. */
static uint64
name_record(uint32 batch, uint32 offset)
{
	return (uint64) batch << 32 | offset;
}

static const StretchBatch *
batch_of(const PaimonStretch *s, const PaimonSortItem *item)
{
	return &s->batches[item->number >> 32];
}

static PaimonBatchRecord
record_of(const PaimonStretch *s, const PaimonSortItem *item)
{
	const StretchBatch *b = batch_of(s, item);

	return paimon_batch_read_again(b->position, b->body, (uint32) item->number);
}

static void
make_room_for_items(PaimonStretch *s, uint32 more)
{
	if (more <= s->max_items - s->nitems)
		return;
	s->max_items = Max(s->max_items * 2, s->nitems + more);
	if (s->items == NULL)
		s->items = palloc_extended(sizeof(PaimonSortItem) * s->max_items, MCXT_ALLOC_HUGE);
	else
		s->items = repalloc_huge(s->items, sizeof(PaimonSortItem) * s->max_items);
}

/* Checks the batch's form, takes down its records and adds what it wants of memory. */
static void
survey_batch(PaimonStretch *s, Relation rel, const StretchBatch *b)
{
	PaimonBatchReader reader;
	PaimonBatchRecord rec;
	uint64            n = 0;
	uint32            leaf = PAIMON_LEAF_BUCKETS * sizeof(PaimonRef);

	s->cost.largest = Max(s->cost.largest, leaf);
	s->cost.total += MAXALIGN(sizeof(PaimonBatchInfo)) + (uint64) b->header.nbuckets * MAXALIGN(sizeof(PaimonSkipList)) +
					 (uint64) Min(b->header.nbuckets, PAIMON_LEAVES) * leaf;
	paimon_batch_read_begin(&reader, b->position, &b->header, b->body);
	while (paimon_batch_read_next(&reader, &rec))
	{
		uint64 size;

		n++;
		if (rec.kind & PAIMON_RECORD_LOCK)
			continue;
		make_room_for_items(s, 1);
		s->items[s->nitems].prefix = paimon_key_prefix(rec.key.data, rec.key.len);
		s->items[s->nitems].number = name_record((uint32) (b - s->batches), (uint32) (rec.position - b->position));
		s->nitems++;
		s->max_bucket = Max(s->max_bucket, (uint32) rec.bucket);
		s->min_key = Min(s->min_key, rec.key.len);
		s->max_key = Max(s->max_key, rec.key.len);
		size = paimon_skip_node_size(rec.key.len, rec.payload.len, is_external(rec.key.len, rec.payload.len, s->inline_max));
		s->cost.total += size;
		s->cost.largest = Max(s->cost.largest, (uint32) size);
	}
	if (reader.corrupt)
		paimon_batch_report_corrupt(rel, b->position, reader.why);
	if (n != b->header.nrecords)
		paimon_batch_report_corrupt(rel, b->position, "number of records does not match the header");
}

/* ---- sorting: by bucket, key, and position ---- */

/* Are keys with the same prefix the same? */
static bool
prefix_is_key(const PaimonStretch *s)
{
	return s->max_key <= 8 && s->min_key == s->max_key;
}

/* Of one bucket. */
static int
compare_items(const PaimonSortItem *a, const PaimonSortItem *b, const PaimonStretch *s)
{
	int c = 0;

	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	if (!prefix_is_key(s))
	{
		PaimonBytes x = record_of(s, a).key;
		PaimonBytes y = record_of(s, b).key;

		c = paimon_bytes_cmp(x.data, x.len, y.data, y.len);
	}
	return c != 0 ? c : (a->number < b->number ? -1 : 1);
}

#define ST_SORT sort_items
#define ST_ELEMENT_TYPE PaimonSortItem
#define ST_COMPARE(a, b, s) compare_items(a, b, s)
#define ST_COMPARE_ARG_TYPE const PaimonStretch
#define ST_SCOPE static
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/* Distributes the items to their buckets; start[b] and start[b + 1] are the bounds of bucket b then. */
static void
sort_by_bucket(const PaimonStretch *s, const PaimonSortItem *from, PaimonSortItem *to, uint32 *start)
{
	for (uint32 i = 0; i < s->nitems; i++)
		start[record_of(s, &from[i]).bucket + 2]++;
	for (uint32 b = 0; b < s->max_bucket; b++)
		start[b + 2] += start[b + 1];
	for (uint32 i = 0; i < s->nitems; i++)
		to[start[record_of(s, &from[i]).bucket + 1]++] = from[i];
}

static void
sort_bucket(const PaimonStretch *s, PaimonSortItem *items, uint32 n, PaimonSortItem *spare)
{
	int unsorted = n < PAIMON_RADIX_MIN ? 64 : paimon_radix_sort(items, spare, n);

	if (unsorted == 0 && prefix_is_key(s))
		return;
	for (size_t lo = 0; lo < n;)
	{
		size_t hi = paimon_radix_group_end(items, n, lo, unsorted);

		if (hi - lo > 1)
			sort_items(items + lo, hi - lo, s);
		lo = hi;
	}
}

static void
sort_records(PaimonStretch *s)
{
	PaimonSortItem *spare = palloc_extended(sizeof(PaimonSortItem) * Max(s->nitems, 1), MCXT_ALLOC_HUGE);

	if (s->max_bucket > 0)
	{
		uint32         *start = palloc0_array(uint32, s->max_bucket + 3);
		PaimonSortItem *items = spare;

		sort_by_bucket(s, s->items, items, start);
		spare = s->items;
		s->items = items;
		for (uint32 b = 0; b <= s->max_bucket; b++)
			sort_bucket(s, items + start[b], start[b + 1] - start[b], spare);
	}
	else
		sort_bucket(s, s->items, s->nitems, spare);
}

/* ---- loading ---- */

/* See memtable_internal.h. */
PaimonStretch *
paimon_stretch_load(Relation rel, uint64 storage_id, uint64 from, uint64 limit, uint64 bytes, uint32 inline_max)
{
	PaimonStretch *s = palloc0(sizeof(PaimonStretch));
	uint32         allocated = 8;

	s->from = s->end = from;
	s->inline_max = inline_max;
	s->min_key = PG_UINT32_MAX;
	s->batches = palloc_array(StretchBatch, allocated);
	do
	{
		StretchBatch *b;

		CHECK_FOR_INTERRUPTS();
		if (s->nbatches == allocated)
		{
			allocated *= 2;
			s->batches = repalloc_array(s->batches, StretchBatch, allocated);
		}
		b = &s->batches[s->nbatches++];
		b->position = s->end;
		s->end = paimon_batch_load(rel, storage_id, b->position, &b->header, &b->body);
		if (s->end > limit)
			paimon_batch_report_corrupt(rel, b->position, "batch ends where no batch ends");
		survey_batch(s, rel, b);
	} while (s->end < limit && s->end - from < bytes && s->nbatches < STRETCH_BATCHES);
	sort_records(s);
	return s;
}

const PaimonMemtableCost *
paimon_stretch_cost(const PaimonStretch *s)
{
	return &s->cost;
}

uint64
paimon_stretch_from(const PaimonStretch *s)
{
	return s->from;
}

uint64
paimon_stretch_end(const PaimonStretch *s)
{
	return s->end;
}

/* ---- inserting ---- */

/* The places of the items from the i-th on that are in its bucket, up to PAIMON_SKIP_PLACES_MAX. */
static int
find_places(const PaimonStretch *s, uint32 i, const PaimonSkipList *list, const PaimonArena *arena, PaimonSkipPlace *places)
{
	PaimonSkipPlaceKey keys[PAIMON_SKIP_PLACES_MAX];
	int                bucket = record_of(s, &s->items[i]).bucket;
	int                n = 0;

	for (uint32 k = i; k < s->nitems && n < PAIMON_SKIP_PLACES_MAX; k++)
	{
		PaimonBatchRecord rec = record_of(s, &s->items[k]);

		if (rec.bucket != bucket)
			break;
		keys[n++] = (PaimonSkipPlaceKey) {rec.key.data, rec.key.len};
	}
	paimon_skip_find_places(list, arena, keys, n, places);
	return n;
}

static bool
insert_record(const PaimonStretch *s, const PaimonBatchRecord *rec, PaimonRef batch, PaimonMemtable *mt, PaimonArena *arena, PaimonSkipList *list,
			  const PaimonSkipPlace *place)
{
	PaimonSkipEntry e = {.key = rec->key.data,
						 .key_len = rec->key.len,
						 .pos = rec->position,
						 .batch = batch,
						 .kind = rec->kind,
						 .external = is_external(rec->key.len, rec->payload.len, s->inline_max),
						 .payload = rec->payload.data,
						 .payload_len = rec->payload.len};

	return paimon_skip_insert(list, arena, &mt->rng, &e, place) == PAIMON_OK;
}

/* Records lie in the order of their arrival, and so far from one another: those a little ahead are asked for. */
static inline void
prefetch_ahead(const PaimonStretch *s, uint32 i)
{
	if (i + PREFETCH_DISTANCE < s->nitems)
	{
		const PaimonSortItem *item = &s->items[i + PREFETCH_DISTANCE];
		const uint8          *p = batch_of(s, item)->body + (uint32) item->number;

		__builtin_prefetch(p);
		__builtin_prefetch(p + 64);
	}
}

/* See memtable_internal.h. */
bool
paimon_stretch_insert(PaimonStretch *s, PaimonMemtable *mt, PaimonArena *arena)
{
	bool            dense = s->cost.total * DENSE >= (uint64) mt->arena.nchunks * PAIMON_CHUNK_SIZE;
	PaimonSkipPlace places[PAIMON_SKIP_PLACES_MAX];
	PaimonSkipList *list = NULL;
	int             bucket = -1;
	int             nplaces = 0;
	int             place = 0;

	for (uint32 i = 0; i < s->nbatches; i++)
	{
		StretchBatch *b = &s->batches[i];

		b->info = paimon_memtable_add_batch(mt, arena, b->position, &b->header);
		if (b->info == PAIMON_NO_REF)
			return false;
	}
	for (uint32 i = 0; i < s->nitems; i++)
	{
		PaimonBatchRecord rec = record_of(s, &s->items[i]);

		prefetch_ahead(s, i);
		if (rec.bucket != bucket)
		{
			bucket = rec.bucket;
			if ((list = paimon_memtable_make_list(mt, arena, bucket)) == NULL)
				return false;
			nplaces = place = 0;
			paimon_skip_start_place(&places[0]);
		}
		if (dense)
			paimon_skip_move_place(list, arena, rec.key.data, rec.key.len, &places[0]);
		else if (place == nplaces)
		{
			nplaces = find_places(s, i, list, arena, places);
			place = 0;
		}
		if (!insert_record(s, &rec, batch_of(s, &s->items[i])->info, mt, arena, list, &places[dense ? 0 : place++]))
			return false;
	}
	return true;
}
