/*-------------------------------------------------------------------------
 *
 * run_group.h
 *	  Layout of an open row group, for the paths where a call for each value would be too slow.
 *
 * Only run_group.c writes it.  Others read nrows, values[], nulls[] and kinds through the functions below.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_RUN_GROUP_H
#define PAIMON_RUN_GROUP_H

#include "postgres.h"

#include "lib/ilist.h"

#include "run/run.h"

struct PaimonRunGroup
{
	uint32		nrows;
	uint32		natts;			/* length of values[] and nulls[] */

	/* by attribute: the whole column once it was asked for, else NULL; nulls[c] NULL: no nulls */
	const Datum **values;
	const bool **nulls;
	Oid		   *types;			/* of values that were not in the file, as loaded */
	struct Bitmapset *dropped;	/* attributes whose values are NULL because the column was dropped when they were loaded */

	/* kinds, once loaded: NULL if all rows have kind `kind` */
	const uint8 *kinds;
	uint8		kind;
	bool		kinds_loaded;

	uint32		ncolumns;		/* columns stored */
	const PaimonRowDesc *desc;
	uint64		desc_serial;	/* what was loaded agrees with the descriptor of this serial number */
	PaimonRunFile *file;
	uint32		group_no;
	BlockNumber block;
	uint32		refcount;
	uint32		singles;		/* keys fetched one by one */
	dlist_node	lru;			/* in the list of unreferenced groups while refcount = 0 */
	Size		bytes;			/* memory, as counted when it became unreferenced */
	MemoryContext cxt;
	PaimonGroup *core;
	uint8	   *head;			/* the first bytes of the group, as many as its first page holds */
	uint32		head_len;

	/* keys, once the whole column was asked for */
	const PaimonBytes *keys;
	const uint64 *prefixes;
	uint32		fixed_len;
};

/* Makes values[c] available (and nulls[c], if there are nulls). */
extern void paimon_run_group_load(PaimonRunGroup *g, int c);

/* Makes kinds and kind available. */
extern void paimon_run_group_load_kinds(PaimonRunGroup *g);

/* After paimon_run_group_load_kinds. */
static inline uint8
paimon_run_group_kind_fast(const PaimonRunGroup *g, uint32 row)
{
	return g->kinds != NULL ? g->kinds[row] : g->kind;
}

#endif							/* PAIMON_RUN_GROUP_H */
