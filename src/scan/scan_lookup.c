/*-------------------------------------------------------------------------
 *
 * scan_lookup.c
 *	  Point reads: the newest record of one key, or what all of them come to.
 *
 * Sources are asked from the newest to the oldest, and the first that has the key decides: own rows, log, level-0 runs, then the levels. Runs of
 * large commits that no flush has reached yet lie between records of the log: a record of the log decides only if they do not have the key.
 * A file is asked only if its bounds and its bloom filter do not rule the key out; then one row group's key column is searched.
 *
 * Where the table merges, records are gathered from the sources in the same order until the fold says that older ones do not matter.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "scan/scan_internal.h"

struct PaimonLookup
{
	MemoryContext cxt;
	MemoryContext call_cxt;		/* of one lookup: what its row points to */
	MemoryContextCallback callback;
	PaimonScanState state;
	PaimonFolder *folder;		/* NULL: the newest record decides */
	int			nfiles;
	PaimonRunFile **files;		/* by place in levels->files; opened when first asked */
	PaimonRunGroup *group;		/* of the row given last */
};

static void
lookup_drop_references(void *arg)
{
	PaimonLookup *lookup = arg;

	if (lookup->group != NULL)
		paimon_run_group_unref(lookup->group);
	lookup->group = NULL;
	if (lookup->files == NULL)
		return;
	for (int i = 0; i < lookup->nfiles; i++)
	{
		if (lookup->files[i] != NULL)
			paimon_run_close(lookup->files[i]);
		lookup->files[i] = NULL;
	}
}

PaimonLookup *
paimon_lookup_begin(PaimonTable *table, Relation rel, Snapshot snapshot)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon lookup", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	PaimonLookup *lookup = palloc0_object(PaimonLookup);

	lookup->cxt = cxt;
	lookup->call_cxt = AllocSetContextCreate(cxt, "paimon lookup row", ALLOCSET_SMALL_SIZES);
	if (table->merges)
		lookup->folder = paimon_folder_begin(table, rel, false, false, NULL, 0);
	paimon_scanstate_open(&lookup->state, table, rel, snapshot);
	if (lookup->state.levels != NULL && lookup->state.levels->nfiles > 0)
	{
		lookup->nfiles = lookup->state.levels->nfiles;
		lookup->files = palloc0_array(PaimonRunFile *, lookup->nfiles);

		/* called before the memory goes: files are in this very context */
		lookup->callback.func = lookup_drop_references;
		lookup->callback.arg = lookup;
		MemoryContextRegisterResetCallback(cxt, &lookup->callback);
	}
	MemoryContextSwitchTo(old);
	return lookup;
}

PaimonLookup *
paimon_lookup_begin_registered(PaimonTable *table, Relation rel, Snapshot snapshot)
{
	PaimonLookup *lookup = paimon_lookup_begin(table, rel, RegisterSnapshot(snapshot));

	lookup->state.owner = CurrentResourceOwner;
	return lookup;
}

void
paimon_lookup_end(PaimonLookup *lookup)
{
	lookup_drop_references(lookup);
	paimon_scanstate_close(&lookup->state);
	MemoryContextDelete(lookup->cxt);
}

Snapshot
paimon_lookup_snapshot(const PaimonLookup *lookup)
{
	return lookup->state.snapshot;
}

/* The key in one file. */
static bool
lookup_file(PaimonLookup *lookup, PaimonFileRow *row, const uint8 *key, uint32 len, PaimonRowRef *ref)
{
	PaimonScanState *state = &lookup->state;
	PaimonRunFile **slot = &lookup->files[row - state->levels->files];
	uint32		nrow;
	bool		equal;

	if (*slot == NULL)
		*slot = paimon_run_open(state->rel, state->table->desc, row);
	if (!paimon_run_may_contain(*slot, key, len))
		return false;
	lookup->group = paimon_run_group(*slot, paimon_run_find_group(*slot, key, len));
	nrow = paimon_run_group_seek(lookup->group, key, len, &equal);
	if (!equal || nrow >= paimon_run_group_nrows(lookup->group))
	{
		paimon_run_group_unref(lookup->group);
		lookup->group = NULL;
		return false;
	}
	ref->group = lookup->group;
	ref->row = nrow;
	ref->kind = paimon_run_group_kind(lookup->group, nrow);
	ItemPointerSet(&ref->tid, paimon_run_group_block(lookup->group), (OffsetNumber) (nrow + 1));
	return true;
}

