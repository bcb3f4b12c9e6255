/*-------------------------------------------------------------------------
 *
 * run.h
 *	  Run files: sorted, immutable, columnar.  Writer and reader.
 *
 * A run file = row groups (core/core_group.h), each beginning on a page of its own, then a footer: index of groups (page, length, rows,
 * first key), exact min and max key, a bloom filter over all keys, checksummed with the file's identity.  Byte layout in README.md here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_RUN_H
#define PAIMON_RUN_H

#include "postgres.h"

#include "catalog/manifest.h"
#include "core/core_group.h"
#include "row/row.h"

/* ---- writing ---- */

typedef struct PaimonRunWriter PaimonRunWriter;

typedef struct PaimonRunParams
{
	Relation	rel;
	const PaimonRowDesc *desc;
	int			bucket;
	int			level;
	int			source;			/* PaimonFileSource */
	FullTransactionId xid;		/* owner of the extents; Invalid for a worker, which holds the file guard instead */
	int64		target_file_size;	/* a file is closed at this size, a run is one or more files */
	int64		target_file_rows;
	int			zstd_level;		/* 0 = none */
	uint64		min_position;	/* go into the file rows as they are */
	uint64		max_position;
	int32		ordinal;
	bool		retracts_stay;	/* -U does not count as a delete marker: it may be a row that is seen (aggregation) */
	bool		deletes_stay;	/* nor does -D */
	bool		rows_stay;		/* keys and payloads given to paimon_run_add (these aligned) stay where they are until the run is finished */
} PaimonRunParams;

/* Begins a run; memory is a child of CurrentMemoryContext, bounded by one row group (rows and bytes). */
extern PaimonRunWriter *paimon_run_begin(const PaimonRunParams *params);

/*
 * Adds a record; keys must come in ascending order (else an internal error).  Equal keys, newest first, are allowed
 * where the table merges rows, and in runs that are rewritten before they are registered (the write buffer's spilled runs).  They stay in one file.  Returns the row's number in the run (0, 1, ...).
 */
extern uint64 paimon_run_add(PaimonRunWriter *w, const uint8 *key, uint32 keylen, uint8 kind, const uint8 *payload, uint32 len);

/*
 * The same with the row's values by attribute (those of the key and of dropped columns are not looked at), which are copied.  Varlenas must be
 * plain: neither out of line nor compressed.
 */
extern uint64 paimon_run_add_values(PaimonRunWriter *w, const uint8 *key, uint32 keylen, uint8 kind, const Datum *values, const bool *nulls);

/*
 * Closes the run.  Gives its files as manifest rows (added_snapshot 0, palloc'd in CurrentMemoryContext; none if nothing was added) and the LSN to
 * flush before they are registered.  For a worker the file guards stay held until paimon_run_release_guards.
 */
extern void paimon_run_finish(PaimonRunWriter *w, PaimonFileRow **files, int *nfiles, XLogRecPtr *lsn);
extern void paimon_run_release_guards(const PaimonFileRow *files, int nfiles);

/* ---- reading ---- */

typedef struct PaimonRunFile PaimonRunFile;	/* an open file: footer decoded; cached per backend, never stale (file numbers are not reused) */
typedef struct PaimonRunGroup PaimonRunGroup;	/* an open group, reference counted */

/*
 * Opens (or finds in the backend's cache) a file.  Reference counted: paimon_run_close.  Whoever holds references over code that may throw gives them
 * back in a reset callback of its memory context (as readers and slots do); a lost reference keeps one footer in memory, no more.
 * `desc` must stay allocated as long as groups of the file are read (it does till the end of the transaction).
 */
extern PaimonRunFile *paimon_run_open(Relation rel, const PaimonRowDesc *desc, const PaimonFileRow *row);
extern void paimon_run_close(PaimonRunFile *file);

extern uint32 paimon_run_ngroups(const PaimonRunFile *file);
extern uint32 paimon_run_group_rows(const PaimonRunFile *file, uint32 group_no);
extern const PaimonBytes *paimon_run_group_first_key(const PaimonRunFile *file, uint32 group_no);
/* Number of rows in the groups before this one. */
extern uint64 paimon_run_group_first_row(const PaimonRunFile *file, uint32 group_no);
extern const PaimonBytes *paimon_run_min_key(const PaimonRunFile *file);
extern const PaimonBytes *paimon_run_max_key(const PaimonRunFile *file);
extern int	paimon_run_bucket(const PaimonRunFile *file);
extern uint64 paimon_run_file_no(const PaimonRunFile *file);

