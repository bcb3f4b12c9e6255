/*-------------------------------------------------------------------------
 *
 * run_group.c
 *	  Open row groups: fetched lazily from their pages, decoded column by column, kept for a while.
 *
 * A group owns a memory context with everything decoded from it.  Groups that nobody references stay open, least recently used ones going
 * first, while they are fewer than GROUP_CACHE_MAX and take less than GROUP_CACHE_BYTES together: point lookups and UPDATEs that hit
 * the same group again find it open.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "run/run_file.h"
#include "run/run_group.h"

#define GROUP_CACHE_MAX		4096
#define GROUP_CACHE_BYTES	((Size) 32 * 1024 * 1024)
#define GROUP_BLOCK_BYTES	(64 * 1024) /* of memory; what is larger than an eighth gets a block of its own */
#define GROUP_KEEP_BYTES	(GROUP_CACHE_BYTES / 4) /* a larger group is not kept */

/* Read when a group is opened: about its directory and the heads of its columns, so that a lookup reads no more of the first page. */
#define GROUP_HEAD_BYTES(ncolumns) (512 + 128 * (ncolumns))

/* Blocks of a column that are decoded together on the way through a group. */
#define BLOCKS_ON_THE_WAY	4

/* After so many keys taken one by one (each takes memory of the group) all are decoded. */
#define GROUP_SINGLES(g)	((g)->nrows / 4 + 64)

StaticAssertDecl(sizeof(Datum) == sizeof(uint64), "column words are Datums: 64-bit platforms only");

/* Compressed bytes on their way (group_peek), and what the last of them were expanded to: values are taken from there one by one. */
#define PEEK_BYTES_MAX		(64 * 1024)
#define ROOM_BYTES			(32 * 1024)
static uint8 *peek_buffer = NULL;
static Size peek_size = 0;
static PaimonUnitRoom unit_room;

static dlist_head group_lru = DLIST_STATIC_INIT(group_lru);
static uint32 group_cached = 0; /* unreferenced groups, and their memory */
static Size group_cached_bytes = 0;

/* Groups that were asked for since the last paimon_run_reads_done, by storage: a few, so they are searched one by one. */
static bool reads_counted = true;
static PaimonRunReads *reads = NULL;	/* in TopMemoryContext */
static int	nreads = 0;
static int	reads_room = 0;
static int	reads_last = 0;		/* the one counted last */

static void
count_read(uint64 storage_id, bool hit)
{
	if (!reads_counted)
		return;
	if (reads_last >= nreads || reads[reads_last].storage_id != storage_id)
	{
		for (reads_last = 0; reads_last < nreads && reads[reads_last].storage_id != storage_id; reads_last++)
			;
		if (reads_last == reads_room)
		{
			int			room = Max(8, 2 * reads_room);

			reads = reads == NULL ? MemoryContextAlloc(TopMemoryContext, room * sizeof(PaimonRunReads)) :
				repalloc(reads, room * sizeof(PaimonRunReads));
			reads_room = room;
		}
		if (reads_last == nreads)
		{
			reads[nreads].storage_id = storage_id;
			reads[nreads].hits = 0;
			reads[nreads++].misses = 0;
		}
	}
	if (hit)
		reads[reads_last].hits++;
	else
		reads[reads_last].misses++;
}

PaimonRunReads *
paimon_run_reads(int *n)
{
	*n = nreads;
	return reads;
}

void
paimon_run_reads_done(void)
{
	nreads = 0;
}

void
paimon_run_reads_count(bool count)
{
	reads_counted = count;
}

static void *
group_alloc(void *arg, size_t size)
{
	return MemoryContextAllocExtended((MemoryContext) arg, size > 0 ? size : 1, MCXT_ALLOC_HUGE);
}

/* PaimonGroupSource: bytes of the group; its first ones are in memory already. */
static const uint8_t *
group_fetch(void *arg, uint32_t off, uint32_t len)
{
	PaimonRunGroup *g = arg;
	uint8	   *dest;

	if ((uint64) off + len <= g->head_len)
		return g->head + off;
	dest = group_alloc(g->cxt, len);
	paimon_run_file_read(g->file, g->file->footer.groups[g->group_no].page, off, len, dest);
	return dest;
}

