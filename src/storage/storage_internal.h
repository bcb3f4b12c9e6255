/*-------------------------------------------------------------------------
 *
 * storage_internal.h
 *	  What the files of src/storage share: page layouts, page checks, WAL of page changes.
 *
 * Nothing outside src/storage includes this.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_STORAGE_INTERNAL_H
#define PAIMON_STORAGE_INTERNAL_H

#include "storage/storage.h"

#include "access/rmgr.h"
#include "access/xlog.h"
#include "storage/bufmgr.h"

#include "stop.h"

/*
 * Before a stop point that stands behind a record: a crash there tells something only if recovery finds that record.
 */
#ifdef PAIMON_TESTING
#define PAIMON_STOP_FLUSH() \
	do { \
		if (unlikely(paimon_stop_armed())) \
			XLogFlush(XactLastRecEnd); \
	} while (0)
#else
#define PAIMON_STOP_FLUSH() ((void) 0)
#endif

/* ---- geometry ---- */

#define PAIMON_META_BLOCK	0

/* The fork's blocks end here: the numbers above are write-buffer ordinals in ctids. */
#define PAIMON_BLOCK_LIMIT	((BlockNumber) 0xF0000000)

/* Bytes of the log's stream in one extent. */
#define PAIMON_EXTENT_BYTES ((uint64) PAIMON_EXTENT_PAGES * PAIMON_PAGE_PAYLOAD)

#define PAIMON_NO_EXTENT	PG_UINT32_MAX
#define PAIMON_NO_UNIT		PG_UINT32_MAX

/* Payload of the metapage. */
#define PAIMON_META_MAGIC	0x414D4950
#define PAIMON_FORMAT_VERSION 1
#define PAIMON_META_REBORN	0x0001	/* the storage id was given after a crash reset an unlogged table */

typedef struct PaimonMeta
{
	uint32		magic;
	uint16		read_version;	/* who knows this format version may read */
	uint16		write_version;	/* who knows this format version may write */
	uint64		storage_id;
	uint64		next_file_no;
	uint64		next_row_no;
	uint64		log_position;	/* stream position at which log_extent begins */
	uint32		log_extent;		/* first extent of the log's chain, or PAIMON_NO_EXTENT */
	uint32		nextents;		/* extents that the map describes */
	uint32		flags;
	uint32		crc;			/* of everything above */
} PaimonMeta;

StaticAssertDecl(sizeof(PaimonMeta) == 56, "metapage layout");
StaticAssertDecl(offsetof(PaimonMeta, crc) == 52, "metapage layout");

/* Payload of a map page: this header and PAIMON_MAP_ENTRIES entries. */
typedef struct PaimonMapEntry
{
	uint64		owner;
	FullTransactionId xid;
} PaimonMapEntry;

typedef struct PaimonMap
{
	uint32		crc;			/* of everything below, to the end of the payload */
	uint32		nexist;			/* entries that describe an extent; the others are zero */
	uint32		nfree;			/* of these, how many are free */
	uint32		reserved;
	uint64		reserved2[2];
	PaimonMapEntry entries[FLEXIBLE_ARRAY_MEMBER];
} PaimonMap;

StaticAssertDecl(sizeof(PaimonMapEntry) == 16, "map entry layout");
StaticAssertDecl(offsetof(PaimonMap, entries) == 32, "map page layout");
StaticAssertDecl(sizeof(PaimonPageSpecial) == 40, "special space layout");
StaticAssertDecl(sizeof(PaimonBatchHeader) == 24, "batch header layout");

#define PAIMON_MAP_ENTRIES \
	((uint32) ((PAIMON_PAGE_PAYLOAD - offsetof(PaimonMap, entries)) / sizeof(PaimonMapEntry)))
#define PAIMON_GROUP_BLOCKS (1 + PAIMON_MAP_ENTRIES * PAIMON_EXTENT_PAGES)
#define PAIMON_MAX_EXTENTS \
	((PAIMON_BLOCK_LIMIT - 1) / PAIMON_GROUP_BLOCKS * PAIMON_MAP_ENTRIES)

/* Map pages needed for that many extents. */
static inline uint32
paimon_map_count(uint32 nextents)
{
	return (nextents + PAIMON_MAP_ENTRIES - 1) / PAIMON_MAP_ENTRIES;
}

static inline BlockNumber
paimon_map_block(uint32 map)
{
	return 1 + map * PAIMON_GROUP_BLOCKS;
}

/* ---- pages (storage_page.c) ---- */

#define PAIMON_PAGE_DATA_OFFSET MAXALIGN(SizeOfPageHeaderData)
#define PAIMON_PAGE_SPECIAL_OFFSET (BLCKSZ - MAXALIGN(sizeof(PaimonPageSpecial)))

