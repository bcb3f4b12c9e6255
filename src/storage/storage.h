/*-------------------------------------------------------------------------
 *
 * storage.h
 *	  The main fork of a paimon table: metapage, extents, files in extents, and the delta log's byte stream.
 *
 * Everything below this interface knows blocks and WAL; everything above it knows positions in the log,
 * file numbers and pages of a file.  See README.md here for byte layouts and for why it survives crashes.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_STORAGE_H
#define PAIMON_STORAGE_H

#include "postgres.h"

#include "access/transam.h"
#include "access/xlogdefs.h"
#include "storage/block.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"
#include "utils/rel.h"
#include "utils/relcache.h"

#include "compat.h"
#include "core/core.h"
#include "core/core.h"

#define PAIMON_EXTENT_PAGES 16	/* pages per extent */

/* What a page is; kept in its special space. */
typedef enum PaimonPageKind
{
	PAIMON_PAGE_META = 1,
	PAIMON_PAGE_MAP = 2,
	PAIMON_PAGE_LOG = 3,
	PAIMON_PAGE_FILE = 4
} PaimonPageKind;

/* Owner of an extent: a file number, or one of these. */
#define PAIMON_OWNER_FREE	UINT64CONST(0)
#define PAIMON_OWNER_LOG	UINT64CONST(1)
#define PAIMON_FIRST_FILE_NO UINT64CONST(16)

/*
 * Special space at the end of every page.  All pages have pd_lower = pd_upper = start of nothing: no byte lies between pd_lower and
 * pd_upper (core copies and logs our pages as standard ones).  Payload of a page = PAIMON_PAGE_PAYLOAD bytes after the page header.
 * `crc` covers the special space itself (with crc = 0); the payload is covered by the checksum of what it holds.
 */
typedef struct PaimonPageSpecial
{
	uint64		storage_id;
	uint64		owner;			/* file number, PAIMON_OWNER_LOG, or 0 (meta, map) */
	uint64		position;		/* LOG: stream position of the first payload byte; FILE: page number in the file; MAP: number of first extent */
	uint32		unit;			/* FILE: group number if a group begins on this page, else PG_UINT32_MAX; LOG: next extent of
								 * the chain (first page of an extent only), else PG_UINT32_MAX */
	uint16		used;			/* payload bytes in use */
	uint16		kind;			/* PaimonPageKind */
	uint32		crc;
	uint32		reserved;
} PaimonPageSpecial;

#define PAIMON_PAGE_PAYLOAD \
	((uint32) (BLCKSZ - MAXALIGN(SizeOfPageHeaderData) - MAXALIGN(sizeof(PaimonPageSpecial))))

/* ---- creation and identity (storage_meta.c) ---- */

/*
 * Writes the metapage of a new main fork (and, for unlogged relations, of the init fork with storage id 0), WAL-logged as the
 * persistence demands.  Returns the new random storage id.
 */
extern uint64 paimon_storage_create(SMgrRelation srel, char persistence);

/*
 * Storage id in the metapage; 0 for an unlogged relation that came out of a crash and has not been written since.
 * A damaged metapage raises ERRCODE_DATA_CORRUPTED.  Takes a share lock on the metapage buffer for a moment.
 */
extern uint64 paimon_storage_id(Relation rel);

/* Gives a reborn unlogged storage (id 0) a new id, or returns the one that somebody else just gave. */
extern uint64 paimon_storage_assign_id(Relation rel);

/* True if the storage id was given by paimon_storage_assign_id (its catalog rows must be looked up by relation). */
extern bool paimon_storage_is_reborn(Relation rel);

/* Takes `n` file numbers; never reused within a storage, WAL-logged before return. */
extern uint64 paimon_storage_new_file_no(Relation rel, uint32 n);

/* The number that the next file gets. */
extern uint64 paimon_storage_next_file_no(Relation rel);

/* Takes `n` consecutive row numbers for an append table's hidden key.  Non-transactional, WAL-logged. */
extern uint64 paimon_storage_new_row_no(Relation rel, uint32 n);
/* From now on such numbers are larger than all that the other relation has given: its rows were copied as they are. */
extern void paimon_storage_follow_row_no(Relation rel, Relation other);

