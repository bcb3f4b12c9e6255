/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  The differences between server versions, and nothing else.
 *
 * This is the only file that looks at PG_VERSION_NUM (test/check sees to it).
 * The rest of the extension uses the names defined here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_COMPAT_H
#define PAIMON_COMPAT_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "access/xloginsert.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "utils/rel.h"

#if PG_VERSION_NUM < 150000
#error "paimon_am needs PostgreSQL 15 or newer"
#endif

/*
 * We build with hidden visibility.  16 and up export what the server must find by
 * themselves; for 15 we do it here, so every file with PG_FUNCTION_INFO_V1 or
 * PG_MODULE_MAGIC includes compat.h (test/check sees to it).
 */
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#undef PG_FUNCTION_INFO_V1
#define PG_FUNCTION_INFO_V1(funcname) \
	extern PGDLLEXPORT Datum funcname(PG_FUNCTION_ARGS); \
	extern PGDLLEXPORT const Pg_finfo_record *CppConcat(pg_finfo_, funcname) (void); \
	const Pg_finfo_record * \
	CppConcat(pg_finfo_, funcname) (void) \
	{ \
		static const Pg_finfo_record my_finfo = {1}; \
		return &my_finfo; \
	} \
	extern int	no_such_variable
#endif

/* 18 knows the attribute only as pg_noreturn, in front of a declaration. */
#ifndef pg_attribute_noreturn
#define pg_attribute_noreturn() __attribute__((noreturn))
#endif

/*
 * Names of a relation's file.  15: RelFileNode {spcNode, dbNode, relNode};
 * 16 and up: RelFileLocator {spcOid, dbOid, relNumber}.
 */
#if PG_VERSION_NUM < 160000
#include "storage/relfilenode.h"
typedef RelFileNode PaimonLocator;
typedef Oid PaimonRelNumber;
#define paimon_locator_spc(loc) ((loc).spcNode)
#define paimon_locator_db(loc) ((loc).dbNode)
#define paimon_locator_number(loc) ((loc).relNode)
#define paimon_locator_equals(a, b) RelFileNodeEquals(a, b)
#define paimon_rel_locator(rel) ((rel)->rd_node)
#define paimon_smgr_locator(smgr) ((smgr)->smgr_rnode.node)
#define paimon_buffer_get_tag(buf, loc, fork, blk) BufferGetTag(buf, loc, fork, blk)
#else
#include "storage/relfilelocator.h"
typedef RelFileLocator PaimonLocator;
typedef RelFileNumber PaimonRelNumber;
#define paimon_locator_spc(loc) ((loc).spcOid)
#define paimon_locator_db(loc) ((loc).dbOid)
#define paimon_locator_number(loc) ((loc).relNumber)
#define paimon_locator_equals(a, b) RelFileLocatorEquals(a, b)
#define paimon_rel_locator(rel) ((rel)->rd_locator)
#define paimon_smgr_locator(smgr) ((smgr)->smgr_rlocator.locator)
#define paimon_buffer_get_tag(buf, loc, fork, blk) BufferGetTag(buf, loc, fork, blk)
#endif

/* Builds a locator from its three parts. */
static inline PaimonLocator
paimon_make_locator(Oid spc, Oid db, PaimonRelNumber number)
{
	PaimonLocator loc;

	paimon_locator_spc(loc) = spc;
	paimon_locator_db(loc) = db;
	paimon_locator_number(loc) = number;
	return loc;
}

/*
 * What tuple_update reports about indexes.  15: a bool; 16 and up: an enum.
 * Our index stores nothing and other indexes are refused: always "none".
 */
#if PG_VERSION_NUM < 160000
typedef bool PaimonUpdateIndexes;
#define PAIMON_UPDATE_INDEXES_NONE false
#define PAIMON_UPDATE_INDEXES_ALL true
#else
#include "access/tableam.h"
typedef TU_UpdateIndexes PaimonUpdateIndexes;
#define PAIMON_UPDATE_INDEXES_NONE TU_None
#define PAIMON_UPDATE_INDEXES_ALL TU_All
#endif

