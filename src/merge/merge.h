/*-------------------------------------------------------------------------
 *
 * merge.h
 *	  Merge functions: what the records of one key come to.
 *
 * A reader gathers the records of a key newest first and folds them.  A merge function must give the same result for any grouping: folding
 * some neighbours first (a compaction does) and the rest later.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_MERGE_H
#define PAIMON_MERGE_H

#include "postgres.h"

#include "core/core_group.h"
#include "options/options.h"
#include "row/row.h"

/* A record of the key at hand; `values` gives attribute c of its row on demand (by-reference values live until the fold is over). */
typedef struct PaimonMergeRecord PaimonMergeRecord;
struct PaimonMergeRecord
{
	uint8		kind;			/* PaimonRowKind */
	void	   *row;			/* the reader's */
	Datum		(*value) (const PaimonMergeRecord *record, int c, bool *isnull);
};

/* What a fold came to. */
typedef struct PaimonMergeResult
{
	bool		gone;			/* no row: a delete marker if the result is written, nothing if it is shown */
	const PaimonMergeRecord *record;	/* the row is exactly this record's, or: */
	Datum	   *values;			/* record == NULL: by attribute, in the fold's memory */
	bool	   *isnull;
} PaimonMergeResult;

typedef struct PaimonMergeFunction
{
	PaimonMergeEngine engine;
	const char *name;

	/*
	 * The newest record decides alone: readers skip the older ones unseen and need not fold at all (paimon_kind_is_removal says whether there is a
	 * row).  The callbacks below must agree with that.
	 */
	bool		newest_decides;

	/* State for folds of one reader, in CurrentMemoryContext.  NULL where none is needed. */
	void	   *(*begin) (const PaimonRowDesc *desc, const PaimonOptions *options);

	/*
	 * The next record of the key, newest first; `first` starts a new key.  The record stays where it is until the fold is over.  Returns false if no
	 * older record can change the result.
	 */
	bool		(*add) (void *state, const PaimonMergeRecord *record, bool first);
	void		(*finish) (void *state, PaimonMergeResult *result);
} PaimonMergeFunction;

/*
 * The function of an engine.  Raises FEATURE_NOT_SUPPORTED for engines that are not there yet (options refuse them before that).
 */
extern const PaimonMergeFunction *paimon_merge_function(PaimonMergeEngine engine);

extern const PaimonMergeFunction paimon_merge_deduplicate;

/* Does a record of this kind say that the row is gone? */
static inline bool
paimon_kind_is_removal(uint8 kind)
{
	return kind == PAIMON_KIND_DELETE || kind == PAIMON_KIND_REMOVE || kind == PAIMON_KIND_UPDATE_BEFORE;
}

#endif							/* PAIMON_MERGE_H */
