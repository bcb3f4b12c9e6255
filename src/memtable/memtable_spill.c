/*-------------------------------------------------------------------------
 *
 * memtable_spill.c
 *	  Runs of a transaction: what its write buffer puts on disk before it commits, and reading that back.
 *
 * A spilled run is a level-0 run that has no manifest row yet; its extents belong to the transaction's xid.  Which command wrote a row, and
 * whether ROLLBACK TO has killed it, is told by a private temporary file beside it (H6), or by the run as a whole if one command
 * wrote all of it.  Records of one command are folded; those of several commands are not, since a cursor may still tell them apart: they
 * stay adjacent, newest first, and the run is rewritten before it is registered.  Where the newest record does not decide, records of one command are folded
 * if it wrote the whole run and nobody has their ctids; what cannot be one record stays several.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

#include "memtable/buffer_internal.h"
#include "merge/merge_records.h"
#include "stop.h"

#define PREFETCH_DISTANCE 16		/* records ahead: where a record begins */
#define PREFETCH_REST	8		/* ... the rest of it */
#define PREFETCH_MAX	512		/* bytes of it; more is read fast enough in order */

/* ---- the temporary file of origins ---- */

static BufFile *
origins_create(void)
{
	ResourceOwner old_owner = CurrentResourceOwner;
	MemoryContext old = MemoryContextSwitchTo(paimon_bufxact.cxt);
	BufFile    *file;

	/* It must outlive the statement and the sub-transaction that spill. */
	CurrentResourceOwner = TopTransactionResourceOwner;
	file = BufFileCreateTemp(false);
	CurrentResourceOwner = old_owner;
	paimon_bufxact.origins = lappend(paimon_bufxact.origins, file);
	MemoryContextSwitchTo(old);
	return file;
}

static void
origins_close(BufFile *file)
{
	paimon_bufxact.origins = list_delete_ptr(paimon_bufxact.origins, file);
	BufFileClose(file);
}

static void
origin_read(const SpillRun *run, uint64 row, SpillOrigin *origin)
{
	off_t		offset = (off_t) (row * sizeof(SpillOrigin));

	if (run->origins == NULL)
	{
		origin->ordinal = run->min_ordinal;
		origin->cid = run->min_cid;
		origin->locked = !run->upserts;
		return;
	}
	/* BufFile counts in segments of 1 GB. */
	if (BufFileSeek(run->origins, (int) (offset >> 30), offset & ((1 << 30) - 1), SEEK_SET) != 0 ||
		BufFileRead(run->origins, origin, sizeof(SpillOrigin)) != sizeof(SpillOrigin))
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read temporary file of a write buffer: %m")));
}

static bool
origin_visible(const SpillOrigin *origin, CommandId cid)
{
	return origin->cid < cid && !paimon_ordinal_is_dead(origin->ordinal);
}

/* ---- writing ---- */

static void
run_params(const WriteBuffer *wb, Relation rel, int bucket, int32 seq, PaimonRunParams *p)
{
	const PaimonOptions *o = &wb->table->options;

	memset(p, 0, sizeof(*p));
	p->rel = rel;
	p->desc = wb->table->desc;
	p->bucket = bucket;
	p->level = 0;
	p->source = PAIMON_SOURCE_BULK;
	p->xid = GetTopFullTransactionId();
	p->target_file_size = o->target_file_size;
	p->target_file_rows = o->target_file_row_num;
	p->zstd_level = o->compression == PAIMON_COMPRESSION_NONE ? 0 : o->zstd_level;
	p->ordinal = seq;
	p->retracts_stay = paimon_table_retracts_stay(wb->table);
	p->deletes_stay = paimon_table_deletes_stay(wb->table);
}

/*
 * Range of commands and ordinals among the live records of entries [lo, hi); false if there are none.  Without dead records the buffer's own
 * ranges will do, and nothing needs to be looked at.
 */