/* Whether a role may execute a function, and the parts of a function's name; for files that include utils/acl.h and utils/regproc.h. */
#if PG_VERSION_NUM < 160000
#define paimon_can_execute(function, role) (pg_proc_aclcheck(function, role, ACL_EXECUTE) == ACLCHECK_OK)
#define paimon_qualified_name_list(name) stringToQualifiedNameList(name)
#else
#define paimon_can_execute(function, role) (object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE) == ACLCHECK_OK)
#define paimon_qualified_name_list(name) stringToQualifiedNameList(name, NULL)
#endif

/* Pieces of a WAL record: the pointer's type changed from char * (15-17) to const void * (18). */
static inline void
paimon_xlog_register_data(const void *data, uint32 len)
{
#if PG_VERSION_NUM < 180000
	XLogRegisterData((char *) data, len);
#else
	XLogRegisterData(data, len);
#endif
}

static inline void
paimon_xlog_register_buf_data(uint8 block_id, const void *data, uint32 len)
{
#if PG_VERSION_NUM < 180000
	XLogRegisterBufData(block_id, (char *) data, len);
#else
	XLogRegisterBufData(block_id, data, len);
#endif
}

/* Numbers of backends: BackendId (from 1) until 16, ProcNumber (from 0) since 17; LockHeldByMe then asks "or stronger?". */
#if PG_VERSION_NUM < 170000
#include "storage/backendid.h"
#define paimon_my_proc_number() (MyProc->pgprocno)
#define paimon_lock_held_by_me(tag, mode) LockHeldByMe(tag, mode)
#else
#include "storage/procnumber.h"
#define paimon_my_proc_number() (MyProcNumber)
#define paimon_lock_held_by_me(tag, mode) LockHeldByMe(tag, mode, false)
#endif

/* Extends a relation by one block and returns it pinned and exclusively locked. */
static inline Buffer
paimon_extend_one(Relation rel)
{
#if PG_VERSION_NUM < 160000
	Buffer		buf;

	LockRelationForExtension(rel, ExclusiveLock);
	buf = ReadBufferExtended(rel, MAIN_FORKNUM, P_NEW, RBM_ZERO_AND_LOCK, NULL);
	UnlockRelationForExtension(rel, ExclusiveLock);
	return buf;
#else
	return ExtendBufferedRel(BMR_REL(rel), MAIN_FORKNUM, NULL, EB_LOCK_FIRST);
#endif
}

/* Does the current user own a relation?  (aclchk was reworked in 16.) */
#include "miscadmin.h"
#include "utils/acl.h"
#if PG_VERSION_NUM < 160000
#define paimon_owns_relation(relid) pg_class_ownercheck((relid), GetUserId())
#else
#include "catalog/pg_class.h"
#define paimon_owns_relation(relid) object_ownercheck(RelationRelationId, (relid), GetUserId())
#endif

/* New, empty storage for a relation. */
#if PG_VERSION_NUM < 160000
#define paimon_set_new_relfilenumber(rel, persistence) RelationSetNewRelfilenode((rel), (persistence))
#else
#define paimon_set_new_relfilenumber(rel, persistence) RelationSetNewRelfilenumber((rel), (persistence))
#endif

/* Did the relation's present storage come into being in this transaction? */
#if PG_VERSION_NUM < 160000
#define paimon_storage_is_own(rel) \
	((rel)->rd_createSubid != InvalidSubTransactionId || (rel)->rd_firstRelfilenodeSubid != InvalidSubTransactionId)
#else
#define paimon_storage_is_own(rel) \
	((rel)->rd_createSubid != InvalidSubTransactionId || (rel)->rd_firstRelfilelocatorSubid != InvalidSubTransactionId)
#endif

/* Building all indexes of a table anew: the statement was added in 17. */
#if PG_VERSION_NUM < 170000
#define paimon_reindex_relation(relid, flags, params) reindex_relation((relid), (flags), (params))
#else
#define paimon_reindex_relation(relid, flags, params) reindex_relation(NULL, (relid), (flags), (params))
#endif

/* Partitioned tables have an access method of their own since 17. */
#if PG_VERSION_NUM < 170000
#define PAIMON_PARTITIONED_HAS_AM false
#else
#define PAIMON_PARTITIONED_HAS_AM true
#endif

/* On a hot standby: waits for, or cancels, snapshots that may need what goes with a change up to `horizon`. */
#include "access/transam.h"
#include "storage/standby.h"
static inline void
paimon_resolve_recovery_conflict(FullTransactionId horizon, PaimonLocator locator)
{
#if PG_VERSION_NUM < 160000
	ResolveRecoveryConflictWithSnapshotFullXid(horizon, locator);
#else
	ResolveRecoveryConflictWithSnapshotFullXid(horizon, false, locator);
#endif
}

