/*-------------------------------------------------------------------------
 *
 * memtable_internal.h
 *	  What the files of the shared half of memtable/ know of each other.  Nobody else includes this.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_MEMTABLE_INTERNAL_H
#define PAIMON_MEMTABLE_INTERNAL_H

#include "postgres.h"

#include "lib/ilist.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/resowner.h"

#include "core/core_arena.h"
#include "core/core_bloom.h"
#include "core/core_skiplist.h"
#include "memtable/shared.h"

/* ---- batch format (memtable_batch.c) ---- */

#define PAIMON_RECORD_HEADER 16
#define PAIMON_DIRECTORY_ENTRY 16

/* Payloads above this stay in the log; an index holds only where they are. */
#define PAIMON_INLINE_MAX 8192

/* Kinds of records from here on are key locks: 0x40 | mode << 1 | all.  No memtable holds them. */
#define PAIMON_RECORD_LOCK 0x40

typedef struct PaimonBatchRecord
{
	uint64      position;
	int         bucket;
	uint8       kind;
	PaimonBytes key;
	PaimonBytes payload; /* 8-aligned if the body is */
} PaimonBatchRecord;

/* Walks the records of a batch in the order of their positions. */
typedef struct PaimonBatchReader
{
	uint64                   position; /* of the batch */
	const PaimonBatchHeader *header;
	const uint8             *body;
	uint32                   size;    /* of header and body */
	uint32                   section; /* directory entry at work */
	uint32                   left;    /* records of it not yet given */
	uint32                   offset;  /* of the next record, from the header's first byte */
	uint32                   end;     /* of the section */
	int                      bucket;
	bool                     corrupt;
	const char              *why;
} PaimonBatchReader;

extern void paimon_batch_read_begin(PaimonBatchReader *r, uint64 position, const PaimonBatchHeader *header,
									const uint8 *body);
extern bool paimon_batch_read_next(PaimonBatchReader *r, PaimonBatchRecord *rec);
/* A record that a reader has given before, by its offset from the header's first byte. */
extern PaimonBatchRecord paimon_batch_read_again(uint64 position, const uint8 *body, uint32 offset);
extern void paimon_batch_report_corrupt(Relation rel, uint64 position, const char *why) pg_attribute_noreturn();

/* Reads and checks a whole batch, body in the current context; returns the position behind it. */
extern uint64 paimon_batch_load(Relation rel, uint64 storage_id, uint64 position, PaimonBatchHeader *header,
								uint8 **body);

/* The header alone, with checks that the batch ends at or before `tail`; returns the position behind it. */
extern uint64 paimon_batch_peek(Relation rel, uint64 storage_id, uint64 position, uint64 tail,
								PaimonBatchHeader *header);

/*
 * Reads one record with its checksum into memory of the current context; *rec points into it.  Batch header in
 * *header.
 */
extern void paimon_batch_load_record(Relation rel, uint64 storage_id, uint64 position, uint64 tail,
									 PaimonBatchHeader *header, PaimonBatchRecord *rec);

/* ---- a memtable: batches and skip lists over a range of the log, in shared or private chunks ---- */

#define PAIMON_LEAF_BUCKETS 256
#define PAIMON_LEAVES 128 /* buckets up to 32767 */

#define PAIMON_HINT_UNKNOWN 0
#define PAIMON_HINT_COMMITTED 1
#define PAIMON_HINT_ABORTED 2

/* A batch; nodes name it by its reference (their `batch`). */
typedef struct PaimonBatchInfo
{
	uint64        position;
	uint64        end;
	TransactionId xid;   /* Invalid if frozen */
	uint32        hint;  /* PAIMON_HINT_…; set by anybody, only ever to the truth */
	uint16        flags; /* PAIMON_BATCH_… */
	uint16        unused;
	PaimonRef     next; /* the next batch of the memtable; read with acquire */
} PaimonBatchInfo;

/* Lies in the first chunk of its own arena.  refs counts pins, and 1 for being linked in an entry. */
typedef struct PaimonMemtable
{
	PaimonArenaState arena;
	pg_atomic_uint32 refs;
	pg_atomic_uint32 sealed;
	uint64           from;    /* first position covered */
	pg_atomic_uint64 to;      /* end of what is covered; stored with release after all of a batch is in */
	uint64           created; /* age: lower is older */
	uint64           rng;
	PaimonRef        first_batch; /* read with acquire */
	PaimonRef        last_batch;  /* the writer's */
	uint32           nbatches;
	PaimonRef leaf[PAIMON_LEAVES]; /* arrays of PAIMON_LEAF_BUCKETS references of skip lists; read with acquire */
} PaimonMemtable;

