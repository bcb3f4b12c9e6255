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
#define PAIMON_GROUP_BLOCK	32

/* A block of a column's rows. */
typedef struct PaimonGroupBlock
{
	const Datum *values;
	const bool *nulls;			/* NULL: no nulls in the column */
} PaimonGroupBlock;

/* A column of which only some blocks are decoded.  Few are: what is cleared for each group must be small. */
typedef struct PaimonGroupPart
{
	uint16	   *places;			/* by row / PAIMON_GROUP_BLOCK: place in blocks + 1, 0 while it is not decoded; NULL until the first block */
	PaimonGroupBlock *blocks;	/* in the order of decoding */
	uint32		nblocks;
	uint32		room;
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

/* What paimon_run_group_block_value does for a value that is not decoded yet. */
extern Datum paimon_run_group_block_miss(PaimonRunGroup *g, uint32 row, int c, bool *isnull);

/* The block of a row, if it is decoded. */
static inline const PaimonGroupBlock *
paimon_run_group_block_of(const PaimonRunGroup *g, uint32 row, int c)
{
	const PaimonGroupPart *part;
	uint32		place;

	if (g->parts == NULL || g->parts[c].places == NULL)
		return NULL;
	part = &g->parts[c];
	place = part->places[row / PAIMON_GROUP_BLOCK];
	return place > 0 ? &part->blocks[place - 1] : NULL;
}

/* A value for who reads a short range of rows. */
static inline Datum
paimon_run_group_block_value(PaimonRunGroup *g, uint32 row, int c, bool *isnull)
{
	if (g->values[c] == NULL)
	{
		const PaimonGroupBlock *block = paimon_run_group_block_of(g, row, c);

		if (unlikely(block == NULL))
			return paimon_run_group_block_miss(g, row, c, isnull);
		*isnull = block->nulls != NULL && block->nulls[row % PAIMON_GROUP_BLOCK];
		return block->values[row % PAIMON_GROUP_BLOCK];
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
