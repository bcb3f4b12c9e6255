/*-------------------------------------------------------------------------
 *
 * storage_map.c
 *	  Map pages as a whole: reading them, counting, freezing, cutting off the free end.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "catalog/storage.h"
#include "miscadmin.h"
#include "storage/lmgr.h"

#include "core/core.h"
#include "storage/storage_internal.h"

static uint32
map_crc(const PaimonMap *map)
{
	Size start = offsetof(PaimonMap, crc) + sizeof(map->crc);

	return paimon_crc32c(0, (const char *) map + start, PAIMON_PAGE_PAYLOAD - start);
}

void
paimon_map_seal(Page page)
{
	PaimonMap *map = (PaimonMap *) paimon_page_data(page);

	map->crc = map_crc(map);
}

/* Pins and locks a map page (mode as LockBuffer's), checked; *content points into it. */
Buffer
paimon_map_lock(Relation rel, uint32 map, int mode, PaimonMap **content)
{
	BlockNumber block = paimon_map_block(map);
	Buffer      buf = ReadBuffer(rel, block);
	Page        page = BufferGetPage(buf);
	PaimonMap  *m = (PaimonMap *) paimon_page_data(page);

	LockBuffer(buf, mode);
	if (paimon_page_damage(page) != NULL || paimon_page_special(page)->kind != PAIMON_PAGE_MAP ||
		paimon_page_special(page)->position != (uint64) map * PAIMON_MAP_ENTRIES)
		paimon_page_report(rel, block, page, "an extent map page");
	if (m->crc != map_crc(m) || m->nexist > PAIMON_MAP_ENTRIES || m->nfree > m->nexist)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("damaged extent map in block %u of table \"%s\"", block, RelationGetRelationName(rel)),
						errdetail("Its checksum does not match its contents.")));
	*content = m;
	return buf;
}

/* How many free extents the page seems to have.  Unchecked: whoever acts on it locks the page properly. */
uint32
paimon_map_peek(Relation rel, uint32 map)
{
	Buffer buf = ReadBuffer(rel, paimon_map_block(map));
	uint32 nfree;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	nfree = ((PaimonMap *) paimon_page_data(BufferGetPage(buf)))->nfree;
	UnlockReleaseBuffer(buf);
	return nfree;
}

/* See storage.h. */
void
paimon_extent_visit(Relation rel, paimon_extent_visitor fn, void *arg)
{
	PaimonMapEntry *copy = palloc(sizeof(PaimonMapEntry) * PAIMON_MAP_ENTRIES);
	PaimonMeta      meta;
	uint32          nmaps;

	paimon_meta_read(rel, &meta);
	nmaps = paimon_map_count(meta.nextents);
	for (uint32 m = 0; m < nmaps; m++)
	{
		PaimonMap *map;
		Buffer     buf;
		uint32     n;
		uint32     nfree;

		CHECK_FOR_INTERRUPTS();
		buf = paimon_map_lock(rel, m, BUFFER_LOCK_SHARE, &map);
		n = map->nexist;
		nfree = map->nfree;
		memcpy(copy, map->entries, sizeof(PaimonMapEntry) * n);
		UnlockReleaseBuffer(buf);
		for (uint32 i = 0; i < n; i++)
		{
			if (copy[i].owner == PAIMON_OWNER_FREE)
				nfree--;
			else
				fn(arg, m * PAIMON_MAP_ENTRIES + i, copy[i].owner, copy[i].xid);
		}
		if (nfree != 0)
			ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
							errmsg("damaged extent map in block %u of table \"%s\"", paimon_map_block(m),
								   RelationGetRelationName(rel)),
							errdetail("It does not count its free extents right.")));
	}
	pfree(copy);
}

/* See storage.h. */
void
paimon_storage_usage(Relation rel, PaimonStorageUsage *usage)
{
	PaimonMeta meta;
	uint32     nmaps;

	paimon_meta_read(rel, &meta);
	usage->free_extents = 0;
	nmaps = paimon_map_count(meta.nextents);
	for (uint32 m = 0; m < nmaps; m++)
	{
		CHECK_FOR_INTERRUPTS();
		usage->free_extents += paimon_map_peek(rel, m);
	}
	usage->free_extents = Min(usage->free_extents, meta.nextents);
	usage->used_extents = meta.nextents - usage->free_extents;
	usage->pages = paimon_fork_blocks(rel);
}

/* Freezes one map page; lowers *oldest to the oldest normal xid left in it. */
static void
freeze_map(Relation rel, uint32 m, FullTransactionId limit, FullTransactionId *oldest)
{
	FullTransactionId frozen = FullTransactionIdFromEpochAndXid(0, FrozenTransactionId);
	PaimonMap        *map;
	PaimonXlogBlock   block = {.buffer = paimon_map_lock(rel, m, BUFFER_LOCK_EXCLUSIVE, &map)};
	uint32            lo = 0;
	uint32            hi = 0;

	START_CRIT_SECTION();
	for (uint32 i = 0; i < map->nexist; i++)
	{
		PaimonMapEntry *entry = &map->entries[i];

		if (entry->owner == PAIMON_OWNER_FREE || !FullTransactionIdIsNormal(entry->xid))
			continue;
		if (FullTransactionIdPrecedes(entry->xid, limit))
		{
			entry->xid = frozen;
			if (hi == 0)
				lo = i;
			hi = i + 1;
		}
		else if (!FullTransactionIdIsNormal(*oldest) || FullTransactionIdPrecedes(entry->xid, *oldest))
			*oldest = entry->xid;
	}
	if (hi > 0)
	{
		paimon_map_seal(BufferGetPage(block.buffer));
		paimon_xlog_touch(&block, map, offsetof(PaimonMap, entries));
		paimon_xlog_touch(&block, &map->entries[lo], sizeof(PaimonMapEntry) * (hi - lo));
		paimon_xlog_patch(rel, &block, 1, InvalidFullTransactionId);
	}
	END_CRIT_SECTION();
	UnlockReleaseBuffer(block.buffer);
}