/* ---- extents (storage_extent.c) ---- */

/* Extents of a file, in file order, as (first extent, count) runs.  palloc'd. */
typedef struct PaimonExtentRun
{
	uint32		first;
	uint32		count;
} PaimonExtentRun;

typedef struct PaimonExtentList
{
	uint32		nruns;
	uint32		allocated;		/* runs the array has room for */
	PaimonExtentRun *runs;
} PaimonExtentList;

extern BlockNumber paimon_extent_block(uint32 extent);	/* first block of an extent */

/*
 * Takes up to `want` (>= 1) free extents, adjacent to each other and the first ones there are, for `owner`, stamping them with `xid` (the transaction whose fate
 * decides about them; Invalid for a file guarded by a session lock).  Extends the file when nothing is free.  Returns the first, *got
 * how many.  Holds no lock on return.
 */
extern uint32 paimon_extent_alloc(Relation rel, uint64 owner, FullTransactionId xid, uint32 want, uint32 *got);

/*
 * Frees the extents in the list that still belong to `owner`, for reuse.  `horizon` is the full xid whose removal made them free: a
 * standby resolves conflicts with it before the bytes may change.  Returns how many were freed.
 */
extern uint32 paimon_extent_free(Relation rel, uint64 owner, const PaimonExtentList *list, FullTransactionId horizon);

/* Calls fn for each extent that is in use.  fn must not touch the map.  A map page that counts its free extents wrong is ERRCODE_DATA_CORRUPTED. */
typedef void (*paimon_extent_visitor) (void *arg, uint32 extent, uint64 owner, FullTransactionId xid);
extern void paimon_extent_visit(Relation rel, paimon_extent_visitor fn, void *arg);

/* Counts: extents in use, extents free, pages of the fork.  For stats and the size estimate. */
typedef struct PaimonStorageUsage
{
	uint32		used_extents;
	uint32		free_extents;
	BlockNumber pages;
} PaimonStorageUsage;
extern void paimon_storage_usage(Relation rel, PaimonStorageUsage *usage);

/* Extents up to and including the last one in use: what a fork would have if its free end were given back. */
extern uint32 paimon_storage_used_end(Relation rel);

/*
 * Gives the free end of the fork back to the operating system, under a conditional AccessExclusive lock that is given up as soon as
 * somebody waits.  Returns pages given back (0 if the lock was not to be had).  Must be called in a transaction without other locks on rel
 * stronger than AccessShare.
 */
extern BlockNumber paimon_storage_truncate_end(Relation rel);

/* Replaces xids older than `limit` in the map (freeze): returns the oldest normal xid left, or FirstNormal if none. */
extern FullTransactionId paimon_extent_freeze(Relation rel, FullTransactionId limit);

/* ---- files in extents (storage_file.c) ---- */

typedef struct PaimonFileWriter PaimonFileWriter;

/*
 * Begins a file.  Pages go through shared buffers and are WAL-logged as full images in batches (not logged where the relation needs no WAL).
 * Memory lives in the current context.
 */
extern PaimonFileWriter *paimon_file_begin(Relation rel, uint64 file_no, FullTransactionId xid);

/*
 * Appends `len` bytes, beginning on a new page; `unit` goes into that first page's special space (group number, or PG_UINT32_MAX).
 * Returns the page number in the file where they begin.
 */
extern uint32 paimon_file_append(PaimonFileWriter *w, uint32 unit, const void *data, uint32 len);

/* The block on which a page of the file lies (valid for pages already appended). */
extern BlockNumber paimon_file_writer_block(PaimonFileWriter *w, uint32 page);

/* Writes what is pending; gives the extents (palloc'd), the number of pages, and the LSN up to which WAL must be flushed (H24). */
extern void paimon_file_finish(PaimonFileWriter *w, PaimonExtentList *extents, uint32 *npages, XLogRecPtr *lsn);