/* A block in private memory that goes to smgr directly. */
#if PG_VERSION_NUM < 160000
typedef PGAlignedBlock PaimonIoBlock;
#else
typedef PGIOAlignedBlock PaimonIoBlock;
#endif

/*
 * Extends the main fork's file by n blocks of zeros behind its present end `from`, past the buffer manager.  The caller
 * keeps everybody else from extending it.
 */
static inline void
paimon_zero_extend(SMgrRelation srel, BlockNumber from, BlockNumber n)
{
#if PG_VERSION_NUM < 160000
	static const PGAlignedBlock zeros;

	for (BlockNumber i = 0; i < n; i++)
		smgrextend(srel, MAIN_FORKNUM, from + i, (char *) zeros.data, false);
#else
	while (n > 0)
	{
		int			part = (int) Min(n, (BlockNumber) 65536);

		smgrzeroextend(srel, MAIN_FORKNUM, from, part, false);
		from += part;
		n -= part;
	}
#endif
}

/*
 * Does text in this collation sort by its bytes?  Reads the system catalog.  Until 17 the
 * prototype is written out here, since utils/pg_locale.h needs ICU's headers.
 */
#if PG_VERSION_NUM < 180000
extern bool lc_collate_is_c(Oid collation);
#else
#include "utils/pg_locale.h"
#endif

static inline bool
paimon_collation_is_c(Oid collation)
{
#if PG_VERSION_NUM < 180000
	return lc_collate_is_c(collation);
#else
	return OidIsValid(collation) && pg_newlocale_from_collation(collation)->collate_is_c;
#endif
}

/*
 * Slot operations.  18: minimal tuples can be made with room before them; 17: a slot tells whether its row was written by this transaction.
 */
#if PG_VERSION_NUM < 180000
#define PAIMON_COPY_MINIMAL_ARGS TupleTableSlot *slot
#define paimon_form_minimal_tuple(tupdesc, values, isnull) heap_form_minimal_tuple(tupdesc, values, isnull)
#else
#define PAIMON_COPY_MINIMAL_ARGS TupleTableSlot *slot, Size extra
#define paimon_form_minimal_tuple(tupdesc, values, isnull) heap_form_minimal_tuple(tupdesc, values, isnull, extra)
#endif
#if PG_VERSION_NUM < 170000
#define PAIMON_SLOT_IS_CURRENT_XACT(fn)
#else
#define PAIMON_SLOT_IS_CURRENT_XACT(fn) .is_current_xact_tuple = fn,
#endif

/* The table access method's callback for new storage was renamed in 16. */
#if PG_VERSION_NUM < 160000
#define paimon_set_new_locator_callback(routine, fn) ((routine)->relation_set_new_filenode = (fn))
#else
#define paimon_set_new_locator_callback(routine, fn) ((routine)->relation_set_new_filelocator = (fn))
#endif

/* Statistics of an updated row: 16 and up also ask whether it went to another page. */
#if PG_VERSION_NUM < 160000
#define paimon_count_update(rel) pgstat_count_heap_update((rel), false)
#else
#define paimon_count_update(rel) pgstat_count_heap_update((rel), false, false)
#endif

/* What VACUUM must freeze.  15: one function with many arguments; 16 and up: a struct. */
#include "commands/vacuum.h"
#include "pgstat.h"
#include "utils/timestamp.h"

static inline void
paimon_vacuum_limits(Relation rel, const VacuumParams *params, TransactionId *oldest_xmin, TransactionId *freeze_limit,
					 MultiXactId *oldest_multi)
{
#if PG_VERSION_NUM < 160000
	MultiXactId multi_cutoff;

	(void) vacuum_set_xid_limits(rel, params->freeze_min_age, params->freeze_table_age, params->multixact_freeze_min_age,
								 params->multixact_freeze_table_age, oldest_xmin, oldest_multi, freeze_limit, &multi_cutoff);
#else
	struct VacuumCutoffs cutoffs;

	(void) vacuum_get_cutoffs(rel, params, &cutoffs);
	*oldest_xmin = cutoffs.OldestXmin;
	*freeze_limit = cutoffs.FreezeLimit;
	*oldest_multi = cutoffs.OldestMxact;
#endif
}