static bool
survey(WriteBuffer *wb, const SortEntry *e, uint64 lo, uint64 hi, SpillRun *run)
{
	bool		any = false;

	if (paimon_bufxact.ndead == 0)
	{
		run->min_cid = wb->min_cid;
		run->max_cid = wb->max_cid;
		run->min_ordinal = paimon_wb_record(wb, 0)->ordinal;
		run->max_ordinal = paimon_wb_record(wb, wb->nrecords - 1)->ordinal;
		run->upserts = wb->upserts;
		return true;
	}
	for (uint64 i = lo; i < hi; i++)
	{
		const BufRecord *rec = entry_record(&e[i]);

		if (paimon_ordinal_is_dead(rec->ordinal))
			continue;
		if (!any)
		{
			run->min_cid = run->max_cid = rec->cid;
			run->min_ordinal = run->max_ordinal = rec->ordinal;
			any = true;
		}
		run->min_cid = Min(run->min_cid, rec->cid);
		run->max_cid = Max(run->max_cid, rec->cid);
		run->min_ordinal = Min(run->min_ordinal, rec->ordinal);
		run->max_ordinal = Max(run->max_ordinal, rec->ordinal);
		if (!rec->locked)
			run->upserts = true;
	}
	return any;
}

static inline bool
same_record_key(const BufRecord *a, const BufRecord *b)
{
	return a->keylen == b->keylen && memcmp(bufrecord_key(a), bufrecord_key(b), b->keylen) == 0;
}

/* Mostly the prefixes tell, and the records need not be touched. */
static inline bool
same_entry_key(const SortEntry *a, const SortEntry *b)
{
	return a->prefix == b->prefix && same_record_key(entry_record(a), entry_record(b));
}

/*
 * Records lie in order of arrival, so each is a cache miss of several lines: asked for early, first the line that tells how long it is.
 */
static inline void
prefetch_record(const SortEntry *e, uint64 i, uint64 end)
{
	if (i + PREFETCH_DISTANCE < end)
		__builtin_prefetch(entry_record(&e[i + PREFETCH_DISTANCE]));
	if (i + PREFETCH_REST < end)
	{
		const BufRecord *rec = entry_record(&e[i + PREFETCH_REST]);
		Size		size = MAXALIGN(sizeof(BufRecord)) + MAXALIGN(rec->keylen) + rec->len;

		for (Size at = 64; at < Min(size, PREFETCH_MAX); at += 64)
			__builtin_prefetch((const char *) rec + at);
	}
}

/* Writes a record as the run's next row. */
static void
spill_record(SpillRun *run, PaimonRunWriter *writer, const BufRecord *rec)
{
	if (run->origins != NULL)
	{
		SpillOrigin origin = {.ordinal = rec->ordinal, .cid = rec->cid, .locked = rec->locked};

		BufFileWrite(run->origins, &origin, sizeof(origin));
	}
	if (run->row_of_ordinal != NULL)
		run->row_of_ordinal[rec->ordinal - run->min_ordinal] = (uint32) run->rows + 1;
	paimon_run_add(writer, bufrecord_key(rec), rec->keylen, rec->kind, bufrecord_payload(rec), rec->len);
	run->rows++;
	if ((run->rows & 1023) == 0)
		CHECK_FOR_INTERRUPTS();
}

/* What the fold of the present key comes to, as rows. */
static void
spill_folded(SpillRun *run, PaimonRunWriter *writer, PaimonMerger *merger)
{
	PaimonBytes key = paimon_merger_key_bytes(merger);
	int			n = paimon_merger_partial(merger, false);

	for (int i = 0; i < n; i++)
	{
		const Datum *values;
		const bool *isnull;
		uint8		kind = paimon_merger_record(merger, i, &values, &isnull);

		paimon_run_add_values(writer, key.data, key.len, kind, values, isnull);
	}
	run->rows += n;
	if (n > 1)
		run->repeats = true;
}