/* False: the key is surely not in the file (bounds and bloom filter). */
extern bool paimon_run_may_contain(PaimonRunFile *file, const uint8 *key, uint32 len);

/* Rows of the file that have the same key as the row before. */
extern uint64 paimon_run_repeats(const PaimonRunFile *file);

/*
 * The group in which the key would be (the last whose first key is <= key; 0 if before all), and the first in which it may be: the same unless keys
 * repeat.
 */
extern uint32 paimon_run_find_group(PaimonRunFile *file, const uint8 *key, uint32 len);
extern uint32 paimon_run_find_first_group(PaimonRunFile *file, const uint8 *key, uint32 len);

/* Opens a group lazily; the caller owns a reference. */
extern PaimonRunGroup *paimon_run_group(PaimonRunFile *file, uint32 group_no);
/* Starts reading a group's pages ahead. */
extern void paimon_run_prefetch(PaimonRunFile *file, uint32 group_no);
extern void paimon_run_group_ref(PaimonRunGroup *g);
extern void paimon_run_group_unref(PaimonRunGroup *g);

extern uint32 paimon_run_group_nrows(const PaimonRunGroup *g);
extern PaimonGroup *paimon_run_group_core(PaimonRunGroup *g);
extern BlockNumber paimon_run_group_block(const PaimonRunGroup *g);	/* for ctids: (block, row + 1) */

/* Keys and kinds of the group; errors of the core become ERRCODE_DATA_CORRUPTED naming table, bucket and file. */
extern void paimon_run_group_keys(PaimonRunGroup *g, const PaimonBytes **keys, const uint64 **prefixes, uint32 *fixed_len);
/* If all keys have one length of at most 8: that and the prefixes alone, which are the keys.  Else false. */
extern bool paimon_run_group_prefixes(PaimonRunGroup *g, const uint64 **prefixes, uint32 *fixed_len);
extern PaimonBytes paimon_run_group_key(PaimonRunGroup *g, uint32 row);
extern uint8 paimon_run_group_kind(PaimonRunGroup *g, uint32 row);
extern uint32 paimon_run_group_seek(PaimonRunGroup *g, const uint8 *key, uint32 len, bool *equal);

/*
 * Value of attribute index c of a row: from the column, from the key, or the missing value of a column added later.  whole: the row is one of many
 * of this group that will be read (decode the column); else decode just this value.  By-reference results live as long as the group, or, of single
 * values that have to be made (numerics, key columns), as long as CurrentMemoryContext.
 */
extern Datum paimon_run_group_value(PaimonRunGroup *g, uint32 row, int c, bool whole, bool *isnull);

/* A row as a record payload (for flush, compaction, byte-for-byte comparison): into buf. */
extern void paimon_run_group_payload(PaimonRunGroup *g, uint32 row, StringInfo buf);

/*
 * Resolves a ctid that lies in a file: finds the file's row with SnapshotAny.  Returns a referenced group, or NULL if the file is gone or no group
 * begins there.  *file, too, is referenced (file may be NULL).
 */
extern PaimonRunGroup *paimon_run_resolve_tid(Relation rel, const PaimonRowDesc *desc, const PaimonPageSpecial *special,
											  BlockNumber block, PaimonRunFile **file);

/*
 * How often groups of a storage were asked for and found open (hits) or had to be read, since paimon_run_reads_done; kept by each process for itself, and
 * not at all once paimon_run_reads_count(false) was said.
 */
typedef struct PaimonRunReads
{
	uint64		storage_id;
	uint64		hits;
	uint64		misses;
} PaimonRunReads;

extern PaimonRunReads *paimon_run_reads(int *n);
extern void paimon_run_reads_done(void);
extern void paimon_run_reads_count(bool count);

/* Checks everything in a file (for verify). */
extern void paimon_run_check(PaimonRunFile *file);

#endif							/* PAIMON_RUN_H */
