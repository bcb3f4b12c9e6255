/*-------------------------------------------------------------------------
 *
 * storage_xlog.c
 *	  WAL records of the storage and their redo: the resource manager.
 *
 * PATCH: for up to a few pages, pieces of bytes to be copied to their offsets (with the checksums that were
 * made when the change was); the main data may hold a horizon that a standby resolves conflicts with first.
 * LOG_APPEND, LOG_APPEND_PACKED: see README.md, "WAL".  File pages are logged with core's full-page-image record.
 *
 * Redo copies bytes; it knows neither catalogs nor types, and of what the payload means only the bounds of the page.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/bufmask.h"
#include "access/xlog_internal.h"
#include "access/xloginsert.h"
#include "access/xlogutils.h"
#include "storage/standby.h"

#include "storage/storage_internal.h"

/* Notes that len bytes at `start`, inside the block's page, were changed. */
void
paimon_xlog_touch(PaimonXlogBlock *block, const void *start, Size len)
{
	PaimonPatch *patch;

	Assert(block->npatches < PAIMON_MAX_PATCHES);
	patch = &block->patches[block->npatches++];
	patch->offset = (uint16) ((const char *) start - (char *) BufferGetPage(block->buffer));
	patch->len = (uint16) len;
	Assert(patch->offset >= PAIMON_PAGE_DATA_OFFSET && patch->offset + len <= BLCKSZ);
}

/*
 * Marks the buffers dirty and logs their patches in one record (at most 4 blocks); returns its end, Invalid where the relation
 * needs no WAL.  `horizon`: see paimon_extent_free; Invalid for a change that is the same to all snapshots.
 * In a critical section, buffers locked exclusively, bytes changed already.
 */
XLogRecPtr
paimon_xlog_patch(Relation rel, PaimonXlogBlock *blocks, int nblocks, FullTransactionId horizon)
{
	XLogRecPtr lsn;

	for (int i = 0; i < nblocks; i++)
		MarkBufferDirty(blocks[i].buffer);
	if (!RelationNeedsWAL(rel))
		return InvalidXLogRecPtr;

	XLogBeginInsert();
	if (FullTransactionIdIsValid(horizon))
		paimon_xlog_register_data(&horizon, sizeof(horizon));
	for (int i = 0; i < nblocks; i++)
	{
		PaimonXlogBlock *block = &blocks[i];
		char            *page = (char *) BufferGetPage(block->buffer);

		XLogRegisterBuffer((uint8) i, block->buffer, block->init ? REGBUF_WILL_INIT : REGBUF_STANDARD);
		for (int p = 0; p < block->npatches; p++)
		{
			paimon_xlog_register_buf_data((uint8) i, &block->patches[p], sizeof(PaimonPatch));
			paimon_xlog_register_buf_data((uint8) i, page + block->patches[p].offset, block->patches[p].len);
		}
	}
	lsn = XLogInsert(PAIMON_RMGR_ID, PAIMON_XLOG_PATCH);
	for (int i = 0; i < nblocks; i++)
		PageSetLSN(BufferGetPage(blocks[i].buffer), lsn);
	return lsn;
}

static bool
block_is_init(XLogReaderState *record, uint8 id)
{
	return (XLogRecGetBlock(record, id)->flags & BKPBLOCK_WILL_INIT) != 0;
}

static void
redo_patch_block(XLogReaderState *record, uint8 id)
{
	XLogRecPtr lsn = record->EndRecPtr;
	Buffer     buf;
	bool       init = block_is_init(record, id);

	if (init)
		buf = XLogInitBufferForRedo(record, id);
	if (init || XLogReadBufferForRedo(record, id, &buf) == BLK_NEEDS_REDO)
	{
		Page  page = BufferGetPage(buf);
		Size  len;
		char *data = XLogRecGetBlockData(record, id, &len);
		char *end = data + len;

		if (init)
			PageInit(page, BLCKSZ, sizeof(PaimonPageSpecial));
		while (data < end)
		{
			PaimonPatch patch;

			memcpy(&patch, data, sizeof(patch));
			data += sizeof(patch);
			if (patch.offset < PAIMON_PAGE_DATA_OFFSET || patch.offset + patch.len > BLCKSZ || patch.len > end - data)
				elog(PANIC, "paimon_am: invalid patch in WAL record");
			memcpy((char *) page + patch.offset, data, patch.len);
			data += patch.len;
		}
		paimon_page_seal(page);
		PageSetLSN(page, lsn);
		MarkBufferDirty(buf);
	}
	if (BufferIsValid(buf))
		UnlockReleaseBuffer(buf);
}

static void
redo_patch(XLogReaderState *record)
{
	if (InHotStandby && XLogRecGetDataLen(record) >= sizeof(FullTransactionId))
	{
		FullTransactionId horizon;
		PaimonLocator     locator;

		memcpy(&horizon, XLogRecGetData(record), sizeof(horizon));
		XLogRecGetBlockTag(record, 0, &locator, NULL, NULL);
		paimon_resolve_recovery_conflict(horizon, locator);
	}
	for (int id = 0; id <= XLogRecMaxBlockId(record); id++)
		redo_patch_block(record, (uint8) id);
}

/* A batch from the WAL; *end: how much of it is not yet on its page, from the last page on. */
typedef struct PackedBatch
{
	char	   *raw;			/* NULL: the pages' bytes are in the blocks' data */
	uint32		end;
} PackedBatch;