static inline PaimonPageSpecial *
paimon_page_special(Page page)
{
	return (PaimonPageSpecial *) ((char *) page + PAIMON_PAGE_SPECIAL_OFFSET);
}

static inline char *
paimon_page_data(Page page)
{
	return (char *) page + PAIMON_PAGE_DATA_OFFSET;
}

extern void paimon_page_init(Page page, PaimonPageKind kind, uint64 storage_id, uint64 owner, uint64 position,
							 uint32 unit);
extern void paimon_page_seal(Page page);
extern const char *paimon_page_damage(Page page);
extern bool paimon_page_matches(Page page, PaimonPageKind kind, uint64 storage_id, uint64 owner, uint64 position);
extern void paimon_page_report(Relation rel, BlockNumber block, Page page, const char *what) pg_attribute_noreturn();

extern BlockNumber paimon_fork_blocks(Relation rel);

/* ---- metapage (storage_meta.c) ---- */

extern Buffer paimon_meta_lock(Relation rel, int mode, PaimonMeta **meta);
extern void paimon_meta_read(Relation rel, PaimonMeta *copy);
extern void paimon_meta_seal(Page page);

/* ---- map (storage_map.c, storage_extent.c) ---- */

extern Buffer paimon_map_lock(Relation rel, uint32 map, int mode, PaimonMap **content);
extern uint32 paimon_map_peek(Relation rel, uint32 map);
extern void paimon_map_seal(Page page);
extern void paimon_fork_reserve(Relation rel, BlockNumber nblocks);
extern uint32 paimon_extent_take(Relation rel, uint64 owner, FullTransactionId xid, uint32 want, uint32 *got);
extern uint32 paimon_extent_release(Relation rel, uint64 owner, const FullTransactionId *xid, uint32 first, uint32 count,
									FullTransactionId horizon);
extern void paimon_extent_list_add(PaimonExtentList *list, uint32 first, uint32 count);
extern void paimon_extent_hint_forget(void);

/* ---- log (storage_chain.c) ---- */

/* One extent of the log: it holds stream positions [ordinal, ordinal + 1) * PAIMON_EXTENT_BYTES. */
typedef struct PaimonLogLink
{
	uint64		ordinal;
	uint32		extent;
} PaimonLogLink;

extern PaimonLogLink *paimon_chain_links(Relation rel, uint64 storage_id, int *nlinks);
extern bool paimon_chain_lookup(Relation rel, uint64 storage_id, uint64 position, uint32 *extent);
extern void paimon_chain_forget(Relation rel, uint64 storage_id);
extern bool paimon_chain_link(Relation rel, uint64 storage_id, uint32 extent, uint64 *position, uint32 *next);
extern uint32 paimon_batch_crc(uint64 storage_id, uint64 position, const PaimonBatchHeader *header);
extern void paimon_log_report_missing(Relation rel, uint64 position) pg_attribute_noreturn();

static inline BlockNumber
paimon_log_block(uint32 extent, uint64 position)
{
	return paimon_extent_block(extent) + (BlockNumber) (position / PAIMON_PAGE_PAYLOAD % PAIMON_EXTENT_PAGES);
}

/* ---- WAL (storage_xlog.c) ---- */

#define PAIMON_RMGR_ID		RM_EXPERIMENTAL_ID

#define PAIMON_XLOG_PATCH	0x00
#define PAIMON_XLOG_LOG_APPEND 0x10
#define PAIMON_XLOG_LOG_APPEND_PACKED 0x20

/* Pieces of a page that a change touched; pointers go into the page itself. */
#define PAIMON_MAX_PATCHES	3

typedef struct PaimonPatch
{
	uint16		offset;
	uint16		len;
} PaimonPatch;

typedef struct PaimonXlogBlock
{
	Buffer		buffer;
	bool		init;			/* the page is made anew */
	int			npatches;
	PaimonPatch patches[PAIMON_MAX_PATCHES];
} PaimonXlogBlock;

/* Head of the block data of a log page that an append makes anew; `used` bytes of payload follow, unless the batch is packed. */
typedef struct PaimonXlogLogPage
{
	uint64		storage_id;
	uint64		position;
	uint32		unit;
	uint16		used;
	uint16		reserved;
} PaimonXlogLogPage;

StaticAssertDecl(sizeof(PaimonXlogLogPage) == 24, "WAL record layout");

/* Pages in one record, at most (the server's limit is 33). */
#define PAIMON_XLOG_PAGES	24

extern void paimon_xlog_touch(PaimonXlogBlock *block, const void *start, Size len);
extern char *paimon_log_unpack(const char *data, uint32 len, uint32 *raw_len);
extern XLogRecPtr paimon_xlog_patch(Relation rel, PaimonXlogBlock *blocks, int nblocks, FullTransactionId horizon);

#endif							/* PAIMON_STORAGE_INTERNAL_H */
