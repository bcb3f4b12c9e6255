/*-------------------------------------------------------------------------
 *
 * am.h
 *	  The callbacks of the table access method `paimon` and the index access method `paimon_key`, by file.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_AM_AM_H
#define PAIMON_AM_AM_H

#include "postgres.h"

#include "access/amapi.h"
#include "access/tableam.h"

#include "scan/scan.h"

/* am_scan.c */
typedef struct PaimonScanDesc
{
	TableScanDescData base;
	PaimonTable *table;
	PaimonReader *reader;		/* opened at the first fetch */
	MemoryContext cxt;
	const int16 *columns;		/* of the slot that it fetches into, or NULL; see paimon_slot_set_columns */
	int			ncolumns;
	bool		unordered;		/* rows may come in any order: then the scan never turns round */
	bool		in_unit;		/* parallel: working on a unit */
	bool		exhausted;
	bool		on_row;			/* `last` is the ctid of the row given last */
	ItemPointerData last;
	/* once it has changed direction (am_scroll.c) */
	bool		scrolls;
	bool		forward;
	int			bucket;
	/* ANALYZE (am_size.c) and TABLESAMPLE (am_sample.c) only */
	double		rows_per_block;
	double		position;		/* rows read so far */
	double		block_end;
	BlockNumber sample_blocks;	/* blocks for a sampling method */
	bool		sample_units;	/* ... are units of the reader, else chunks */
	BlockNumber sample_chunk;	/* the chunk at hand, and the position of its first row */
	double		chunk_start;
} PaimonScanDesc;

extern void paimon_scan_open(PaimonScanDesc *scan);

/* am_scroll.c */
extern bool paimon_scan_scroll(PaimonScanDesc *scan, bool forward, PaimonRowRef *row);
extern const TupleTableSlotOps *paimon_slot_callbacks(Relation rel);
extern TableScanDesc paimon_scan_begin(Relation rel, Snapshot snapshot, int nkeys, struct ScanKeyData *key,
									   ParallelTableScanDesc pscan, uint32 flags);
extern void paimon_scan_end(TableScanDesc scan);
extern void paimon_scan_rescan(TableScanDesc scan, struct ScanKeyData *key, bool set_params, bool allow_strat,
							   bool allow_sync, bool allow_pagemode);
extern bool paimon_scan_getnextslot(TableScanDesc scan, ScanDirection direction, TupleTableSlot *slot);
extern void paimon_put_row(TupleTableSlot *slot, PaimonTable *table, const PaimonRowRef *row, PaimonDecode decode);

/* am_fetch.c */
typedef struct PaimonIndexFetch
{
	IndexFetchTableData base;
	PaimonTable *table;
	const PaimonRowRef *row;	/* the index scan has just found this row; NULL: none */
	PaimonDecode decode;		/* single rows or a range */
	bool		key_only;		/* nobody will look at the row: an index-only scan */
} PaimonIndexFetch;

extern struct IndexFetchTableData *paimon_index_fetch_begin(Relation rel);
extern void paimon_index_fetch_reset(struct IndexFetchTableData *data);
extern void paimon_index_fetch_end(struct IndexFetchTableData *data);
extern bool paimon_index_fetch_tuple(struct IndexFetchTableData *data, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot,
									 bool *call_again, bool *all_dead);
extern bool paimon_tuple_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot);
extern bool paimon_tuple_tid_valid(TableScanDesc scan, ItemPointer tid);
extern void paimon_tuple_get_latest_tid(TableScanDesc scan, ItemPointer tid);
extern bool paimon_tuple_satisfies_snapshot(Relation rel, TupleTableSlot *slot, Snapshot snapshot);

/* am_lock.c */

/* A row that a statement is about to change: where it lies, and its key copied from there. */
typedef struct PaimonTarget
{
	ItemPointerData tid;
	int			bucket;
	uint8		kind;
	StringInfoData key;
} PaimonTarget;

/* A row as it is written: palloc'd. */
typedef struct PaimonEncoded
{
	int			bucket;
	const Datum *values;		/* plain; nulls are the slot's */
	StringInfoData key;
	StringInfoData payload;
} PaimonEncoded;

extern MemoryContext paimon_enter_row_context(void);
extern bool paimon_target_get(PaimonTable *table, Relation rel, ItemPointer tid, PaimonTarget *target);
extern TM_Result paimon_lock_key(PaimonTable *table, Relation rel, ItemPointer tid, int bucket, PaimonBytes key, Snapshot snapshot,
								 LockTupleMode mode, bool writes, LockWaitPolicy policy, TM_FailureData *tmfd, bool *unchanged);
