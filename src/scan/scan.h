/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  The merge reader: every read of a table goes through here.
 *
 * Sources of a bucket, newest first: the transaction's write buffer, the log (memtables), level-0 runs, level 1, …  They are merged by
 * key through a loser tree; the newest record of a key wins, or all of them are folded (table->merges); delete markers are not shown.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_SCAN_H
#define PAIMON_SCAN_H

#include "postgres.h"

#include "executor/tuptable.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "levels/levels.h"
#include "memtable/buffer.h"
#include "memtable/table.h"
#include "run/run.h"

/*
 * A row where it lies: in a group of a run, or in memory as (key, payload); or one that lies nowhere, since it was merged.  Then the ctid is that of the
 * newest of its records.  Pointers are valid until the reader moves.
 */
typedef struct PaimonRowRef
{
	PaimonBytes key;			/* data NULL if the reader was told that nobody needs it (nokey) */
	uint8		kind;
	int			bucket;
	PaimonRunGroup *group;		/* NULL: in memory */
	uint32		row;
	PaimonBytes payload;		/* group == NULL, values == NULL */
	const Datum *values;		/* merged: by attribute; else NULL */
	const bool *isnull;
	ItemPointerData tid;
} PaimonRowRef;

typedef struct PaimonReader PaimonReader;

typedef struct PaimonReadSpec
{
	PaimonTable *table;
	Relation	rel;
	Snapshot	snapshot;		/* any kind; non-MVCC ones are mapped as H23 says.  NULL as well */
	int			bucket;			/* -1: all */
	bool		forward;
	bool		unordered;		/* within a bucket, too, rows may come in any order, which is another one each time */
	bool		whole;			/* most rows will be read (sequential scan): decode columns whole */
	PaimonBytes lower;			/* key range, inclusive; data NULL = unbounded */
	PaimonBytes upper;
	bool		deletes;		/* give delete markers too (flush, compaction) */
	bool		stored;			/* of a table that merges: give what is to be stored, several records of a key, newest first */
	const int16 *columns;		/* of merged rows only these attributes (indexes, ascending) are looked at; NULL: all.  Must outlive the reader */
	int			ncolumns;
	bool		nokey;			/* row->key need not be set (sequential scans): then keys are not even decoded where nothing is merged */
} PaimonReadSpec;

/* Begins; everything lives in a context of its own under CurrentMemoryContext. Opens the manifest with the snapshot, then the log (H2). */
extern PaimonReader *paimon_reader_begin(const PaimonReadSpec *spec);

/*
 * A reader over given sources, newest first, instead of what a snapshot sees: flush (a flush view), compaction (runs of one bucket).  Neither write buffer nor
 * manifest are read, spec->snapshot is not used.  The inputs must outlive the reader.  runs belong to spec->bucket, which must be given with them; a view alone
 * can be read for all buckets.
 */
typedef struct PaimonReadInputs
{
	PaimonMemView *view;		/* or NULL */
	const PaimonSortedRun *runs;
	int			nruns;
} PaimonReadInputs;
extern PaimonReader *paimon_reader_begin_inputs(const PaimonReadSpec *spec, const PaimonReadInputs *inputs);

extern bool paimon_reader_next(PaimonReader *reader, PaimonRowRef *row);
/* Is the row given last all that there is of its key?  False: it is one of several records (spec.stored). */
extern bool paimon_reader_gave_all(const PaimonReader *reader);
extern void paimon_reader_rescan(PaimonReader *reader);
extern void paimon_reader_end(PaimonReader *reader);

/*
 * A reader's range divided into units of one bucket and a key range, each about a row group of the bucket's largest run: for parallel scans (all processes with
 * one snapshot find the same units) and for sampling.  Number of units, and going to the begin of one: paimon_reader_next then ends with it.
 */
extern uint32 paimon_reader_units(PaimonReader *reader);
extern void paimon_reader_set_unit(PaimonReader *reader, uint32 unit);

/*
 * A point reader: kept open over many lookups with one snapshot (nested loops, UPDATE … WHERE pk = …), which the caller keeps registered or active
 * meanwhile if it is an MVCC one.  The manifest is read once.
 */
typedef struct PaimonLookup PaimonLookup;
extern PaimonLookup *paimon_lookup_begin(PaimonTable *table, Relation rel, Snapshot snapshot);
/* The same with a snapshot that nobody else keeps: it is registered, with the current resource owner, until the lookup ends. */
extern PaimonLookup *paimon_lookup_begin_registered(PaimonTable *table, Relation rel, Snapshot snapshot);
/* The merged row of the key; false if there is none.  *row is valid until the next call. */
extern bool paimon_lookup_get(PaimonLookup *lookup, int bucket, const uint8 *key, uint32 len, PaimonRowRef *row);
/*
 * The row as it was when the newest of the transaction's own records of the key was the one before this ordinal (0: none of them), whatever commands
 * wrote them.  Only for tables that merge.
 */