/* The same for bytes that are soon done with: they are not kept. */
static const uint8_t *
group_peek(void *arg, uint32_t off, uint32_t len)
{
	PaimonRunGroup *g = arg;

	if ((uint64) off + len <= g->head_len)
		return g->head + off;
	if (len > PEEK_BYTES_MAX)
		return group_fetch(arg, off, len);
	if (len > peek_size)
	{
		if (peek_buffer != NULL)
			pfree(peek_buffer);
		peek_buffer = NULL;
		peek_size = 0;
		peek_buffer = MemoryContextAlloc(TopMemoryContext, Max(len, 2 * PAIMON_PAGE_PAYLOAD));
		peek_size = Max(len, 2 * PAIMON_PAGE_PAYLOAD);
	}
	paimon_run_file_read(g->file, g->file->footer.groups[g->group_no].page, off, len, peek_buffer);
	return peek_buffer;
}

static void
group_corrupt(PaimonRunGroup *g, PaimonResult result)
{
	if (result == PAIMON_NO_MEMORY)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	paimon_run_corrupt(g->file, g->group_no, "contents are damaged");
}

static inline void
group_check(PaimonRunGroup *g, PaimonResult result)
{
	if (unlikely(result != PAIMON_OK))
		group_corrupt(g, result);
}

/* Is a column that was loaded from the table's definition still what the definition says? */
static bool
still_holds(const PaimonRunGroup *g, const PaimonRowDesc *desc, uint32 c)
{
	Form_pg_attribute att;
	Datum		value;
	bool		isnull;

	if (c >= (uint32) desc->tupdesc->natts)
		return false;
	att = TupleDescAttr(desc->tupdesc, c);
	if (bms_is_member(c, g->dropped))
		return att->attisdropped;
	if (c < g->ncolumns || att->attisdropped || desc->in_key[c] || g->nrows == 0)
		return true;
	if (g->types[c] != att->atttypid)
		return false;
	paimon_row_missing(desc, c, &value, &isnull);
	if (isnull || (g->nulls[c] != NULL && g->nulls[c][0]))
		return isnull == (g->nulls[c] != NULL && g->nulls[c][0]);
	return datumIsEqual(g->values[c][0], value, att->attbyval, att->attlen);
}

/*
 * Another definition of the table: room for its attributes, and nothing more of those that an ALTER TABLE that was rolled back had dropped or added.  Nobody reads
 * the group while these change: ALTER TABLE refuses tables in use.
 */
static void
group_set_desc(PaimonRunGroup *g, const PaimonRowDesc *desc)
{
	uint32		natts = desc->tupdesc->natts;

	if (g->desc_serial == desc->serial)
	{
		g->desc = desc;
		return;
	}
	for (uint32 c = 0; c < g->natts; c++)
	{
		if (g->values[c] == NULL || still_holds(g, desc, c))
			continue;
		g->values[c] = NULL;
		g->nulls[c] = NULL;
		g->dropped = bms_del_member(g->dropped, c);
	}
	g->desc = desc;
	g->desc_serial = desc->serial;
	g->parts = NULL;
	if (natts <= g->natts)
		return;
	{
		const Datum **values = MemoryContextAllocZero(g->cxt, natts * sizeof(Datum *));
		const bool **nulls = MemoryContextAllocZero(g->cxt, natts * sizeof(bool *));
		Oid		   *types = MemoryContextAllocZero(g->cxt, natts * sizeof(Oid));

		if (g->natts > 0)
		{
			memcpy(types, g->types, g->natts * sizeof(Oid));
			memcpy(values, g->values, g->natts * sizeof(Datum *));
			memcpy(nulls, g->nulls, g->natts * sizeof(bool *));
		}
		g->values = values;
		g->nulls = nulls;
		g->types = types;
		g->natts = natts;
	}
}