/* The entries of a table that merges: key by key. */
static void
spill_merged(WriteBuffer *wb, SpillRun *run, PaimonRunWriter *writer, const SortEntry *e, uint64 lo, uint64 hi)
{
	PaimonMerger *merger = NULL;
	uint64		end;

	if (run->origins == NULL && run->row_of_ordinal == NULL)
		merger = paimon_merger_begin("", wb->table->desc, wb->table->plan, false);
	for (uint64 start = lo; start < hi; start = end)
	{
		const BufRecord *only = NULL;
		bool		more = true;
		uint64		live = 0;

		for (end = start; end < hi && (end == start || same_entry_key(&e[end], &e[start])); end++)
		{
			const BufRecord *rec = entry_record(&e[end]);

			prefetch_record(e, end, hi);
			if (paimon_ordinal_is_dead(rec->ordinal))
				continue;
			live++;
			if (merger == NULL)
				spill_record(run, writer, rec);
			else if (live == 1)
				only = rec;
			else
			{
				if (live == 2)
				{
					paimon_merger_key(merger, bufrecord_key(only), only->keylen);
					more = paimon_merger_add(merger, only->kind, bufrecord_payload(only), only->len, false);
				}
				if (more)
					more = paimon_merger_add(merger, rec->kind, bufrecord_payload(rec), rec->len, false);
			}
		}
		if (merger == NULL)
		{
			if (live > 1)
				run->repeats = run->unfolded = true;
		}
		else if (live == 1)
			spill_record(run, writer, only);
		else if (live > 1)
			spill_folded(run, writer, merger);
	}
	if (merger != NULL)
		paimon_merger_end(merger);
}