extern bool paimon_lookup_get_before(PaimonLookup *lookup, int bucket, const uint8 *key, uint32 len, uint64 own_end, PaimonRowRef *row);
extern void paimon_lookup_end(PaimonLookup *lookup);
/* The snapshot that it reads with: an MVCC one, in place of another kind. */
extern Snapshot paimon_lookup_snapshot(const PaimonLookup *lookup);

/*
 * An ordered reader: ranges of keys, in the order of their bytes over all buckets, in both directions.  Kept open over many ranges with one snapshot; the
 * manifest is read once.
 */
typedef struct PaimonOrdered PaimonOrdered;
extern PaimonOrdered *paimon_ordered_begin(PaimonTable *table, Relation rel, Snapshot snapshot);
/*
 * From now on it gives the keys in [lower, upper) (data NULL = unbounded) of one bucket (-1: all), ascending or descending.  The bounds must stay where they
 * are.
 */
extern void paimon_ordered_seek(PaimonOrdered *ordered, PaimonBytes lower, PaimonBytes upper, int bucket, bool forward);
/* Next row; false at the end.  *row is valid until the next call; ask for its key with paimon_rowref_key. */
extern bool paimon_ordered_next(PaimonOrdered *ordered, PaimonRowRef *row);
extern void paimon_ordered_end(PaimonOrdered *ordered);

/* Resolves a ctid, whatever the snapshot: the row that lies there (its kind may be a delete marker).  *row is valid until the next call on this table. */
extern bool paimon_resolve_tid(PaimonTable *table, Relation rel, ItemPointer tid, PaimonRowRef *row);

/* Did the running transaction write what lies at the ctid? */
extern bool paimon_tid_is_own(const PaimonTable *table, ItemPointer tid);

/*
 * If the running transaction wrote what lies at the ctid: the ordinal behind it, so that those of the key below are it and what it wrote before.  0 if
 * others did.
 */
extern uint64 paimon_tid_own_end(const PaimonTable *table, Relation rel, ItemPointer tid);

/* The row's key, also where row->key is not set. */
extern PaimonBytes paimon_rowref_key(const PaimonRowRef *row);

/* The row as payload bytes, for byte-for-byte comparison (H5) and for rewriting. */
extern void paimon_rowref_payload(const PaimonTable *table, const PaimonRowRef *row, StringInfo buf);

/* ---- for the planner (scan_manifest.c) ---- */

/*
 * Rows in the table's files as the snapshot sees them, less twice the deletes, if this process keeps a manifest that the snapshot sees; else false.  Reads nothing.
 */
extern bool paimon_manifest_kept_rows(const PaimonTable *table, Snapshot snapshot, double *rows);

/* ---- slots (scan_slot.c) ---- */

/* How a slot decodes columns of a group's row: depends on how many rows of the group will be read. */
typedef enum PaimonDecode
{
	PAIMON_DECODE_SINGLE = 0,	/* value by value */
	PAIMON_DECODE_WHOLE = 1,	/* whole columns */
	PAIMON_DECODE_BLOCK = 2		/* some rows in advance */
} PaimonDecode;

/* Slot operations that decode columns on demand. */
extern const TupleTableSlotOps paimon_slot_ops;

/*
 * Stores a row in a slot made with paimon_slot_ops: takes a reference on the group, or copies key and payload.  Columns are decoded when asked for.
 */
extern void paimon_slot_store(TupleTableSlot *slot, const PaimonTable *table, const PaimonRowRef *row, PaimonDecode decode);

/*
 * From now on the slot decodes these attributes (indexes, ascending) only; the others are NULL in it.  columns must live as long as the slot.
 */
extern void paimon_slot_set_columns(TupleTableSlot *slot, const int16 *columns, int ncolumns);
/* These attributes; NULL: all, or a slot of another kind. */
extern const int16 *paimon_slot_columns(TupleTableSlot *slot, int *ncolumns);

/*
 * Says that the slot's row was fetched by its ctid for a trigger (tuple_fetch_row_version with SnapshotAny): then its xmin may be asked for, which foreign
 * keys do to learn whether this transaction wrote the row.  Cleared by the next store.  Nothing happens to slots that are not ours.
 */
extern void paimon_slot_set_fetched(TupleTableSlot *slot);

/* Fills any kind of slot (virtual copy) from a row: for slots that are not ours. */
extern void paimon_slot_fill(TupleTableSlot *slot, const PaimonTable *table, const PaimonRowRef *row);

#endif							/* PAIMON_SCAN_H */
