/*-------------------------------------------------------------------------
 *
 * storage_log.c
 *	  Appending a batch to the delta log.
 *
 * The tail lies on the first page of the chain that is not full.  What makes an append atomic: pages behind the tail's page do not count
 * until that page is full, and the record that fills it is the last of the batch's.  README.md has the argument in full.
 *
 * Locks: the caller has the table's append lock; here exclusive buffer locks in the order of the log,
 * first page first, held while the record is made.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "core/core.h"
#include "storage/storage_internal.h"

/* A batch on its way: reads as one run of bytes, the header and then the pieces. */
typedef struct BatchSource
{
	const PaimonBatchHeader *header;
	const PaimonBytes       *pieces;
	int                      npieces;
	int                      piece; /* where the last copy ended: piece, -1 for the header, */
	uint32                   base;  /* and the offset in the batch at which it begins */
} BatchSource;

/* Where an append goes. */
typedef struct Append
{
	Relation    rel;
	uint64      storage_id;
	uint64      start; /* position of the batch */
	uint32      len;
	BatchSource source;
	PaimonBytes packed;  /* see PaimonLogBatch */
	uint32      extent0; /* extent of the tail's page */
	uint32     *extents; /* extents from extent0 on, and what the last of them is linked to; NULL if only the
								 * tail's page is touched */
} Append;

/* Checksum over identity and header; the caller continues it over the body. */
uint32
paimon_batch_crc(uint64 storage_id, uint64 position, const PaimonBatchHeader *header)
{
	Size   rest = offsetof(PaimonBatchHeader, crc) + sizeof(header->crc);
	uint32 crc;

	crc = paimon_crc32c(0, &storage_id, sizeof(storage_id));
	crc = paimon_crc32c(crc, &position, sizeof(position));
	return paimon_crc32c(crc, (const char *) header + rest, sizeof(PaimonBatchHeader) - rest);
}

static PaimonBytes
source_piece(const BatchSource *s)
{
	PaimonBytes header = {(const uint8 *) s->header, sizeof(PaimonBatchHeader)};

	return s->piece < 0 ? header : s->pieces[s->piece];
}

/* Copies batch bytes [off, off + len). */
static void
copy_from_source(BatchSource *s, uint32 off, uint32 len, char *dest)
{
	if (off < s->base)
	{
		s->piece = -1;
		s->base = 0;
	}
	while (len > 0)
	{
		PaimonBytes piece = source_piece(s);
		uint32      skip = off - s->base;

		if (skip >= piece.len)
		{
			s->base += piece.len;
			s->piece++;
		}
		else
		{
			uint32 n = Min(len, piece.len - skip);

			memcpy(dest, piece.data + skip, n);
			dest += n;
			off += n;
			len -= n;
		}
	}
}

/*
 * Links a new extent to the end of the chain: to the first page of `last`, or to the metapage while the log has no extent.
 * Its first page is made, empty, in the same record.
 */
static void
link_extent(Relation rel, uint64 storage_id, uint32 last, uint32 extent, uint64 position)
{
	PaimonMeta     *meta = NULL;
	Page            page;
	PaimonXlogBlock blocks[2] = {{.npatches = 0}, {.npatches = 0}};

	if (last == PAIMON_NO_EXTENT)
		blocks[0].buffer = paimon_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE, &meta);
	else
	{
		blocks[0].buffer = ReadBuffer(rel, paimon_extent_block(last));
		LockBuffer(blocks[0].buffer, BUFFER_LOCK_EXCLUSIVE);
		page = BufferGetPage(blocks[0].buffer);
		if (!paimon_page_matches(page, PAIMON_PAGE_LOG, storage_id, PAIMON_OWNER_LOG, position - PAIMON_EXTENT_BYTES))
			paimon_page_report(rel, paimon_extent_block(last), page, "the last extent of the log");
	}
	blocks[1].init = true;
	blocks[1].buffer = ReadBufferExtended(rel, MAIN_FORKNUM, paimon_extent_block(extent), RBM_ZERO_AND_LOCK, NULL);

	START_CRIT_SECTION();
	page = BufferGetPage(blocks[1].buffer);
	paimon_page_init(page, PAIMON_PAGE_LOG, storage_id, PAIMON_OWNER_LOG, position, PAIMON_NO_EXTENT);
	paimon_xlog_touch(&blocks[1], paimon_page_special(page), sizeof(PaimonPageSpecial));
	page = BufferGetPage(blocks[0].buffer);
	if (meta != NULL)
	{
		meta->log_extent = extent;
		meta->log_position = position;
		paimon_meta_seal(page);
		paimon_xlog_touch(&blocks[0], meta, sizeof(PaimonMeta));
	}
	else
	{
		paimon_page_special(page)->unit = extent;
		paimon_page_seal(page);
		paimon_xlog_touch(&blocks[0], paimon_page_special(page), sizeof(PaimonPageSpecial));
	}
	paimon_xlog_patch(rel, blocks, 2, InvalidFullTransactionId);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(blocks[1].buffer);
	UnlockReleaseBuffer(blocks[0].buffer);
}

