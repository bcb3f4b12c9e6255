/*-------------------------------------------------------------------------
 *
 * shared.h
 *	  What all backends share about a storage: the log's tail and its lock, memtables, the bulk slot, and who holds which key.
 *
 * Everything here is a cache or a lock: after a restart it is empty and is rebuilt from the log.  Entries are keyed
 * by (database, locator, storage id).  See README.md here for the protocols (H1-H5, H11, H15, H16, H27 name the
 * races they answer).
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_SHARED_H
#define PAIMON_SHARED_H

#include "postgres.h"

#include "access/transam.h"
#include "nodes/lockoptions.h"
#include "storage/latch.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "catalog/manifest.h"
#include "core/core_group.h"
#include "storage/storage.h"

typedef struct PaimonShared PaimonShared; /* lives in shared memory; opaque outside memtable/ */

extern void paimon_shared_init(void); /* GUCs paimon.memtable_memory, paimon.max_tables, paimon.max_key_locks */
extern Size paimon_shared_shmem_size(void);
extern void paimon_shared_shmem_init(void);

/*
 * Finds or makes the entry of a storage and pins it (a pin keeps the entry, not its memtables).  The first to
 * attach after a restart finds the tail and re-enters the key locks of prepared transactions.  Pins belong to the
 * backend: paimon_shared_unpin gives one back; all of a backend's are dropped when it exits.  Raises
 * CONFIGURATION_LIMIT_EXCEEDED (hint: paimon.max_tables) when all entries are pinned.
 */
extern PaimonShared *paimon_shared_attach(Relation rel, uint64 storage_id, int nbuckets);
extern void          paimon_shared_unpin(PaimonShared *shared);

/*
 * Makes sure that the tail is exact and prepared transactions' locks are entered: attach does it, and it must be
 * done again before a transaction's first key lock, append or bulk of a table, since the server may have been
 * promoted since.  Cheap when there is nothing to do.  Reads the manifest: no LWLock may be held.
 */
extern void paimon_shared_ready(PaimonShared *shared, Relation rel);

/*
 * The table's options that matter here: bytes at which a flush is wanted (a touched bucket; at most for the table),
 * and age in ms (0: any); runs of a bucket at which writers wait, and flushes for size too (PG_UINT32_MAX: none).
 */
extern void   paimon_shared_configure(PaimonShared *shared, uint64 write_buffer_size, uint64 spill_size,
									  int64 flush_after_ms, uint32 runs_limit);
/* Bytes of the table's live files: a log that is large beside them is flushed when it is old. */
extern void   paimon_shared_set_live_bytes(PaimonShared *shared, uint64 bytes);
extern uint64 paimon_shared_storage_id(const PaimonShared *shared);

/*
 * Forgets a storage that is gone (dropped, truncated away and committed); harmless if unknown or pinned (then at
 * the last unpin).
 */
extern void paimon_shared_forget(Oid dbid, uint64 storage_id);

/* ---- append lock and tail ---- */

/*
 * Short exclusive section around "look at key locks and the bulk slot, then append".  An LWLock: nothing in it may
 * wait for anybody.
 */
extern void paimon_append_lock(PaimonShared *shared);
extern void paimon_append_unlock(PaimonShared *shared);

/*
 * Appends a batch (see paimon_log_append) under the append lock.  Also registers the batch for cuts.
 */
extern uint64 paimon_shared_append(PaimonShared *shared, Relation rel, FullTransactionId xid, PaimonLogBatch *batch);

/*
 * Present tail: takes the append lock for a moment on a primary; on a standby walks the log from the last known
 * tail.
 */
extern uint64 paimon_shared_tail(PaimonShared *shared, Relation rel);

/* Bytes of log between the newest known head and the tail: for flush and spill thresholds. */
extern uint64 paimon_shared_unflushed(PaimonShared *shared);

/* ---- bulk slot (H1): one large commit at a time has a number and is not yet decided ---- */

/*
 * Under the publish lock and the append lock (after paimon_shared_ready): takes the tail as number.  Cleared by
 * paimon_bulk_clear after commit or abort (never fails).
 */