/* Writes entries [lo, hi), all of one bucket, as a run. */
static SpillRun *
spill_bucket(WriteBuffer *wb, Relation rel, const SortEntry *e, uint64 lo, uint64 hi)
{
	SpillRun	survey_result = {0};
	SpillRun   *run;
	PaimonRunParams params;
	PaimonRunWriter *writer;
	const BufRecord *last = NULL;
	MemoryContext old;

	if (!survey(wb, e, lo, hi, &survey_result))
		return NULL;
	old = MemoryContextSwitchTo(paimon_bufxact.cxt);
	run = palloc(sizeof(SpillRun));
	*run = survey_result;
	run->bucket = entry_record(&e[lo])->bucket;
	run->seq = paimon_bufxact.next_spill++;
	/* which of one command's records of a key came first matters as well, where records are merged and somebody has their ctids */
	if (run->min_cid != run->max_cid || (wb->table->merges && (wb->row_triggers || wb->tids_given)))
		run->origins = origins_create();
	if (wb->row_triggers || wb->tids_given)
		run->row_of_ordinal = MemoryContextAllocExtended(paimon_bufxact.cxt,
														 sizeof(uint32) * (run->max_ordinal - run->min_ordinal + 1),
														 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	run_params(wb, rel, run->bucket, run->seq, &params);
	params.rows_stay = true;
	writer = paimon_run_begin(&params);
	if (wb->table->merges)
		spill_merged(wb, run, writer, e, lo, hi);
	for (uint64 i = lo; i < hi && !wb->table->merges; i++)
	{
		const BufRecord *rec = entry_record(&e[i]);
		bool		same;

		prefetch_record(e, i, hi);
		same = last != NULL && same_record_key(last, rec);

		if (paimon_ordinal_is_dead(rec->ordinal) || (same && last->cid == rec->cid))
			continue;
		if (same)
			run->repeats = run->unfolded = true;
		last = rec;
		spill_record(run, writer, rec);
	}
	paimon_run_finish(writer, &run->files, &run->nfiles, &run->lsn);
	MemoryContextSwitchTo(old);
	return run;
}

/* Writes everything that the buffer holds in memory to runs, one a touched bucket, and empties it. */
void
paimon_wb_spill(WriteBuffer *wb, Relation rel)
{
	SortedView *view;
	uint64		lo = 0;
	List	   *fresh = NIL;
	MemoryContext old;

	if (wb->nrecords == 0)
		return;
	wb->wrote_files = true;
	PAIMON_STOP_POINT("spill-begin");
	view = paimon_wb_sorted(wb);
	while (lo < view->n)
	{
		uint32		bucket = entry_record(&view->entries[lo])->bucket;
		uint64		hi = paimon_view_find(view, bucket, NULL, 0, true);
		SpillRun   *run;

		run = spill_bucket(wb, rel, view->entries, lo, hi);
		old = MemoryContextSwitchTo(paimon_bufxact.cxt);
		if (run != NULL)
			fresh = lappend(fresh, run);
		MemoryContextSwitchTo(old);
		lo = hi;
		PAIMON_STOP_POINT("spill-bucket-written");
	}
	/* All or nothing: an error above leaves the records in memory and the runs to the orphan sweep. */
	old = MemoryContextSwitchTo(paimon_bufxact.cxt);
	wb->spills = list_concat(wb->spills, fresh);
	MemoryContextSwitchTo(old);
	paimon_wb_forget_memory(wb);
}

XLogRecPtr
paimon_spill_lsn(const WriteBuffer *wb)
{
	XLogRecPtr	lsn = InvalidXLogRecPtr;
	ListCell   *lc;

	foreach(lc, wb->spills)
		lsn = Max(lsn, ((SpillRun *) lfirst(lc))->lsn);
	return lsn;
}

/* ---- reading ---- */

static void
cursor_leave_file(SpillCursor *c)
{
	if (c->group != NULL)
		paimon_run_group_unref(c->group);
	c->group = NULL;
	if (c->file != NULL)
		paimon_run_close(c->file);
	c->file = NULL;
	c->fileno = -1;
}

static void
cursor_open_group(SpillCursor *c, uint32 group_no)
{
	if (c->group != NULL)
		paimon_run_group_unref(c->group);
	c->group = NULL;
	c->group = paimon_run_group(c->file, group_no);
	c->group_no = group_no;
	c->group_first_row = c->file_first_row + paimon_run_group_first_row(c->file, group_no);
}

static void
cursor_open_file(SpillCursor *c, int fileno)
{
	if (c->fileno == fileno)
		return;
	cursor_leave_file(c);
	c->file = paimon_run_open(c->rel, c->desc, &c->run->files[fileno]);
	c->fileno = fileno;
	c->file_first_row = 0;
	for (int i = 0; i < fileno; i++)
		c->file_first_row += c->run->files[i].row_count;
}

/* One row further in storage order (step 1) or back (-1); false at the end of the run. */
static bool
cursor_step(SpillCursor *c, int step)
{
	if (step > 0)
	{
		if (c->row + 1 < paimon_run_group_nrows(c->group))
			c->row++;
		else if (c->group_no + 1 < paimon_run_ngroups(c->file))
		{
			cursor_open_group(c, c->group_no + 1);
			c->row = 0;
		}
		else if (c->fileno + 1 < c->run->nfiles)
		{
			cursor_open_file(c, c->fileno + 1);
			cursor_open_group(c, 0);
			c->row = 0;
		}
		else
			return false;
		return true;
	}
	if (c->row > 0)
		c->row--;
	else
	{
		if (c->group_no > 0)
			cursor_open_group(c, c->group_no - 1);
		else if (c->fileno > 0)
		{
			cursor_open_file(c, c->fileno - 1);
			cursor_open_group(c, paimon_run_ngroups(c->file) - 1);
		}
		else
			return false;
		c->row = paimon_run_group_nrows(c->group) - 1;
	}
	return true;
}

static PaimonBytes
cursor_raw_key(SpillCursor *c)
{
	return paimon_run_group_key(c->group, c->row);
}

static bool
cursor_visible(SpillCursor *c)
{
	origin_read(c->run, c->group_first_row + c->row, &c->origin);
	return origin_visible(&c->origin, c->cid);
}

static int
cursor_compare(SpillCursor *c, const uint8 *key, uint32 len)
{
	PaimonBytes k = cursor_raw_key(c);

	return paimon_bytes_cmp(k.data, k.len, key, len);
}

/*
 * First row in storage order with key >= the given one; false if there is none.  Repeats may straddle groups and files: step back to the
 * first of them.
 */
static bool
cursor_lower_bound(SpillCursor *c, const uint8 *key, uint32 len)
{
	int			fileno = 0;
	bool		equal;

	for (; fileno < c->run->nfiles; fileno++)
	{
		const PaimonBytes *max;

		cursor_open_file(c, fileno);
		max = paimon_run_max_key(c->file);
		if (paimon_bytes_cmp(max->data, max->len, key, len) >= 0)
			break;
	}
	if (fileno == c->run->nfiles)
		return false;
	cursor_open_group(c, paimon_run_find_group(c->file, key, len));
	c->row = paimon_run_group_seek(c->group, key, len, &equal);
	if (c->row >= paimon_run_group_nrows(c->group))
	{
		c->row = paimon_run_group_nrows(c->group) - 1;
		return cursor_step(c, 1);
	}
	while (c->row == 0 && cursor_compare(c, key, len) == 0)
	{
		if (!cursor_step(c, -1))
			break;
		if (cursor_compare(c, key, len) != 0)
			return cursor_step(c, 1);
		c->row = paimon_run_group_seek(c->group, key, len, &equal);
	}
	return true;
}

void
paimon_spillcursor_begin(SpillCursor *c, const SpillRun *run, PaimonTable *table, Relation rel, CommandId cid, bool forward)
{
	memset(c, 0, sizeof(*c));
	c->run = run;
	c->rel = rel;
	c->desc = table->desc;
	c->cid = cid;
	c->forward = forward;
	c->fileno = -1;
	initStringInfo(&c->payload);
	initStringInfo(&c->key);
}

static void
cursor_keep_key(SpillCursor *c)
{
	PaimonBytes k = cursor_raw_key(c);

	resetStringInfo(&c->key);
	appendBinaryStringInfo(&c->key, (const char *) k.data, k.len);
}

/* From the present row on forwards: the first visible one. */
static bool
settle_forward(SpillCursor *c)
{
	while (!cursor_visible(c))
	{
		CHECK_FOR_INTERRUPTS();
		if (!cursor_step(c, 1))
			return false;
	}
	cursor_keep_key(c);
	return true;
}

/*
 * From the present row on backwards: the newest visible row of the first key that has one.  Rows of a key are newest first, so all
 * of them must be looked at.
 */
static bool
settle_backward(SpillCursor *c)
{
	for (;;)
	{
		bool		found = false;
		bool		more = true;
		uint32		steps = 0;

		CHECK_FOR_INTERRUPTS();
		cursor_keep_key(c);
		do
		{
			if (cursor_visible(c))
			{
				found = true;
				steps = 0;
			}
			more = cursor_step(c, -1);
			steps++;
		} while (more && cursor_compare(c, (const uint8 *) c->key.data, c->key.len) == 0);
		if (!more)
			steps--;			/* did not move the last time */
		if (found)
		{
			while (steps-- > 0)
				(void) cursor_step(c, 1);
			return cursor_visible(c);
		}
		if (!more)
			return false;
	}
}

bool
paimon_spillcursor_seek(SpillCursor *c, const uint8 *key, uint32 len)
{
	if (c->run->nfiles == 0)
		return false;
	if (c->forward)
	{
		if (key == NULL)
		{
			cursor_open_file(c, 0);
			cursor_open_group(c, 0);
			c->row = 0;
		}
		else if (!cursor_lower_bound(c, key, len))
			return false;
		return settle_forward(c);
	}

	if (key != NULL && cursor_lower_bound(c, key, len))
	{
		/* to the last row with key <= the given one */
		while (cursor_compare(c, key, len) == 0)
		{
			if (!cursor_step(c, 1))
				return settle_backward(c);
		}
		if (!cursor_step(c, -1))
			return false;
		return settle_backward(c);
	}
	cursor_open_file(c, c->run->nfiles - 1);
	cursor_open_group(c, paimon_run_ngroups(c->file) - 1);
	c->row = paimon_run_group_nrows(c->group) - 1;
	return settle_backward(c);
}

/* To the newest visible row of the next key. */
bool
paimon_spillcursor_next(SpillCursor *c)
{
	int			step = c->forward ? 1 : -1;

	if (c->group == NULL)
		return false;
	do
	{
		if (!cursor_step(c, step))
			return false;
	} while ((c->run->repeats || !c->forward) && cursor_compare(c, (const uint8 *) c->key.data, c->key.len) == 0);
	return c->forward ? settle_forward(c) : settle_backward(c);
}

bool
paimon_spillcursor_take_key(SpillCursor *c, PaimonBufferGive give, void *arg)
{
	int			fileno = c->fileno;
	uint32		group_no = c->group_no;
	uint32		row = c->row;
	bool		more;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (cursor_visible(c))
		{
			PaimonBufferRecord rec;

			paimon_spillcursor_record(c, &rec);
			(void) give(arg, &rec);
		}
		more = cursor_step(c, 1);
	} while (more && cursor_compare(c, (const uint8 *) c->key.data, c->key.len) == 0);
	if (c->forward)
		return more && settle_forward(c);

	/* back to where the key's rows begin, and on from there */
	cursor_open_file(c, fileno);
	cursor_open_group(c, group_no);
	c->row = row;
	return paimon_spillcursor_next(c);
}

