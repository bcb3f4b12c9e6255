/*-------------------------------------------------------------------------
 *
 * scan_internal.h
 *	  Sources of the merge reader, as scan_source.c, scan_reader.c and scan_unit.c share them.  Private to scan/.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_SCAN_INTERNAL_H
#define PAIMON_SCAN_INTERNAL_H

#include "postgres.h"

#include "core/core_key.h"
#include "core/core_losertree.h"
#include "levels/levels.h"
#include "merge/merge.h"
#include "merge/merge_records.h"
#include "run/run_group.h"
#include "scan/scan.h"

/* ---- manifests kept by the backend (scan_manifest.c) ---- */

typedef struct PaimonManifest PaimonManifest;
typedef struct PaimonManifestRef PaimonManifestRef;

extern PaimonManifest *paimon_manifest_open(PaimonTable *table, Relation rel, Snapshot snapshot, PaimonManifestRef **ref);
extern const PaimonLevels *paimon_manifest_levels(const PaimonManifest *m);
extern const PaimonLogRow *paimon_manifest_log(const PaimonManifest *m);
extern void paimon_manifest_release(PaimonManifestRef *ref);

/* A snapshot as the LSM tree can use it (H23), and the manifest and log as it sees them. */
typedef struct PaimonScanState
{
	PaimonTable *table;
	Relation	rel;
	Snapshot	snapshot;		/* MVCC; NULL if there is nothing to read but the write buffer */
	ResourceOwner owner;		/* holds the registration of a snapshot of our own, else NULL */
	CommandId	cid;			/* of the write buffer: commands before this one are seen */
	PaimonManifestRef *manifest;	/* holds what follows; NULL: nothing was read */
	const PaimonLevels *levels; /* NULL: no runs */
	PaimonLogRow log;			/* its arrays are the manifest's */
	PaimonMemView *view;		/* NULL: no log */
} PaimonScanState;

/* Opens in the order H2 wants; memory from CurrentMemoryContext. */
extern void paimon_scanstate_open(PaimonScanState *state, PaimonTable *table, Relation rel, Snapshot snapshot);
extern void paimon_scanstate_close(PaimonScanState *state);

/* Key range of a reader: from `lower` on, up to `upper`, itself included or not.  data NULL = unbounded. */
typedef struct PaimonKeyRange
{
	PaimonBytes lower;
	PaimonBytes upper;
	bool		upper_excluded;
} PaimonKeyRange;

typedef enum PaimonSourceKind
{
	PAIMON_SOURCE_RUN,
	PAIMON_SOURCE_MEMORY,
	PAIMON_SOURCE_BUFFER
} PaimonSourceKind;

typedef struct PaimonSource
{
	PaimonMergeSource m;		/* first: the loser tree's part */
	PaimonSourceKind kind;
	bool		forward;
	bool		keyed;			/* m's key must be set on every row */
	bool		whole;
	const PaimonScanState *state;
	const PaimonKeyRange *range;
	int			bucket;

	/* RUN: files [0, nfiles) in key order; rows [row_lo, row_hi) of the present group are in range */
	PaimonFileRow **file_rows;
	int			nfiles;
	int			file_index;
	PaimonRunFile *file;
	uint32		group_no;
	PaimonRunGroup *group;
	uint32		row;
	uint32		row_lo;
	uint32		row_hi;
	BlockNumber block;
	const PaimonBytes *keys;	/* NULL until decoded */
	uint32		singles;		/* keys of the group taken one by one */
	const uint64 *prefixes;		/* NULL until decoded; may be there without keys, which then are all fixed_len <= 8 long */
	uint32		fixed_len;

	/* MEMORY: records at positions [pos_lo, pos_hi) */
	PaimonMemIter *mem;
	uint64		pos_lo;
	uint64		pos_hi;
	PaimonMemRecord memrec;		/* the one at hand, unless they are gathered: */
	PaimonMemRecord *gathered;	/* [row_lo, row_hi) are in range, `row` is at hand; with prefixes and fixed_len as for a run */
	uint64	   *gathered_prefixes;
	uint32		gathered_room;

	/* BUFFER: what was given is copied, since a spill may take it away */
	PaimonBufferIter *buf;
	PaimonBufferRecord bufrec;
	MemoryContext cxt;
	uint8	   *copy;
	Size		copy_size;
} PaimonSource;