/* Results of VACUUM in pg_class and in the statistics.  18: pages that are all frozen, and when it began. */
static inline void
paimon_update_relstats(Relation rel, BlockNumber pages, double rows, TransactionId frozen, MultiXactId minmulti)
{
#if PG_VERSION_NUM < 180000
	vac_update_relstats(rel, pages, rows, 0, rel->rd_rel->relhasindex, frozen, minmulti, NULL, NULL, false);
#else
	vac_update_relstats(rel, pages, rows, 0, 0, rel->rd_rel->relhasindex, frozen, minmulti, NULL, NULL, false);
#endif
}

static inline void
paimon_report_vacuum(Relation rel, double rows, TimestampTz start)
{
#if PG_VERSION_NUM < 180000
	pgstat_report_vacuum(RelationGetRelid(rel), rel->rd_rel->relisshared, (PgStat_Counter) rows, 0);
#else
	pgstat_report_vacuum(RelationGetRelid(rel), rel->rd_rel->relisshared, (PgStat_Counter) rows, 0, start);
#endif
}

/* What a writer that waits for compaction shows in pg_stat_activity: extensions have wait events of their own since 17. */
#include "utils/wait_event.h"
#if PG_VERSION_NUM < 170000
#define PAIMON_WAIT_STALL PG_WAIT_EXTENSION
#else
#define PAIMON_WAIT_STALL paimon_wait_event_stall()
static inline uint32
paimon_wait_event_stall(void)
{
	static uint32 event = 0;

	if (event == 0)
		event = WaitEventExtensionNew("PaimonStall");
	return event;
}
#endif

/* MERGE's actions on rows of the table: one list until 16; since 17 also those without a row of the source, and the kinds with a row come first. */
#if PG_VERSION_NUM < 170000
#define PAIMON_MERGE_LISTS_WITH_ROW 1
#define paimon_merge_list(rri, i) ((rri)->ri_matchedMergeAction)
#else
#define PAIMON_MERGE_LISTS_WITH_ROW 2
#define paimon_merge_list(rri, i) ((rri)->ri_MergeActions[(i) == 0 ? MERGE_WHEN_MATCHED : MERGE_WHEN_NOT_MATCHED_BY_SOURCE])
#endif

/* How many elements the planner expects in an array: 17 and up look at statistics. */
#if PG_VERSION_NUM < 170000
#define paimon_estimate_array_length(root, node) estimate_array_length(node)
#else
#define paimon_estimate_array_length(root, node) estimate_array_length((root), (node))
#endif

/* The backend's own number of its transaction moved into a struct in 17. */
#if PG_VERSION_NUM < 170000
#define paimon_my_lxid() (MyProc->lxid)
#else
#define paimon_my_lxid() (MyProc->vxid.lxid)
#endif

/* ANALYZE hands out blocks one by one until 16, by a stream since 17; the stream must not be asked for buffers. */
#include "access/tableam.h"
#if PG_VERSION_NUM < 170000
#define PAIMON_ANALYZE_BLOCK_ARGS TableScanDesc scan, BlockNumber analyze_block, BufferAccessStrategy strategy
#define paimon_analyze_block() (analyze_block)
#else
#include "storage/read_stream.h"
#define PAIMON_ANALYZE_BLOCK_ARGS TableScanDesc scan, ReadStream *stream
#define paimon_analyze_block() paimon_stream_block(stream)
static inline BlockNumber
paimon_stream_block(ReadStream *stream)
{
	BufferAccessStrategy strategy;

	return read_stream_next_block(stream, &strategy);
}
#endif

/* Is this process an autovacuum worker?  Renamed in 17. */
#include "postmaster/autovacuum.h"
#if PG_VERSION_NUM < 170000
#define paimon_is_autovacuum_worker() IsAutoVacuumWorkerProcess()
#else
#define paimon_is_autovacuum_worker() AmAutoVacuumWorkerProcess()
#endif

/* Waits for nobody: has that transaction ended?  18 can log it when one has not, for NOWAIT (log_lock_failures). */
#if PG_VERSION_NUM < 180000
#define paimon_xact_has_ended(xid, nowait) ConditionalXactLockTableWait(xid)
#else
#include "storage/lock.h"
#define paimon_xact_has_ended(xid, nowait) ConditionalXactLockTableWait((xid), (nowait) && log_lock_failures)
#endif