extern uint64 paimon_bulk_enter(PaimonShared *shared, TransactionId xid);
extern void   paimon_bulk_clear(PaimonShared *shared);
extern bool   paimon_bulk_pending(PaimonShared *shared, TransactionId *xid, uint64 *number);
/*
 * Waits until the slot is free (condition variable; after 1 s XactLockTableWait, so that deadlocks show).  No
 * LWLock held.
 */
extern void paimon_bulk_wait(PaimonShared *shared);

/* ---- catching up ---- */

/*
 * Indexes the log from where the memtables are to the present tail (unless memory is short), sharing the work with others.  reader: somebody waits for it, and
 * others like him may come; so the next commits do it themselves.
 */
extern void paimon_shared_catch_up(PaimonShared *shared, Relation rel, bool reader);

/* A commit's part of that, after it has appended `len` bytes: not much, often nothing; never waits for others. */
extern void paimon_shared_appended(PaimonShared *shared, Relation rel, uint32 len);

/* ---- a view of the unflushed rows for one snapshot ---- */

typedef struct PaimonMemView PaimonMemView;
typedef struct PaimonMemIter PaimonMemIter;

/* One record as iterators give it; its key stays as long as the view. */
typedef struct PaimonMemRecord
{
	PaimonBytes   key;
	uint64        position; /* of the record in the log */
	uint8         kind;     /* PaimonRowKind */
	PaimonBytes   payload;  /* 8-aligned */
	bool          external; /* the payload goes when the iterator moves; else it stays as long as the view */
} PaimonMemRecord;

/*
 * Everything in the log that `snapshot` sees and that is not in runs according to `log` (read with the same
 * snapshot): left-over prepared batches, and positions >= log->head up to a tail read now.  Catches up, pins
 * memtables, indexes privately what no memtable has. Only an MVCC snapshot will do; the caller keeps it registered
 * or active while the view is open.  Positions from `limit` on are left out (PG_UINT64_MAX: none). The view lives
 * in CurrentMemoryContext and is released by paimon_memview_close, or with CurrentResourceOwner's resources on
 * error.
 */
extern PaimonMemView *paimon_memview_open(PaimonShared *shared, Relation rel, Snapshot snapshot,
										  const PaimonLogRow *log, uint64 limit);

/*
 * Flush view: what is committed below cut->cut, that is: positions >= log->head and left-over batches of `log`,
 * without those that the cut lists as left over.  (It takes the cut itself: a prepared transaction that ends
 * between the cut and this call must not be both written and listed.)
 */
struct PaimonCut;
extern PaimonMemView *paimon_memview_open_flush(PaimonShared *shared, Relation rel, const PaimonLogRow *log,
												const struct PaimonCut *cut);
extern void           paimon_memview_close(PaimonMemView *view);

/*
 * For serializable readers (H8): every transaction whose writes are in the log or in files and which the view's snapshot does not see has a batch in the
 * log at or above the snapshot's head, large commits an empty one. Reports them all as conflicts; may raise a serialization failure.
 */
extern void paimon_memview_check_conflicts(PaimonMemView *view, const PaimonLogRow *log);

/* True if no record at all is visible in the view (cheap: scans skip the merge). */
extern bool paimon_memview_empty(PaimonMemView *view, int bucket);

/*
 * Iterator over the visible records of a bucket in (key ascending, position descending) order; several records of a
 * key are all given. forward false: (key descending, position descending within the key).
 */
extern PaimonMemIter *paimon_memiter_begin(PaimonMemView *view, int bucket, bool forward);
/*
 * A view has parts, newest first, which have no positions in common.  A merge that can take them one by one saves itself the merge within the iterator.
 * Whether the part has any of the positions [lo, hi); an iterator over it.
 */
