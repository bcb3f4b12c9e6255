/*-------------------------------------------------------------------------
 *
 * scan_unordered.c
 *	  Merging forward where nobody asks for the order of keys.
 *
 * Then all that is to be found out of a row is whether there is a newer one of its key.  Of all lanes the rows up to a bound are taken, the newest lane's first, and keys are noted: a row
 * whose key was noted before is passed over.  The oldest lane, which as a rule has the most rows, need not note any.  Nothing here depends on which lane's key comes next, which no processor
 * can foretell, and the rows are handed out lane by lane, which spares the changes between them.
 *
 * Keys are numbers here: those of one length, no longer than their first eight bytes, are equal if these are.  Where a window's keys lie close together, as those from a sequence do, there
 * is a flag for each number in its range; else a hash table.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_bitutils.h"
#include "scan/scan_window.h"

#define ROWS_OF_OLDEST 1024
#define ROWS_OF_NEWER 2048		/* in all */
#define ROWS_WORTH_IT 128		/* fewer are merged in order */
#define MAX_FLAGS 16384
#define MAX_PLACES 8192			/* more than twice ROWS_OF_NEWER, so that a free place is near */
#define FREE_PLACE PG_UINT64_MAX

struct PaimonUnordered
{
	MemoryContext cxt;
	PaimonWindowRow *rows;		/* made when needed, as are: */
	bool	   *flags;
	uint64	   *places;
	/* the present window's flags are those of numbers from `first` on, without the zero bits that end them all; else the table has 2^(64-shift) places */
	bool		dense;
	uint64		first;
	int			zeros;
	int			shift;
};

PaimonUnordered *
paimon_unordered_begin(void)
{
	PaimonUnordered *unordered = palloc0_object(PaimonUnordered);

	unordered->cxt = CurrentMemoryContext;
	return unordered;
}

/* ---------- which keys were seen ---------- */

/* Keys of a damaged file may lie anywhere. */
static inline bool *
find_flag(const PaimonUnordered *unordered, uint64 key)
{
	return &unordered->flags[((key - unordered->first) >> unordered->zeros) % MAX_FLAGS];
}

/* Where the key is in the table, or would be. */
static inline uint64 *
find_place(const PaimonUnordered *unordered, uint64 key)
{
	uint32		mask = PG_UINT32_MAX >> (unordered->shift - 32);
	uint32		at = (uint32) ((key * UINT64CONST(0x9E3779B97F4A7C15)) >> unordered->shift);

	while (unordered->places[at] != key && unordered->places[at] != FREE_PLACE)
		at = (at + 1) & mask;
	return &unordered->places[at];
}

/* Was the key noted?  If not, notes it if asked to. */
static pg_attribute_always_inline bool
seen(const PaimonUnordered *unordered, bool dense, uint64 key, bool note)
{
	bool		found;

	if (dense)
	{
		bool	   *flag = find_flag(unordered, key);

		found = *flag;
		if (note)
			*flag = true;
	}
	else
	{
		uint64	   *place = find_place(unordered, key);

		found = *place == key;
		if (note)
			*place = key;
	}
	return found;
}

/* Nothing is noted of the keys from first to last, of which at most nkeys will be. */
static void
forget_keys(PaimonUnordered *unordered, uint64 first, uint64 last, uint32 key_len, uint32 nkeys)
{
	if (unordered->rows == NULL)
		unordered->rows = MemoryContextAlloc(unordered->cxt, (ROWS_OF_OLDEST + ROWS_OF_NEWER + 1) * sizeof(PaimonWindowRow));
	unordered->first = first;
	unordered->zeros = 64 - 8 * key_len;
	unordered->dense = (last - first) >> unordered->zeros < MAX_FLAGS;
	if (unordered->dense)
	{
		/* add_rows adds what is in a flag: never anything but true or false, also in those that only a damaged file's keys come to */
		if (unordered->flags == NULL)
			unordered->flags = MemoryContextAllocZero(unordered->cxt, MAX_FLAGS * sizeof(bool));
		memset(unordered->flags, false, (((last - first) >> unordered->zeros) + 1) * sizeof(bool));
	}
	else
	{
		int			bits = pg_leftmost_one_pos32(nkeys | 1) + 2;

		Assert(((Size) 1 << bits) <= MAX_PLACES);
		if (unordered->places == NULL)
			unordered->places = MemoryContextAlloc(unordered->cxt, MAX_PLACES * sizeof(uint64));
		memset(unordered->places, 0xFF, sizeof(uint64) << bits);
		unordered->shift = 64 - bits;
	}
}