extern void paimon_wait_for_writers(PaimonTable *table, Relation rel, int bucket, PaimonBytes key);
extern bool paimon_key_is_settled(PaimonTable *table, Relation rel, int bucket, PaimonBytes key, Snapshot snapshot);
extern TM_Result paimon_recheck(PaimonTable *table, Relation rel, const PaimonTarget *target, Snapshot snapshot, PaimonLookup **lookup,
								PaimonRowRef *row);
extern TM_Result paimon_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot, CommandId cid,
								   LockTupleMode mode, LockWaitPolicy policy, uint8 flags, TM_FailureData *tmfd);
extern TM_Result paimon_check_touched(PaimonTable *table, Relation rel, const PaimonTarget *target, CommandId cid, TM_FailureData *tmfd);

/* am_version.c: rows of tables that merge, by ctid */
extern void paimon_versions_init(void);
extern void paimon_versions_end(void);
extern bool paimon_version_seen(PaimonTable *table, Relation rel, ItemPointer tid, int bucket, PaimonBytes key, Snapshot snapshot,
								PaimonRowRef *row);
extern bool paimon_version_get(PaimonTable *table, Relation rel, ItemPointer tid, int bucket, PaimonBytes key, PaimonLookup **lookup,
							   PaimonRowRef *row);
extern bool paimon_version_fetch(PaimonTable *table, Relation rel, ItemPointer tid, TupleTableSlot *slot);
extern bool paimon_version_satisfies(PaimonTable *table, Relation rel, TupleTableSlot *slot, Snapshot snapshot);
extern void paimon_version_remember(const PaimonTable *table, const PaimonRowRef *row);
extern bool paimon_version_unchanged(PaimonTable *table, Relation rel, ItemPointer tid, int bucket, PaimonBytes key, Snapshot snapshot,
									 const PaimonRowRef *now);

/* am_path.c */
struct IndexOptInfo;
struct RelOptInfo;
extern void paimon_path_init(void);
extern bool paimon_wants_current_of(const struct RelOptInfo *rel);
extern bool paimon_index_column_ordered(Oid relid, const struct IndexOptInfo *index, int column);

/* am_derive.c */
struct PlannerInfo;
struct RelOptInfo;
extern List *paimon_derived_paths(struct PlannerInfo *root, struct RelOptInfo *rel, struct IndexOptInfo *index);

/* am_cost.c */
struct IndexPath;
extern void paimon_key_cost_estimate(struct PlannerInfo *root, struct IndexPath *path, double loop_count, double *startup, double *total,
									 double *selectivity, double *correlation, double *pages);

/* am_modify.c */
extern void paimon_tuple_insert(Relation rel, TupleTableSlot *slot, CommandId cid, int options, struct BulkInsertStateData *bistate);
extern bool paimon_put_incoming(PaimonTable *table, Relation rel, TupleTableSlot *slot, CommandId cid, const PaimonEncoded *row, bool locked);
extern void paimon_encode_slot(PaimonTable *table, Relation rel, TupleTableSlot *slot, PaimonEncoded *out);
extern void paimon_multi_insert(Relation rel, TupleTableSlot **slots, int nslots, CommandId cid, int options,
								struct BulkInsertStateData *bistate);
extern TM_Result paimon_tuple_delete(Relation rel, ItemPointer tid, CommandId cid, Snapshot snapshot, Snapshot crosscheck, bool wait,
									 TM_FailureData *tmfd, bool changing_part);
extern TM_Result paimon_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot *slot, CommandId cid, Snapshot snapshot,
									 Snapshot crosscheck, bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
									 PaimonUpdateIndexes *update_indexes);
extern void paimon_finish_bulk_insert(Relation rel, int options);

/* am_conflict.c: insertions that must look whether their key is there already */
typedef enum PaimonInsertRule
{
	PAIMON_INSERT_ONCE,			/* a blind ON CONFLICT DO UPDATE: no key twice in one command */
	PAIMON_INSERT_NEW,			/* MERGE: a key that is there already is an error */
	PAIMON_INSERT_CONFLICT		/* any other ON CONFLICT: core asks the index first */
} PaimonInsertRule;