extern int            paimon_memview_nparts(const PaimonMemView *view);
extern bool           paimon_memview_part_has(const PaimonMemView *view, int part, uint64 lo, uint64 hi);
extern PaimonMemIter *paimon_memiter_begin_part(PaimonMemView *view, int part, int bucket, bool forward);
extern bool           paimon_memiter_first(PaimonMemIter *it, PaimonMemRecord *rec);
/* First record with key >= (forward) or <= (backward) the given one. */
extern bool paimon_memiter_seek(PaimonMemIter *it, const uint8 *key, uint32 len, PaimonMemRecord *rec);
extern bool paimon_memiter_next(PaimonMemIter *it, PaimonMemRecord *rec);
/*
 * As next, but passes over older records of the key in the same memtable with one search instead of step by step; those in older memtables still follow.
 */
extern bool paimon_memiter_next_key(PaimonMemIter *it, PaimonMemRecord *rec);
/*
 * Forward, over one part: of the record at hand and those behind it, at positions [lo, hi), up to `max`, of each key only the newest.  Payloads that the memtable does not hold (`external`) are not
 * read: data is NULL.  Returns how many; what is behind them is at hand then (false, as after next, once less than `max` were given).
 */
extern int paimon_memiter_newest(PaimonMemIter *it, uint64 lo, uint64 hi, PaimonMemRecord *recs, int max);
/* Reads the payload of such a record; good until the next call for this iterator. */
extern void paimon_memiter_payload(PaimonMemIter *it, PaimonMemRecord *rec);
extern void paimon_memiter_end(PaimonMemIter *it);

/* Newest visible record of one key. */
extern bool paimon_memview_get(PaimonMemView *view, int bucket, const uint8 *key, uint32 len, PaimonMemRecord *rec);

/* All visible records of one key, newest first, until `give` returns false. */
typedef bool (*PaimonMemGive) (void *arg, const PaimonMemRecord *rec);
extern void paimon_memview_each(PaimonMemView *view, int bucket, const uint8 *key, uint32 len, PaimonMemGive give, void *arg);

/* Reads one record at a log position whatever its visibility (for a ctid).  Copies into CurrentMemoryContext. */
extern bool paimon_log_record_at(PaimonShared *shared, Relation rel, uint64 position, int *bucket,
								 PaimonMemRecord *rec);

/*
 * Transactions, other than our own, that are running (or prepared) and have a record of the key at position >=
 * log->head or in a left-over batch, in the log up to its present tail: palloc'd array.  For UPDATE, DELETE, SELECT
 * FOR (step 3 of H4).  KEY SHARE lets those that do not remove the row run.  *invisible is set if there is a record of
 * the key that `snapshot` does not see (own ones aside), committed or not.
 */
extern TransactionId *paimon_key_writers(PaimonShared *shared, Relation rel, Snapshot snapshot, const PaimonLogRow *log,
										 int bucket, const uint8 *key, uint32 len, LockTupleMode mode, int *nxids,
										 bool *invisible);

/* ---- SERIALIZABLE (memtable_predicate.c) ---- */

/*
 * The transaction writes the key: may raise SERIALIZATION_FAILURE.  _check once more, by paimon_key_hash, after a key
 * that is not locked has been appended.
 */
extern void paimon_predicate_put(Relation rel, const uint8 *key, uint32 len);
extern void paimon_predicate_check(Relation rel, uint64 hash);

/* ---- records inside a batch (memtable_batch.c) ---- */

/* Builds the body of a batch: add records in any order of buckets, then finish. */
typedef struct PaimonBatchBuilder PaimonBatchBuilder;
extern PaimonBatchBuilder        *paimon_batch_begin(int nbuckets);
extern void   paimon_batch_add(PaimonBatchBuilder *b, int bucket, uint8 kind, const uint8 *key, uint32 keylen,
							   const uint8 *payload, uint32 len);
extern uint64 paimon_batch_size(const PaimonBatchBuilder *b);
struct PaimonKeyLock;
/*
 * A lock of paimon_keylock_mine, at PREPARE: the batch's flags get PAIMON_BATCH_LOCKS (besides
 * PAIMON_BATCH_PREPARED).
 */
