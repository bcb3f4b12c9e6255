/*-------------------------------------------------------------------------
 *
 * storage_file.c
 *	  Files in extents: written once, from front to back, then only read.
 *
 * The writer builds pages in private memory and puts a batch of them at a time into shared buffers (a bulk-write ring), logged as
 * full images in one record of core's.  Nobody reads the file before its manifest row is committed, so no lock but
 * that of the pages is needed, and a crash leaves extents with an owner that has no row: the sweep's business.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_control.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

#include "storage/storage_internal.h"

#define BATCH_PAGES PAIMON_XLOG_PAGES
#define MAX_STEP_EXTENTS 64

struct PaimonFileWriter
{
	Relation             rel;
	uint64               storage_id;
	uint64               file_no;
	FullTransactionId    xid;
	PaimonExtentList     extents;
	uint32               nextents; /* in the list */
	uint32               step;     /* extents to take next time */
	uint32               npages;   /* appended, pending ones included */
	uint32               npending; /* pages in `stage`: the last ones */
	char                *stage;    /* BATCH_PAGES pages */
	BufferAccessStrategy strategy;
	XLogRecPtr           lsn;
	MemoryContext        context;
};

/* See storage.h. */
PaimonFileWriter *
paimon_file_begin(Relation rel, uint64 file_no, FullTransactionId xid)
{
	PaimonFileWriter *w = palloc0(sizeof(PaimonFileWriter));

	Assert(file_no >= PAIMON_FIRST_FILE_NO);
	w->rel = rel;
	w->storage_id = paimon_storage_id(rel);
	w->file_no = file_no;
	w->xid = xid;
	w->step = 1;
	w->stage = palloc(BATCH_PAGES * BLCKSZ);
	w->strategy = GetAccessStrategy(BAS_BULKWRITE);
	w->lsn = InvalidXLogRecPtr;
	w->context = CurrentMemoryContext;
	return w;
}

/* See storage.h.  The page must lie inside the list. */
BlockNumber
paimon_file_block(const PaimonExtentList *extents, uint32 page)
{
	uint32 n = page / PAIMON_EXTENT_PAGES;

	for (uint32 i = 0; i < extents->nruns; i++)
	{
		const PaimonExtentRun *run = &extents->runs[i];

		if (n < run->count)
			return paimon_extent_block(run->first + n) + page % PAIMON_EXTENT_PAGES;
		n -= run->count;
	}
	return InvalidBlockNumber;
}

BlockNumber
paimon_file_writer_block(PaimonFileWriter *w, uint32 page)
{
	return paimon_file_block(&w->extents, page);
}

/* Logs the locked and filled buffers as full images.  In a critical section. */
static XLogRecPtr
log_images(const Buffer *buffers, uint32 n)
{
	XLogRecPtr lsn;

	XLogBeginInsert();
	for (uint32 i = 0; i < n; i++)
		XLogRegisterBuffer((uint8) i, buffers[i], REGBUF_FORCE_IMAGE | REGBUF_STANDARD);
	lsn = XLogInsert(RM_XLOG_ID, XLOG_FPI);
	for (uint32 i = 0; i < n; i++)
		PageSetLSN(BufferGetPage(buffers[i]), lsn);
	return lsn;
}

/* Moves the pending pages into buffers and logs them. */
static void
write_pending(PaimonFileWriter *w)
{
	Buffer buffers[BATCH_PAGES];
	uint32 n = w->npending;
	uint32 first = w->npages - n;

	if (n == 0)
		return;
	CHECK_FOR_INTERRUPTS();
	if (RelationNeedsWAL(w->rel))
		XLogEnsureRecordSpace(BATCH_PAGES - 1, 0);
	for (uint32 i = 0; i < n; i++)
		buffers[i] = ReadBufferExtended(w->rel, MAIN_FORKNUM, paimon_file_block(&w->extents, first + i),
										RBM_ZERO_AND_LOCK, w->strategy);

	START_CRIT_SECTION();
	for (uint32 i = 0; i < n; i++)
	{
		memcpy(BufferGetPage(buffers[i]), w->stage + (Size) i * BLCKSZ, BLCKSZ);
		MarkBufferDirty(buffers[i]);
	}
	if (RelationNeedsWAL(w->rel))
		w->lsn = log_images(buffers, n);
	END_CRIT_SECTION();
	for (uint32 i = 0; i < n; i++)
		UnlockReleaseBuffer(buffers[i]);
	w->npending = 0;
	PAIMON_STOP_FLUSH();
	PAIMON_STOP_POINT("file-pages-written");
}

