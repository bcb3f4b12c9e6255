/*-------------------------------------------------------------------------
 *
 * buffer_internal.h
 *	  Structures of the write buffer, shared by memtable_buffer.c (arrival), memtable_sort.c (order), memtable_bufiter.c (reading),
 *	  memtable_spill.c (runs of the transaction) and memtable_commit.c (its end).
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_BUFFER_INTERNAL_H
#define PAIMON_BUFFER_INTERNAL_H

#include "storage/buffile.h"

#include "core/core_radix.h"
#include "memtable/buffer.h"

/*
 * One record in the arena: this header, the key, padding to 8, the payload.  `older` links records of one key, newest first, and is
 * maintained only while the buffer has its hash.
 */
typedef struct BufRecord
{
	uint64		ordinal;
	struct BufRecord *older;
	CommandId	cid;
	uint32		hash;
	uint32		bucket;
	uint32		len;			/* of payload */
	uint16		keylen;
	uint8		kind;
	bool		locked;			/* the transaction holds the key's lock: not a blind upsert */
} BufRecord;

static inline const uint8 *
bufrecord_key(const BufRecord *rec)
{
	return (const uint8 *) rec + MAXALIGN(sizeof(BufRecord));
}

static inline const uint8 *
bufrecord_payload(const BufRecord *rec)
{
	return bufrecord_key(rec) + MAXALIGN(rec->keylen);
}

/* Records ordered by (bucket, key, newest first); immutable, shared by the iterators that were begun on it. */
typedef PaimonSortItem SortEntry;

static inline BufRecord *
entry_record(const SortEntry *e)
{
	return (BufRecord *) e->ptr;
}

typedef struct SortedView
{
	int			refcount;
	uint64		n;
	SortEntry  *entries;
} SortedView;

/* Where a row of a spilled run came from, one a row in key order, when one command did not write them all. */
typedef struct SpillOrigin
{
	uint64		ordinal;
	CommandId	cid;
	uint32		locked;
} SpillOrigin;

/* A sorted run written before commit.  Rows of one key are adjacent, newest first, if there are several. */
typedef struct SpillRun
{
	int			bucket;
	int32		seq;			/* higher is newer; ordinal ranges of runs of a bucket are disjoint and rise with it */
	PaimonFileRow *files;
	int			nfiles;
	uint64		rows;
	CommandId	min_cid;
	CommandId	max_cid;
	uint64		min_ordinal;
	uint64		max_ordinal;
	bool		repeats;		/* some key has several rows */
	bool		unfolded;		/* ... which commands wrote one by one: must be rewritten before it is registered */
	bool		upserts;		/* some row is a blind upsert */
	BufFile    *origins;		/* NULL: all rows have cid = min_cid, and their ordinals do not matter one by one */
	uint32	   *row_of_ordinal; /* row + 1 by ordinal - min_ordinal; only if somebody may ask for a row by its ordinal */
	XLogRecPtr	lsn;
} SpillRun;

#define SEGMENT_RECORDS 512

typedef struct WriteBuffer
{
	uint64		storage_id;		/* hash key */
	Oid			relid;
	PaimonTable *table;
	MemoryContext cxt;			/* arena, segments, hash and views; reset by a spill */
	Size		bytes;			/* taken for records, their segments and their order */
	char	   *chunk;			/* bump allocation */
	Size		chunk_left;
	BufRecord ***segments;		/* records in order of arrival */
	int			nsegments;
	int			segments_room;
	uint64		nrecords;
	uint64		put_rows;		/* over all of the transaction, rolled back or not; bytes of keys and rows */
	uint64		put_bytes;
	CommandId	min_cid;		/* smallest and largest command with a record in memory */
	CommandId	max_cid;
	bool		upserts;		/* some record in memory is a blind upsert */
	uint32		generation;		/* counts spills: iterators compare */
	SortedView *sorted;			/* newest view, or NULL; covers the first sorted->n records by arrival */
	BufRecord **hash;			/* newest record by key, open addressing; NULL until somebody asks by key */
	uint32		hash_size;		/* power of 2 */
	uint32		hash_used;
	bool		row_triggers;	/* ctids of records must be found after a spill too */
	bool		tids_given;		/* so must those that a reader got of records in memory: reset by a spill */
	bool		wrote_files;	/* runs were begun: they are garbage if the transaction aborts */
	bool		left_files;		/* runs were written again: the old ones are garbage anyhow */
	List	   *spills;			/* of SpillRun, oldest first; in the transaction's context */
} WriteBuffer;

