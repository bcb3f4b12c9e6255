/*-------------------------------------------------------------------------
 *
 * scan_tid.c
 *	  ctid → row, whatever a snapshot sees of it.
 *
 * A ctid is physical (H10): the page on which the row's group or log record begins, and the row in it + 1; the page's special space says what
 * lies there.  The top block numbers are ordinals of the write buffer.
 *
 * Whoever has seen a row keeps a snapshot registered, so what its ctid leads to is not reused while it may ask.  A ctid from elsewhere (WHERE ctid =
 * '(5,1)') may lead to anything: what is no row's begin is no row, and nothing of it is an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "scan/scan_internal.h"

/* What the row given last points to, for the whole backend. */
static MemoryContext tid_cxt = NULL;
static PaimonRunGroup *tid_group = NULL;

static void
tid_forget(void)
{
	if (tid_cxt == NULL)
		tid_cxt = AllocSetContextCreate(TopMemoryContext, "paimon row by ctid", ALLOCSET_SMALL_SIZES);
	MemoryContextReset(tid_cxt);
	if (tid_group != NULL)
		paimon_run_group_unref(tid_group);
	tid_group = NULL;
}

static bool
resolve_buffer(PaimonTable *table, Relation rel, ItemPointer tid, PaimonRowRef *row)
{
	PaimonBufferRecord rec;

	if (!paimon_buffer_fetch_tid(table, rel, tid, &row->bucket, &rec))
		return false;
	row->key = rec.key;
	row->kind = rec.kind;
	row->payload = rec.payload;
	return true;
}

static bool
resolve_log(PaimonTable *table, Relation rel, ItemPointer tid, PaimonRowRef *row)
{
	PaimonMemRecord rec;
	uint64		position;

	if (table->shared == NULL || !paimon_log_tid_to_position(rel, table->storage_id, tid, &position) ||
		!paimon_log_record_at(table->shared, rel, position, &row->bucket, &rec))
		return false;
	row->key = rec.key;
	row->kind = rec.kind;
	row->payload = rec.payload;
	return true;
}

static bool
resolve_file(PaimonTable *table, Relation rel, ItemPointer tid, const PaimonPageSpecial *special, PaimonRowRef *row)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	const PaimonFileRow *spilled = paimon_buffer_spilled_file(table->storage_id, special->owner);
	PaimonRunFile *own = NULL;
	PaimonRunFile *file;

	/* no manifest knows a file that our own transaction spilled: it is found while it is open */
	if (spilled != NULL)
		own = paimon_run_open(rel, table->desc, spilled);
	tid_group = paimon_run_resolve_tid(rel, table->desc, special, ItemPointerGetBlockNumberNoCheck(tid), &file);
	if (own != NULL)
		paimon_run_close(own);
	if (tid_group == NULL)
		return false;
	row->bucket = paimon_run_bucket(file);
	paimon_run_close(file);		/* the group holds it */
	if (offset < 1 || offset > paimon_run_group_nrows(tid_group))
		return false;
	row->group = tid_group;
	row->row = offset - 1;
	row->kind = paimon_run_group_kind(tid_group, row->row);
	row->key = paimon_run_group_key(tid_group, row->row);
	return true;
}

bool
paimon_resolve_tid(PaimonTable *table, Relation rel, ItemPointer tid, PaimonRowRef *row)
{
	PaimonPageSpecial special;
	MemoryContext old;
	bool		found = false;

	CHECK_FOR_INTERRUPTS();
	tid_forget();
	memset(row, 0, sizeof(*row));
	row->tid = *tid;
	if (table->storage_id == 0)
		return false;
	old = MemoryContextSwitchTo(tid_cxt);
	if (paimon_buffer_is_tid(tid))
		found = resolve_buffer(table, rel, tid, row);
	else if (paimon_page_identify(rel, ItemPointerGetBlockNumberNoCheck(tid), &special) &&
			 special.storage_id == table->storage_id)
	{
		if (special.kind == PAIMON_PAGE_LOG)
			found = resolve_log(table, rel, tid, row);
		else if (special.kind == PAIMON_PAGE_FILE)
			found = resolve_file(table, rel, tid, &special, row);
	}
	MemoryContextSwitchTo(old);
	return found;
}

PaimonBytes
paimon_rowref_key(const PaimonRowRef *row)
{
	if (row->key.data != NULL)
		return row->key;
	return paimon_run_group_key(row->group, row->row);
}

void
paimon_rowref_payload(const PaimonTable *table, const PaimonRowRef *row, StringInfo buf)
{
	if (row->values != NULL)
		paimon_row_encode(table->desc, row->values, row->isnull, buf);
	else if (row->group != NULL)
		paimon_run_group_payload(row->group, row->row, buf);
	else
		appendBinaryStringInfo(buf, (const char *) row->payload.data, row->payload.len);
}

uint64
paimon_tid_own_end(const PaimonTable *table, Relation rel, ItemPointer tid)
{
	PaimonPageSpecial special;

	if (!paimon_buffer_has_rows(table->storage_id))
		return 0;
	if (paimon_buffer_is_tid(tid))
		return paimon_buffer_tid_end(tid);
	if (!paimon_page_identify(rel, ItemPointerGetBlockNumberNoCheck(tid), &special) || special.storage_id != table->storage_id ||
		special.kind != PAIMON_PAGE_FILE)
		return 0;
	return paimon_buffer_spilled_end(table, rel, special.owner, special.unit, ItemPointerGetOffsetNumberNoCheck(tid) - 1);
}

bool
paimon_tid_is_own(const PaimonTable *table, ItemPointer tid)
{
	PaimonPageSpecial special;
	Relation	rel;
	bool		own;

	if (paimon_buffer_is_tid(tid))
		return true;
	if (!paimon_buffer_has_rows(table->storage_id))
		return false;
	/* perhaps in one of our spilled runs */
	rel = RelationIdGetRelation(table->relid);
	if (rel == NULL)
		return false;
	own = paimon_page_identify(rel, ItemPointerGetBlockNumberNoCheck(tid), &special) && special.storage_id == table->storage_id &&
		special.kind == PAIMON_PAGE_FILE && paimon_buffer_spilled_file(table->storage_id, special.owner) != NULL;
	RelationClose(rel);
	return own;
}
