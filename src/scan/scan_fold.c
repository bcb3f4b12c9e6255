/*-------------------------------------------------------------------------
 *
 * scan_fold.c
 *	  Readers of tables in which the newest record of a key does not decide: all records of a key, from all sources, go to the fold (merge/).
 *
 * The sources stand in a loser tree, so a key's records come newest first.  A row of a run without repeats, which no other source has the key of, and
 * which is seen (or stored) as it stands, is given as it lies; so are whole stretches of such rows.  Everything else is folded, and what comes of it is
 * a row of values, which stays until the next call.
 *
 * A key's records must stay until its fold is over.  Those of the log do; groups of runs are kept open here; what the write buffer gives is copied.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "stop.h"
#include "utils/acl.h"
#include "utils/memutils.h"

#include "merge/merge_server.h"
#include "scan/scan_internal.h"

#define WINS_BEFORE_STRETCH 4

static void
drop_held(void *arg)
{
	PaimonFolder *f = arg;

	for (int i = 0; i < f->nheld; i++)
		paimon_run_group_unref(f->held[i]);
	f->nheld = 0;
}

/* The table's plan for some of its columns. */
static const PaimonMergePlan *
project_plan(const PaimonTable *table, const int16 *columns, int ncolumns)
{
	bool	   *wanted = palloc0_array(bool, table->plan->ncolumns + 1);
	PaimonAllocator alloc;

	for (int i = 0; i < ncolumns; i++)
	{
		if (columns[i] < table->plan->ncolumns)
			wanted[columns[i]] = true;
	}
	paimon_merge_allocator(CurrentMemoryContext, &alloc);
	return paimon_merge_plan_project(table->plan, wanted, &alloc);
}

PaimonFolder *
paimon_folder_begin(const PaimonTable *table, Relation rel, bool stored, bool oldest, const int16 *columns, int ncolumns)
{
	PaimonFolder *f = palloc0_object(PaimonFolder);

	/* messages show a key's values to those who may see them anyway; what is stored raises none */
	bool		show_key = !stored && pg_class_aclcheck(RelationGetRelid(rel), GetUserId(), ACL_SELECT) == ACLCHECK_OK;

	f->plan = columns != NULL && !stored ? project_plan(table, columns, ncolumns) : table->plan;
	f->cxt = CurrentMemoryContext;
	f->stored = stored;
	f->oldest = oldest;
	f->merger = paimon_merger_begin(pstrdup(RelationGetRelationName(rel)), table->desc, f->plan, show_key);
	f->callback.func = drop_held;
	f->callback.arg = f;
	MemoryContextRegisterResetCallback(f->cxt, &f->callback);
	return f;
}

void
paimon_folder_reset(PaimonFolder *f)
{
	drop_held(f);
	f->nout = f->out = 0;
}

void
paimon_folder_hold(PaimonFolder *f, PaimonRunGroup *group)
{
	if (f->nheld > 0 && f->held[f->nheld - 1] == group)
		return;
	if (f->nheld == f->held_room)
	{
		int			room = Max(16, 2 * f->held_room);

		f->held = f->held == NULL ? MemoryContextAlloc(f->cxt, room * sizeof(PaimonRunGroup *)) :
			repalloc(f->held, room * sizeof(PaimonRunGroup *));
		f->held_room = room;
	}
	paimon_run_group_ref(group);
	f->held[f->nheld++] = group;
}

/* ---------- the records of one key ---------- */

static bool
add_record(PaimonReader *reader, PaimonSource *s)
{
	PaimonMerger *m = reader->folder->merger;

	switch (s->kind)
	{
		case PAIMON_SOURCE_RUN:
			return paimon_merger_add_row(m, paimon_source_row_kind(s), s->group, s->row, true);
		case PAIMON_SOURCE_MEMORY:
			return paimon_merger_add(m, s->memrec.kind, s->memrec.payload.data, s->memrec.payload.len, s->memrec.external);
		case PAIMON_SOURCE_BUFFER:
			return paimon_merger_add(m, s->bufrec.kind, s->bufrec.payload.data, s->bufrec.payload.len, true);
	}
	pg_unreachable();
}