/* A page that the append made anew. */
static void
redo_append_init(XLogReaderState *record, uint8 id, PackedBatch *batch)
{
	Size              len;
	char             *data = XLogRecGetBlockData(record, id, &len);
	Buffer            buf = XLogInitBufferForRedo(record, id);
	Page              page = BufferGetPage(buf);
	PaimonXlogLogPage head;

	memcpy(&head, data, sizeof(head));
	data += sizeof(head);
	len -= sizeof(head);
	if (batch->raw != NULL && len == 0 && head.used <= batch->end)
	{
		batch->end -= head.used;
		data = batch->raw + batch->end;
		len = head.used;
	}
	if (head.used > PAIMON_PAGE_PAYLOAD || len != head.used)
		elog(PANIC, "paimon_am: invalid log page in WAL record");
	paimon_page_init(page, PAIMON_PAGE_LOG, head.storage_id, PAIMON_OWNER_LOG, head.position, head.unit);
	memcpy(paimon_page_data(page), data, head.used);
	paimon_page_special(page)->used = head.used;
	paimon_page_seal(page);
	PageSetLSN(page, record->EndRecPtr);
	MarkBufferDirty(buf);
	UnlockReleaseBuffer(buf);
}

/* The page on which the tail lay. */
static void
redo_append_tail(XLogReaderState *record, uint8 id, const PackedBatch *batch)
{
	Buffer buf;

	if (XLogReadBufferForRedo(record, id, &buf) == BLK_NEEDS_REDO)
	{
		Page               page = BufferGetPage(buf);
		PaimonPageSpecial *special = paimon_page_special(page);
		Size               len;
		char              *data = XLogRecGetBlockData(record, id, &len);
		uint16             offset;

		memcpy(&offset, data, sizeof(offset));
		data += sizeof(offset);
		len -= sizeof(offset);
		if (batch->raw != NULL)
		{
			data = batch->raw;
			len = batch->end;
		}
		if (special->used != offset || len > PAIMON_PAGE_PAYLOAD - offset)
			elog(PANIC, "paimon_am: log page with %u bytes in use, WAL record appends %zu bytes at %u", special->used,
				 len, offset);
		memcpy(paimon_page_data(page) + offset, data, len);
		special->used = (uint16) (offset + len);
		paimon_page_seal(page);
		PageSetLSN(page, record->EndRecPtr);
		MarkBufferDirty(buf);
	}
	if (BufferIsValid(buf))
		UnlockReleaseBuffer(buf);
}

/*
 * Later pages first: a reader on a standby who finds the tail's page full goes on to the next one, which must be there
 * by then.
 */
static void
redo_append(XLogReaderState *record, bool packed)
{
	PackedBatch batch = {NULL, 0};

	if (packed)
		batch.raw = paimon_log_unpack(XLogRecGetData(record), XLogRecGetDataLen(record), &batch.end);
	for (int id = XLogRecMaxBlockId(record); id >= 0; id--)
	{
		if (block_is_init(record, (uint8) id))
			redo_append_init(record, (uint8) id, &batch);
		else
			redo_append_tail(record, (uint8) id, &batch);
	}
	if (packed)
		pfree(batch.raw);
}

static void
paimon_redo(XLogReaderState *record)
{
	switch (XLogRecGetInfo(record) & ~XLR_INFO_MASK)
	{
		case PAIMON_XLOG_PATCH:
			redo_patch(record);
			break;
		case PAIMON_XLOG_LOG_APPEND:
			redo_append(record, false);
			break;
		case PAIMON_XLOG_LOG_APPEND_PACKED:
			redo_append(record, true);
			break;
		default:
			elog(PANIC, "paimon_am: unknown WAL record type %u", XLogRecGetInfo(record));
	}
}

static void
paimon_desc(StringInfo buf, XLogReaderState *record)
{
	uint8 info = XLogRecGetInfo(record) & ~XLR_INFO_MASK;

	if (info == PAIMON_XLOG_PATCH && XLogRecGetDataLen(record) >= sizeof(FullTransactionId))
	{
		FullTransactionId horizon;

		memcpy(&horizon, XLogRecGetData(record), sizeof(horizon));
		appendStringInfo(buf, "snapshotConflictHorizon " UINT64_FORMAT, U64FromFullTransactionId(horizon));
	}
	else if (info == PAIMON_XLOG_LOG_APPEND || info == PAIMON_XLOG_LOG_APPEND_PACKED)
		appendStringInfo(buf, "pages %d", XLogRecMaxBlockId(record) + 1);
}

static const char *
paimon_identify(uint8 info)
{
	switch (info & ~XLR_INFO_MASK)
	{
		case PAIMON_XLOG_PATCH:
			return "PATCH";
		case PAIMON_XLOG_LOG_APPEND:
			return "LOG_APPEND";
		case PAIMON_XLOG_LOG_APPEND_PACKED:
			return "LOG_APPEND_PACKED";
	}
	return NULL;
}

static void
paimon_mask(char *pagedata, BlockNumber blkno)
{
	Page page = (Page) pagedata;

	(void) blkno;
	mask_page_lsn_and_checksum(page);
	if (!PageIsNew(page))
		mask_unused_space(page);
}

/* Registers the resource manager; from _PG_init while preloading. */
void
paimon_rmgr_register(void)
{
	static RmgrData rmgr = {.rm_name = "paimon_am",
							.rm_redo = paimon_redo,
							.rm_desc = paimon_desc,
							.rm_identify = paimon_identify,
							.rm_mask = paimon_mask};

	RegisterCustomRmgr(PAIMON_RMGR_ID, &rmgr);
}