/* What the last extent of the chain is linked to. */
static uint32
next_extent(Relation rel, uint64 storage_id, uint32 extent)
{
	uint64 position;
	uint32 next;

	if (!paimon_chain_link(rel, storage_id, extent, &position, &next))
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("block %u of table \"%s\" is not the beginning of a log extent",
							   paimon_extent_block(extent), RelationGetRelationName(rel))));
	return next;
}

/*
 * Provides the extents for stream positions up to and including `end`, as an array that begins with the present one and ends with what the
 * last is linked to (extents of an append that failed stay linked, and are used here).
 */
static uint32 *
provide_extents(Append *a, FullTransactionId xid, uint64 end)
{
	uint64  first = a->start / PAIMON_EXTENT_BYTES;
	uint32  n = (uint32) (end / PAIMON_EXTENT_BYTES - first);
	uint32 *extents = palloc(sizeof(uint32) * (n + 2));
	uint32  taken = 0;
	uint32  ntaken = 0;

	extents[0] = a->extent0;
	for (uint32 i = 0; i < n; i++)
	{
		extents[i + 1] = next_extent(a->rel, a->storage_id, extents[i]);
		if (extents[i + 1] != PAIMON_NO_EXTENT)
			continue;
		if (ntaken == 0)
			taken = paimon_extent_take(a->rel, PAIMON_OWNER_LOG, xid, n - i, &ntaken);
		PAIMON_STOP_FLUSH();
		PAIMON_STOP_POINT_CRIT("log-extent-taken");
		link_extent(a->rel, a->storage_id, extents[i], taken, (first + i + 1) * PAIMON_EXTENT_BYTES);
		extents[i + 1] = taken++;
		ntaken--;
	}
	extents[n + 1] = next_extent(a->rel, a->storage_id, extents[n]);
	paimon_fork_reserve(a->rel, paimon_log_block(extents[n], end) + 1);
	return extents;
}

/* Gives a log without extents its first one. */
static void
start_log(Relation rel, uint64 storage_id, FullTransactionId xid, PaimonLogTail *tail)
{
	uint32 got;
	uint32 extent = paimon_extent_take(rel, PAIMON_OWNER_LOG, xid, 1, &got);

	PAIMON_STOP_FLUSH();
	PAIMON_STOP_POINT_CRIT("log-extent-taken");
	link_extent(rel, storage_id, PAIMON_NO_EXTENT, extent, 0);
	tail->position = 0;
	tail->extent = extent;
}

/* Position of the first byte of the append's i-th page (0: the tail's). */
static uint64
page_position(const Append *a, uint32 i)
{
	return a->start - a->start % PAIMON_PAGE_PAYLOAD + (uint64) i * PAIMON_PAGE_PAYLOAD;
}

static BlockNumber
page_block(const Append *a, uint32 i)
{
	uint64 position = page_position(a, i);
	uint32 extent =
		a->extents == NULL ? a->extent0 : a->extents[position / PAIMON_EXTENT_BYTES - a->start / PAIMON_EXTENT_BYTES];

	return paimon_log_block(extent, position);
}