/*
 * See storage.h.  A frozen entry keeps its owner; its xid is the full form of FrozenTransactionId: the transaction is over, whatever
 * came of it (the owner's row tells that).
 */
FullTransactionId
paimon_extent_freeze(Relation rel, FullTransactionId limit)
{
	FullTransactionId oldest = InvalidFullTransactionId;
	PaimonMeta        meta;
	uint32            nmaps;

	paimon_meta_read(rel, &meta);
	nmaps = paimon_map_count(meta.nextents);
	for (uint32 m = 0; m < nmaps; m++)
	{
		CHECK_FOR_INTERRUPTS();
		freeze_map(rel, m, limit, &oldest);
	}
	return FullTransactionIdIsNormal(oldest) ? oldest : FirstNormalFullTransactionId;
}

/* Extents up to and including the last one in use. */
static uint32
used_end(Relation rel, uint32 nextents)
{
	for (uint32 m = paimon_map_count(nextents); m-- > 0;)
	{
		PaimonMap *map;
		Buffer     buf;
		uint32     n;

		CHECK_FOR_INTERRUPTS();
		buf = paimon_map_lock(rel, m, BUFFER_LOCK_SHARE, &map);
		for (n = map->nexist; n > 0 && map->entries[n - 1].owner == PAIMON_OWNER_FREE; n--)
			;
		UnlockReleaseBuffer(buf);
		if (n > 0)
			return m * PAIMON_MAP_ENTRIES + n;
	}
	return 0;
}

/* See storage.h. */
uint32
paimon_storage_used_end(Relation rel)
{
	PaimonMeta meta;

	paimon_meta_read(rel, &meta);
	return used_end(rel, meta.nextents);
}

/* Blocks of a fork with that many extents. */
static BlockNumber
fork_end(uint32 nextents)
{
	return nextents == 0 ? PAIMON_META_BLOCK + 1 : paimon_extent_block(nextents - 1) + PAIMON_EXTENT_PAGES;
}

/* Takes extents from `keep` on out of metapage and map.  The table is locked against everybody. */
static void
shrink_map(Relation rel, uint32 keep)
{
	PaimonMeta     *meta;
	PaimonMap      *map;
	PaimonXlogBlock blocks[2] = {{.buffer = paimon_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE, &meta)}};
	int             nblocks = 1;

	if (keep % PAIMON_MAP_ENTRIES != 0)
	{
		/* The last map page that stays; those behind it go with the file's end. */
		blocks[1].buffer = paimon_map_lock(rel, keep / PAIMON_MAP_ENTRIES, BUFFER_LOCK_EXCLUSIVE, &map);
		nblocks = 2;
	}
	START_CRIT_SECTION();
	meta->nextents = keep;
	paimon_meta_seal(BufferGetPage(blocks[0].buffer));
	paimon_xlog_touch(&blocks[0], meta, sizeof(PaimonMeta));
	if (nblocks == 2)
	{
		uint32 left = keep % PAIMON_MAP_ENTRIES;

		map->nfree -= map->nexist - left;
		map->nexist = left;
		paimon_map_seal(BufferGetPage(blocks[1].buffer));
		paimon_xlog_touch(&blocks[1], map, offsetof(PaimonMap, entries));
	}
	paimon_xlog_patch(rel, blocks, nblocks, InvalidFullTransactionId);
	END_CRIT_SECTION();
	if (nblocks == 2)
		UnlockReleaseBuffer(blocks[1].buffer);
	UnlockReleaseBuffer(blocks[0].buffer);
}

/*
 * See storage.h.  The map shrinks first, by a record that precedes the file's: in whatever state a crash leaves the two, the
 * map describes no more than there is (and a file that is too long is cut next time).
 */
BlockNumber
paimon_storage_truncate_end(Relation rel)
{
	BlockNumber before = paimon_fork_blocks(rel);
	BlockNumber after = before;
	PaimonMeta  meta;

	paimon_meta_read(rel, &meta);
	if (fork_end(used_end(rel, meta.nextents)) >= before)
		return 0;
	if (!ConditionalLockRelation(rel, AccessExclusiveLock))
		return 0;

	/* Alone now; somebody may have been here since we looked. */
	PAIMON_STOP_POINT("truncate-locked");
	paimon_meta_read(rel, &meta);
	before = paimon_fork_blocks(rel);
	if (!LockHasWaitersRelation(rel, AccessExclusiveLock))
	{
		uint32 keep = used_end(rel, meta.nextents);

		if (fork_end(keep) < before)
		{
			PAIMON_STOP_POINT("truncate-before");
			if (keep < meta.nextents)
				shrink_map(rel, keep);
			after = fork_end(keep);
			RelationTruncate(rel, after);
			paimon_extent_hint_forget();
		}
	}
	UnlockRelation(rel, AccessExclusiveLock);
	return before - Min(before, after);
}
