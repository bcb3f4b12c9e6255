/*-------------------------------------------------------------------------
 *
 * storage_log_read.c
 *	  Reading the delta log: bytes of the stream, batches, ctids.
 *
 * Every page is copied from under its share lock, after a check that it is what it should be: a page of this storage's log that begins at
 * the expected position and has the bytes.  Whole batches are checksummed besides.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "core/core.h"
#include "storage/storage_internal.h"

/*
 * A batch that crosses a page boundary in its header may be read half before, half after it is frozen: read again before
 * calling it damaged.
 */
#define BATCH_READS 3

/* For errors below a read: core's know the path only. */
typedef struct ReadContext
{
	Relation rel;
	uint64   position;
} ReadContext;

static void
read_error_context(void *arg)
{
	ReadContext *c = arg;

	errcontext("while reading position " UINT64_FORMAT " of the log of table \"%s\"", c->position,
			   RelationGetRelationName(c->rel));
}

/* Copies bytes that lie on one page.  False if the page is not the one; with `report`, raises that. */
static bool
copy_from_page(Relation rel, uint64 storage_id, uint64 position, uint32 len, char *dest, bool report)
{
	uint32      off = (uint32) (position % PAIMON_PAGE_PAYLOAD);
	uint32      extent;
	BlockNumber block;
	Buffer      buf;
	Page        page;
	bool        ok;

	if (!paimon_chain_lookup(rel, storage_id, position, &extent))
	{
		if (report)
			paimon_log_report_missing(rel, position);
		return false;
	}
	block = paimon_log_block(extent, position);
	buf = ReadBuffer(rel, block);
	page = BufferGetPage(buf);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	ok = paimon_page_matches(page, PAIMON_PAGE_LOG, storage_id, PAIMON_OWNER_LOG, position - off) &&
		 paimon_page_special(page)->used >= off + len;
	if (ok)
		memcpy(dest, paimon_page_data(page) + off, len);
	else if (report)
	{
		char what[64];

		snprintf(what, sizeof(what), "position " UINT64_FORMAT " of the log", position);
		paimon_page_report(rel, block, page, what);
	}
	UnlockReleaseBuffer(buf);
	return ok;
}

/* See storage.h. */
void
paimon_log_read(Relation rel, uint64 storage_id, uint64 position, uint32 len, void *dest)
{
	ReadContext          context = {rel, position};
	ErrorContextCallback callback = {error_context_stack, read_error_context, &context};
	char                *out = dest;

	error_context_stack = &callback;
	while (len > 0)
	{
		uint32 n = Min(len, PAIMON_PAGE_PAYLOAD - (uint32) (position % PAIMON_PAGE_PAYLOAD));

		CHECK_FOR_INTERRUPTS();
		context.position = position;
		if (!copy_from_page(rel, storage_id, position, n, out, false))
		{
			/* What we remember of the chain may be stale. */
			paimon_chain_forget(rel, storage_id);
			copy_from_page(rel, storage_id, position, n, out, true);
		}
		out += n;
		position += n;
		len -= n;
	}
	error_context_stack = callback.previous;
}

/* See storage.h. */
void
paimon_log_read_header(Relation rel, uint64 storage_id, uint64 position, PaimonBatchHeader *header)
{
	paimon_log_read(rel, storage_id, position, sizeof(PaimonBatchHeader), header);
	if (header->len < sizeof(PaimonBatchHeader) || header->len > PAIMON_BATCH_MAX)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("damaged batch at position " UINT64_FORMAT " of the log of table \"%s\"", position,
							   RelationGetRelationName(rel)),
						errdetail("Its length is given as %u bytes.", header->len)));
}

/* See storage.h. */
void
paimon_log_read_batch(Relation rel, uint64 storage_id, uint64 position, PaimonBatchHeader *header, uint8 **body)
{
	for (int i = 0; i < BATCH_READS; i++)
	{
		uint32 len;
		uint32 crc;

		paimon_log_read_header(rel, storage_id, position, header);
		len = header->len - sizeof(PaimonBatchHeader);
		*body = palloc(Max(len, 1));
		paimon_log_read(rel, storage_id, position + sizeof(PaimonBatchHeader), len, *body);
		crc = paimon_batch_crc(storage_id, position, header);
		if (paimon_crc32c(crc, *body, len) == header->crc)
			return;
		pfree(*body);
	}
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("damaged batch at position " UINT64_FORMAT " of the log of table \"%s\"", position,
						   RelationGetRelationName(rel)),
					errdetail("The checksum of its %u bytes does not match.", header->len)));
}

/* See storage.h. */
void
paimon_log_position_to_tid(Relation rel, uint64 storage_id, uint64 position, ItemPointer tid)
{
	uint32 extent;

	if (!paimon_chain_lookup(rel, storage_id, position, &extent))
		paimon_log_report_missing(rel, position);
	ItemPointerSet(tid, paimon_log_block(extent, position), (OffsetNumber) (position % PAIMON_PAGE_PAYLOAD + 1));
}

/* See storage.h.  False for a ctid that is not on a page of this log. */
bool
paimon_log_tid_to_position(Relation rel, uint64 storage_id, ItemPointer tid, uint64 *position)
{
	PaimonPageSpecial special;
	OffsetNumber      offset = ItemPointerGetOffsetNumberNoCheck(tid);

	if (!paimon_page_identify(rel, ItemPointerGetBlockNumberNoCheck(tid), &special) ||
		special.kind != PAIMON_PAGE_LOG || special.owner != PAIMON_OWNER_LOG || special.storage_id != storage_id ||
		offset < 1 || offset > special.used)
		return false;
	*position = special.position + offset - 1;
	return true;
}

/* Is the extent of a position in the log, by its own first page?  What we remember of the chain may be stale. */
static bool
extent_is_there(Relation rel, uint64 storage_id, uint64 start)
{
	uint32 extent;
	uint32 next;
	uint64 position;

	return paimon_chain_lookup(rel, storage_id, start, &extent) &&
		paimon_chain_link(rel, storage_id, extent, &position, &next) && position == start;
}

/* See storage.h. */
bool
paimon_log_holds(Relation rel, uint64 storage_id, uint64 position, uint64 len)
{
	uint64 last = position + Max(len, 1) - 1;

	for (uint64 p = position - position % PAIMON_EXTENT_BYTES; p <= last; p += PAIMON_EXTENT_BYTES)
	{
		if (extent_is_there(rel, storage_id, p))
			continue;
		paimon_chain_forget(rel, storage_id);
		if (!extent_is_there(rel, storage_id, p))
			return false;
	}
	return true;
}