static PaimonRunGroup *
group_open(PaimonRunFile *file, uint32 group_no)
{
	const PaimonRunGroupEntry *entry = &file->footer.groups[group_no];
	/* nothing is freed one by one, and much has odd sizes: a generation context wastes none of them */
	MemoryContext cxt = GenerationContextCreate(CurrentMemoryContext, "paimon row group", ALLOCSET_DEFAULT_MINSIZE,
												ALLOCSET_DEFAULT_INITSIZE, GROUP_BLOCK_BYTES);
	PaimonRunGroup *g = MemoryContextAllocZero(cxt, sizeof(PaimonRunGroup));
	PaimonAllocator alloc = {group_alloc, cxt};
	PaimonGroupSource src;
	PaimonGroupId id;
	uint32		ncolumns;

	g->cxt = cxt;
	g->file = file;
	g->group_no = group_no;
	g->block = paimon_file_block(&file->extents, entry->page);
	g->head_len = Min(entry->len, Min(PAIMON_PAGE_PAYLOAD, GROUP_HEAD_BYTES(file->footer.natts)));
	g->head = MemoryContextAlloc(cxt, g->head_len);
	paimon_run_file_read(file, entry->page, 0, g->head_len, g->head);
	group_set_desc(g, file->desc);

	src.len = entry->len;
	src.fetch = group_fetch;
	src.arg = g;
	src.peek = group_peek;
	if (unit_room.data == NULL)
	{
		unit_room.data = MemoryContextAlloc(TopMemoryContext, ROOM_BYTES);
		unit_room.size = ROOM_BYTES;
	}
	src.room = &unit_room;
	memset(&id, 0, sizeof(id));
	id.storage_id = file->key.storage_id;
	id.file_no = file->key.file_no;
	id.group_no = group_no;
	id.bucket = file->footer.bucket;
	ncolumns = file->footer.natts;
	if (ncolumns > (uint32) file->desc->tupdesc->natts)
		paimon_run_corrupt(file, group_no, "it has more columns than the table");
	group_check(g, paimon_group_open(&src, &id, file->desc->columns, ncolumns, &alloc, &g->core));
	g->nrows = paimon_group_nrows(g->core);
	g->ncolumns = paimon_group_ncolumns(g->core);
	if (g->nrows != entry->nrows || g->ncolumns > ncolumns)
		paimon_run_corrupt(file, group_no, "size disagrees with the footer");
	return g;
}

PaimonRunGroup *
paimon_run_group(PaimonRunFile *file, uint32 group_no)
{
	PaimonRunGroup *g;

	Assert(group_no < file->footer.ngroups);
	g = file->groups[group_no];
	count_read(file->key.storage_id, g != NULL);
	if (g != NULL)
	{
		group_set_desc(g, file->desc);
		paimon_run_group_ref(g);
		return g;
	}
	g = group_open(file, group_no);
	MemoryContextSetParent(g->cxt, file->cxt);
	g->refcount = 1;
	file->groups[group_no] = g;
	paimon_run_file_ref(file);
	return g;
}

/* Frees an unreferenced group. */
static void
group_drop(PaimonRunGroup *g)
{
	Assert(g->refcount == 0);
	dlist_delete(&g->lru);
	group_cached--;
	group_cached_bytes -= g->bytes;
	g->file->groups[g->group_no] = NULL;
	MemoryContextDelete(g->cxt);
}

void
paimon_run_group_ref(PaimonRunGroup *g)
{
	if (g->refcount++ > 0)
		return;
	dlist_delete(&g->lru);
	group_cached--;
	group_cached_bytes -= g->bytes;
	paimon_run_file_ref(g->file);
}

void
paimon_run_group_unref(PaimonRunGroup *g)
{
	PaimonRunFile *file = g->file;

	Assert(g->refcount > 0);
	if (--g->refcount > 0)
		return;
	g->bytes = MemoryContextMemAllocated(g->cxt, false);
	dlist_push_tail(&group_lru, &g->lru);
	group_cached++;
	group_cached_bytes += g->bytes;
	if (g->bytes > GROUP_KEEP_BYTES)
		group_drop(g);
	while (group_cached > GROUP_CACHE_MAX || group_cached_bytes > GROUP_CACHE_BYTES)
		group_drop(dlist_head_element(PaimonRunGroup, lru, &group_lru));

	/* may free the file, and with it the groups that are still kept */
	paimon_run_file_unref(file);
}