/* State of the transaction's writes; zero between transactions. */
typedef struct BufferXact
{
	bool		active;
	bool		precommitted;	/* later writes append at once (H29) */
	MemoryContext cxt;			/* everything of this transaction */
	uint64		next_ordinal;
	Size		bytes;			/* over all buffers */
	int32		next_spill;
	List	   *origins;		/* of BufFile: open temporary files of spilled runs, also of runs that an error cut short */
	Snapshot	snapshot;		/* registered with the top resource owner at the first write (H10) */
	List	   *buffers;		/* of WriteBuffer */
	/* ordinals killed by ROLLBACK TO: ascending, disjoint, half open */
	struct
	{
		uint64		start;
		uint64		end;
	}		   *dead;
	int			ndead;
	int			dead_room;
	/* live sub-transactions that wrote: ascending in both */
	struct
	{
		SubTransactionId subid;
		uint64		start;
	}		   *subs;
	int			nsubs;
	int			subs_room;
} BufferXact;

extern BufferXact paimon_bufxact;

/* memtable_buffer.c */
extern WriteBuffer *paimon_wb_find(uint64 storage_id);
extern bool paimon_ordinal_is_dead(uint64 ordinal);
extern BufRecord *paimon_wb_record(WriteBuffer *wb, uint64 n);
extern BufRecord *paimon_wb_newest(WriteBuffer *wb, int bucket, const uint8 *key, uint32 len);
extern void paimon_wb_forget_memory(WriteBuffer *wb);
extern void paimon_wb_kill_from(uint64 start);
extern void paimon_ordinal_tid(uint64 ordinal, ItemPointer tid);

/* memtable_sort.c */
extern SortedView *paimon_wb_sorted(WriteBuffer *wb);
extern void paimon_view_release(SortedView *view);
extern uint64 paimon_view_find(const SortedView *view, int bucket, const uint8 *key, uint32 len, bool after);

/* memtable_spill.c */
extern void paimon_wb_spill(WriteBuffer *wb, Relation rel);
extern void paimon_spill_clean(WriteBuffer *wb, Relation rel);
extern void paimon_spill_end(void);
extern XLogRecPtr paimon_spill_lsn(const WriteBuffer *wb);

/* A cursor over the rows of one spilled run that a command may see. */
typedef struct SpillCursor
{
	const SpillRun *run;
	Relation	rel;
	const PaimonRowDesc *desc;
	CommandId	cid;
	int			fileno;			/* index into run->files; -1: not positioned */
	uint64		file_first_row; /* row in run of the file's first row */
	uint64		group_first_row;
	PaimonRunFile *file;
	PaimonRunGroup *group;
	uint32		group_no;
	uint32		row;			/* in the group */
	bool		forward;
	SpillOrigin origin;			/* of the present row */
	StringInfoData payload;
	StringInfoData key;
} SpillCursor;

extern void paimon_spillcursor_begin(SpillCursor *c, const SpillRun *run, PaimonTable *table, Relation rel, CommandId cid, bool forward);
/* Positions on the first visible row with key >= (forward) or <= (backward); key NULL: the first or last. */
extern bool paimon_spillcursor_seek(SpillCursor *c, const uint8 *key, uint32 len);
extern bool paimon_spillcursor_next(SpillCursor *c);
extern PaimonBytes paimon_spillcursor_key(SpillCursor *c);
/* Of a table that merges: gives all visible rows of the present key, newest first, and goes to the next key. */
extern bool paimon_spillcursor_take_key(SpillCursor *c, PaimonBufferGive give, void *arg);
extern void paimon_spillcursor_record(SpillCursor *c, PaimonBufferRecord *rec);
extern void paimon_spillcursor_end(SpillCursor *c);
/* Newest visible row of a key. */
extern bool paimon_spill_get(const SpillRun *run, PaimonTable *table, Relation rel, CommandId cid, const uint8 *key, uint32 len,
							 PaimonBufferRecord *rec, SpillOrigin *origin);
/* All visible rows of a key with ordinals below `end`, newest first, in CurrentMemoryContext; false if `give` has had enough. */
extern bool paimon_spill_each(const SpillRun *run, PaimonTable *table, Relation rel, CommandId cid, uint64 end, const uint8 *key, uint32 len,
							  PaimonBufferGive give, void *arg);
extern bool paimon_spill_fetch_row(const SpillRun *run, PaimonTable *table, Relation rel, uint64 rowno, PaimonBufferRecord *rec);

/* memtable_commit.c */
extern void paimon_precommit_append_one(PaimonTable *table, Relation rel, int bucket, uint8 kind,
										const uint8 *key, uint32 keylen, const uint8 *payload, uint32 len);

#endif							/* PAIMON_BUFFER_INTERNAL_H */