/* Takes the next extents, in growing steps, so that a large file lies in few runs and a small one takes little. */
static void
take_extents(PaimonFileWriter *w)
{
	MemoryContext old = MemoryContextSwitchTo(w->context);
	uint32        got;
	uint32        first = paimon_extent_alloc(w->rel, w->file_no, w->xid, w->step, &got);

	paimon_extent_list_add(&w->extents, first, got);
	MemoryContextSwitchTo(old);
	w->nextents += got;
	if (w->nextents >= 2 * w->step && w->step < MAX_STEP_EXTENTS)
		w->step *= 2;
}

/* See storage.h.  len may be 0: the page is then empty. */
uint32
paimon_file_append(PaimonFileWriter *w, uint32 unit, const void *data, uint32 len)
{
	uint32      start = w->npages;
	const char *p = data;

	do
	{
		uint32 n = Min(len, PAIMON_PAGE_PAYLOAD);
		Page   page;

		if (w->npending == BATCH_PAGES)
			write_pending(w);
		if (w->npages == w->nextents * PAIMON_EXTENT_PAGES)
			take_extents(w);
		page = (Page) (w->stage + (Size) w->npending * BLCKSZ);
		paimon_page_init(page, PAIMON_PAGE_FILE, w->storage_id, w->file_no, w->npages,
						 w->npages == start ? unit : PAIMON_NO_UNIT);
		memcpy(paimon_page_data(page), p, n);
		paimon_page_special(page)->used = (uint16) n;
		paimon_page_seal(page);
		w->npages++;
		w->npending++;
		p += n;
		len -= n;
	} while (len > 0);
	return start;
}

/* Splits the list behind the first `keep` extents; *rest gets the others. */
static void
cut_list(PaimonExtentList *list, uint32 keep, PaimonExtentList *rest)
{
	memset(rest, 0, sizeof(*rest));
	for (uint32 i = 0; i < list->nruns; i++)
	{
		PaimonExtentRun *run = &list->runs[i];
		uint32           stay = Min(keep, run->count);

		paimon_extent_list_add(rest, run->first + stay, run->count - stay);
		run->count = stay;
		keep -= stay;
	}
	while (list->nruns > 0 && list->runs[list->nruns - 1].count == 0)
		list->nruns--;
}

static void
release_writer(PaimonFileWriter *w)
{
	FreeAccessStrategy(w->strategy);
	pfree(w->stage);
	pfree(w);
}

/* See storage.h.  The writer is gone afterwards. */
void
paimon_file_finish(PaimonFileWriter *w, PaimonExtentList *extents, uint32 *npages, XLogRecPtr *lsn)
{
	PaimonExtentList rest;

	write_pending(w);
	cut_list(&w->extents, (w->npages + PAIMON_EXTENT_PAGES - 1) / PAIMON_EXTENT_PAGES, &rest);
	/* Nobody has seen these: no horizon. */
	if (rest.nruns > 0)
	{
		paimon_extent_free(w->rel, w->file_no, &rest, InvalidFullTransactionId);
		pfree(rest.runs);
	}
	*extents = w->extents;
	*npages = w->npages;
	*lsn = w->lsn;
	release_writer(w);
}

/* See storage.h. */
void
paimon_file_abandon(PaimonFileWriter *w)
{
	paimon_extent_free(w->rel, w->file_no, &w->extents, InvalidFullTransactionId);
	if (w->extents.runs != NULL)
		pfree(w->extents.runs);
	release_writer(w);
}

/* For errors below a read: core's "could not read block" knows the path only. */
typedef struct ReadContext
{
	Relation rel;
	uint64   file_no;
	uint32   page;
} ReadContext;

static void
read_error_context(void *arg)
{
	ReadContext *c = arg;

	errcontext("while reading page %u of file " UINT64_FORMAT " of table \"%s\"", c->page, c->file_no,
			   RelationGetRelationName(c->rel));
}

/*
 * Which buffer a block was in when this process read it last.  A guess, which the buffer itself confirms: what has been evicted is found as ever.  Blocks that share a
 * place in the table take it from each other.
 */
typedef struct BufferHint {
	BlockNumber block;
	Buffer      buffer; /* InvalidBuffer: none */
} BufferHint;

#define BUFFER_HINTS 16384

/* A buffer found by a hint is not marked as used: each so many reads go the way that does it. */
#define READS_BY_HINT 15