extern PaimonSource *paimon_source_run(const PaimonScanState *state, const PaimonKeyRange *range, int bucket,
									   PaimonFileRow **files, int nfiles, bool forward, bool whole);
/* Of a part of the view, the records at positions [pos_lo, pos_hi). */
extern PaimonSource *paimon_source_memory(const PaimonScanState *state, const PaimonKeyRange *range, int bucket,
										  PaimonMemView *view, int part, uint64 pos_lo, uint64 pos_hi, bool forward);
extern PaimonSource *paimon_source_buffer(const PaimonScanState *state, const PaimonKeyRange *range, int bucket, bool forward);

/* Goes to the first row in range; m.done if there is none. */
extern void paimon_source_first(PaimonSource *source);
/* Goes to the next row. */
extern void paimon_source_next(PaimonSource *source);
extern void paimon_source_next_key(PaimonSource *source);
/* The key of the row at hand, whether or not the source is keyed. */
extern PaimonBytes paimon_source_key(PaimonSource *source);
/* Sets m's key from the row at hand. */
extern void paimon_source_set_key(PaimonSource *source);
/* Decodes the keys of a RUN source's group. */
extern void paimon_source_load_keys(PaimonSource *source);
/* As much of them as their prefixes and lengths: prefixes, and keys or fixed_len. */
extern void paimon_source_load_prefixes(PaimonSource *source);
extern void paimon_source_close(PaimonSource *source);
/* Gives back references on files and groups only: for reset callbacks. */
extern void paimon_source_drop_references(PaimonSource *source);
/* The row at hand.  with_key: ref->key is set. */
extern void paimon_source_ref(PaimonSource *source, PaimonRowRef *ref, bool with_key);

/*
 * RUN sources, in the direction of the scan: how far they can go before a key of another source.  Returns the row on which to stop, which
 * is row_hi (forward) or row_lo - 1 (backward, perhaps -1) if all rows of the group come before.  other NULL: nothing else is there.
 */
extern int64 paimon_source_stretch(PaimonSource *source, const PaimonLoserTree *tree, const PaimonMergeSource *other);

/* RUN sources, forward, keys decoded, and the next row is in range: goes there. */
static inline void
paimon_source_step(PaimonSource *source)
{
	const PaimonBytes *key = &source->keys[++source->row];

	source->m.prefix = source->prefixes[source->row];
	source->m.key = key->data;
	source->m.len = key->len;
}

/* MEMORY, forward, on a record: from that on gives arrays of records, with the newest of each key only.  Next goes to the next row, which is in the next array at the end of one. */
extern void paimon_source_gather(PaimonSource *source);

/* The record at hand of a MEMORY source. */
static inline const PaimonMemRecord *
paimon_source_record(const PaimonSource *source)
{
	return source->gathered != NULL ? &source->gathered[source->row] : &source->memrec;
}

static inline uint8
paimon_source_row_kind(const PaimonSource *source)
{
	if (source->kind == PAIMON_SOURCE_RUN)
		return paimon_run_group_kind_fast(source->group, source->row);
	return source->kind == PAIMON_SOURCE_MEMORY ? paimon_source_record(source)->kind : source->bufrec.kind;
}

/* ---- merging forward (scan_window.c) ---- */

#define PAIMON_WINDOW_SOURCES 16	/* at most */

typedef struct PaimonWindowRow
{
	PaimonSource *source;
	uint32		row;
} PaimonWindowRow;

/* The rest of it is scan_window.c's. */
typedef struct PaimonWindow
{
	PaimonWindowRow *next;		/* the rows at hand that have not been given */
	PaimonWindowRow *end;
} PaimonWindow;

/* Sources, newest first, each on its first row.  unordered: rows may come in any order. */
extern PaimonWindow *paimon_window_begin(PaimonSource **sources, int nsources, bool unordered);
extern PaimonSource *paimon_window_more(PaimonWindow *window);

/* The source that has the next key's (or some key's) newest record, on that row until the next call; NULL at the end. */
static inline PaimonSource *
paimon_window_next(PaimonWindow *window)
{
	PaimonSource *source;

	if (window->next == window->end)
		return paimon_window_more(window);
	source = window->next->source;
	source->row = window->next->row;
	window->next++;
	return source;
}

/* ---- the reader (scan_reader.c, scan_unit.c) ---- */

