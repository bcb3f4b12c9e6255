/*-------------------------------------------------------------------------
 *
 * scan_window.h
 *	  Lanes: the sources of a merge forward as arrays of rows, for scan_window.c and scan_unordered.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_SCAN_WINDOW_H
#define PAIMON_SCAN_WINDOW_H

#include "postgres.h"

#include "scan/scan_internal.h"

typedef struct PaimonUnordered PaimonUnordered;

#define WINDOW_ROWS 448 /* so that a window is not larger than what a memory context gives from its blocks */
#define ROWS_AT_ONCE 4

/* A source as the merge sees it.  Its own position (source->row) is where the reader hands out rows. */
typedef struct PaimonLane
{
	PaimonSource *source;
	bool		has_rows;		/* RUN, MEMORY; else (BUFFER) one record at a time */
	const uint64 *prefixes;		/* of the array; NULL: not decoded yet, only the row at hand's number is known */
	uint32		row;			/* next row to be merged */
	uint32		end;			/* of the rows in this array */
	uint32		key_len;		/* with prefixes: if all keys of the array have this length, and are no longer than their first bytes; else 0 */
	bool		leave;			/* must move on before the next window: at its array's end, or behind its record */
} PaimonLane;

typedef struct PaimonMergeWindow
{
	PaimonWindow base;
	int			nlanes;			/* newest first; sources that are done have none */
	uint64		order[PAIMON_WINDOW_SOURCES];	/* first bytes of each lane's next key */
	PaimonLane	lanes[PAIMON_WINDOW_SOURCES];
	PaimonUnordered *unordered; /* NULL: rows are given in the order of their keys */

	uint32		nrows;
	PaimonWindowRow rows[WINDOW_ROWS + ROWS_AT_ONCE];

	/* behind them, perhaps, all that is left of one lane's array */
	int			rest_lane;		/* -1: no such, or begun */
	PaimonSource *source;		/* of those begun */
	uint32		left;			/* of these, after the present one */
} PaimonMergeWindow;

StaticAssertDecl(sizeof(PaimonMergeWindow) <= 8192, "see WINDOW_ROWS");

/* Gets the numbers of all rows in the lane's array. */
static inline void
paimon_lane_load(PaimonLane *lane)
{
	if (unlikely(lane->prefixes == NULL))
	{
		paimon_source_load_prefixes(lane->source);
		lane->prefixes = lane->source->prefixes;
		if (lane->source->fixed_len <= sizeof(uint64))
			lane->key_len = lane->source->fixed_len;
	}
}

/* A lane goes on to a row; true if that is the end of its array. */
static inline bool
paimon_lane_move(PaimonMergeWindow *window, int i, uint32 row)
{
	PaimonLane *lane = &window->lanes[i];

	lane->row = row;
	lane->leave = row == lane->end;
	if (!lane->leave)
		window->order[i] = lane->prefixes[row];
	return lane->leave;
}

/* All rows that are left in the lane's group come before `limit`, as the file's footer tells?  Then their keys need not be decoded. */
static inline bool
paimon_lane_before(const PaimonLane *lane, uint64 limit)
{
	const PaimonSource *s = lane->source;
	const PaimonBytes *end;

	if (lane->prefixes != NULL)
		return lane->prefixes[lane->end - 1] < limit;
	if (s->group_no + 1 < paimon_run_ngroups(s->file))
		end = paimon_run_group_first_key(s->file, s->group_no + 1);
	else
		end = paimon_run_max_key(s->file);
	return paimon_key_prefix(end->data, end->len) < limit;
}

/* ---- without order (scan_unordered.c) ---- */

extern PaimonUnordered *paimon_unordered_begin(void);
/* Makes a window's list of rows; false, and nothing has happened, if that is not worth it or not possible where the lanes are: then they are merged in order. */
extern bool paimon_unordered_fill(PaimonMergeWindow *window);

#endif							/* PAIMON_SCAN_WINDOW_H */
