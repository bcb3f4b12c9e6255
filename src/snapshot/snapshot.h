/*-------------------------------------------------------------------------
 *
 * snapshot.h
 *	  What the files of src/snapshot share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_SNAPSHOT_H
#define PAIMON_SNAPSHOT_H

#include "postgres.h"

#include "catalog/manifest.h"
#include "memtable/table.h"

/* Value statistics of a run file: jsonb objects, one member a column. */
typedef struct PaimonValueStats
{
	Datum		null_counts;
	Datum		min;
	Datum		max;
} PaimonValueStats;

/*
 * Adds up what the directories of the file's row groups say; reads a page or two of each group and decodes no column.  Results are in
 * CurrentMemoryContext.  Raises DATA_CORRUPTED if the file is damaged.
 */
extern void paimon_value_stats(Relation rel, PaimonTable *table, const PaimonFileRow *row, PaimonValueStats *out);

#endif							/* PAIMON_SNAPSHOT_H */