/* The newest record in runs at positions from `from` on. */
static bool
lookup_runs(PaimonLookup *lookup, int bucket, const PaimonBytes *key, uint64 from, PaimonRowRef *ref)
{
	const PaimonBucketRuns *runs;

	if (lookup->files == NULL)
		return false;
	runs = paimon_levels_bucket(lookup->state.levels, bucket);
	if (runs == NULL)
		return false;
	for (int i = 0; i < runs->nruns; i++)
	{
		const PaimonSortedRun *run = &runs->runs[i];

		if (run->max_position < from)
			break;
		for (int f = paimon_sorted_run_find(run, key->data, key->len); f < run->nfiles; f++)
		{
			PaimonFileRow *row = run->files[f];
			const bytea *min = row->min_key;

			if (paimon_bytes_cmp((const uint8 *) VARDATA_ANY(min), VARSIZE_ANY_EXHDR(min), key->data, key->len) > 0)
				break;
			if (paimon_file_row_overlaps(row, key, key) && lookup_file(lookup, row, key->data, key->len, ref))
				return true;
		}
	}
	return false;
}

/* The key in memory: own rows, then the log and what is newer. */
static bool
lookup_memory(PaimonLookup *lookup, int bucket, const PaimonBytes *key, PaimonRowRef *ref)
{
	PaimonScanState *state = &lookup->state;
	PaimonBufferRecord own;
	PaimonMemRecord rec;

	if (paimon_buffer_has_rows(state->table->storage_id) &&
		paimon_buffer_get(state->table, state->rel, bucket, state->cid, key->data, key->len, &own))
	{
		ref->kind = own.kind;
		ref->payload = own.payload;
		ref->tid = own.tid;
		return true;
	}
	if (state->view != NULL && !paimon_memview_empty(state->view, bucket) &&
		paimon_memview_get(state->view, bucket, key->data, key->len, &rec))
	{
		if (lookup_runs(lookup, bucket, key, Max(rec.position, state->log.head), ref))
			return true;
		ref->kind = rec.kind;
		ref->payload = rec.payload;
		paimon_log_position_to_tid(state->rel, state->table->storage_id, rec.position, &ref->tid);
		return true;
	}
	return false;
}

/* ---------- folding ---------- */

/* The records of one key on their way to the fold. */
typedef struct Gather
{
	PaimonLookup *lookup;
	int			bucket;
	PaimonBytes key;
	const PaimonBucketRuns *runs;
	int			next_run;		/* runs before are done */
	bool		found;			/* any record */
	bool		more;			/* older ones matter */
} Gather;

static void
gathered(Gather *g, const ItemPointerData *tid, bool more)
{
	if (!g->found)
		g->lookup->folder->tid = *tid;
	g->found = true;
	g->more = more;
}

static bool
gather_own(void *arg, const PaimonBufferRecord *rec)
{
	Gather	   *g = arg;

	gathered(g, &rec->tid, paimon_merger_add(g->lookup->folder->merger, rec->kind, rec->payload.data, rec->payload.len, true));
	return g->more;
}

/* All records of the key in one file: they may straddle groups. */
static void
gather_file(Gather *g, PaimonFileRow *row)
{
	PaimonLookup *lookup = g->lookup;
	PaimonScanState *state = &lookup->state;
	PaimonRunFile **slot = &lookup->files[row - state->levels->files];
	uint32		group_no;

	if (*slot == NULL)
		*slot = paimon_run_open(state->rel, state->table->desc, row);
	if (!paimon_run_may_contain(*slot, g->key.data, g->key.len))
		return;
	for (group_no = paimon_run_find_first_group(*slot, g->key.data, g->key.len); g->more && group_no < paimon_run_ngroups(*slot); group_no++)
	{
		const PaimonBytes *first = paimon_run_group_first_key(*slot, group_no);
		PaimonRunGroup *group;
		uint32		n;
		bool		equal = true;

		if (paimon_bytes_cmp(first->data, first->len, g->key.data, g->key.len) > 0)
			break;
		group = paimon_run_group(*slot, group_no);
		paimon_folder_hold(lookup->folder, group);
		paimon_run_group_unref(group);
		n = paimon_run_group_nrows(group);
		for (uint32 r = paimon_run_group_seek(group, g->key.data, g->key.len, &equal); g->more && equal && r < n; r++)
		{
			ItemPointerData tid;

			ItemPointerSet(&tid, paimon_run_group_block(group), (OffsetNumber) (r + 1));
			gathered(g, &tid, paimon_merger_add_row(lookup->folder->merger, paimon_run_group_kind(group, r), group, r, false));
			if (paimon_run_repeats(*slot) == 0)
				return;
			if (r + 1 < n)
			{
				PaimonBytes next = paimon_run_group_key(group, r + 1);

				equal = paimon_bytes_cmp(next.data, next.len, g->key.data, g->key.len) == 0;
			}
		}
		if (paimon_run_repeats(*slot) == 0)
			return;
	}
}

