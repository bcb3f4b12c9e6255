/*-------------------------------------------------------------------------
 *
 * memtable_table.c
 *	  A backend's handles of storages: built on first use, rebuilt after invalidations.
 *
 * Handles are found by the relation's locator, so that TRUNCATE, a rewrite and their rollback find the right one
 * without any bookkeeping.  How the rows are keyed and spread over buckets comes from the manifest (paimon.storage), which is
 * transactional and describes the storage; the table's options say only how the next storage is to be.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "memtable/memtable_internal.h"
#include "memtable/stats.h"
#include "memtable/table.h"
#include "merge/merge_server.h"
#include "run/run.h"

typedef struct TableEntry
{
	PaimonLocator locator;		/* hash key */
	PaimonTable *table;
} TableEntry;

static HTAB *tables = NULL;
static TableEntry *last_entry = NULL;	/* asked for last in this transaction: rows are inserted one by one */

/* Contexts of replaced handles: somebody up the stack may still use them. */
static List *retired = NIL;

/* Handles whose entry in shared memory is pinned. */
static PaimonTable *pinned = NULL;
static int	npinned = 0;

static void
relcache_callback(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS seq;
	TableEntry *entry;

	if (tables == NULL)
		return;
	hash_seq_init(&seq, tables);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		if (entry->table != NULL && (relid == InvalidOid || entry->table->relid == relid))
			entry->table->valid = false;
	}
}

void
paimon_table_init(void)
{
	/* Registered in the postmaster, inherited by every backend. */
	CacheRegisterRelcacheCallback(relcache_callback, (Datum) 0);
}

/* Pins the handle's entry in shared memory: the one that it had, or a new one if others needed the room. */
static void
pin(PaimonTable *table, Relation rel)
{
	table->shared = paimon_shared_attach(rel, table->storage_id, table->desc->nbuckets);
	table->pinned = true;
	table->next_pinned = pinned;
	pinned = table;
	npinned++;
	paimon_shared_configure(table->shared, table->options.write_buffer_size, table->options.write_buffer_spill_size,
							Max(table->options.snapshot_interval_ms, 0), paimon_runs_limit(&table->options));
}

static void
unpin(PaimonTable *table)
{
	PaimonTable **link = &pinned;

	while (*link != table)
		link = &(*link)->next_pinned;
	*link = table->next_pinned;
	npinned--;
	table->pinned = false;
	paimon_shared_unpin(table->shared);
}

/*
 * Idle sessions must not keep others from using tables, so they keep no pins, or, as long as all sessions together could not take more than half the
 * room, few: what a session uses again and again then need not be looked up in each transaction.
 */
static void
unpin_at_end(void)
{
	if (npinned <= paimon_max_tables / 2 / MaxBackends)
		return;
	while (pinned != NULL)
		unpin(pinned);
}

static void
retire(PaimonTable *table)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	if (table->pinned)
		unpin(table);
	retired = lappend(retired, table->cxt);
	MemoryContextSwitchTo(old);
}

/* What was read since the last transaction's end counts, however this one ends.  Never fails. */
static void
publish_reads(void)
{
	int			nreads;
	PaimonRunReads *reads = paimon_run_reads(&nreads);
	HASH_SEQ_STATUS seq;
	TableEntry *entry;

	if (nreads == 0)
		return;
	hash_seq_init(&seq, tables);
	while ((entry = hash_seq_search(&seq)) != NULL)
	{
		for (int i = 0; i < nreads && entry->table != NULL && entry->table->pinned; i++)
		{
			if (reads[i].storage_id != entry->table->storage_id)
				continue;
			paimon_stats_add(entry->table->shared, PAIMON_STAT_GROUPS_HIT, reads[i].hits);
			paimon_stats_add(entry->table->shared, PAIMON_STAT_GROUPS_READ, reads[i].misses);
			reads[i].hits = reads[i].misses = 0;	/* a moved table may have two handles */
		}
	}
	paimon_run_reads_done();
}

/*
 * Frees replaced handles at the end of the top transaction.  Handles of relations that are gone stay until their relation's
 * invalidation has marked them and this sweep finds them.
 */
void
paimon_table_at_end(void)
{
	HASH_SEQ_STATUS seq;
	TableEntry *entry;
	ListCell   *lc;

	last_entry = NULL;
	if (tables != NULL)
	{
		publish_reads();
		hash_seq_init(&seq, tables);
		while ((entry = hash_seq_search(&seq)) != NULL)
		{
			if (entry->table == NULL || !entry->table->valid)
			{
				if (entry->table != NULL)
					retire(entry->table);
				hash_search(tables, &entry->locator, HASH_REMOVE, NULL);
			}
		}
	}
	unpin_at_end();
	foreach(lc, retired)
		MemoryContextDelete((MemoryContext) lfirst(lc));
	list_free(retired);
	retired = NIL;
}

