/*-------------------------------------------------------------------------
 *
 * buffer.h
 *	  The write buffer: what the running transaction has written and not yet committed.
 *
 * Per transaction and storage, split by bucket; an append arena ordered only when somebody needs order.  Each record has an ordinal;
 * command ids and sub-transactions are ranges of ordinals.  One byte budget per backend; beyond it sorted content is spilled into level-0 run
 * files that belong to the transaction.  At commit the content becomes one batch of the delta log (small) or run files (large).
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_BUFFER_H
#define PAIMON_BUFFER_H

#include "postgres.h"

#include "utils/rel.h"
#include "utils/snapshot.h"

#include "memtable/table.h"
#include "run/run.h"

/* ctids of write-buffer records: top block numbers. */
#define PAIMON_BUFFER_ROWS_PER_BLOCK 65000
#define PAIMON_BUFFER_FIRST_BLOCK	((BlockNumber) 0xEFFFFFFF)	/* blocks from here on hold ordinals */

extern void paimon_buffer_init(void);	/* registers transaction callbacks */

/*
 * Adds a record written by the current (sub)transaction in command `cid`.  Takes the transaction's xid and registers the active snapshot with the top
 * resource owner at the first write (H10).  `locked`: the transaction holds the lock of the key (UPDATE, DELETE): not a blind upsert.  May spill.
 * Returns the record's ctid.
 */
extern void paimon_buffer_put(PaimonTable *table, Relation rel, CommandId cid, int bucket, uint8 kind, bool locked,
							  const uint8 *key, uint32 keylen, const uint8 *payload, uint32 len, ItemPointer tid);

/* True if the transaction has live records in this storage that a scan must merge. */
extern bool paimon_buffer_has_rows(uint64 storage_id);

/* Records that this transaction has put so far, those rolled back included: for estimates. */
extern uint64 paimon_buffer_put_rows(uint64 storage_id);

/* Records that this transaction has put so far into whichever table: who compares sees whether others wrote in between. */
extern uint64 paimon_buffer_puts(void);

/*
 * Iterators over records of one bucket that `snapshot` may see (command id rule; all for Self/Any/Dirty), as sources: in-memory part and each spilled
 * run are separate, newest first.  Per key only the newest visible record is given; of tables that merge all of them, or what they come to.
 */
typedef struct PaimonBufferIter PaimonBufferIter;

typedef struct PaimonBufferRecord
{
	PaimonBytes key;
	uint8		kind;
	PaimonBytes payload;		/* 8-aligned; valid until the transaction ends or the buffer spills (iterators notice and seek again) */
	CommandId	cid;			/* that wrote it; set by paimon_buffer_each only */
	ItemPointerData tid;		/* ordinal ctid, or the physical one of a spilled row */
} PaimonBufferRecord;

extern PaimonBufferIter *paimon_bufiter_begin(PaimonTable *table, Relation rel, int bucket, CommandId cid, bool forward);
extern bool paimon_bufiter_first(PaimonBufferIter *it, PaimonBufferRecord *rec);
extern bool paimon_bufiter_seek(PaimonBufferIter *it, const uint8 *key, uint32 len, PaimonBufferRecord *rec);
extern bool paimon_bufiter_next(PaimonBufferIter *it, PaimonBufferRecord *rec);
extern void paimon_bufiter_end(PaimonBufferIter *it);

/* Newest visible record of a key. */
extern bool paimon_buffer_get(PaimonTable *table, Relation rel, int bucket, CommandId cid, const uint8 *key, uint32 len, PaimonBufferRecord *rec);

/*
 * All records of a key that commands before `cid` wrote, with ordinals below `end`, newest first, until `give` returns false.  For tables that merge.  What
 * records point to is valid until the transaction writes again, or in CurrentMemoryContext.
 */
typedef bool (*PaimonBufferGive) (void *arg, const PaimonBufferRecord *rec);
extern void paimon_buffer_each(PaimonTable *table, Relation rel, int bucket, CommandId cid, uint64 end, const uint8 *key, uint32 len,
							   PaimonBufferGive give, void *arg);

/*
 * Is the record of the key behind the one with an ordinal below `end` an UPDATE's or a DELETE's?
 */
extern bool paimon_buffer_changed_after(PaimonTable *table, int bucket, const uint8 *key, uint32 len, uint64 end);

/* By ctid, whatever the command. */
extern bool paimon_buffer_is_tid(ItemPointer tid);
/* A spilled file, which no manifest knows yet: ctids of spilled rows lead to it.  NULL if it is not one of this transaction's. */
extern const PaimonFileRow *paimon_buffer_spilled_file(uint64 storage_id, uint64 file_no);
/* The ordinal behind that of a record in the buffer, or of a row of a spilled file (0: not ours): see paimon_buffer_each. */
extern uint64 paimon_buffer_tid_end(ItemPointer tid);
extern uint64 paimon_buffer_spilled_end(const PaimonTable *table, Relation rel, uint64 file_no, uint32 group_no, uint32 row);
extern bool paimon_buffer_fetch_tid(PaimonTable *table, Relation rel, ItemPointer tid, int *bucket, PaimonBufferRecord *rec);

/*
 * What the running command has already done to a key: for TM_SelfModified / TM_Invisible.  Returns false if it has not touched it; else the command id of the
 * newest record and its kind.
 */
extern bool paimon_buffer_touched(PaimonTable *table, Relation rel, int bucket, const uint8 *key, uint32 len, CommandId *cid, uint8 *kind);

/* Has the transaction appended what it wrote?  It is about to commit then. */
extern bool paimon_buffer_is_precommitted(void);

/* The transaction's writes to this storage belong to another relation from now on (a rewrite's result is taken over by its table). */
extern void paimon_buffer_adopt(uint64 storage_id, Oid relid);

/* Registers finished files as what this transaction adds to the table; see memtable_commit.c. */
extern void paimon_bulk_register(PaimonTable *table, Relation rel, PaimonFileRow *files, int nfiles);

/*
 * Called at the end of pre-commit for each table whose log has outgrown "write-buffer-spill-size" (H31): may flush it within the transaction.
 * src/compact sets it.
 */
extern void (*paimon_precommit_flush_hook) (PaimonTable *table, Relation rel);

/*
 * Called at the beginning of pre-commit, before it takes any lock, for each table with "compaction.async" = false that was written to: may wait for a worker.
 * src/worker sets it.
 */
extern void (*paimon_precommit_wait_hook) (PaimonTable *table, Relation rel);

#endif							/* PAIMON_BUFFER_H */