/* Is the source's row the last one of its group in the scan's direction, so that its group goes when the source moves? */
static inline bool
leaves_group(const PaimonSource *s)
{
	return s->kind == PAIMON_SOURCE_RUN && (s->forward ? s->row + 1 >= s->row_hi : s->row <= s->row_lo);
}

static void
note_row(PaimonFolder *f, PaimonSource *s)
{
	if (f->nrows == f->rows_room)
	{
		uint32		room = Max(64, 2 * f->rows_room);

		f->rows = f->rows == NULL ? MemoryContextAlloc(f->cxt, room * sizeof(*f->rows)) :
			repalloc_huge(f->rows, room * sizeof(*f->rows));
		f->rows_room = room;
	}
	f->rows[f->nrows].group = s->group;
	f->rows[f->nrows].block = s->block;
	f->rows[f->nrows++].row = s->row;
	paimon_folder_hold(f, s->group);
}

/* A run read backward gives a key's records oldest first: they are gathered, and added the other way round.  `more`: they matter. */
static bool
add_backward(PaimonReader *reader, PaimonSource *s, const PaimonMergeSource *key, bool more, bool newest)
{
	PaimonFolder *f = reader->folder;

	f->nrows = 0;
	do
	{
		CHECK_FOR_INTERRUPTS();
		note_row(f, s);
		paimon_source_next(s);
	} while (!s->m.done && paimon_merge_same_key(&s->m, key));
	if (newest)
		ItemPointerSet(&f->tid, f->rows[f->nrows - 1].block, (OffsetNumber) (f->rows[f->nrows - 1].row + 1));
	for (uint32 i = f->nrows; i > 0 && more; i--)
		more = paimon_merger_add_row(f->merger, paimon_run_group_kind(f->rows[i - 1].group, f->rows[i - 1].row),
									 f->rows[i - 1].group, f->rows[i - 1].row, true);
	return more;
}

/* Gives all records of the winner's key to the fold, and moves the sources behind them. */
static void
collect_key(PaimonReader *reader, PaimonSource *s)
{
	PaimonFolder *f = reader->folder;
	PaimonBytes key = paimon_source_key(s);
	PaimonMergeSource last = {0};
	bool		more = true;
	bool		newest = true;

	last.len = Min(key.len, PAIMON_KEY_MAX);
	paimon_copy_key(reader->last_key, key.data, last.len);
	last.key = reader->last_key;
	last.prefix = paimon_key_prefix(reader->last_key, last.len);
	paimon_merger_key(f->merger, reader->last_key, last.len);
	do
	{
		CHECK_FOR_INTERRUPTS();
		if (s->kind == PAIMON_SOURCE_RUN && !s->forward && paimon_run_repeats(s->file) > 0)
			more = add_backward(reader, s, &last, more, newest);
		else
		{
			if (newest)
			{
				PaimonRowRef ref;

				paimon_source_ref(s, &ref, false);
				f->tid = ref.tid;
			}
			if (more)
			{
				if (leaves_group(s))
					paimon_folder_hold(f, s->group);
				more = add_record(reader, s);
			}
			if (more)
				paimon_source_next(s);
			else
				paimon_source_next_key(s);
		}
		newest = false;
		PAIMON_STOP_POINT("reader-leaves-record");
		paimon_losertree_replay(&reader->tree);
		s = (PaimonSource *) paimon_losertree_winner(&reader->tree);
	} while (s != NULL && paimon_merge_same_key(&s->m, &last));
}

/* ---------- rows that are given as they lie ---------- */

/*
 * Is the winner's row the only record of its key?  Sets out on a stretch of such rows where it can.  Only runs are asked: what the log and the buffer
 * have behind their record is not known.
 */
