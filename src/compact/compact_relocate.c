/*-------------------------------------------------------------------------
 *
 * compact_relocate.c
 *	  Which files hold the far end of a fork that is mostly free, and whether moving them down is worth it.
 *
 * Free extents are used again from the front, so a fork never grows while it has one.  But only its end can be given back, and what was written when
 * the fork was full (the output of a large compaction, beside its inputs) may lie there for as long as it lives.  In a table that has come to rest such files are
 * rewritten: a compaction of the runs they belong to, which goes to the first free extents.  Then the old ones are freed and the end is cut off.
 *
 * Here is the decision only; see README.md, "Relocation", for why it comes to an end and what it costs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compact/compact_internal.h"

/* Moving begins with this much more than what is used (a fork at rest), and moves what lies behind that much more. */
#define TOLERATED_SHARE 8
#define TOLERATED_EXTENTS 24
#define KEPT_SHARE 16
#define KEPT_EXTENTS 8

/* The same for a fork in use, where the free part may be needed again soon: several times what is used, and a constant. */
#define BUSY_TOLERATED_TIMES 2
#define BUSY_TOLERATED_EXTENTS 512

/* Never written more than so many times of what is given back. */
#define MAX_COST 4

typedef struct FarEnd
{
	HTAB	   *movable;		/* numbers of live files */
	uint32		used;			/* extents */
	uint32		end;			/* behind the last one in use */
	uint32		fixed;			/* behind the last one that cannot be moved */
} FarEnd;

uint32
paimon_tolerated_end(uint32 used)
{
	return used + used / TOLERATED_SHARE + TOLERATED_EXTENTS;
}

static void
note_extent(void *arg, uint32 extent, uint64 owner, FullTransactionId xid)
{
	FarEnd	   *f = arg;

	f->used++;
	f->end = extent + 1;
	/* The log's extents leave by flushes, the last of them by paimon_trim_log. */
	if (owner != PAIMON_OWNER_LOG && hash_search(f->movable, &owner, HASH_FIND, NULL) == NULL)
		f->fixed = extent + 1;
}

/* See compact_internal.h. */
bool
paimon_file_is_far(const PaimonFileRow *file, const PaimonRelocation *where)
{
	if (file->file_no >= where->before)
		return false;
	for (uint32 i = 0; i < file->extents.nruns; i++)
	{
		const PaimonExtentRun *run = &file->extents.runs[i];

		if (run->first + run->count > where->cutoff)
			return true;
	}
	return false;
}

static void
look_at_map(Relation rel, const PaimonLevels *levels, FarEnd *f)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(uint64), .hcxt = CurrentMemoryContext};

	memset(f, 0, sizeof(*f));
	f->movable = hash_create("paimon movable files", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	for (int i = 0; i < levels->nfiles; i++)
	{
		/* one without a snapshot id may not be merged yet */
		if (levels->files[i].added_snapshot != 0)
			(void) hash_search(f->movable, &levels->files[i].file_no, HASH_ENTER, NULL);
	}
	paimon_extent_visit(rel, note_extent, f);
}

/* Extents that the file has. */
static uint32
file_extents(const PaimonFileRow *file)
{
	uint32		n = 0;

	for (uint32 i = 0; i < file->extents.nruns; i++)
		n += file->extents.runs[i].count;
	return n;
}

/* The buckets that have far files, with what a merge of these would read; returns the extents that would be written. */
static uint64
far_buckets(const PaimonLevels *levels, const PaimonRelocation *where, PaimonCompactWanted *result, int *n)
{
	uint64		cost = 0;

	*n = 0;
	for (int i = 0; i < levels->nbuckets; i++)
	{
		const PaimonBucketRuns *bucket = &levels->buckets[i];
		PaimonCompactWanted w = {.bucket = bucket->bucket};

		for (int k = 0; k < bucket->nruns; k++)
		{
			for (int j = 0; j < bucket->runs[k].nfiles; j++)
			{
				const PaimonFileRow *file = bucket->runs[k].files[j];

				if (file->added_snapshot == 0 || !paimon_file_is_far(file, where))
					continue;
				w.bytes += file->bytes;
				cost += file_extents(file);
			}
		}
		if (w.bytes > 0)
			result[(*n)++] = w;
	}
	return cost;
}

/* With the map and the live files known: is it worth it?  Fills *where. */
static bool
decide(Relation rel, const FarEnd *f, bool busy, PaimonRelocation *where)
{
	uint64		tolerated = busy ? (uint64) f->used * BUSY_TOLERATED_TIMES + BUSY_TOLERATED_EXTENTS : paimon_tolerated_end(f->used);

	where->end = f->end;
	if (f->end <= tolerated)
		return false;
	where->cutoff = f->used + f->used / KEPT_SHARE + KEPT_EXTENTS;
	where->before = paimon_storage_next_file_no(rel);
	where->gain = f->end - Max(where->cutoff, f->fixed);
	return f->fixed < f->end && where->gain >= f->used / KEPT_SHARE + KEPT_EXTENTS;
}

/* See compact.h. */
PaimonCompactWanted *
paimon_relocation_wanted(Relation rel, PaimonTable *table, bool busy, PaimonRelocation *where, int *n)
{
	PaimonCompactWanted *result = NULL;
	MemoryContext cxt;
	MemoryContext old;
	Snapshot	snapshot;
	PaimonLevels *levels;
	PaimonLogRow log;
	FarEnd		f;

	*n = 0;
	memset(where, 0, sizeof(*where));
	if (table->storage_id == 0)
		return NULL;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon relocation choice", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	snapshot = paimon_catalog_latest_snapshot();
	levels = paimon_levels_load(table->storage_id, RelationGetRelationName(rel), snapshot, &log);
	UnregisterSnapshot(snapshot);
	look_at_map(rel, levels, &f);
	if (decide(rel, &f, busy, where))
	{
		result = MemoryContextAlloc(old, sizeof(PaimonCompactWanted) * Max(levels->nbuckets, 1));
		if (far_buckets(levels, where, result, n) > (uint64) where->gain * MAX_COST)
			*n = 0;
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return result;
}