extern void paimon_batch_add_lock(PaimonBatchBuilder *b, const struct PaimonKeyLock *lock);
/*
 * The batch as it is appended: pieces[] (at most 2 + touched buckets, palloc'd) point into the builder's memory.  `flags` of the header, and whether it
 * is packed, is the caller's.
 */
extern void paimon_batch_finish(PaimonBatchBuilder *b, PaimonLogBatch *batch);

/* ---- flush support ---- */

/* The prefix of the log that a flush may take now (H1): see README.md. */
typedef struct PaimonCut
{
	uint64  head;      /* where it starts: log->head */
	uint64  cut;       /* positions below go into runs */
	int     nleftover; /* prepared batches below cut that stay undecided: new left-over list */
	uint64 *leftover;
	bool    stopped_by_bulk; /* the cut is a pending or unnumbered bulk's number */
} PaimonCut;

/*
 * `limit`: do not pass this position (number of a registered bulk that has no snapshot yet); PG_UINT64_MAX for
 * none.  Never waits.
 */
extern void paimon_shared_cut(PaimonShared *shared, Relation rel, const PaimonLogRow *log, uint64 limit,
							  PaimonCut *cut);

/*
 * VACUUM, before it freezes batches: remembers the fate of all batches in memtables whose xid precedes `limit`, so
 * that nobody asks clog for them later.
 */
extern void paimon_shared_freeze_hints(PaimonShared *shared, TransactionId limit);

/* Seals the active memtable (at its present end), so that the next records go to a new one. */
extern void paimon_shared_seal(PaimonShared *shared);

/* After a flush's commit: the newest head.  Lets go of memtables below when memory is short. */
extern void paimon_shared_set_head(PaimonShared *shared, uint64 head);

/*
 * Newest manifest version that a writer holding the publish lock is about to commit (or has): a reader whose
 * snapshot saw this version in paimon.log knows that nothing was published since (0 after a restart: nothing
 * known).  The publisher announces in the (sub)transaction that wrote the log's row, before it commits.
 */
extern void   paimon_shared_announce(PaimonShared *shared, uint64 version);
extern void   paimon_shared_learn_version(PaimonShared *shared, uint64 version);
extern uint64 paimon_shared_announced(PaimonShared *shared);

/*
 * Is `version` of the manifest, whose row in paimon.log was once read as written and committed by `writer` (Invalid: frozen, or version 0, which no row
 * tells of), exactly what the MVCC snapshot sees?  False also if that cannot be told.  No lock held, nothing read.
 */
extern bool paimon_shared_sees_version(PaimonShared *shared, Snapshot snapshot, uint64 version, FullTransactionId writer);
/* The full form of a row version's writer, which is in the past; Invalid for a frozen one. */
extern FullTransactionId paimon_version_writer(TransactionId xid);

/*
 * Who is woken when a table wants a flush: the scheduler of a database; where there is none, the launcher (InvalidOid).  NULL unregisters.
 */
extern void paimon_shared_set_listener(Oid dbid, Latch *latch);
extern void paimon_listener_wake(Oid dbid); /* never fails */
extern void paimon_shared_request_flush(PaimonShared *shared);

/*
 * The scheduler's list: entries of this database that have unflushed log or a flush request; `due` says which want
 * a flush now.  palloc'd.
 */
typedef struct PaimonSharedInfo
{
	Oid         relid;
	uint64      storage_id;
	uint64      unflushed;
	uint64      tail;
	bool        requested;
	TimestampTz oldest; /* when the oldest unflushed batch was appended; 0 if none */
	uint64      memtable_bytes;
	int         nmemtables;
	bool        blocked; /* the worker could not lock the table (H14) */
	bool        due;     /* requested, or enough bytes and not too many runs, or old enough */
	bool        sweep;   /* a transaction has left files that nobody knows */
} PaimonSharedInfo;
extern PaimonSharedInfo *paimon_shared_list(Oid dbid, int *n);
extern bool              paimon_shared_info(PaimonShared *shared, PaimonSharedInfo *info);
extern void              paimon_shared_set_blocked(PaimonShared *shared, bool blocked);
/* The same, true, by table, for who cannot even open it. */
extern void paimon_shared_note_blocked(Oid dbid, Oid relid);
/* A cut has taken the request for a flush back, and the flush came to nothing: it is still wanted.  Wakes nobody. */
extern void paimon_shared_request_again(Oid dbid, Oid relid);
/*
 * A transaction that is over has left files that nobody knows.  Never fails.  Wakes nobody: our lock on the table, which goes a
 * moment later, would keep the free end from being given back.
 */