static bool
is_alone(PaimonReader *reader, PaimonSource *s)
{
	PaimonMergeSource *other;

	reader->stretch_end = PAIMON_NO_STRETCH;
	if (s->kind != PAIMON_SOURCE_RUN)
		return false;
	if (paimon_run_repeats(s->file) > 0)
	{
		if (!s->keyed)
		{
			s->keyed = true;
			paimon_source_set_key(s);
		}
		return false;
	}
	other = paimon_losertree_runner_up(&reader->tree);
	if (other == NULL)
	{
		reader->stretch_end = s->forward ? (int64) s->row_hi : (int64) s->row_lo - 1;
		return true;
	}
	if (paimon_merge_same_key(&s->m, other))
		return false;
	reader->wins = s == reader->last_winner ? reader->wins + 1 : 0;
	reader->last_winner = s;
	if (reader->wins >= WINS_BEFORE_STRETCH)
		reader->stretch_end = paimon_source_stretch(s, &reader->tree, other);
	return true;
}

/* The only record of its key is folded where it lies. */
static bool
fold_alone(PaimonReader *reader, PaimonSource *s)
{
	PaimonFolder *f = reader->folder;
	PaimonBytes key = paimon_source_key(s);

	paimon_merger_key(f->merger, key.data, key.len);
	(void) paimon_merger_add_row(f->merger, paimon_source_row_kind(s), s->group, s->row, true);
	ItemPointerSet(&f->tid, s->block, (OffsetNumber) (s->row + 1));
	return true;
}

/* What the fold of the present key comes to. */
static bool
give_merged(PaimonReader *reader, PaimonRowRef *row)
{
	PaimonFolder *f = reader->folder;

	memset(row, 0, sizeof(*row));
	row->bucket = reader->bucket;
	row->key = paimon_merger_key_bytes(f->merger);
	row->tid = f->tid;
	row->kind = PAIMON_KIND_INSERT;
	if (!f->stored)
		return paimon_merger_row(f->merger, &row->values, &row->isnull);
	if (f->out >= f->nout)
		return false;
	row->kind = paimon_merger_record(f->merger, f->out++, &row->values, &row->isnull);
	return true;
}

/* Moves behind a row that was given as it lies (or folded there). */
static void
leave_row(PaimonReader *reader)
{
	PaimonSource *s = reader->current;

	reader->current = NULL;
	paimon_source_next(s);
	paimon_losertree_replay(&reader->tree);
}

/* Goes to the stretch's next row, if the present one is within a stretch. */
static bool
next_in_stretch(PaimonReader *reader)
{
	PaimonSource *s = reader->current;
	int64		next;

	if (s == NULL || reader->stretch_end == PAIMON_NO_STRETCH)
		return false;
	next = s->forward ? (int64) s->row + 1 : (int64) s->row - 1;
	if (s->forward ? next >= reader->stretch_end : next <= reader->stretch_end)
		return false;
	s->row = (uint32) next;
	return true;
}

bool
paimon_folder_next(PaimonReader *reader, PaimonRowRef *row)
{
	PaimonFolder *f = reader->folder;

	if (f->out < f->nout)
		return give_merged(reader, row);
	for (;;)
	{
		PaimonSource *s;
		bool		alone = true;

		CHECK_FOR_INTERRUPTS();
		if (f->nheld > 0)
			drop_held(f);
		if (next_in_stretch(reader))
			s = reader->current;
		else
		{
			if (reader->current != NULL)
				leave_row(reader);
			s = (PaimonSource *) paimon_losertree_winner(&reader->tree);
			if (s == NULL)
				return false;
			alone = is_alone(reader, s);
		}
		if (alone)
		{
			uint8		kind = paimon_source_row_kind(s);

			reader->current = s;
			if (f->stored ? paimon_merge_stores_alone(kind) : paimon_merge_shows_alone(f->plan, kind))
			{
				f->nout = f->out = 0;
				paimon_source_ref(s, row, !reader->spec.nokey);
				return true;
			}
			fold_alone(reader, s);
		}
		else
			collect_key(reader, s);
		if (f->stored)
		{
			f->nout = paimon_merger_partial(f->merger, f->oldest);
			f->out = 0;
		}
		if (give_merged(reader, row))
			return true;
	}
}