/* Frees the extents of a file that is given up (error paths leave that to the sweep). */
extern void paimon_file_abandon(PaimonFileWriter *w);

/*
 * Copies bytes [off, off + len) of what was appended at `page` to dest, checking on each page that it belongs to (storage, file, page).
 * Damage raises ERRCODE_DATA_CORRUPTED naming relation and file.
 */
extern void paimon_file_read(Relation rel, uint64 storage_id, uint64 file_no, const PaimonExtentList *extents,
							 uint32 page, uint32 off, uint32 len, void *dest);

extern BlockNumber paimon_file_block(const PaimonExtentList *extents, uint32 page);

/* Starts reading pages [page, page + n) ahead (PrefetchBuffer). */
extern void paimon_file_prefetch(Relation rel, const PaimonExtentList *extents, uint32 page, uint32 n);

/*
 * What lies at a block, for resolving a ctid: copies the special space.  Raises ERRCODE_DATA_CORRUPTED for a damaged page; returns
 * false for a block beyond the end or an all-zero page.
 */
extern bool paimon_page_identify(Relation rel, BlockNumber block, PaimonPageSpecial *special);

/* ---- delta log (storage_log.c) ---- */

/*
 * A batch in the log, as stored: this header, the directory, then the records (their format belongs to memtable/).
 * Little-endian on disk.  `crc` covers storage id, position, and everything after the crc field.
 */
typedef struct PaimonBatchHeader
{
	uint32		len;			/* whole batch, header included */
	uint32		crc;
	uint64		xid;			/* full transaction id, or Frozen/Invalid markers after freezing (see flags) */
	uint16		flags;			/* PAIMON_BATCH_… */
	uint16		nbuckets;		/* directory entries */
	uint32		nrecords;
} PaimonBatchHeader;

#define PAIMON_BATCH_PREPARED	0x0001	/* written at PREPARE TRANSACTION */
#define PAIMON_BATCH_COMMITTED	0x0002	/* frozen: xid is known committed */
#define PAIMON_BATCH_ABORTED	0x0004	/* frozen: xid is known aborted */
#define PAIMON_BATCH_LOCKS		0x0008	/* holds keys that were locked only, not written (prepared) */

#define PAIMON_BATCH_MAX	(64 * 1024 * 1024)	/* sanity limit for readers */

/* A batch to be appended: the header and the pieces behind it.  The bytes belong to whoever made it. */
typedef struct PaimonLogBatch
{
	PaimonBatchHeader header;	/* len, xid and crc are filled in by the append */
	const PaimonBytes *pieces;
	int			npieces;
	PaimonBytes packed;			/* the pieces for the WAL, from paimon_log_pack; len 0: they are logged as they are */
} PaimonLogBatch;

/*
 * Where the log ends.  One such struct lives in the table's shared state, guarded by its append lock; a standby or a fresh server finds
 * it with paimon_log_find_tail.
 */
typedef struct PaimonLogTail
{
	uint64		position;		/* of the next byte to be written */
	uint32		extent;			/* extent that holds it, or PG_UINT32_MAX while the log has none */
} PaimonLogTail;

/* Finds the tail by walking the chain, from *tail as a hint if it is set (tail->extent != PG_UINT32_MAX). */
extern void paimon_log_find_tail(Relation rel, uint64 storage_id, PaimonLogTail *tail);

/*
 * Sets batch->packed if compressing the batch makes its WAL record much shorter; palloc'd.  To be called before the append lock is taken.
 */
extern void paimon_log_pack(Relation rel, PaimonLogBatch *batch);

/*
 * Appends one batch.  The caller holds the table's append lock, so *tail is exact; it is moved on return.  Atomic: after a crash, or an error in here, either the whole batch is in the log or nothing of it.
 * Returns the position of the header's first byte.  *lsn: end of the last record.
 */
extern uint64 paimon_log_append(Relation rel, uint64 storage_id, PaimonLogTail *tail, FullTransactionId xid,
								PaimonLogBatch *batch, XLogRecPtr *lsn);

