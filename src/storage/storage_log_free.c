/*-------------------------------------------------------------------------
 *
 * storage_log_free.c
 *	  What happens to the log behind its head: extents go back, old batches lose their xids.
 *
 * Extents leave the chain first and are freed then, each step by a record of its own that carries the horizon.
 * A crash in between leaves extents that belong to the log and are not in its chain: paimon_log_free_orphans.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xloginsert.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"

#include "core/core.h"
#include "storage/storage_internal.h"

/* Makes `to` the successor of `from` in the chain, which was `old` until now. */
static void
relink(Relation rel, uint64 storage_id, const PaimonLogLink *from, uint32 old, uint32 to, FullTransactionId horizon)
{
	BlockNumber     block = paimon_extent_block(from->extent);
	PaimonXlogBlock change = {.buffer = ReadBuffer(rel, block)};
	Page            page = BufferGetPage(change.buffer);

	LockBuffer(change.buffer, BUFFER_LOCK_EXCLUSIVE);
	if (!paimon_page_matches(page, PAIMON_PAGE_LOG, storage_id, PAIMON_OWNER_LOG,
							 from->ordinal * PAIMON_EXTENT_BYTES) ||
		paimon_page_special(page)->unit != old)
		paimon_page_report(rel, block, page, "an extent of the log");
	START_CRIT_SECTION();
	paimon_page_special(page)->unit = to;
	paimon_page_seal(page);
	paimon_xlog_touch(&change, paimon_page_special(page), sizeof(PaimonPageSpecial));
	paimon_xlog_patch(rel, &change, 1, horizon);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(change.buffer);
}

/* Makes an extent the first of the chain. */
static void
move_first(Relation rel, const PaimonLogLink *to, FullTransactionId horizon)
{
	PaimonMeta     *meta;
	PaimonXlogBlock change = {.buffer = paimon_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE, &meta)};

	START_CRIT_SECTION();
	meta->log_extent = to->extent;
	meta->log_position = to->ordinal * PAIMON_EXTENT_BYTES;
	paimon_meta_seal(BufferGetPage(change.buffer));
	paimon_xlog_touch(&change, meta, sizeof(PaimonMeta));
	paimon_xlog_patch(rel, &change, 1, horizon);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(change.buffer);
}

/* Marks in stay[] the extents that hold bytes of the batch at `position`. */
static void
mark_batch(Relation rel, uint64 storage_id, uint64 position, const PaimonLogLink *links, int nlinks, bool *stay)
{
	PaimonBatchHeader header;
	uint64            first = position / PAIMON_EXTENT_BYTES;
	uint64            last;

	paimon_log_read_header(rel, storage_id, position, &header);
	last = (position + header.len - 1) / PAIMON_EXTENT_BYTES;
	for (int i = 0; i < nlinks; i++)
	{
		if (links[i].ordinal >= first && links[i].ordinal <= last)
			stay[i] = true;
	}
}

/*
 * See storage.h.  keep[] are positions of batches; all bytes of each are kept.  Only one backend may free or look for orphans at a time
 * (whoever reclaims the table); appending goes on meanwhile.
 */
uint32
paimon_log_free_before(Relation rel, uint64 storage_id, uint64 head, const uint64 *keep, int nkeep,
					   FullTransactionId horizon)
{
	int            nlinks;
	PaimonLogLink *links = paimon_chain_links(rel, storage_id, &nlinks);
	bool          *stay;
	uint32         freed = 0;
	int            prev = -1;

	/* The usual case, cheap: nothing lies wholly below the head. */
	if (nlinks == 0 || (links[0].ordinal + 1) * PAIMON_EXTENT_BYTES > head)
		return 0;

	/* Reading headers may move the array. */
	links =
		memcpy(palloc_extended(sizeof(PaimonLogLink) * nlinks, MCXT_ALLOC_HUGE), links, sizeof(PaimonLogLink) * nlinks);
	stay = palloc0(sizeof(bool) * nlinks);
	for (int i = 0; i < nlinks; i++)
		stay[i] = (links[i].ordinal + 1) * PAIMON_EXTENT_BYTES > head;
	for (int i = 0; i < nkeep; i++)
		mark_batch(rel, storage_id, keep[i], links, nlinks, stay);

	/* The last one holds the tail, whatever the head is said to be. */
	stay[nlinks - 1] = true;

	PAIMON_STOP_POINT("log-free-before");
	for (int i = 0; i < nlinks; i++)
	{
		if (!stay[i])
			continue;
		if (prev < 0 && i > 0)
			move_first(rel, &links[i], horizon);
		else if (prev >= 0 && i > prev + 1)
			relink(rel, storage_id, &links[prev], links[prev + 1].extent, links[i].extent, horizon);
		prev = i;
	}
	PAIMON_STOP_FLUSH();
	PAIMON_STOP_POINT("log-free-unlinked");
	for (int i = 0; i < nlinks;)
	{
		int n = 0;

		while (i + n < nlinks && !stay[i + n] && links[i + n].extent == links[i].extent + n)
			n++;
		if (n > 0)
			freed += paimon_extent_release(rel, PAIMON_OWNER_LOG, NULL, links[i].extent, n, horizon);
		i += Max(n, 1);
	}
	paimon_chain_forget(rel, storage_id);
	pfree(stay);
	pfree(links);
	return freed;
}

/* See storage.h. */
void
paimon_log_extents(Relation rel, uint64 storage_id, PaimonExtentList *list)
{
	int            nlinks;
	PaimonLogLink *links = paimon_chain_links(rel, storage_id, &nlinks);

	memset(list, 0, sizeof(*list));
	for (int i = 0; i < nlinks; i++)
		paimon_extent_list_add(list, links[i].extent, 1);
}