PaimonBytes
paimon_spillcursor_key(SpillCursor *c)
{
	return cursor_raw_key(c);
}

/* The present row as a record; valid until the cursor is asked for another. */
void
paimon_spillcursor_record(SpillCursor *c, PaimonBufferRecord *rec)
{
	resetStringInfo(&c->payload);
	paimon_run_group_payload(c->group, c->row, &c->payload);
	rec->key.data = (const uint8 *) c->key.data;
	rec->key.len = c->key.len;
	rec->kind = paimon_run_group_kind(c->group, c->row);
	rec->payload.data = (const uint8 *) c->payload.data;
	rec->payload.len = c->payload.len;
	ItemPointerSet(&rec->tid, paimon_run_group_block(c->group), (OffsetNumber) (c->row + 1));
}

void
paimon_spillcursor_end(SpillCursor *c)
{
	cursor_leave_file(c);
	pfree(c->payload.data);
	pfree(c->key.data);
}

/* ---- single rows ---- */

/* A copy of the cursor's record in CurrentMemoryContext, after which the cursor may go. */
static void
copy_record(SpillCursor *c, PaimonBufferRecord *rec)
{
	paimon_spillcursor_record(c, rec);
	rec->key.data = memcpy(palloc(Max(rec->key.len, 1)), rec->key.data, rec->key.len);
	rec->payload.data = memcpy(palloc(Max(rec->payload.len, 1)), rec->payload.data, rec->payload.len);
}