extern void paimon_shared_request_sweep(Oid dbid, Oid relid);
/* They are about to be looked for. */
extern void paimon_shared_swept(PaimonShared *shared);
/*
 * After a sweep: no file below `file_no` that nobody knows has kept an extent taken by a transaction before `xid`, nor has the log one that is not in
 * its chain.  The other one is false if there was none that we know of.
 */
extern void paimon_shared_set_swept_mark(PaimonShared *shared, uint64 file_no, FullTransactionId xid);
extern bool paimon_shared_swept_mark(PaimonShared *shared, uint64 *file_no, FullTransactionId *xid);

/* ---- key locks (H4, H16) ---- */

typedef enum PaimonKeyLockOutcome
{
	PAIMON_KEYLOCK_OK,
	PAIMON_KEYLOCK_CONFLICT /* *blocker is set; nothing was entered */
} PaimonKeyLockOutcome;

/*
 * Enters (storage, bucket, key hash) in one of heap's four modes for the current (sub)transaction, or strengthens
 * the entry it has.  `writes`: in order to change the key's row.  Never waits: the caller waits for *blocker with XactLockTableWait and tries again.  Entries
 * end with their holder's xid; dead holders' are replaced. Over its share a transaction enters "all keys of the
 * bucket" instead.
 */
extern PaimonKeyLockOutcome paimon_keylock_try(PaimonShared *shared, int bucket, uint64 key_hash, LockTupleMode mode,
											   bool writes, TransactionId *blocker);

/* Has the current transaction entered the key, or all keys of its bucket, in any mode? */
extern bool paimon_keylock_is_mine(PaimonShared *shared, int bucket, uint64 key_hash);

/*
 * Another transaction that has entered the key in order to change its row (or all keys of the bucket); Invalid if none.  For who asks with a dirty
 * snapshot, as ON CONFLICT does: it waits for writers, not for who only keeps a row locked.
 */
extern TransactionId paimon_keylock_writer(PaimonShared *shared, int bucket, uint64 key_hash);

/*
 * Looks for a conflicting entry of another transaction without entering anything: for small commits, under the
 * append lock.
 */
extern PaimonKeyLockOutcome paimon_keylock_check(PaimonShared *shared, int bucket, uint64 key_hash, LockTupleMode mode,
												 TransactionId *blocker);

/* True if there is no entry of anybody for this storage (cheap; lets small commits skip their checks). */
extern bool paimon_keylock_none(PaimonShared *shared);

/* Keys held by the current transaction on the storage: for PREPARE.  palloc'd. */
typedef struct PaimonKeyLock
{
	int           bucket;
	uint64        key_hash;
	LockTupleMode mode;
	bool          all; /* all keys of the bucket; key_hash means nothing */
} PaimonKeyLock;
extern PaimonKeyLock *paimon_keylock_mine(PaimonShared *shared, int *n);

/* Does the current transaction hold a key of any table? */
extern bool paimon_keylock_any(void);

/*
 * In PRE_PREPARE, after all appends: writes what the transaction has locked into the delta logs, so that it is still locked after a restart.
 */
extern void paimon_keylock_prepare(void);

/* At the end of the top transaction (not of a prepared one: `keep`). */
extern void paimon_keylock_end(bool keep);

/*
 * Throws out entries of transactions that are over and left them behind (COMMIT PREPARED runs no callback); flushes
 * call it.
 */
extern void paimon_keylock_sweep(void);

/* ---- statistics for views ---- */
extern Size paimon_memtable_pool_used(void);
extern Size paimon_memtable_pool_size(void);

#endif /* PAIMON_SHARED_H */
