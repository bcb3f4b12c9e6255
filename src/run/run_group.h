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

/* Rows of a column that are decoded together where few of the group are wanted. */
#define PAIMON_GROUP_BLOCK	128

StaticAssertDecl(PAIMON_GROUP_MAX_ROWS <= 64 * PAIMON_GROUP_BLOCK, "a bit for each block");

/* A column of which only some blocks are decoded. */
typedef struct PaimonGroupPart
{
	uint64		loaded;			/* a bit for each block */
	Datum	   *values;			/* by row; NULL until the first block */
	bool	   *nulls;			/* NULL: no nulls */
} PaimonGroupPart;

struct PaimonRunGroup
{
	uint32		nrows;
	uint32		natts;			/* length of values[] and nulls[] */

	/* by attribute: the whole column once it was asked for, else NULL; nulls[c] NULL: no nulls */
	const Datum **values;
	const bool **nulls;
	PaimonGroupPart *parts;		/* as long as natts; NULL until a block was asked for */
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

/* Makes the block of a row available: in parts[c], or values[c] as a whole where that is as little work. */
extern void paimon_run_group_load_block(PaimonRunGroup *g, uint32 row, int c);

/* A value for who reads a short range of rows. */
static inline Datum
paimon_run_group_block_value(PaimonRunGroup *g, uint32 row, int c, bool *isnull)
{
	if (g->values[c] == NULL)
	{
		const PaimonGroupPart *part;

		if (unlikely(g->parts == NULL || (g->parts[c].loaded >> (row / PAIMON_GROUP_BLOCK) & 1) == 0))
			paimon_run_group_load_block(g, row, c);
		if (likely(g->values[c] == NULL))
		{
			part = &g->parts[c];
			*isnull = part->nulls != NULL && part->nulls[row];
			return part->values[row];
		}
	}
	*isnull = g->nulls[c] != NULL && g->nulls[c][row];
	return g->values[c][row];
}

/* Makes kinds and kind available. */
extern void paimon_run_group_load_kinds(PaimonRunGroup *g);

/* After paimon_run_group_load_kinds. */
static inline uint8
paimon_run_group_kind_fast(const PaimonRunGroup *g, uint32 row)
{
	return g->kinds != NULL ? g->kinds[row] : g->kind;
}

#endif							/* PAIMON_RUN_GROUP_H */
