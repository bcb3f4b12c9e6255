/*-------------------------------------------------------------------------
 *
 * storage_extent.c
 *	  Taking extents and giving them back; growing the fork.
 *
 * Lock order: metapage, then map page.  Taking a free extent and freeing touch one map page and make one record.
 * Growing holds the metapage exclusively throughout, which is what keeps two backends from
 * extending the file at the same time: it may be asked for under a table's append lock, where a heavyweight
 * lock (the relation extension lock) has no place.  Nobody else extends our main fork.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/smgr.h"

#include "core/core.h"
#include "storage/storage_internal.h"

/* Growing a large fork takes more than was asked for, but never more than this at once (the metapage is locked meanwhile). */
#define MAX_GROW_EXTENTS 32
#define GROW_DIVISOR 32

/*
 * Where this backend found space last: map pages below `map` had none.  Others may have freed some since, so it is
 * dropped after a number of uses and before the fork grows: always soon enough that looking at all map pages takes no more than a few looks a use.
 * A small fork is always filled from the front, and what is free in a large one near its front does not stay so for long.
 */
static struct
{
	PaimonLocator locator;
	uint32        map;
	uint32        uses;
} hint;

#define HINT_LOOKS 8

/* Forgets where free extents were not: after some were freed. */
void
paimon_extent_hint_forget(void)
{
	hint.map = 0;
	hint.uses = 0;
}

/* First block of an extent.  Groups of a map page and its extents follow the metapage. */
BlockNumber
paimon_extent_block(uint32 extent)
{
	return paimon_map_block(extent / PAIMON_MAP_ENTRIES) + 1 + extent % PAIMON_MAP_ENTRIES * PAIMON_EXTENT_PAGES;
}

/* Appends extents to a list, joining neighbours.  The array grows in the context of the list's first allocation. */
void
paimon_extent_list_add(PaimonExtentList *list, uint32 first, uint32 count)
{
	PaimonExtentRun *last = list->nruns > 0 ? &list->runs[list->nruns - 1] : NULL;

	if (count == 0)
		return;
	if (last != NULL && last->first + last->count == first)
	{
		last->count += count;
		return;
	}
	if (list->nruns == list->allocated)
	{
		list->allocated = list->allocated == 0 ? 8 : list->allocated * 2;
		if (list->runs == NULL)
			list->runs = palloc(sizeof(PaimonExtentRun) * list->allocated);
		else
			list->runs = repalloc(list->runs, sizeof(PaimonExtentRun) * list->allocated);
	}
	list->runs[list->nruns].first = first;
	list->runs[list->nruns].count = count;
	list->nruns++;
}

/* Extends the file to nblocks.  The metapage is locked exclusively. */
static void
extend_file(Relation rel, BlockNumber nblocks)
{
	BlockNumber have = paimon_fork_blocks(rel);

	if (have < nblocks)
		paimon_zero_extend(RelationGetSmgr(rel), have, nblocks - have);
}

/*
 * Makes sure that the file has nblocks blocks.  The map may know of extents that the file lost in a crash, since extending is
 * not logged; before pages of them are written, it must be long enough again.
 */
void
paimon_fork_reserve(Relation rel, BlockNumber nblocks)
{
	PaimonMeta *meta;
	Buffer      buf;

	if (paimon_fork_blocks(rel) >= nblocks)
		return;
	buf = paimon_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE, &meta);
	extend_file(rel, nblocks);
	UnlockReleaseBuffer(buf);
}

/*
 * The first free entries, at most `want`.  Returns the index of the first; *got how many, 0 if none.  A longer run farther behind is not looked for: what
 * is free has to be at the fork's end, or it cannot be given back; and an extent is large enough to be read in one go.
 */
static uint32
find_free_run(const PaimonMap *map, uint32 want, uint32 *got)
{
	uint32 from = 0;
	uint32 to;

	while (from < map->nexist && map->entries[from].owner != PAIMON_OWNER_FREE)
		from++;
	to = from;
	while (to < map->nexist && to - from < want && map->entries[to].owner == PAIMON_OWNER_FREE)
		to++;
	*got = to - from;
	return from;
}

/* Notes in a map page, and for the record, that entries [from, from + n) and the counts changed. */
static void
touch_map(PaimonXlogBlock *block, uint32 from, uint32 n)
{
	Page       page = BufferGetPage(block->buffer);
	PaimonMap *map = (PaimonMap *) paimon_page_data(page);

	paimon_map_seal(page);
	paimon_xlog_touch(block, map, offsetof(PaimonMap, entries));
	if (n > 0)
		paimon_xlog_touch(block, &map->entries[from], sizeof(PaimonMapEntry) * n);
}