/* Pins and locks the i-th page; the tail's page is checked. */
static Buffer
lock_page(const Append *a, uint32 i)
{
	BlockNumber block = page_block(a, i);
	Buffer      buf;
	Page        page;

	if (i > 0)
		return ReadBufferExtended(a->rel, MAIN_FORKNUM, block, RBM_ZERO_AND_LOCK, NULL);
	buf = ReadBuffer(a->rel, block);
	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	page = BufferGetPage(buf);
	if (!paimon_page_matches(page, PAIMON_PAGE_LOG, a->storage_id, PAIMON_OWNER_LOG, page_position(a, 0)) ||
		paimon_page_special(page)->used != a->start % PAIMON_PAGE_PAYLOAD)
		paimon_page_report(a->rel, block, page, "the end of the log");
	return buf;
}

/* Fills the i-th page.  Returns how many payload bytes are new, and where they begin. */
static uint16
fill_page(Append *a, uint32 i, Page page, uint16 *offset)
{
	PaimonPageSpecial *special = paimon_page_special(page);
	uint64             position = page_position(a, i);
	uint32             done = i == 0 ? 0 : (uint32) (position - a->start);
	uint32             n;

	if (i > 0)
	{
		bool   first = position % PAIMON_EXTENT_BYTES == 0;
		uint64 nth = position / PAIMON_EXTENT_BYTES - a->start / PAIMON_EXTENT_BYTES;

		paimon_page_init(page, PAIMON_PAGE_LOG, a->storage_id, PAIMON_OWNER_LOG, position,
						 first ? a->extents[nth + 1] : PAIMON_NO_UNIT);
	}
	*offset = special->used;
	n = Min(a->len - done, PAIMON_PAGE_PAYLOAD - *offset);
	copy_from_source(&a->source, done, n, paimon_page_data(page) + *offset);
	special->used = (uint16) (*offset + n);
	paimon_page_seal(page);
	return (uint16) n;
}

/* Writes `n` pages of the append from the i-th on, in one record.  packed: they are the whole batch, and the record has it compressed. */
static XLogRecPtr
write_pages(Append *a, uint32 i, uint32 n, bool packed)
{
	Buffer            buffers[PAIMON_XLOG_PAGES];
	PaimonXlogLogPage heads[PAIMON_XLOG_PAGES];
	bool              wal = RelationNeedsWAL(a->rel);
	XLogRecPtr        lsn = InvalidXLogRecPtr;

	Assert(n <= PAIMON_XLOG_PAGES);
	if (wal && n > 1)
		XLogEnsureRecordSpace((int) n - 1, (int) n * 2 + 3);
	for (uint32 k = 0; k < n; k++)
		buffers[k] = lock_page(a, i + k);

	START_CRIT_SECTION();
	if (wal)
		XLogBeginInsert();
	for (uint32 k = 0; k < n; k++)
	{
		Page               page = BufferGetPage(buffers[k]);
		PaimonPageSpecial *special = paimon_page_special(page);
		uint16             offset;
		uint16             added = fill_page(a, i + k, page, &offset);

		MarkBufferDirty(buffers[k]);
		if (!wal)
			continue;
		XLogRegisterBuffer((uint8) k, buffers[k], i + k == 0 ? REGBUF_STANDARD : REGBUF_WILL_INIT);
		heads[k] = (PaimonXlogLogPage){special->storage_id, special->position, special->unit, offset, 0};
		if (i + k == 0)
			paimon_xlog_register_buf_data((uint8) k, &heads[k].used, sizeof(heads[k].used));
		else
		{
			heads[k].used = special->used;
			paimon_xlog_register_buf_data((uint8) k, &heads[k], sizeof(heads[k]));
		}
		if (added > 0 && !packed)
			paimon_xlog_register_buf_data((uint8) k, paimon_page_data(page) + offset, added);
	}
	if (wal && packed)
	{
		paimon_xlog_register_data(a->source.header, sizeof(PaimonBatchHeader));
		paimon_xlog_register_data(a->packed.data, a->packed.len);
	}
	if (wal)
	{
		lsn = XLogInsert(PAIMON_RMGR_ID, packed ? PAIMON_XLOG_LOG_APPEND_PACKED : PAIMON_XLOG_LOG_APPEND);
		for (uint32 k = 0; k < n; k++)
			PageSetLSN(BufferGetPage(buffers[k]), lsn);
	}
	END_CRIT_SECTION();
	for (uint32 k = n; k-- > 0;)
		UnlockReleaseBuffer(buffers[k]);
	return lsn;
}

