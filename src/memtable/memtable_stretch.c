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

#include "memtable/memtable_internal.h"

#define STRETCH_BATCHES 4096 /* at most */
#define DENSE           32   /* the stretch has at least one of so many of the memtable's bytes: its places are near each other */

typedef struct StretchBatch
{
	uint64            position;
	PaimonBatchHeader header;
	uint8            *body;
	PaimonRef         info;
} StretchBatch;

/* A record to be sorted. */
typedef struct StretchItem
{
	uint64 prefix;
	uint32 bucket;
	uint32 record; /* index; records are in the order of positions */
} StretchItem;

typedef struct StretchRecord
{
	PaimonBatchRecord r;
	uint32            batch; /* index */
} StretchRecord;

struct PaimonStretch
{
	uint64             from;
	uint64             end;
	uint32             inline_max;
	PaimonMemtableCost cost;
	StretchBatch      *batches;
	uint32             nbatches;
	StretchRecord     *records;
	StretchItem       *items;
	uint32             nrecords; /* those with a key lock for a prepared transaction left out */
};

/* ---- loading ---- */

static bool
is_external(uint32 keylen, uint32 len, uint32 inline_max)
{
	return len > inline_max || paimon_skip_node_size(keylen, len, false) > PAIMON_SKIP_MAX_NODE;
}

/* Checks the batch's form, counts its records and adds what it wants of memory. */
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
		s->nrecords++;
		size = paimon_skip_node_size(rec.key.len, rec.payload.len, is_external(rec.key.len, rec.payload.len, s->inline_max));
		s->cost.total += size;
		s->cost.largest = Max(s->cost.largest, (uint32) size);
	}
	if (reader.corrupt)
		paimon_batch_report_corrupt(rel, b->position, reader.why);
	if (n != b->header.nrecords)
		paimon_batch_report_corrupt(rel, b->position, "number of records does not match the header");
}

static int
compare_items(const StretchItem *a, const StretchItem *b, const StretchRecord *records)
{
	const PaimonBytes *x = &records[a->record].r.key;
	const PaimonBytes *y = &records[b->record].r.key;
	int                c;

	if (a->bucket != b->bucket)
		return a->bucket < b->bucket ? -1 : 1;
	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;
	if (x->len > 8 || y->len > 8)
		c = paimon_bytes_cmp(x->data, x->len, y->data, y->len);
	else
		c = (int) x->len - (int) y->len;
	return c != 0 ? c : (a->record < b->record ? -1 : 1);
}

#define ST_SORT sort_items
#define ST_ELEMENT_TYPE StretchItem
#define ST_COMPARE(a, b, records) compare_items(a, b, records)
#define ST_COMPARE_ARG_TYPE const StretchRecord
#define ST_SCOPE static
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

static void
sort_records(PaimonStretch *s)
{
	uint32 n = 0;

	s->records = palloc_extended(sizeof(StretchRecord) * Max(s->nrecords, 1), MCXT_ALLOC_HUGE);
	s->items = palloc_extended(sizeof(StretchItem) * Max(s->nrecords, 1), MCXT_ALLOC_HUGE);
	for (uint32 i = 0; i < s->nbatches; i++)
	{
		const StretchBatch *b = &s->batches[i];
		PaimonBatchReader   reader;
		PaimonBatchRecord   rec;

		paimon_batch_read_begin(&reader, b->position, &b->header, b->body);
		while (n < s->nrecords && paimon_batch_read_next(&reader, &rec))
		{
			if (rec.kind & PAIMON_RECORD_LOCK)
				continue;
			s->records[n] = (StretchRecord) {rec, i};
			s->items[n] = (StretchItem) {paimon_key_prefix(rec.key.data, rec.key.len), (uint32) rec.bucket, n};
			n++;
		}
	}
	Assert(n == s->nrecords);
	if (n > 1)
		sort_items(s->items, n, s->records);
}

/* See memtable_internal.h. */
PaimonStretch *
paimon_stretch_load(Relation rel, uint64 storage_id, uint64 from, uint64 limit, uint64 bytes, uint32 inline_max)
{
	PaimonStretch *s = palloc0(sizeof(PaimonStretch));
	uint32         allocated = 8;

	s->from = s->end = from;
	s->inline_max = inline_max;
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
	int                n = 0;

	for (uint32 k = i; k < s->nrecords && n < PAIMON_SKIP_PLACES_MAX && s->items[k].bucket == s->items[i].bucket; k++)
	{
		const PaimonBytes *key = &s->records[s->items[k].record].r.key;

		keys[n++] = (PaimonSkipPlaceKey) {key->data, key->len};
	}
	paimon_skip_find_places(list, arena, keys, n, places);
	return n;
}

static bool
insert_record(const PaimonStretch *s, const StretchRecord *rec, PaimonMemtable *mt, PaimonArena *arena, PaimonSkipList *list,
			  const PaimonSkipPlace *place)
{
	PaimonSkipEntry e = {.key = rec->r.key.data,
						 .key_len = rec->r.key.len,
						 .pos = rec->r.position,
						 .batch = s->batches[rec->batch].info,
						 .kind = rec->r.kind,
						 .external = is_external(rec->r.key.len, rec->r.payload.len, s->inline_max),
						 .payload = rec->r.payload.data,
						 .payload_len = rec->r.payload.len};

	return paimon_skip_insert(list, arena, &mt->rng, &e, place) == PAIMON_OK;
}

/* See memtable_internal.h. */
bool
paimon_stretch_insert(PaimonStretch *s, PaimonMemtable *mt, PaimonArena *arena)
{
	bool            dense = s->cost.total * DENSE >= (uint64) mt->arena.nchunks * PAIMON_CHUNK_SIZE;
	PaimonSkipPlace places[PAIMON_SKIP_PLACES_MAX];
	PaimonSkipList *list = NULL;
	uint32          bucket = PG_UINT32_MAX;
	int             nplaces = 0;
	int             place = 0;

	for (uint32 i = 0; i < s->nbatches; i++)
	{
		StretchBatch *b = &s->batches[i];

		b->info = paimon_memtable_add_batch(mt, arena, b->position, &b->header);
		if (b->info == PAIMON_NO_REF)
			return false;
	}
	for (uint32 i = 0; i < s->nrecords; i++)
	{
		const StretchRecord *rec = &s->records[s->items[i].record];

		if (s->items[i].bucket != bucket)
		{
			bucket = s->items[i].bucket;
			if ((list = paimon_memtable_make_list(mt, arena, (int) bucket)) == NULL)
				return false;
			nplaces = place = 0;
			paimon_skip_start_place(&places[0]);
		}
		if (dense)
			paimon_skip_move_place(list, arena, rec->r.key.data, rec->r.key.len, &places[0]);
		else if (place == nplaces)
		{
			nplaces = find_places(s, i, list, arena, places);
			place = 0;
		}
		if (!insert_record(s, rec, mt, arena, list, &places[dense ? 0 : place++]))
			return false;
	}
	return true;
}