/* See table.h. */
void
paimon_table_lay_out(const PaimonOptions *options, PaimonStorageRow *row)
{
	row->nbuckets = row->nkeys == 0 ? 1 : options->bucket;
	row->nbucketkeys = row->nkeys;
	memcpy(row->bucketkeys, row->keys, sizeof(AttrNumber) * row->nkeys);
	if (row->nkeys > 0 && options->nbucketkey > 0)
	{
		row->nbucketkeys = options->nbucketkey;
		memcpy(row->bucketkeys, options->bucketkey, sizeof(AttrNumber) * options->nbucketkey);
	}
}

/*
 * How the storage is keyed.  A storage without a row of its own is an append storage.  A key without bucket keys beside it: the storage is new, and
 * the index that is about to be built records its layout.
 */
static void
storage_row(Relation rel, uint64 storage_id, const PaimonOptions *options, PaimonStorageRow *row)
{
	Oid			reborn = InvalidOid;

	if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED &&
		(storage_id == 0 || paimon_storage_is_reborn(rel)))
		reborn = RelationGetRelid(rel);
	if (!paimon_catalog_storage_get(storage_id, reborn, row))
	{
		memset(row, 0, sizeof(*row));
		row->relid = RelationGetRelid(rel);
		row->encoding = PAIMON_ENCODING_VERSION;
	}
	row->storage_id = storage_id;
	if (row->nbucketkeys == 0)
		paimon_table_lay_out(options, row);
}

/* Append tables have nothing to merge. */
static void
set_plan(PaimonTable *table, Relation rel)
{
	table->plan = table->desc->nkeys > 0 ? paimon_merge_plan_relation(rel, table->desc) : NULL;
	table->merges = table->plan != NULL && !table->plan->newest_decides;
}

/* See table.h. */
bool
paimon_storage_is_of(Relation rel, uint64 storage_id)
{
	return RELKIND_HAS_STORAGE(rel->rd_rel->relkind) && rel->rd_rel->relam == paimon_table_am_oid() && paimon_storage_id(rel) == storage_id;
}

/* See table.h. */
void
paimon_table_release(PaimonTable *table)
{
	table->valid = false;
}

static PaimonTable *
build(Relation rel, uint64 storage_id)
{
	MemoryContext cxt = AllocSetContextCreate(CacheMemoryContext, "paimon table", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	PaimonTable *table = palloc0(sizeof(PaimonTable));
	PaimonStorageRow row;

	table->cxt = cxt;
	PG_TRY();
	{
		table->locator = paimon_rel_locator(rel);
		table->relid = RelationGetRelid(rel);
		table->storage_id = storage_id;
		table->istemp = RelationUsesLocalBuffers(rel);
		table->options = *paimon_options_get(rel);
		storage_row(rel, storage_id, &table->options, &row);
		table->copied = row.copied;
		table->desc = paimon_rowdesc_build(rel, &row);
		set_plan(table, rel);
		if (storage_id != 0 && !table->istemp)
			pin(table, rel);
		table->valid = true;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(old);
		MemoryContextDelete(cxt);
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	return table;
}

PaimonTable *
paimon_table_get(Relation rel, bool for_write)
{
	PaimonLocator locator = paimon_rel_locator(rel);
	TableEntry *entry;
	bool		found;
	PaimonTable *table;

	if (tables == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(PaimonLocator), .entrysize = sizeof(TableEntry), .hcxt = CacheMemoryContext};

		tables = hash_create("paimon tables", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}

	if (last_entry == NULL || !paimon_locator_equals(last_entry->locator, locator))
		last_entry = hash_search(tables, &locator, HASH_FIND, NULL);
	entry = last_entry;
	if (entry != NULL && entry->table != NULL && entry->table->valid &&
		entry->table->relid == RelationGetRelid(rel) &&
		(entry->table->storage_id != 0 || (!for_write && paimon_storage_id(rel) == 0)))
	{
		if (entry->table->shared != NULL && !entry->table->pinned)
			pin(entry->table, rel);
		/* The server may have been promoted since the handle was built. */
		if (for_write && entry->table->shared != NULL)
			paimon_shared_ready(entry->table->shared, rel);
		return entry->table;
	}

	/*
	 * An unlogged storage may have been reborn with another id since, by another session, too: so the id is read anew whenever the handle is built,
	 * and a handle of a storage without an id is looked at twice above.
	 */
	table = build(rel, for_write ? paimon_storage_assign_id(rel) : paimon_storage_id(rel));

	entry = hash_search(tables, &locator, HASH_ENTER, &found);
	if (found && entry->table != NULL)
		retire(entry->table);
	entry->table = table;
	return table;
}

/*
 * A copy of the relation's handle that reads its rows as `tupdesc` describes them: ALTER TABLE reads the old rows when the relation's descriptor
 * is the new one already.  Lives in CurrentMemoryContext; not to be written through.
 */
PaimonTable *
paimon_table_get_as(Relation rel, TupleDesc tupdesc)
{
	PaimonTable *table = palloc(sizeof(PaimonTable));
	PaimonStorageRow row;

	*table = *paimon_table_get(rel, false);
	storage_row(rel, table->storage_id, &table->options, &row);
	table->desc = paimon_rowdesc_build_as(rel, tupdesc, &row);
	set_plan(table, rel);
	return table;
}