/* May the key be in the file, by the bounds of its row?  Spares opening the many files of a transaction with a small buffer. */
static bool
within_bounds(const PaimonFileRow *file, const uint8 *key, uint32 len)
{
	uint32		max_len = VARSIZE_ANY_EXHDR(file->max_key);

	if (paimon_bytes_cmp(key, len, (const uint8 *) VARDATA_ANY(file->min_key), VARSIZE_ANY_EXHDR(file->min_key)) < 0)
		return false;
	return max_len == 0 || paimon_bytes_cmp(key, len, (const uint8 *) VARDATA_ANY(file->max_key), max_len) <= 0;
}

bool
paimon_spill_get(const SpillRun *run, PaimonTable *table, Relation rel, CommandId cid, const uint8 *key, uint32 len,
				 PaimonBufferRecord *rec, SpillOrigin *origin)
{
	SpillCursor c;
	bool		found = false;
	int			i = 0;

	while (i < run->nfiles && !within_bounds(&run->files[i], key, len))
		i++;
	if (i == run->nfiles)
		return false;
	paimon_spillcursor_begin(&c, run, table, rel, cid, true);
	for (; i < run->nfiles; i++)
	{
		cursor_open_file(&c, i);
		if (!paimon_run_may_contain(c.file, key, len))
			continue;
		found = paimon_spillcursor_seek(&c, key, len) && cursor_compare(&c, key, len) == 0;
		break;
	}
	if (found)
	{
		copy_record(&c, rec);
		*origin = c.origin;
	}
	paimon_spillcursor_end(&c);
	return found;
}