void
paimon_run_group_forget_file(PaimonRunFile *file)
{
	for (uint32 i = 0; i < file->footer.ngroups; i++)
		if (file->groups[i] != NULL)
			group_drop(file->groups[i]);
}

uint32
paimon_run_group_nrows(const PaimonRunGroup *g)
{
	return g->nrows;
}

PaimonGroup *
paimon_run_group_core(PaimonRunGroup *g)
{
	return g->core;
}

BlockNumber
paimon_run_group_block(const PaimonRunGroup *g)
{
	return g->block;
}

void
paimon_run_group_load_kinds(PaimonRunGroup *g)
{
	if (g->kinds_loaded)
		return;
	group_check(g, paimon_group_kinds(g->core, &g->kinds, &g->kind));
	g->kinds_loaded = true;
}

uint8
paimon_run_group_kind(PaimonRunGroup *g, uint32 row)
{
	uint8		kind;

	if (g->kinds_loaded)
		return paimon_run_group_kind_fast(g, row);
	group_check(g, paimon_group_kind(g->core, row, &kind));
	return kind;
}

void
paimon_run_group_keys(PaimonRunGroup *g, const PaimonBytes **keys, const uint64 **prefixes, uint32 *fixed_len)
{
	if (g->keys == NULL)
		group_check(g, paimon_group_keys(g->core, &g->keys, (const uint64_t **) &g->prefixes, &g->fixed_len));
	*keys = g->keys;
	*prefixes = g->prefixes;
	*fixed_len = g->fixed_len;
}

bool
paimon_run_group_prefixes(PaimonRunGroup *g, const uint64 **prefixes, uint32 *fixed_len)
{
	*prefixes = NULL;
	group_check(g, paimon_group_prefixes(g->core, (const uint64_t **) prefixes, fixed_len));
	return *prefixes != NULL;
}

PaimonBytes
paimon_run_group_key(PaimonRunGroup *g, uint32 row)
{
	PaimonBytes key;

	if (g->keys == NULL && ++g->singles > GROUP_SINGLES(g))
	{
		const PaimonBytes *keys;
		const uint64 *prefixes;
		uint32		fixed_len;

		paimon_run_group_keys(g, &keys, &prefixes, &fixed_len);
	}
	if (g->keys != NULL)
		return g->keys[row];
	group_check(g, paimon_group_key(g->core, row, &key));
	return key;
}

uint32
paimon_run_group_seek(PaimonRunGroup *g, const uint8 *key, uint32 len, bool *equal)
{
	uint32		row;

	group_check(g, paimon_group_seek(g->core, key, len, &row, equal));
	return row;
}

/* What attribute c of a group's rows is made of. */
typedef enum GroupSource
{
	SOURCE_NULL,				/* dropped */
	SOURCE_KEY,
	SOURCE_MISSING,				/* the column is younger than the file */
	SOURCE_COLUMN,
	SOURCE_SCALED
} GroupSource;

static GroupSource
group_source(const PaimonRunGroup *g, int c, int *scale)
{
	const PaimonRowDesc *desc = g->desc;
	PaimonColumnDesc column;

	if (c >= desc->tupdesc->natts || TupleDescAttr(desc->tupdesc, c)->attisdropped)
		return SOURCE_NULL;
	if (desc->in_key[c])
		return SOURCE_KEY;
	if ((uint32) c >= g->ncolumns)
		return SOURCE_MISSING;
	column = paimon_group_column_desc(g->core, c);
	if (column.phys != PAIMON_PHYS_SCALED)
		return SOURCE_COLUMN;
	*scale = column.width;
	return SOURCE_SCALED;
}

/* The same value for all rows. */
static void
group_load_constant(PaimonRunGroup *g, int c, Datum value, bool isnull)
{
	Datum	   *values = MemoryContextAlloc(g->cxt, g->nrows * sizeof(Datum));

	for (uint32 i = 0; i < g->nrows; i++)
		values[i] = value;
	if (isnull)
	{
		bool	   *nulls = MemoryContextAlloc(g->cxt, g->nrows * sizeof(bool));

		memset(nulls, true, g->nrows);
		g->nulls[c] = nulls;
	}
	g->values[c] = values;
}