/*
 * Empty memtable in an arena; NULL if there is no memory.  *state is the empty arena's and is moved into the
 * memtable.
 */
extern PaimonMemtable *paimon_memtable_make(PaimonArena *arena, PaimonArenaState *state, uint64 from);

/* Memory that is wanted, for paimon_arena_reserve. */
typedef struct PaimonMemtableCost
{
	uint64 total;   /* at most */
	uint32 largest; /* piece */
} PaimonMemtableCost;

/*
 * A stretch of the log (memtable_stretch.c): batches one behind the other, read and checked, their records sorted; in the current context.
 */
typedef struct PaimonStretch PaimonStretch;

/*
 * The batches from `from` on, at least one, until there are `bytes` of them or `limit` (where a batch ends) is reached.  Payloads above inline_max are left in
 * the log.  Raises DATA_CORRUPTED for a batch that is not well formed.
 */
extern PaimonStretch *paimon_stretch_load(Relation rel, uint64 storage_id, uint64 from, uint64 limit, uint64 bytes, uint32 inline_max);
extern const PaimonMemtableCost *paimon_stretch_cost(const PaimonStretch *s);
extern uint64 paimon_stretch_from(const PaimonStretch *s);
extern uint64 paimon_stretch_end(const PaimonStretch *s);

/* All of it into the memtable, whose arena has reserved the cost; false if that was not so.  Throws nothing. */
extern bool paimon_stretch_insert(PaimonStretch *s, PaimonMemtable *mt, PaimonArena *arena);

/* The batch's entry, linked behind the others; the bucket's list, made if it is not there.  None: no memory, which a reservation excludes. */
extern PaimonRef paimon_memtable_add_batch(PaimonMemtable *mt, PaimonArena *arena, uint64 position, const PaimonBatchHeader *header);
extern PaimonSkipList *paimon_memtable_make_list(PaimonMemtable *mt, PaimonArena *arena, int bucket);

/*
 * Adds a stretch that begins at the memtable's end.  Reserves memory first: false,
 * and nothing changed, if there is none.  Nothing throws between the first insert and the end (a private arena's
 * allocator may, while reserving).  *broken: the memtable must be thrown away (it cannot happen).
 */
extern bool paimon_memtable_add(PaimonMemtable *mt, PaimonArena *arena, PaimonStretch *stretch, bool *broken);

/* The bucket's list, or NULL. */
extern const PaimonSkipList *paimon_memtable_list(const PaimonMemtable *mt, const PaimonArena *arena, int bucket);

/* Handle for reading a memtable of the pool. */
extern void paimon_memtable_reader(PaimonMemtable *mt, PaimonArena *arena);

/* Gives a pin back; the last one frees the chunks.  Never fails. */
extern void paimon_memtable_unpin(PaimonMemtable *mt);

static inline uint64
paimon_memtable_end(PaimonMemtable *mt)
{
	uint64 to = pg_atomic_read_u64(&mt->to);

	pg_read_barrier();
	return to;
}

/* ---- chunk pool (memtable_pool.c) ---- */

extern void   paimon_pool_init(void);
extern Size   paimon_pool_shmem_size(void);
extern void   paimon_pool_shmem_init(void);
extern uint8 *paimon_pool_base(void);
extern bool   paimon_pool_get(void *arg, uint32 *index); /* PaimonGetChunk */
extern void   paimon_pool_put(void *arg, uint32 index);
extern uint32 paimon_pool_free_chunks(void);
extern uint32 paimon_pool_chunks(void);

/* ---- listeners (memtable_listener.c) ---- */

extern Size paimon_listener_shmem_size(void);
extern void paimon_listener_shmem_init(void);

/* ---- entries (memtable_shared.c) ---- */

#define PAIMON_MAX_GENERATIONS 16
#define PAIMON_TOUCHED_BITS 1024

typedef struct PaimonSharedKey
{
	PaimonLocator locator;
	uint32        zero;
	uint64        storage_id;
} PaimonSharedKey;

#define PAIMON_STATE_NEW 0     /* nothing known */
#define PAIMON_STATE_STANDBY 1 /* tail known, may grow by replay */
#define PAIMON_STATE_PRIMARY 2 /* tail exact, prepared transactions' locks entered */

/* Who publishes a manifest version (memtable_versions.c). */
#define PAIMON_VERSIONS 16

typedef struct PaimonVersion
{
	uint64            version; /* 0: none */
	FullTransactionId writer;
} PaimonVersion;