/*
 * Reads and checks the batch at `position`, which must lie below the tail: header into *header, the rest (directory and records) into memory
 * of the current context, *body, of header->len - sizeof(PaimonBatchHeader) bytes.  Damage raises ERRCODE_DATA_CORRUPTED.
 */
extern void paimon_log_read_batch(Relation rel, uint64 storage_id, uint64 position, PaimonBatchHeader *header, uint8 **body);

/* Reads only header (not checksummed, plausibility checked) - to walk the log quickly. */
extern void paimon_log_read_header(Relation rel, uint64 storage_id, uint64 position, PaimonBatchHeader *header);

/* Raw bytes of the stream below the tail. */
extern void paimon_log_read(Relation rel, uint64 storage_id, uint64 position, uint32 len, void *dest);

/* ctid of the stream position (page of the byte, its offset in the payload + 1), and back.  The latter reads the page's special space. */
extern void paimon_log_position_to_tid(Relation rel, uint64 storage_id, uint64 position, ItemPointer tid);
extern bool paimon_log_tid_to_position(Relation rel, uint64 storage_id, ItemPointer tid, uint64 *position);

/* Frees the extents that lie wholly below `head`, behind `horizon` as in paimon_extent_free.  Never those that hold a position in keep[]. */
extern uint32 paimon_log_free_before(Relation rel, uint64 storage_id, uint64 head, const uint64 *keep, int nkeep,
									 FullTransactionId horizon);

/* Extents of the log's chain, in the order of the log.  palloc'd. */
extern void paimon_log_extents(Relation rel, uint64 storage_id, PaimonExtentList *list);

/*
 * Frees extents that belong to the log but are not in its chain: left by a crash, or an error, between two steps of an append or of
 * paimon_log_free_before.  Must not run beside another paimon_log_free_… of the table.  Returns how many.
 */
extern uint32 paimon_log_free_orphans(Relation rel, uint64 storage_id, FullTransactionId horizon);

/* Are all extents of [position, position + len) in the log's chain?  Bytes behind the tail count as there. */
extern bool paimon_log_holds(Relation rel, uint64 storage_id, uint64 position, uint64 len);

/* First position the physical log still holds. */
extern uint64 paimon_log_first(Relation rel, uint64 storage_id);

/*
 * Sets COMMITTED or ABORTED in the batch's header in place, WAL-logged, and zeroes the xid.  No snapshot on this server may take that xid
 * for running; on a standby, those that do are resolved as conflicts.
 */
extern void paimon_log_freeze_batch(Relation rel, uint64 storage_id, uint64 position, bool committed);

/* ---- identity of a file under construction ---- */

/*
 * Session lock on (storage, file number) by which the sweep knows that a file without a manifest row is being written by a worker that
 * has no xid yet (H13).  try_ returns false if somebody holds it.
 */
extern void paimon_file_guard_acquire(uint64 storage_id, uint64 file_no);
extern void paimon_file_guard_release(uint64 storage_id, uint64 file_no);
extern bool paimon_file_guard_is_held(uint64 storage_id, uint64 file_no);

/* Heavyweight locks of a storage, on a lock tag of our own; transaction-level, released at its end. */
extern void paimon_lock_publish(uint64 storage_id); /* one manifest writer at a time */
extern void paimon_lock_modify(uint64 storage_id, bool exclusive);	/* row modifiers share, large commits exclude */
extern bool paimon_try_lock_publish(uint64 storage_id);
extern void paimon_lock_flush(uint64 storage_id);	/* one flush or reclaim at a time; taken before the publish lock */
extern bool paimon_try_lock_flush(uint64 storage_id);
extern bool paimon_flush_lock_is_held(uint64 storage_id);	/* by another session */

/* One compaction of a bucket at a time: false if another one is at it.  Before the publish lock, apart from the flush lock. */
extern bool paimon_try_lock_compact(uint64 storage_id, int bucket);

/* WAL resource manager */
extern void paimon_rmgr_register(void);

#endif							/* PAIMON_STORAGE_H */