bool
paimon_spill_each(const SpillRun *run, PaimonTable *table, Relation rel, CommandId cid, uint64 end, const uint8 *key, uint32 len,
				  PaimonBufferGive give, void *arg)
{
	SpillCursor c;
	bool		more = true;
	bool		found = false;
	int			i = 0;

	while (i < run->nfiles && !within_bounds(&run->files[i], key, len))
		i++;
	if (i == run->nfiles)
		return true;
	paimon_spillcursor_begin(&c, run, table, rel, cid, true);
	for (; i < run->nfiles && !found; i++)
	{
		cursor_open_file(&c, i);
		found = paimon_run_may_contain(c.file, key, len);
	}
	found = found && cursor_lower_bound(&c, key, len);
	while (found && more && cursor_compare(&c, key, len) == 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (cursor_visible(&c) && c.origin.ordinal < end)
		{
			PaimonBufferRecord rec;

			cursor_keep_key(&c);
			copy_record(&c, &rec);
			rec.cid = c.origin.cid;
			more = give(arg, &rec);
		}
		found = cursor_step(&c, 1);
	}
	paimon_spillcursor_end(&c);
	return more;
}

uint64
paimon_buffer_spilled_end(const PaimonTable *table, Relation rel, uint64 file_no, uint32 group_no, uint32 row)
{
	WriteBuffer *wb = paimon_wb_find(table->storage_id);
	ListCell   *lc;

	if (wb == NULL)
		return 0;
	foreach(lc, wb->spills)
	{
		SpillRun   *run = lfirst(lc);
		uint64		rowno = row;

		for (int i = 0; i < run->nfiles; i++)
		{
			SpillOrigin origin;
			PaimonRunFile *file;

			if (run->files[i].file_no != file_no)
			{
				rowno += run->files[i].row_count;
				continue;
			}
			if (run->origins == NULL)
				return run->max_ordinal + 1;
			file = paimon_run_open(rel, table->desc, &run->files[i]);
			rowno += paimon_run_group_first_row(file, group_no);
			paimon_run_close(file);
			origin_read(run, rowno, &origin);
			return origin.ordinal + 1;
		}
	}
	return 0;
}

bool
paimon_spill_fetch_row(const SpillRun *run, PaimonTable *table, Relation rel, uint64 rowno, PaimonBufferRecord *rec)
{
	SpillCursor c;
	uint32		lo = 0;
	uint32		hi;
	int			fileno = 0;

	paimon_spillcursor_begin(&c, run, table, rel, InvalidCommandId, true);
	while (fileno < run->nfiles && rowno >= (uint64) run->files[fileno].row_count)
		rowno -= run->files[fileno++].row_count;
	if (fileno == run->nfiles)
		return false;
	cursor_open_file(&c, fileno);
	hi = paimon_run_ngroups(c.file);
	while (hi - lo > 1)
	{
		uint32		mid = (lo + hi) / 2;

		if (paimon_run_group_first_row(c.file, mid) <= rowno)
			lo = mid;
		else
			hi = mid;
	}
	cursor_open_group(&c, lo);
	c.row = (uint32) (rowno - paimon_run_group_first_row(c.file, lo));
	cursor_keep_key(&c);
	copy_record(&c, rec);
	paimon_spillcursor_end(&c);
	return true;
}

const PaimonFileRow *
paimon_buffer_spilled_file(uint64 storage_id, uint64 file_no)
{
	WriteBuffer *wb = paimon_wb_find(storage_id);
	ListCell   *lc;

	if (wb == NULL)
		return NULL;
	foreach(lc, wb->spills)
	{
		SpillRun   *run = lfirst(lc);

		for (int i = 0; i < run->nfiles; i++)
			if (run->files[i].file_no == file_no)
				return &run->files[i];
	}
	return NULL;
}

/* ---- before registration ---- */

static bool
add_to_fold(void *arg, const PaimonBufferRecord *rec)
{
	return paimon_merger_add(arg, rec->kind, rec->payload.data, rec->payload.len, true);
}