/* Log extents of transactions that are over. */
typedef struct OrphanSearch
{
	int n;
	int allocated;
	struct
	{
		uint32            extent;
		FullTransactionId xid;
	} * found;
} OrphanSearch;

static void
note_log_extent(void *arg, uint32 extent, uint64 owner, FullTransactionId xid)
{
	OrphanSearch *s = arg;
	TransactionId short_xid = XidFromFullTransactionId(xid);

	if (owner != PAIMON_OWNER_LOG || (FullTransactionIdIsNormal(xid) && TransactionIdIsInProgress(short_xid)))
		return;
	if (s->n == s->allocated)
	{
		s->allocated *= 2;
		s->found = repalloc_huge(s->found, sizeof(*s->found) * s->allocated);
	}
	s->found[s->n].extent = extent;
	s->found[s->n].xid = xid;
	s->n++;
}

static int
compare_extents(const void *a, const void *b)
{
	uint32 x = ((const PaimonLogLink *) a)->extent;
	uint32 y = ((const PaimonLogLink *) b)->extent;

	return x < y ? -1 : x > y;
}

/*
 * See storage.h.  The map is read before the chain, and only extents of transactions that were over by then count: such an extent is
 * in the chain by now or will never be (linking happens in the transaction that took it).
 */
uint32
paimon_log_free_orphans(Relation rel, uint64 storage_id, FullTransactionId horizon)
{
	OrphanSearch   s = {.allocated = 64};
	PaimonLogLink *links;
	PaimonLogLink *sorted;
	int            nlinks;
	uint32         freed = 0;

	s.found = palloc(sizeof(*s.found) * s.allocated);
	paimon_extent_visit(rel, note_log_extent, &s);
	links = paimon_chain_links(rel, storage_id, &nlinks);
	sorted = palloc_extended(sizeof(PaimonLogLink) * Max(nlinks, 1), MCXT_ALLOC_HUGE);
	if (nlinks > 0)
		memcpy(sorted, links, sizeof(PaimonLogLink) * nlinks);
	qsort(sorted, nlinks, sizeof(PaimonLogLink), compare_extents);
	for (int i = 0; i < s.n; i++)
	{
		PaimonLogLink key = {0, s.found[i].extent};

		CHECK_FOR_INTERRUPTS();
		if (bsearch(&key, sorted, nlinks, sizeof(PaimonLogLink), compare_extents) == NULL)
			freed += paimon_extent_release(rel, PAIMON_OWNER_LOG, &s.found[i].xid, s.found[i].extent, 1, horizon);
	}
	pfree(sorted);
	pfree(s.found);
	return freed;
}

/* Notes in a page the part of the header [from, from + len) that lies on it, and changes it. */
static void
patch_header(PaimonXlogBlock *block, uint64 position, const PaimonBatchHeader *header)
{
	Page   page = BufferGetPage(block->buffer);
	uint64 page_start = paimon_page_special(page)->position;
	uint64 from = Max(position, page_start);
	uint64 to = Min(position + sizeof(PaimonBatchHeader), page_start + PAIMON_PAGE_PAYLOAD);
	char  *dest = paimon_page_data(page) + (from - page_start);

	memcpy(dest, (const char *) header + (from - position), to - from);
	paimon_xlog_touch(block, dest, to - from);
}

/*
 * See storage.h.  The batch is read and checked as a whole first, since its checksum covers xid and flags.  A header that lies on two pages is
 * changed in one record; a reader between the two sees a wrong checksum and reads again.
 *
 * A frozen batch is seen by everybody, so of a committed one the xid is the record's horizon: a standby may have snapshots for which that
 * transaction is still running, however old it is here.  An aborted batch is seen by nobody, before and after.
 */
void
paimon_log_freeze_batch(Relation rel, uint64 storage_id, uint64 position, bool committed)
{
	PaimonXlogBlock   blocks[2] = {{.npatches = 0}, {.npatches = 0}};
	FullTransactionId horizon = InvalidFullTransactionId;
	PaimonBatchHeader header;
	uint8            *body;
	uint64            last = position + sizeof(header) - 1;
	int               n = 0;

	paimon_log_read_batch(rel, storage_id, position, &header, &body);
	if (committed)
		horizon = FullTransactionIdFromU64(header.xid);
	header.flags &= ~(PAIMON_BATCH_COMMITTED | PAIMON_BATCH_ABORTED);
	header.flags |= committed ? PAIMON_BATCH_COMMITTED : PAIMON_BATCH_ABORTED;
	header.xid = 0;
	header.crc =
		paimon_crc32c(paimon_batch_crc(storage_id, position, &header), body, header.len - sizeof(PaimonBatchHeader));
	pfree(body);

	for (uint64 p = position - position % PAIMON_PAGE_PAYLOAD; p <= last; p += PAIMON_PAGE_PAYLOAD)
	{
		uint32      extent;
		BlockNumber block;

		if (!paimon_chain_lookup(rel, storage_id, p, &extent))
			paimon_log_report_missing(rel, p);
		block = paimon_log_block(extent, p);
		blocks[n].buffer = ReadBuffer(rel, block);
		LockBuffer(blocks[n].buffer, BUFFER_LOCK_EXCLUSIVE);
		if (!paimon_page_matches(BufferGetPage(blocks[n].buffer), PAIMON_PAGE_LOG, storage_id, PAIMON_OWNER_LOG, p))
			paimon_page_report(rel, block, BufferGetPage(blocks[n].buffer), "a page of the log");
		n++;
	}
	START_CRIT_SECTION();
	for (int i = 0; i < n; i++)
		patch_header(&blocks[i], position, &header);
	paimon_xlog_patch(rel, blocks, n, horizon);
	END_CRIT_SECTION();
	while (n-- > 0)
		UnlockReleaseBuffer(blocks[n].buffer);
}