static void
group_load_key(PaimonRunGroup *g, int c)
{
	const PaimonBytes *keys;
	const uint64 *prefixes;
	uint32		fixed_len;
	Datum	   *values;

	paimon_run_group_keys(g, &keys, &prefixes, &fixed_len);
	values = palloc_array(Datum, g->nrows);
	for (uint32 i = 0; i < g->nrows; i++)
		values[i] = paimon_key_decode_column(g->desc, keys[i].data, keys[i].len, c);
	g->values[c] = values;
}

static void
group_load_scaled(PaimonRunGroup *g, int c, int scale)
{
	const uint64 *words;
	const bool *nulls;
	Datum	   *values;

	group_check(g, paimon_group_values(g->core, c, (const uint64_t **) &words, &nulls));
	values = palloc_array(Datum, g->nrows);
	for (uint32 i = 0; i < g->nrows; i++)
		values[i] = nulls != NULL && nulls[i] ? (Datum) 0 : paimon_numeric_from_scaled((int64) words[i], scale);
	g->nulls[c] = nulls;
	g->values[c] = values;
}

/*
 * Does the column's type want long headers?  Its functions do not detoast then (tsquery, oidvector), as core never shortens what is stored plain;
 * the decoder of groups knows nothing of types.
 */
static inline bool
group_wants_long(const PaimonRunGroup *g, int c)
{
	Form_pg_attribute att = TupleDescAttr(g->desc->tupdesc, c);

	return unlikely(att->attlen == -1 && att->attstorage == TYPSTORAGE_PLAIN);
}

static Datum
group_long(Datum value)
{
	Size		len = VARSIZE_ANY_EXHDR(DatumGetPointer(value));
	struct varlena *v = palloc(VARHDRSZ + len);

	SET_VARSIZE(v, VARHDRSZ + len);
	memcpy(VARDATA(v), VARDATA_ANY(DatumGetPointer(value)), len);
	return PointerGetDatum(v);
}

static void
group_load_long(PaimonRunGroup *g, int c)
{
	const uint64 *words;
	const bool *nulls;
	Datum	   *values;

	group_check(g, paimon_group_values(g->core, c, (const uint64_t **) &words, &nulls));
	values = palloc_array(Datum, g->nrows);
	for (uint32 i = 0; i < g->nrows; i++)
		values[i] = nulls != NULL && nulls[i] ? (Datum) 0 : group_long((Datum) words[i]);
	g->nulls[c] = nulls;
	g->values[c] = values;
}

void
paimon_run_group_load(PaimonRunGroup *g, int c)
{
	MemoryContext old = MemoryContextSwitchTo(g->cxt);
	int			scale = 0;

	CHECK_FOR_INTERRUPTS();
	switch (group_source(g, c, &scale))
	{
		case SOURCE_NULL:
			group_load_constant(g, c, (Datum) 0, true);
			g->dropped = bms_add_member(g->dropped, c);
			break;
		case SOURCE_KEY:
			group_load_key(g, c);
			break;
		case SOURCE_MISSING:
			{
				Datum		value;
				bool		isnull;

				paimon_row_missing(g->desc, c, &value, &isnull);
				if (!isnull)
				{
					/* the descriptor may go before the group does */
					Form_pg_attribute att = TupleDescAttr(g->desc->tupdesc, c);

					value = datumCopy(value, att->attbyval, att->attlen);
				}
				group_load_constant(g, c, value, isnull);
				g->types[c] = TupleDescAttr(g->desc->tupdesc, c)->atttypid;
				break;
			}
		case SOURCE_COLUMN:
			{
				const uint64 *words;
				const bool *nulls;

				if (group_wants_long(g, c))
				{
					group_load_long(g, c);
					break;
				}
				group_check(g, paimon_group_values(g->core, c, (const uint64_t **) &words, &nulls));
				g->nulls[c] = nulls;
				g->values[c] = (const Datum *) words;
				break;
			}
		case SOURCE_SCALED:
			group_load_scaled(g, c, scale);
			break;
	}
	MemoryContextSwitchTo(old);
}