static BufferHint *buffer_hints = NULL;
static uint32      reads_by_hint = 0;

/* Lines of memory that are fetched ahead; what follows them the processor sees coming. */
#define AHEAD_BYTES 256

/* What will be read of a page is on its way while the buffer is looked at: where it should be, so this may be any page. */
static inline void
fetch_ahead(Buffer buffer, uint32 off, uint32 len)
{
	const char *page = (const char *) BufferGetBlock(buffer);
	const char *data = page + PAIMON_PAGE_DATA_OFFSET + off;

	__builtin_prefetch(page);
	__builtin_prefetch(page + PAIMON_PAGE_SPECIAL_OFFSET);
	for (uint32 i = 0; i < Min(len, AHEAD_BYTES); i += 64)
		__builtin_prefetch(data + i);
}

/* The buffer of a block of a file, pinned, for len bytes from an offset of its payload on. */
static Buffer
read_block(Relation rel, BlockNumber block, uint32 off, uint32 len)
{
	PaimonLocator locator = paimon_rel_locator(rel);
	BufferHint   *hint;
	Buffer        buf;

	if (RelationUsesLocalBuffers(rel))
		return ReadBuffer(rel, block);
	if (unlikely(buffer_hints == NULL))
		buffer_hints = MemoryContextAllocZero(TopMemoryContext, BUFFER_HINTS * sizeof(BufferHint));
	hint = &buffer_hints[(block + paimon_locator_number(locator) * 7919) % BUFFER_HINTS];
	if (hint->block == block && hint->buffer != InvalidBuffer && reads_by_hint++ % (READS_BY_HINT + 1) != READS_BY_HINT)
	{
		fetch_ahead(hint->buffer, off, len);
		if (ReadRecentBuffer(locator, MAIN_FORKNUM, block, hint->buffer))
		{
			pgstat_count_buffer_read(rel);
			pgstat_count_buffer_hit(rel);
			return hint->buffer;
		}
	}
	buf = ReadBuffer(rel, block);
	hint->block = block;
	hint->buffer = buf;
	return buf;
}

static void
read_page(Relation rel, uint64 storage_id, uint64 file_no, BlockNumber block, uint32 page_no, uint32 off, uint32 len,
		  char *dest)
{
	Buffer buf = read_block(rel, block, off, len);
	Page   page = BufferGetPage(buf);
	char   what[64];

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	if (!paimon_page_matches(page, PAIMON_PAGE_FILE, storage_id, file_no, page_no) ||
		paimon_page_special(page)->used < off + len)
	{
		snprintf(what, sizeof(what), "page %u of file " UINT64_FORMAT, page_no, file_no);
		paimon_page_report(rel, block, page, what);
	}
	memcpy(dest, paimon_page_data(page) + off, len);
	UnlockReleaseBuffer(buf);
}

/* See storage.h. */
void
paimon_file_read(Relation rel, uint64 storage_id, uint64 file_no, const PaimonExtentList *extents, uint32 page,
				 uint32 off, uint32 len, void *dest)
{
	ReadContext          context = {rel, file_no, page};
	ErrorContextCallback callback = {error_context_stack, read_error_context, &context};
	char                *out = dest;

	error_context_stack = &callback;
	context.page += off / PAIMON_PAGE_PAYLOAD;
	off %= PAIMON_PAGE_PAYLOAD;
	while (len > 0)
	{
		BlockNumber block = paimon_file_block(extents, context.page);
		uint32      n = Min(len, PAIMON_PAGE_PAYLOAD - off);

		CHECK_FOR_INTERRUPTS();
		if (block == InvalidBlockNumber)
			ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
							errmsg("file " UINT64_FORMAT " of table \"%s\" ends before page %u", file_no,
								   RelationGetRelationName(rel), context.page)));
		read_page(rel, storage_id, file_no, block, context.page, off, n, out);
		out += n;
		len -= n;
		off = 0;
		context.page++;
	}
	error_context_stack = callback.previous;
}

/* See storage.h.  Pages beyond the list are ignored. */
void
paimon_file_prefetch(Relation rel, const PaimonExtentList *extents, uint32 page, uint32 n)
{
	for (uint32 i = 0; i < n; i++)
	{
		BlockNumber block = paimon_file_block(extents, page + i);

		if (block == InvalidBlockNumber)
			break;
		(void) PrefetchBuffer(rel, MAIN_FORKNUM, block);
	}
}