/* A running statement whose insertions into a table (or its partitions) keep a rule.  Lives in cxt, the executor's memory. */
typedef struct PaimonUpsert
{
	struct PaimonUpsert *next;
	CommandId	cid;
	Oid			relid;
	bool		partitioned;
	PaimonInsertRule rule;
	MemoryContext cxt;
	ResourceOwner owner;
	/* of the table (or partition) that was asked for last; made and dropped by am_conflict.c */
	PaimonLookup *lookup;
	uint64		storage_id;
	/* PAIMON_INSERT_ONCE: hashes of the keys so far, as long as nobody else writes; see am_conflict.c */
	uint64		first_seen;
	uint64	   *seen;			/* from the second key on */
	uint32		seen_size;		/* a power of 2; 0: no longer kept */
	uint32		nseen;
	uint64		next_put;
} PaimonUpsert;

extern PaimonUpsert *paimon_upserts;

static inline bool
paimon_upserts_run(void)
{
	return paimon_upserts != NULL;
}

extern void paimon_upsert_register(PaimonUpsert *upsert);
extern void paimon_upserts_end(MemoryContext cxt);
extern PaimonLookup *paimon_conflict_lookup(PaimonTable *table, Relation rel, int bucket, PaimonBytes key);
extern bool paimon_upsert_check(PaimonTable *table, Relation rel, TupleTableSlot *slot, const PaimonEncoded *row, CommandId cid);
extern void paimon_tuple_insert_speculative(Relation rel, TupleTableSlot *slot, CommandId cid, int options,
											struct BulkInsertStateData *bistate, uint32 token);
extern void paimon_tuple_complete_speculative(Relation rel, TupleTableSlot *slot, uint32 token, bool succeeded);
extern bool paimon_is_conflict(ItemPointer tid);

/* am_upsert.c, am_routing.c: ON CONFLICT and MERGE in plans that are about to run */
struct EState;
struct ModifyTableState;
struct ResultRelInfo;
extern void paimon_upsert_init(void);
extern void paimon_upsert_start(struct ModifyTableState *mt, int eflags);
extern void paimon_open_unique_indexes(struct ResultRelInfo *rri);
extern void paimon_route_conflicts(struct ModifyTableState *mt);

/* am_values.c */
extern void paimon_values_start(struct ModifyTableState *mt);

/* am_ddl.c */
extern void paimon_ddl_hooks_init(void);
extern void paimon_relation_set_new_locator(Relation rel, const PaimonLocator *locator, char persistence,
											TransactionId *freeze_xid, MultiXactId *minmulti);
extern void paimon_relation_nontransactional_truncate(Relation rel);
extern void paimon_relation_copy_data(Relation rel, const PaimonLocator *locator);
extern void paimon_relation_copy_for_cluster(Relation old_table, Relation new_table, Relation old_index, bool use_sort,
											 TransactionId oldest_xmin, TransactionId *xid_cutoff, MultiXactId *multi_cutoff,
											 double *num_tuples, double *tups_vacuumed, double *tups_recently_dead);

/* am_rekey.c */
extern double paimon_rekey(Relation heap, Relation index, const PaimonStorageRow *row);
extern double paimon_copy_rows(PaimonTable *from, Relation from_rel, PaimonTable *to, Relation to_rel);

/* am_size.c: sizes and ANALYZE */
extern uint64 paimon_relation_size(Relation rel, ForkNumber fork);
extern void paimon_estimate_size(Relation rel, int32 *attr_widths, BlockNumber *pages, double *tuples, double *allvisfrac);
extern double paimon_estimate_rows(PaimonTable *table, Relation rel);

/* am_vacuum.c */
struct VacuumParams;
extern void paimon_relation_vacuum(Relation rel, struct VacuumParams *params, BufferAccessStrategy strategy);

/* routines filled in by file */
extern void paimon_scan_routine(TableAmRoutine *routine);
extern void paimon_size_routine(TableAmRoutine *routine);
extern void paimon_sample_routine(TableAmRoutine *routine);

/* am_index.c */
extern void paimon_index_routine(IndexAmRoutine *amroutine);

/* am_executor.c */
extern void paimon_executor_init(void);
extern bool paimon_executor_changes(void);

/* am_customscan.c */
struct RelOptInfo;
extern void paimon_customscan_init(void);
extern double paimon_share_of_pages(struct RelOptInfo *rel, Oid relid);

/* am_join.c */
extern void paimon_join_init(void);

#endif							/* PAIMON_AM_AM_H */