/* The key of one row, for a column to be taken from it; `room` holds it where the value will not point into it. */
static PaimonBytes
group_column_key(PaimonRunGroup *g, uint32 row, int c, uint8 *room, uint32 size)
{
	PaimonBytes key;

	if (g->keys != NULL || !TupleDescAttr(g->desc->tupdesc, c)->attbyval)
		return paimon_run_group_key(g, row);
	group_check(g, paimon_group_key_into(g->core, row, room, size, &key));
	return key;
}

/* Room for a key of short columns. */
#define KEY_ROOM 64

/* Rows first .. first + count - 1 of a key column. */
static void
block_from_keys(PaimonRunGroup *g, int c, uint32 first, uint32 count, Datum *values)
{
	for (uint32 i = 0; i < count; i++)
	{
		uint8		room[KEY_ROOM];
		PaimonBytes key = group_column_key(g, first + i, c, room, sizeof(room));

		values[i] = paimon_key_decode_column(g->desc, key.data, key.len, c);
	}
}

/* The same of a stored column. */
static void
block_from_column(PaimonRunGroup *g, int c, uint32 first, uint32 count, Datum *values, bool *nulls, bool scaled, int scale)
{
	group_check(g, paimon_group_range(g->core, c, first, count, (uint64_t *) values, nulls));
	for (uint32 i = 0; scaled && i < count; i++)
		values[i] = nulls != NULL && nulls[i] ? (Datum) 0 : paimon_numeric_from_scaled((int64) values[i], scale);
}

/* Blocks first .. first + n - 1 of a column. */
static void
load_blocks(PaimonRunGroup *g, int c, GroupSource source, int scale, uint32 first, uint32 n)
{
	uint32		row = first * PAIMON_GROUP_BLOCK;
	uint32		count = Min(n * PAIMON_GROUP_BLOCK, g->nrows - row);
	Datum	   *values;
	bool	   *nulls = NULL;
	PaimonGroupPart *part = &g->parts[c];
	PaimonColumnStats stats = {0};

	if (source != SOURCE_KEY)
		paimon_group_column_stats(g->core, c, &stats);
	values = palloc(count * (stats.null_count > 0 ? sizeof(Datum) + sizeof(bool) : sizeof(Datum)));
	if (stats.null_count > 0)
		nulls = (bool *) (values + count);
	if (source == SOURCE_KEY)
		block_from_keys(g, c, row, count, values);
	else
		block_from_column(g, c, row, count, values, nulls, source == SOURCE_SCALED, scale);
	if (part->nblocks + n > part->room)
	{
		uint32		room = 2 * part->nblocks + BLOCKS_ON_THE_WAY;
		PaimonGroupBlock *blocks = palloc_array(PaimonGroupBlock, room);

		if (part->nblocks > 0)
			memcpy(blocks, part->blocks, part->nblocks * sizeof(PaimonGroupBlock));
		part->blocks = blocks;
		part->room = room;
	}
	for (uint32 i = 0; i < n; i++)
	{
		part->blocks[part->nblocks].values = values + i * PAIMON_GROUP_BLOCK;
		part->blocks[part->nblocks].nulls = nulls != NULL ? nulls + i * PAIMON_GROUP_BLOCK : NULL;
		part->places[first + i] = (uint16) ++part->nblocks;
	}
}

/* How many blocks in a row next to this one are decoded, in one direction, as far as that matters. */
static uint32
blocks_beside(const uint16 *places, uint32 nblocks, uint32 block, int direction)
{
	uint32		n = 0;

	while (n < BLOCKS_ON_THE_WAY && (direction > 0 ? block + n + 1 < nblocks : block > n) && places[block + direction * (int) (n + 1)] != 0)
		n++;
	return n;
}