static void
set_entries(PaimonMap *map, uint32 from, uint32 n, uint64 owner, FullTransactionId xid)
{
	for (uint32 i = from; i < from + n; i++)
	{
		map->entries[i].owner = owner;
		map->entries[i].xid = xid;
	}
}

/* Takes extents from one map page; returns the first, *got = 0 if it has none. */
static uint32
take_from_map(Relation rel, uint32 m, uint64 owner, FullTransactionId xid, uint32 want, uint32 *got)
{
	PaimonMap      *map;
	PaimonXlogBlock block = {.buffer = paimon_map_lock(rel, m, BUFFER_LOCK_EXCLUSIVE, &map)};
	uint32          from = find_free_run(map, want, got);

	if (*got > 0)
	{
		START_CRIT_SECTION();
		set_entries(map, from, *got, owner, xid);
		map->nfree -= *got;
		touch_map(&block, from, *got);
		paimon_xlog_patch(rel, &block, 1, InvalidFullTransactionId);
		END_CRIT_SECTION();
	}
	UnlockReleaseBuffer(block.buffer);
	return m * PAIMON_MAP_ENTRIES + from;
}

static void
report_full(Relation rel)
{
	ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					errmsg("table \"%s\" cannot grow any further", RelationGetRelationName(rel)),
					errdetail("It has reached %u extents of %d pages.", PAIMON_MAX_EXTENTS, PAIMON_EXTENT_PAGES)));
}

/*
 * Adds extents at the fork's end: file, then map and metapage in one record.  `known` is the count of extents that the caller has
 * searched in vain; if it is no longer true, *got = 0.
 */
static uint32
grow(Relation rel, uint32 known, uint64 owner, FullTransactionId xid, uint32 want, uint32 *got)
{
	PaimonMeta     *meta;
	PaimonMap      *map;
	PaimonXlogBlock blocks[2] = {{.buffer = paimon_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE, &meta)}};
	uint32          first = meta->nextents;
	uint32          m = first / PAIMON_MAP_ENTRIES;
	uint32          from = first % PAIMON_MAP_ENTRIES;
	uint32          n = Max(want, first / GROW_DIVISOR);

	*got = 0;
	if (first != known)
	{
		UnlockReleaseBuffer(blocks[0].buffer);
		return 0;
	}
	n = Min(Min(n, MAX_GROW_EXTENTS), PAIMON_MAP_ENTRIES - from);
	if (first + n > PAIMON_MAX_EXTENTS)
		report_full(rel);
	extend_file(rel, paimon_extent_block(first + n - 1) + PAIMON_EXTENT_PAGES);

	if (from == 0)
	{
		blocks[1].init = true;
		blocks[1].buffer = ReadBufferExtended(rel, MAIN_FORKNUM, paimon_map_block(m), RBM_ZERO_AND_LOCK, NULL);
		map = (PaimonMap *) paimon_page_data(BufferGetPage(blocks[1].buffer));
	}
	else
	{
		blocks[1].buffer = paimon_map_lock(rel, m, BUFFER_LOCK_EXCLUSIVE, &map);
		if (map->nexist != from)
			ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
							errmsg("damaged extent map in block %u of table \"%s\"", paimon_map_block(m),
								   RelationGetRelationName(rel)),
							errdetail("It describes %u extents where the metapage says %u.", map->nexist, from)));
	}

	*got = Min(want, n);
	START_CRIT_SECTION();
	if (from == 0)
	{
		Page page = BufferGetPage(blocks[1].buffer);

		paimon_page_init(page, PAIMON_PAGE_MAP, meta->storage_id, PAIMON_OWNER_FREE, first, PAIMON_NO_UNIT);
		paimon_page_special(page)->used = PAIMON_PAGE_PAYLOAD;
		paimon_page_seal(page);
		paimon_xlog_touch(&blocks[1], paimon_page_special(page), sizeof(PaimonPageSpecial));
	}
	set_entries(map, from, *got, owner, xid);
	set_entries(map, from + *got, n - *got, PAIMON_OWNER_FREE, InvalidFullTransactionId);
	map->nexist += n;
	map->nfree += n - *got;
	touch_map(&blocks[1], from, n);
	meta->nextents = first + n;
	paimon_meta_seal(BufferGetPage(blocks[0].buffer));
	paimon_xlog_touch(&blocks[0], meta, sizeof(PaimonMeta));
	paimon_xlog_patch(rel, blocks, 2, InvalidFullTransactionId);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(blocks[1].buffer);
	UnlockReleaseBuffer(blocks[0].buffer);
	return first;
}