/* ---------- windows ---------- */

/* Are the next rows of all lanes known by numbers? */
static bool
all_numbers(PaimonMergeWindow *window)
{
	int			oldest = window->nlanes - 1;
	uint64		others = PG_UINT64_MAX;

	for (int i = 0; i <= oldest; i++)
		if (!window->lanes[i].has_rows)
			return false;
	for (int i = 0; i < oldest; i++)
		others = Min(others, window->order[i]);
	/* a row group that comes before all else needs no look at its keys: the merge in order passes it through */
	if (paimon_lane_before(&window->lanes[oldest], others))
		return false;
	for (int i = 0; i <= oldest; i++)
	{
		paimon_lane_load(&window->lanes[i]);
		if (window->lanes[i].key_len == 0 || window->lanes[i].key_len != window->lanes[0].key_len)
			return false;
	}
	return true;
}

/* A window takes at most so many rows of the lane. */
static inline uint32
rows_of_lane(const PaimonMergeWindow *window, int i)
{
	int			oldest = window->nlanes - 1;
	uint32		most = i == oldest ? ROWS_OF_OLDEST : ROWS_OF_NEWER / oldest;

	return Min(most, window->lanes[i].end - window->lanes[i].row);
}

/* The last number up to which every lane has all its rows at hand, and not too many. */
static uint64
find_bound(const PaimonMergeWindow *window)
{
	uint64		bound = PG_UINT64_MAX;

	for (int i = 0; i < window->nlanes; i++)
		bound = Min(bound, window->lanes[i].prefixes[window->lanes[i].row + rows_of_lane(window, i) - 1]);
	return bound;
}

/* The lane's first row that is above the bound. */
static uint32
first_above(const PaimonMergeWindow *window, int i, uint64 bound)
{
	const uint64 *prefixes = window->lanes[i].prefixes;
	uint32		lo = window->lanes[i].row;
	uint32		hi = lo + rows_of_lane(window, i);

	while (lo < hi)
	{
		uint32		mid = lo + (hi - lo) / 2;

		if (prefixes[mid] <= bound)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Adds a lane's rows before `end` that have no newer one, without branches that depend on it. */
static pg_attribute_always_inline PaimonWindowRow *
add_rows(const PaimonUnordered *unordered, bool dense, const PaimonLane *lane, uint32 end, bool note, PaimonWindowRow *out)
{
	for (uint32 row = lane->row; row < end; row++)
	{
		*out = (PaimonWindowRow) {lane->source, row};
		out += !seen(unordered, dense, lane->prefixes[row], note);
	}
	return out;
}

/* The same for all lanes, up to their ends. */
static pg_attribute_always_inline PaimonWindowRow *
add_lanes(const PaimonUnordered *unordered, bool dense, const PaimonMergeWindow *window, const uint32 *ends)
{
	PaimonWindowRow *out = unordered->rows;
	int			oldest = window->nlanes - 1;

	for (int i = 0; i < oldest; i++)
		out = add_rows(unordered, dense, &window->lanes[i], ends[i], true, out);
	return add_rows(unordered, dense, &window->lanes[oldest], ends[oldest], false, out);
}

/* See scan_window.h. */
bool
paimon_unordered_fill(PaimonMergeWindow *window)
{
	PaimonUnordered *unordered = window->unordered;
	int			oldest = window->nlanes - 1;
	uint32		ends[PAIMON_WINDOW_SOURCES];
	uint32		nrows = 0;
	uint32		nnewer = 0;
	uint64		first = PG_UINT64_MAX;
	uint64		bound;

	if (window->nlanes < 2 || !all_numbers(window))
		return false;
	bound = find_bound(window);
	if (bound == FREE_PLACE)
		return false;
	for (int i = 0; i <= oldest; i++)
	{
		ends[i] = first_above(window, i, bound);
		first = Min(first, window->order[i]);
		nnewer = nrows;
		nrows += ends[i] - window->lanes[i].row;
	}
	if (nrows < ROWS_WORTH_IT)
		return false;

	forget_keys(unordered, first, bound, window->lanes[0].key_len, nnewer);
	window->base.next = unordered->rows;
	window->base.end = unordered->dense ? add_lanes(unordered, true, window, ends) : add_lanes(unordered, false, window, ends);
	for (int i = 0; i <= oldest; i++)
		(void) paimon_lane_move(window, i, ends[i]);
	return true;
}