struct PaimonShared
{
	slock_t          mutex;  /* generations, bulk slot, flags; held for a few dozen instructions */
	bool             in_use; /* changes under mapping lock and mutex */
	bool             forgotten;
	bool             requested;
	bool             size_noticed; /* the scheduler was woken because there is much to flush */
	bool             blocked;
	PaimonSharedKey  key;
	Oid              relid;
	int              nbuckets;
	pg_atomic_uint32 pins;  /* raised under the mapping lock */
	pg_atomic_uint32 state; /* PAIMON_STATE_…; changes under append lock */
	LWLock           append_lock;
	LWLock           index_lock;

	PaimonLogTail    tail;          /* under append lock */
	pg_atomic_uint64 tail_position; /* copy; stored after the batch is in the log */
	pg_atomic_uint64 head;          /* newest known */
	pg_atomic_uint64 announced;     /* newest manifest version known to be published or about to be */
	PaimonVersion    versions[PAIMON_VERSIONS]; /* the last announcements, by version; under mutex */

	TransactionId     bulk_xid; /* Invalid: slot free */
	uint64            bulk_number;
	ConditionVariable bulk_cv;

	int              ngen;
	PaimonMemtable  *gen[PAIMON_MAX_GENERATIONS]; /* by `from`, disjoint */
	uint32           starved_chunks;              /* free chunks that the batch at starved_position wants */
	uint64           starved_position;
	pg_atomic_uint64 last_used;
	pg_atomic_uint32 eager; /* commits to come that leave nothing to be indexed by others */

	pg_atomic_uint64         runs;          /* see memtable_runs.c */
	pg_atomic_uint32         runs_waiting;  /* writers */
	pg_atomic_uint32         times_blocked; /* only grows */
	ConditionVariable        runs_cv;
	struct PaimonTableStats *stats; /* changes under the mapping lock; NULL: nothing is counted */

	bool        sweep; /* a transaction has left files that nobody knows */
	uint64      live_bytes;    /* of the table's files at the last reclaim, plus 1; 0: not known */
	bool        was_swept;     /* since the entry is in use; the last sweep spared files from this number on, ... */
	uint64      swept_file_no;
	FullTransactionId swept_xid; /* ... and whatever transactions from this one on had taken */
	uint64      write_buffer_size;
	uint64      spill_size;
	int64       flush_after_ms; /* 0: no deadline */
	uint32      runs_limit;     /* of a bucket, PG_UINT32_MAX: none */
	TimestampTz oldest;
	TimestampTz cut_time;
	int         ntouched;
	uint8       touched[PAIMON_TOUCHED_BITS / 8];
};

extern int           paimon_max_tables;
extern PaimonShared *paimon_shared_slot(int i); /* i < paimon_max_tables; look at in_use under its mutex */

/* Tail for readers: what is visible to a snapshot taken before lies below it.  No lock on a primary. */
extern uint64 paimon_shared_read_tail(PaimonShared *shared, Relation rel);
extern void   paimon_shared_advance_head(PaimonShared *shared, uint64 head);
extern uint64 paimon_shared_tick(void);

/* ---- runs and counters (memtable_runs.c, memtable_stats.c; the rest is in stats.h) ---- */

typedef struct PaimonTableStats PaimonTableStats;
extern void paimon_runs_change(PaimonShared *shared, bool one_more, uint32 runs);

/* ---- dropping (memtable_drop.c) ---- */

/*
 * Unlinks memtables until `chunks` are free: first what no new reader wants (below the newest head), oldest first;
 * then, unless flushed_only, those of tables not used for a while.  False if not enough could be had (pinned ones
 * are freed later).
 */
extern bool paimon_memtable_make_room(uint32 chunks, bool flushed_only, const PaimonShared *except);
extern void paimon_memtable_drop_all(PaimonShared *shared);
/*
 * When less than a quarter of the pool is free: asks for flushes of the tables that hold the most, at least the average, though each for itself has not
 * reached its write buffer's size; else nobody would ever flush them, and all would have to sort the log for themselves.  Takes only spinlocks, never
 * throws; wakes a worker, so call it without locks.
 */
extern void paimon_memtable_relieve(void);

/* Is the log large and old enough to be flushed though it is below the thresholds?  live_bytes as in PaimonShared. */
extern bool paimon_log_outweighs(const PaimonSharedInfo *info, uint64 live_bytes);

/* Pins the memtables that overlap [from, to); returns how many, in order. */
extern int paimon_memtable_pin_range(PaimonShared *shared, uint64 from, uint64 to, PaimonMemtable **mts);

/* ---- visibility (memtable_visible.c) ---- */

/* Committed according to clog, by hint where there is one.  False while running. */
extern bool paimon_batch_committed(PaimonBatchInfo *b);