/* What the live rows of each key come to. */
static void
rewrite_merged(const WriteBuffer *wb, SpillRun *run, SpillCursor *c, PaimonRunWriter *writer)
{
	PaimonMerger *merger = paimon_merger_begin("", wb->table->desc, wb->table->plan, false);
	bool		more = paimon_spillcursor_seek(c, NULL, 0);

	run->rows = 0;
	run->repeats = false;
	while (more)
	{
		paimon_merger_key(merger, (const uint8 *) c->key.data, c->key.len);
		more = paimon_spillcursor_take_key(c, add_to_fold, merger);
		spill_folded(run, writer, merger);
	}
	paimon_merger_end(merger);
}

/* Rows of the run that are alive now and the newest of their key, as a new run without repeats; the old files become orphans. */
static void
rewrite_run(WriteBuffer *wb, Relation rel, SpillRun *run)
{
	SpillCursor c;
	PaimonBufferRecord rec;
	PaimonRunParams params;
	PaimonRunWriter *writer;
	PaimonFileRow *files;
	int			nfiles;
	XLogRecPtr	lsn;
	uint64		rows = 0;

	run_params(wb, rel, run->bucket, run->seq, &params);
	writer = paimon_run_begin(&params);
	paimon_spillcursor_begin(&c, run, wb->table, rel, InvalidCommandId, true);
	if (wb->table->merges)
		rewrite_merged(wb, run, &c, writer);
	else if (paimon_spillcursor_seek(&c, NULL, 0))
	{
		do
		{
			CHECK_FOR_INTERRUPTS();
			paimon_spillcursor_record(&c, &rec);
			paimon_run_add(writer, rec.key.data, rec.key.len, rec.kind, rec.payload.data, rec.payload.len);
			rows++;
		} while (paimon_spillcursor_next(&c));
	}
	paimon_spillcursor_end(&c);
	paimon_run_finish(writer, &files, &nfiles, &lsn);
	run->files = files;
	run->nfiles = nfiles;
	run->lsn = lsn;
	run->unfolded = false;
	if (!wb->table->merges)
	{
		run->rows = rows;
		run->repeats = false;
	}
}

static bool
touches_dead(const SpillRun *run)
{
	for (int i = 0; i < paimon_bufxact.ndead; i++)
	{
		if (paimon_bufxact.dead[i].start <= run->max_ordinal && paimon_bufxact.dead[i].end > run->min_ordinal)
			return true;
	}
	return false;
}

/*
 * Makes the spilled runs fit to be registered: in pre-commit, when no command can look any more.  Frees the temporary files.
 */
void
paimon_spill_clean(WriteBuffer *wb, Relation rel)
{
	MemoryContext old = MemoryContextSwitchTo(paimon_bufxact.cxt);
	ListCell   *lc;

	foreach(lc, wb->spills)
	{
		SpillRun   *run = lfirst(lc);

		if (run->nfiles > 0 && (run->unfolded || touches_dead(run)))
		{
			wb->left_files = true;
			rewrite_run(wb, rel, run);
		}
		if (run->origins != NULL)
			origins_close(run->origins);
		run->origins = NULL;
		PAIMON_STOP_POINT("spill-cleaned");
	}
	MemoryContextSwitchTo(old);
}

/*
 * After the registration of what is to be registered: closes the temporary files of runs of which nothing is left, whose tables went or got
 * a new storage, or which an error cut short.  Such runs are forgotten.
 */
void
paimon_spill_end(void)
{
	ListCell   *lc;

	foreach(lc, paimon_bufxact.buffers)
	{
		WriteBuffer *wb = lfirst(lc);
		ListCell   *rc;

		foreach(rc, wb->spills)
		{
			if (((SpillRun *) lfirst(rc))->origins != NULL)
				wb->spills = foreach_delete_current(wb->spills, rc);
		}
	}
	while (paimon_bufxact.origins != NIL)
		origins_close(linitial(paimon_bufxact.origins));
}