/* Makes the block of a row available, and more of them for who is going through the group: as many as there are where he comes from. */
static void
load_block(PaimonRunGroup *g, uint32 row, int c, GroupSource source, int scale)
{
	uint32		nblocks = (g->nrows + PAIMON_GROUP_BLOCK - 1) / PAIMON_GROUP_BLOCK;
	uint32		first = row / PAIMON_GROUP_BLOCK;
	uint32		n = 1;
	uint32		beside;
	const uint16 *places;
	MemoryContext old = MemoryContextSwitchTo(g->cxt);

	CHECK_FOR_INTERRUPTS();
	if (g->parts == NULL)
		g->parts = palloc0_array(PaimonGroupPart, g->natts);
	if (g->parts[c].places == NULL)
		g->parts[c].places = palloc0_array(uint16, nblocks);
	places = g->parts[c].places;
	if ((beside = blocks_beside(places, nblocks, first, -1)) > 0)
		while (n < beside && first + n < nblocks && places[first + n] == 0)
			n++;
	else
	{
		beside = blocks_beside(places, nblocks, first, 1);
		for (; n < beside && first > 0 && places[first - 1] == 0; n++)
			first--;
	}
	load_blocks(g, c, source, scale, first, n);
	MemoryContextSwitchTo(old);
}

Datum
paimon_run_group_block_miss(PaimonRunGroup *g, uint32 row, int c, bool *isnull)
{
	int			scale = 0;
	GroupSource source = group_source(g, c, &scale);

	if (source == SOURCE_NULL || source == SOURCE_MISSING || group_wants_long(g, c))
		paimon_run_group_load(g, c);
	else if (source == SOURCE_KEY && TupleDescAttr(g->desc->tupdesc, c)->attbyval)
	{
		/* the same work for each row, and nothing to keep */
		uint8		room[KEY_ROOM];
		PaimonBytes key = group_column_key(g, row, c, room, sizeof(room));

		*isnull = false;
		return paimon_key_decode_column(g->desc, key.data, key.len, c);
	}
	else
		load_block(g, row, c, source, scale);
	return paimon_run_group_block_value(g, row, c, isnull);
}

Datum
paimon_run_group_value(PaimonRunGroup *g, uint32 row, int c, bool whole, bool *isnull)
{
	int			scale = 0;
	uint64		word = 0;

	if ((uint32) c >= g->natts)
	{
		*isnull = true;
		return (Datum) 0;
	}
	if (g->values[c] == NULL && whole)
		paimon_run_group_load(g, c);
	if (g->values[c] != NULL || paimon_run_group_block_of(g, row, c) != NULL)
		return paimon_run_group_block_value(g, row, c, isnull);

	*isnull = false;
	switch (group_source(g, c, &scale))
	{
		case SOURCE_NULL:
			*isnull = true;
			return (Datum) 0;
		case SOURCE_KEY:
			{
				uint8		room[KEY_ROOM];
				PaimonBytes key = group_column_key(g, row, c, room, sizeof(room));

				return paimon_key_decode_column(g->desc, key.data, key.len, c);
			}
		case SOURCE_MISSING:
			{
				Datum		value;

				paimon_row_missing(g->desc, c, &value, isnull);
				return value;
			}
		case SOURCE_COLUMN:
			group_check(g, paimon_group_value(g->core, c, row, &word, isnull));
			if (*isnull)
				return (Datum) 0;
			return group_wants_long(g, c) ? group_long((Datum) word) : (Datum) word;
		case SOURCE_SCALED:
			group_check(g, paimon_group_value(g->core, c, row, &word, isnull));
			return *isnull ? (Datum) 0 : paimon_numeric_from_scaled((int64) word, scale);
	}
	pg_unreachable();
}

void
paimon_run_group_payload(PaimonRunGroup *g, uint32 row, StringInfo buf)
{
	int			natts = g->desc->tupdesc->natts;
	Datum	   *values = palloc_array(Datum, natts);
	bool	   *nulls = palloc_array(bool, natts);

	/* whoever has the keys decoded whole (a merge) goes through all rows */
	for (int c = 0; c < natts; c++)
	{
		if (g->desc->in_key[c])
		{
			/* not part of a payload */
			values[c] = (Datum) 0;
			nulls[c] = true;
		}
		else
			values[c] = paimon_run_group_value(g, row, c, g->keys != NULL, &nulls[c]);
	}
	paimon_row_encode(g->desc, values, nulls, buf);
	pfree(values);
	pfree(nulls);
}