/* Files of one run that belong to a section. */
typedef struct PaimonSectionPart
{
	PaimonFileRow **files;
	int			nfiles;
	uint64		max_position;
} PaimonSectionPart;

/* Files whose keys overlap each other's, but no other section's: parts newest first. */
typedef struct PaimonSection
{
	int			nparts;
	PaimonSectionPart *parts;
} PaimonSection;

/* One unit of a scan that is divided. */
typedef struct PaimonReadUnit
{
	int			bucket;
	PaimonKeyRange range;
} PaimonReadUnit;

struct PaimonReader
{
	MemoryContext cxt;
	PaimonReadSpec spec;
	PaimonScanState state;
	bool		shares_state;	/* what state points to is another's */
	struct PaimonFolder *folder;	/* NULL: the newest record decides */

	/* given sources (paimon_reader_begin_inputs) */
	const PaimonReadInputs *inputs;
	PaimonReadInputs inputs_copy;

	/* what is left to be read: buckets from `bucket` up to bucket_end, within range */
	int			bucket;
	int			bucket_end;
	PaimonKeyRange range;
	uint32		nunits;			/* once asked for */
	PaimonReadUnit *units;

	/* the bucket at hand */
	bool		in_bucket;
	bool		has_buffer;		/* write buffer and log take part: then there is one section only */
	bool		has_view;
	MemoryContext bucket_cxt;
	int			nsections;
	PaimonSection *sections;
	int			section;		/* next one */

	/* the section at hand; memory in section_cxt, whose reset callback drops references */
	bool		in_section;
	MemoryContext section_cxt;
	MemoryContextCallback section_callback;
	int			nsources;
	PaimonSource **sources;
	PaimonSource *single;		/* the only source, with one record a key: no merging */
	bool		started;
	PaimonWindow *window;		/* forward, few sources; else the tree and what belongs to it */
	PaimonLoserTree tree;
	PaimonSource *current;		/* gave the last row, and has not moved on */
	PaimonSource *last_winner;
	uint32		wins;			/* of last_winner in a row */
	int64		stretch_end;	/* current may go on, without a look at the others, before this row; -2: nothing known */
	bool		stretch_alone;	/* ... and no other source has the keys of its rows */
	uint8		last_key[PAIMON_KEY_MAX];
};

#define PAIMON_NO_STRETCH (-2)

extern void paimon_reader_close_bucket(PaimonReader *reader);

/* ---- folding (scan_fold.c) ---- */

/* The fold of a reader or a lookup, and the groups that its present key's records point into. */
typedef struct PaimonFolder
{
	PaimonMerger *merger;
	const PaimonMergePlan *plan;
	MemoryContext cxt;
	MemoryContextCallback callback;
	PaimonRunGroup **held;
	int			nheld;
	int			held_room;
	bool		stored;			/* gives what is to be stored: */
	bool		oldest;			/* nothing older exists */
	int			nout;			/* records of the present key, and how many have been given */
	int			out;
	ItemPointerData tid;		/* of the present key's newest record */
	/* a key's records in a run that is read backward */
	struct PaimonFoldedRow
	{
		PaimonRunGroup *group;
		uint32		row;
		BlockNumber block;
	}		   *rows;
	uint32		nrows;
	uint32		rows_room;
} PaimonFolder;

/*
 * In CurrentMemoryContext, whose end gives references back.  columns (or NULL): of what is seen only these attributes are of interest; others are neither
 * decoded nor folded, unless these need them.
 */
extern PaimonFolder *paimon_folder_begin(const PaimonTable *table, Relation rel, bool stored, bool oldest, const int16 *columns, int ncolumns);
/* Lets go of what the present key holds. */
extern void paimon_folder_reset(PaimonFolder *folder);
/* Keeps a group open until then. */
extern void paimon_folder_hold(PaimonFolder *folder, PaimonRunGroup *group);

/* The section's next row, of sources in the reader's loser tree. */
extern bool paimon_folder_next(PaimonReader *reader, PaimonRowRef *row);

/*
 * A reader with somebody else's state, which must outlive it (scan_ordered.c).  It has nothing to read until its owner sets bucket, bucket_end, range and
 * spec.forward.
 */
extern PaimonReader *paimon_reader_begin_shared(const PaimonReadSpec *spec, const PaimonScanState *state);

#endif							/* PAIMON_SCAN_INTERNAL_H */