/* A parallel scan names its table: by its OID until 17, by its storage since 18. */
#if PG_VERSION_NUM < 180000
#define paimon_name_parallel_scan(pscan, rel) ((pscan)->phs_relid = RelationGetRelid(rel))
#else
#define paimon_name_parallel_scan(pscan, rel) ((pscan)->phs_locator = (rel)->rd_locator)
#endif

/*
 * 18 asks an index's access method which number the opclass's equality has (replication looks rows up by it).  Our keys have btree's opclasses, so
 * the answers are btree's.
 */
#if PG_VERSION_NUM < 180000
#define paimon_index_compares_like_btree(am) ((void) (am))
#else
#include "access/nbtree.h"
static inline void
paimon_index_compares_like_btree(IndexAmRoutine *am)
{
	am->amtranslatestrategy = bttranslatestrategy;
	am->amtranslatecmptype = bttranslatecmptype;
	am->amconsistentequality = true;
	am->amconsistentordering = true;
}
#endif

/* What a compaction waits for that is held back: extensions can name such things since 17; until then it is as vacuum's. */
#if PG_VERSION_NUM < 170000
#include "utils/wait_event.h"
#define paimon_wait_event_throttle() WAIT_EVENT_VACUUM_DELAY
#else
#include "utils/wait_event.h"
static inline uint32
paimon_wait_event_throttle(void)
{
	static uint32 event = 0;

	if (event == 0)
		event = WaitEventExtensionNew("PaimonCompactionDelay");
	return event;
}
#endif

/*
 * The slot of a custom scan's rows.  Until 16 core makes a virtual one, and has compiled clauses and targets for it by the time that the scan begins:
 * then this is done again for ours.  (17 asks; 16 may, but need not be told apart.)
 */
#if PG_VERSION_NUM < 170000
#define paimon_init_scan_slot(node, ops) ((void) 0)
#define paimon_use_scan_slot(node, ops) \
	do \
	{ \
		ScanState  *ss_ = &(node)->ss; \
		ss_->ps.subPlan = NIL; \
		ExecInitScanTupleSlot(ss_->ps.state, ss_, RelationGetDescr(ss_->ss_currentRelation), (ops)); \
		ExecAssignScanProjectionInfo(ss_); \
		ss_->ps.qual = ExecInitQual(ss_->ps.plan->qual, &ss_->ps); \
	} while (0)
#else
#define paimon_init_scan_slot(node, ops) ((node)->slotOps = (ops))
#define paimon_use_scan_slot(node, ops) ((void) 0)
#endif

/*
 * ON CONFLICT looks for rows by unique indexes: core insists until 17 that they be btrees, since 18 it asks the access method.
 */
#if PG_VERSION_NUM < 180000
#define PAIMON_CORE_WANTS_BTREE true
#else
#define PAIMON_CORE_WANTS_BTREE false
#endif

/* From a partitioned table's rows to a partition's: kept in the partition's ResultRelInfo until 15, made on demand since 16. */
#if PG_VERSION_NUM < 160000
#define paimon_root_to_child(rri, estate) ((void) (estate), (rri)->ri_RootToPartitionMap)
#define paimon_attrmap_by_name(to, from) build_attrmap_by_name((to), (from))
#else
#define paimon_root_to_child(rri, estate) ExecGetRootToChildMap((rri), (estate))
#define paimon_attrmap_by_name(to, from) build_attrmap_by_name((to), (from), false)
#endif

/* RETURNING can ask for the row as it was before since 18. */
#if PG_VERSION_NUM < 180000
#define paimon_var_is_old(var) ((void) (var), false)
#define paimon_node_is_old(node) ((void) (node), false)
#else
#define paimon_var_is_old(var) ((var)->varreturningtype == VAR_RETURNING_OLD)
#define paimon_node_is_old(node) (IsA((node), ReturningExpr) && ((const ReturningExpr *) (node))->retold)
#endif

/* Statuses of transactions before this one may be gone; read under XactTruncationLock. */
#if PG_VERSION_NUM < 170000
#define PAIMON_OLDEST_CLOG_XID (ShmemVariableCache->oldestClogXid)
#else
#define PAIMON_OLDEST_CLOG_XID (TransamVariables->oldestClogXid)
#endif

#endif							/* PAIMON_COMPAT_H */