/* Looks for free extents in all map pages from the hint on. */
static uint32
search(Relation rel, uint32 nmaps, uint64 owner, FullTransactionId xid, uint32 want, uint32 *got)
{
	*got = 0;
	if (!paimon_locator_equals(hint.locator, paimon_rel_locator(rel)) || hint.uses > nmaps / HINT_LOOKS)
	{
		paimon_extent_hint_forget();
		hint.locator = paimon_rel_locator(rel);
	}
	hint.uses++;
	for (uint32 m = hint.map; m < nmaps; m++)
	{
		uint32 first;

		CHECK_FOR_INTERRUPTS();
		if (paimon_map_peek(rel, m) == 0)
			continue;
		first = take_from_map(rel, m, owner, xid, want, got);
		if (*got > 0)
		{
			hint.map = m;
			return first;
		}
	}
	hint.map = nmaps > 0 ? nmaps - 1 : 0;
	return 0;
}

/* paimon_extent_alloc for callers that may hold the table's append lock. */
uint32
paimon_extent_take(Relation rel, uint64 owner, FullTransactionId xid, uint32 want, uint32 *got)
{
	uint32 first;

	for (;;)
	{
		PaimonMeta meta;
		bool       from_hint = hint.map > 0;

		paimon_meta_read(rel, &meta);
		first = search(rel, paimon_map_count(meta.nextents), owner, xid, want, got);
		if (*got == 0 && from_hint && hint.uses > 1)
		{
			/* Before the file grows, look at what others have freed. */
			paimon_extent_hint_forget();
			first = search(rel, paimon_map_count(meta.nextents), owner, xid, want, got);
		}
		if (*got == 0)
			first = grow(rel, meta.nextents, owner, xid, want, got);
		if (*got > 0)
			break;
	}
	paimon_fork_reserve(rel, paimon_extent_block(first + *got - 1) + PAIMON_EXTENT_PAGES);
	return first;
}

/* See storage.h. */
uint32
paimon_extent_alloc(Relation rel, uint64 owner, FullTransactionId xid, uint32 want, uint32 *got)
{
	uint32 first = paimon_extent_take(rel, owner, xid, want, got);

	PAIMON_STOP_FLUSH();
	PAIMON_STOP_POINT("storage-extent-allocated");
	return first;
}

/* Frees what one map page says of extents [from, from + n): those with the given owner (and xid, if not NULL). */
static uint32
release_in_map(Relation rel, uint32 m, uint32 from, uint32 n, uint64 owner, const FullTransactionId *xid,
			   FullTransactionId horizon)
{
	PaimonMap      *map;
	PaimonXlogBlock block = {.buffer = paimon_map_lock(rel, m, BUFFER_LOCK_EXCLUSIVE, &map)};
	uint32          freed = 0;
	uint32          lo = 0;
	uint32          hi = 0;

	START_CRIT_SECTION();
	for (uint32 i = from; i < from + n && i < map->nexist; i++)
	{
		PaimonMapEntry *entry = &map->entries[i];

		if (entry->owner != owner || (xid != NULL && !FullTransactionIdEquals(entry->xid, *xid)))
			continue;
		entry->owner = PAIMON_OWNER_FREE;
		entry->xid = InvalidFullTransactionId;
		if (freed++ == 0)
			lo = i;
		hi = i + 1;
	}
	if (freed > 0)
	{
		map->nfree += freed;
		touch_map(&block, lo, hi - lo);
		paimon_xlog_patch(rel, &block, 1, horizon);
	}
	END_CRIT_SECTION();
	UnlockReleaseBuffer(block.buffer);
	return freed;
}

/*
 * Frees those of the extents [first, first + count) that belong to owner and, if xid is given, were stamped with it.
 * One record a map page, each with the horizon.
 */
uint32
paimon_extent_release(Relation rel, uint64 owner, const FullTransactionId *xid, uint32 first, uint32 count,
					  FullTransactionId horizon)
{
	PaimonMeta meta;
	uint32     freed = 0;
	uint32     end;

	paimon_meta_read(rel, &meta);
	end = first < meta.nextents ? first + Min(count, meta.nextents - first) : first;
	while (first < end)
	{
		uint32 m = first / PAIMON_MAP_ENTRIES;
		uint32 from = first % PAIMON_MAP_ENTRIES;
		uint32 n = Min(end - first, PAIMON_MAP_ENTRIES - from);

		CHECK_FOR_INTERRUPTS();
		freed += release_in_map(rel, m, from, n, owner, xid, horizon);
		first += n;
	}
	paimon_extent_hint_forget();
	return freed;
}

/* See storage.h. */
uint32
paimon_extent_free(Relation rel, uint64 owner, const PaimonExtentList *list, FullTransactionId horizon)
{
	uint32 freed = 0;

	Assert(owner != PAIMON_OWNER_FREE);
	PAIMON_STOP_POINT("extent-free");
	for (uint32 i = 0; i < list->nruns; i++)
		freed += paimon_extent_release(rel, owner, NULL, list->runs[i].first, list->runs[i].count, horizon);
	return freed;
}