/* Running or prepared. */
extern bool paimon_batch_running(PaimonBatchInfo *b);

/* Does an MVCC snapshot see the batch? */
extern bool paimon_batch_visible(PaimonBatchInfo *b, Snapshot snapshot);

/* ---- key locks (memtable_keylock.c) ---- */

extern void paimon_keylock_init(void);
extern Size paimon_keylock_shmem_size(void);
extern void paimon_keylock_shmem_init(void);

/* Enters a prepared transaction's lock again, unless it is there. */
extern void paimon_keylock_reenter(Relation rel, uint64 storage_id, int bucket, uint64 key_hash, bool all,
								   LockTupleMode mode, bool writes, TransactionId xid);

extern int paimon_keylock_storages(uint64 **storage_ids, Oid **relids);

/* ---- private indexes (memtable_private.c) ---- */

/*
 * A memtable in the backend's own memory, for log that no shared one covers.  Kept to the end of the transaction
 * and shared by its views, whatever their snapshots: it holds all batches of its range.
 */
typedef struct PaimonPrivateIndex PaimonPrivateIndex;

/* An index that covers [from, to); its references are counted by the caller's pins. */
extern PaimonPrivateIndex *paimon_private_range(PaimonShared *shared, Relation rel, uint64 from, uint64 to);

/* An index of just the batches at positions[]. */
extern PaimonPrivateIndex *paimon_private_batches(PaimonShared *shared, Relation rel, const uint64 *positions, int n);
extern PaimonMemtable     *paimon_private_memtable(PaimonPrivateIndex *p);
extern const PaimonArena  *paimon_private_arena(PaimonPrivateIndex *p);
extern void                paimon_private_pin(PaimonPrivateIndex *p);
extern void                paimon_private_unpin(PaimonPrivateIndex *p);
extern void                paimon_private_forget_all(void); /* at the end of the transaction */

/* ---- views (memtable_view.c, memtable_iter.c) ---- */

typedef enum PaimonViewMode
{
	PAIMON_VIEW_SNAPSHOT, /* what the snapshot sees */
	PAIMON_VIEW_FLUSH,    /* what is committed and not excluded */
	PAIMON_VIEW_ALL       /* everything that is not known to be aborted */
} PaimonViewMode;

typedef struct PaimonViewSource
{
	PaimonMemtable    *mt;
	const PaimonArena *arena; /* of the pool or of a private index */
	uint64             lo;    /* positions of it that count: [lo, hi) */
	uint64             hi;
	uint64             shown_before; /* the view shows all records below this position; 0: not known */
} PaimonViewSource;

/* Gaps between memtables, before the first and behind the last, and the left-over batches. */
#define PAIMON_MAX_PRIVATE (PAIMON_MAX_GENERATIONS + 2)
#define PAIMON_MAX_SOURCES (PAIMON_MAX_GENERATIONS + PAIMON_MAX_PRIVATE)

/* Pins that go with a resource owner, whatever happens to the memory of who wanted them. */
typedef struct PaimonViewPins
{
	dlist_node      node;
	ResourceOwner   owner;
	int             nmemtables;
	int             nprivate;
	PaimonMemtable *memtables[PAIMON_MAX_GENERATIONS];
	PaimonPrivateIndex *private[PAIMON_MAX_PRIVATE];
} PaimonViewPins;

/*
 * An empty set of pins that belongs to CurrentResourceOwner; filled by paimon_memtable_pin_range and
 * paimon_private_pin.
 */
extern PaimonViewPins *paimon_pins_make(void);
extern void            paimon_pins_release(PaimonViewPins *pins);

struct PaimonMemView
{
	PaimonShared     *shared;
	Relation          rel;
	PaimonViewMode    mode;
	Snapshot          snapshot;  /* PAIMON_VIEW_SNAPSHOT */
	uint64            tail;      /* of the log when the view was opened: for reading external payloads */
	int               nexcluded; /* PAIMON_VIEW_FLUSH: batches left over, ascending */
	uint64           *excluded;
	int               nsources;
	PaimonViewSource *sources; /* newest first; disjoint ranges */
	PaimonArena       pool;
	PaimonViewPins   *pins;
};

extern void paimon_memview_init(void);

/* Everything not known to be aborted, up to a tail read by paimon_shared_tail. */
extern PaimonMemView *paimon_memview_open_all(PaimonShared *shared, Relation rel, const PaimonLogRow *log);

/* Does the view show the batch? */
extern bool paimon_memview_shows(PaimonMemView *view, PaimonBatchInfo *b);

#endif /* PAIMON_MEMTABLE_INTERNAL_H */