/* Writes pages 0 .. n - 1 of the append: the later ones first, the tail's page in the last record. */
static XLogRecPtr
write_batch(Append *a, uint32 n)
{
	uint32 end = n;

	while (end > PAIMON_XLOG_PAGES)
	{
		write_pages(a, end - PAIMON_XLOG_PAGES, PAIMON_XLOG_PAGES, false);
		if (end == n)
		{
			PAIMON_STOP_FLUSH();
			PAIMON_STOP_POINT_CRIT("log-append-first-record");
		}
		end -= PAIMON_XLOG_PAGES;
	}
	PAIMON_STOP_FLUSH();
	PAIMON_STOP_POINT_CRIT("log-append-before-last-record");
	return write_pages(a, 0, end, a->packed.len > 0 && end == n);
}

/* Fills in the header's len, xid and crc. */
static void
complete_header(Relation rel, uint64 storage_id, uint64 position, FullTransactionId xid, PaimonLogBatch *batch)
{
	PaimonBatchHeader *header = &batch->header;
	uint64             len = sizeof(PaimonBatchHeader);

	for (int i = 0; i < batch->npieces; i++)
		len += batch->pieces[i].len;
	if (len > PAIMON_BATCH_MAX)
		ereport(
			ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("transaction writes too much to the log of table \"%s\" at once", RelationGetRelationName(rel)),
			 errdetail("A batch of " UINT64_FORMAT " bytes exceeds the limit of %d bytes.", len, PAIMON_BATCH_MAX)));
	header->len = (uint32) len;
	header->xid = U64FromFullTransactionId(xid);
	header->crc = paimon_batch_crc(storage_id, position, header);
	for (int i = 0; i < batch->npieces; i++)
		header->crc = paimon_crc32c(header->crc, batch->pieces[i].data, batch->pieces[i].len);
}

/* See storage.h. */
uint64
paimon_log_append(Relation rel, uint64 storage_id, PaimonLogTail *tail, FullTransactionId xid,
				  PaimonLogBatch *batch, XLogRecPtr *lsn)
{
	Append a = {.rel = rel,
				.storage_id = storage_id,
				.source = {&batch->header, batch->pieces, batch->npieces, -1, 0},
				.packed = batch->packed};
	uint64 end;
	uint32 npages;

	if (tail->extent == PAIMON_NO_EXTENT)
		paimon_log_find_tail(rel, storage_id, tail);
	if (tail->extent == PAIMON_NO_EXTENT)
		start_log(rel, storage_id, xid, tail);

	a.start = tail->position;
	a.extent0 = tail->extent;
	complete_header(rel, storage_id, a.start, xid, batch);
	a.len = batch->header.len;
	end = a.start + a.len;
	npages = (uint32) (end / PAIMON_PAGE_PAYLOAD - a.start / PAIMON_PAGE_PAYLOAD) + 1;
	if (npages > 1)
		a.extents = provide_extents(&a, xid, end);

	*lsn = write_batch(&a, npages);
	PAIMON_STOP_FLUSH();
	PAIMON_STOP_POINT_CRIT("log-append-done");
	tail->position = end;
	if (a.extents != NULL)
	{
		tail->extent = a.extents[end / PAIMON_EXTENT_BYTES - a.start / PAIMON_EXTENT_BYTES];
		pfree(a.extents);
	}
	return a.start;
}