/* Runs at positions from `from` on that have not been asked yet. */
static void
gather_runs(Gather *g, uint64 from)
{
	while (g->more && g->runs != NULL && g->next_run < g->runs->nruns)
	{
		const PaimonSortedRun *run = &g->runs->runs[g->next_run];

		CHECK_FOR_INTERRUPTS();
		if (run->max_position < from)
			return;
		g->next_run++;
		for (int f = paimon_sorted_run_find(run, g->key.data, g->key.len); g->more && f < run->nfiles; f++)
		{
			PaimonFileRow *row = run->files[f];
			const bytea *min = row->min_key;

			if (paimon_bytes_cmp((const uint8 *) VARDATA_ANY(min), VARSIZE_ANY_EXHDR(min), g->key.data, g->key.len) > 0)
				break;
			if (paimon_file_row_overlaps(row, &g->key, &g->key))
				gather_file(g, row);
		}
	}
}

static bool
gather_log(void *arg, const PaimonMemRecord *rec)
{
	Gather	   *g = arg;
	PaimonScanState *state = &g->lookup->state;
	ItemPointerData tid;

	gather_runs(g, Max(rec->position, state->log.head));
	if (!g->more)
		return false;
	if (!g->found)
		paimon_log_position_to_tid(state->rel, state->table->storage_id, rec->position, &tid);
	gathered(g, &tid, paimon_merger_add(g->lookup->folder->merger, rec->kind, rec->payload.data, rec->payload.len, false));
	return g->more;
}

static bool
lookup_fold(PaimonLookup *lookup, CommandId cid, uint64 own_end, PaimonRowRef *row)
{
	PaimonScanState *state = &lookup->state;
	Gather		g = {.lookup = lookup, .bucket = row->bucket, .key = row->key, .more = true};

	paimon_folder_reset(lookup->folder);
	paimon_merger_key(lookup->folder->merger, g.key.data, g.key.len);
	if (lookup->files != NULL)
		g.runs = paimon_levels_bucket(state->levels, g.bucket);
	if (own_end > 0 && paimon_buffer_has_rows(state->table->storage_id))
		paimon_buffer_each(state->table, state->rel, g.bucket, cid, own_end, g.key.data, g.key.len, gather_own, &g);
	if (g.more && state->view != NULL)
		paimon_memview_each(state->view, g.bucket, g.key.data, g.key.len, gather_log, &g);
	gather_runs(&g, 0);
	row->tid = lookup->folder->tid;
	row->kind = PAIMON_KIND_INSERT;
	return g.found && paimon_merger_row(lookup->folder->merger, &row->values, &row->isnull);
}

static bool
lookup_get(PaimonLookup *lookup, int bucket, const uint8 *key, uint32 len, CommandId cid, uint64 own_end, PaimonRowRef *row)
{
	MemoryContext old;
	uint8	   *copy;
	bool		found;

	CHECK_FOR_INTERRUPTS();
	if (lookup->group != NULL)
		paimon_run_group_unref(lookup->group);
	lookup->group = NULL;
	MemoryContextReset(lookup->call_cxt);
	old = MemoryContextSwitchTo(lookup->call_cxt);
	memset(row, 0, sizeof(*row));
	copy = palloc(Max(len, 1));
	memcpy(copy, key, len);
	row->key.data = copy;
	row->key.len = len;
	row->bucket = bucket;
	if (lookup->folder != NULL)
	{
		found = lookup_fold(lookup, cid, own_end, row);
		MemoryContextSwitchTo(old);
		return found;
	}
	found = lookup_memory(lookup, bucket, &row->key, row) || lookup_runs(lookup, bucket, &row->key, 0, row);
	MemoryContextSwitchTo(old);
	return found && !paimon_kind_is_removal(row->kind);
}

bool
paimon_lookup_get(PaimonLookup *lookup, int bucket, const uint8 *key, uint32 len, PaimonRowRef *row)
{
	return lookup_get(lookup, bucket, key, len, lookup->state.cid, PG_UINT64_MAX, row);
}

bool
paimon_lookup_get_before(PaimonLookup *lookup, int bucket, const uint8 *key, uint32 len, uint64 own_end, PaimonRowRef *row)
{
	Assert(lookup->folder != NULL);
	return lookup_get(lookup, bucket, key, len, InvalidCommandId, own_end, row);
}
