/*-------------------------------------------------------------------------
 *
 * scan_window.c
 *	  Merging forward, a window of rows at a time.
 *
 * Sorted runs show the first eight bytes of a whole row group's keys as an array of numbers, and of the log's records such arrays are gathered.  As long as no source leaves its
 * array, the merge is a walk over these: find the source with the smallest number and the second smallest number; all rows of the one that are below the other come next, without
 * another look at anybody.  Where numbers are equal the keys are compared, the newest source gives its row, the others pass over theirs.  What comes of it is
 * a list of rows, which the reader hands out before the sources move on: so rows given stay valid.
 *
 * Which source comes next, and with how many rows, cannot be foretold by the processor either; so what is done most is done without branches.
 *
 * A window ends where a source must move in another way than to its array's next row: at an array's end, and behind a record of the write buffer.
 *
 * Where nobody asks for the order of keys most windows are made in a cheaper way (scan_unordered.c).
 *
 * With few sources looking at each of them costs less than a tree that remembers who lost to whom; with many the loser tree does the work (scan_reader.c), as
 * it does backward.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "scan/scan_window.h"

/* The lane takes its source's position. */
static void
lane_enter(PaimonMergeWindow *window, int i)
{
	PaimonLane *lane = &window->lanes[i];
	PaimonSource *s = lane->source;

	window->order[i] = s->m.prefix;
	lane->leave = false;
	lane->has_rows = s->kind != PAIMON_SOURCE_BUFFER;
	lane->prefixes = s->kind == PAIMON_SOURCE_MEMORY ? s->prefixes : NULL;
	lane->key_len = 0;
	if (lane->prefixes != NULL && s->fixed_len <= sizeof(uint64))
		lane->key_len = s->fixed_len;
	lane->row = lane->has_rows ? s->row : 0;
	lane->end = lane->has_rows ? s->row_hi : 1;
}

PaimonWindow *
paimon_window_begin(PaimonSource **sources, int nsources, bool unordered)
{
	PaimonMergeWindow *window = palloc_object(PaimonMergeWindow);

	Assert(nsources <= PAIMON_WINDOW_SOURCES);
	window->nlanes = nsources;
	window->unordered = unordered ? paimon_unordered_begin() : NULL;
	window->nrows = 0;
	window->base.next = window->base.end = window->rows;
	window->rest_lane = -1;
	window->left = 0;
	window->source = NULL;
	for (int i = 0; i < nsources; i++)
	{
		window->lanes[i].source = sources[i];
		if (sources[i]->kind == PAIMON_SOURCE_MEMORY)
			paimon_source_gather(sources[i]);
		lane_enter(window, i);
	}
	return &window->base;
}

/* Sources that ended the last window move on; those that are done lose their lanes. */
static void
leave_window(PaimonMergeWindow *window)
{
	int			n = 0;

	for (int i = 0; i < window->nlanes; i++)
	{
		PaimonLane *lane = &window->lanes[i];
		PaimonSource *s = lane->source;
		bool		entered = lane->leave;

		if (lane->leave && lane->has_rows)
			s->row = lane->end - 1;
		if (lane->leave)
			paimon_source_next(s);
		if (s->m.done)
			continue;
		if (n < i)
		{
			window->lanes[n] = *lane;
			window->order[n] = window->order[i];
		}
		if (entered)
			lane_enter(window, n);
		n++;
	}
	window->nlanes = n;
}

static inline void
add_row(PaimonMergeWindow *window, int i, uint32 row)
{
	window->rows[window->nrows++] = (PaimonWindowRow) {window->lanes[i].source, row};
}

/* The key of a lane's next row, for comparisons: set in a copy, since the source's own is where rows are handed out. */
static void
lane_key(PaimonMergeWindow *window, int i, PaimonMergeSource *key)
{
	PaimonLane *lane = &window->lanes[i];
	PaimonSource *s = lane->source;

	key->prefix = window->order[i];
	if (s->kind == PAIMON_SOURCE_BUFFER)
	{
		key->key = s->m.key;
		key->len = s->m.len;
		return;
	}
	if (s->kind == PAIMON_SOURCE_MEMORY)
	{
		key->key = s->gathered[lane->row].key.data;
		key->len = s->gathered[lane->row].key.len;
		return;
	}
	paimon_lane_load(lane);
	key->key = s->keys != NULL ? s->keys[lane->row].data : NULL;
	key->len = s->keys != NULL ? s->keys[lane->row].len : s->fixed_len;
}

/* Lanes of the set whose next keys are equal and smallest, of those that begin alike. */
static uint32
smallest_keys(PaimonMergeWindow *window, uint32 lanes)
{
	PaimonMergeSource best = {0};
	uint32		same = 0;

	for (; lanes != 0; lanes &= lanes - 1)
	{
		int			i = pg_rightmost_one_pos32(lanes);
		PaimonMergeSource key = {0};
		int			c = -1;

		lane_key(window, i, &key);
		if (same != 0)
			c = paimon_merge_key_cmp(key.prefix, key.key, key.len, best.prefix, best.key, best.len);
		if (c > 0)
			continue;
		if (c < 0)
		{
			best = key;
			same = 0;
		}
		same |= 1U << i;
	}
	return same;
}

/* Are the next keys of two lanes, which begin alike, surely equal? */
static inline bool
same_short_keys(const PaimonLane *a, const PaimonLane *b)
{
	return a->key_len != 0 && a->key_len == b->key_len;
}

/*
 * Some lanes' next keys begin alike, that of lane `first` being the newest: finds the smallest, gives the newest source's row, and moves all that have the
 * key.  True if the window ends.
 */
static bool
merge_equal(PaimonMergeWindow *window, int first, uint64 order)
{
	uint32		same = 0;
	uint32		len = PG_UINT32_MAX;
	bool		ends = false;
	int			newest;

	/* short keys of one length that begin alike are equal */
	for (int i = first; i < window->nlanes; i++)
	{
		PaimonLane *lane = &window->lanes[i];

		if (window->order[i] != order)
			continue;
		if (lane->has_rows)
			paimon_lane_load(lane);
		same |= 1U << i;
		len = len == PG_UINT32_MAX || len == lane->key_len ? lane->key_len : 0;
	}
	if (len == 0)
		same = smallest_keys(window, same);

	newest = pg_rightmost_one_pos32(same);
	add_row(window, newest, window->lanes[newest].row);
	for (; same != 0; same &= same - 1)
	{
		int			i = pg_rightmost_one_pos32(same);
		PaimonLane *lane = &window->lanes[i];

		if (lane->has_rows)
			ends |= paimon_lane_move(window, i, lane->row + 1);
		else
			ends = lane->leave = true;
	}
	return ends;
}

/* Adds the rows from `row` on, which is one, that are below the limit, as long as the window has room.  Returns the first that it did not add. */
static uint32
add_rows_below(PaimonMergeWindow *window, int i, uint32 row, uint64 limit)
{
	const PaimonLane *lane = &window->lanes[i];
	const uint64 *prefixes = lane->prefixes;
	PaimonWindowRow *out = &window->rows[window->nrows];
	PaimonWindowRow *full = &window->rows[WINDOW_ROWS];
	uint32		below = ROWS_AT_ONCE;

	/* There are few, as a rule. */
	while (lane->end - row >= ROWS_AT_ONCE && below == ROWS_AT_ONCE && out < full)
	{
		below = 0;
		for (uint32 k = 0; k < ROWS_AT_ONCE; k++)
		{
			out[k].source = lane->source;
			out[k].row = row + k;
			below += prefixes[row + k] < limit;
		}
		out += below;
		row += below;
	}
	if (below == ROWS_AT_ONCE)
	{
		for (; row < lane->end && prefixes[row] < limit && out < full; row++)
			*out++ = (PaimonWindowRow) {lane->source, row};
	}
	window->nrows = out - window->rows;
	return row;
}

/* Lane i alone has the smallest number, the others are at `limit` or above.  True if the window ends. */
static bool
merge_stretch(PaimonMergeWindow *window, int i, uint64 limit)
{
	PaimonLane *lane = &window->lanes[i];

	if (!lane->has_rows)
	{
		add_row(window, i, 0);
		lane->leave = true;
		return true;
	}
	if (window->nlanes == 1 || paimon_lane_before(lane, limit))
	{
		window->rest_lane = i;
		lane->leave = true;
		return true;
	}
	paimon_lane_load(lane);
	return paimon_lane_move(window, i, add_rows_below(window, i, lane->row, limit));
}

/* Fills the list of rows; false at the end.  Not part of its caller, which is called for each row. */
static pg_noinline bool
merge_window(PaimonMergeWindow *window)
{
	bool		ends = false;

	CHECK_FOR_INTERRUPTS();
	leave_window(window);
	window->nrows = 0;
	window->base.next = window->base.end = window->rows;
	if (window->nlanes == 0)
		return false;
	if (window->unordered != NULL && paimon_unordered_fill(window))
		return true;
	while (!ends && window->nrows < WINDOW_ROWS)
	{
		const uint64 *order = window->order;
		int			oldest = window->nlanes - 1;
		uint64		least = PG_UINT64_MAX;
		uint64		second = PG_UINT64_MAX;
		int			winner = 0;

		/* of the newer ones, without branches: who wins cannot be foretold */
		for (int i = 0; i < oldest; i++)
		{
			uint64		o = order[i];
			bool		less = o < least;
			uint64		higher = less ? least : o;

			second = higher < second ? higher : second;
			winner = less ? i : winner;
			least = less ? o : least;
		}

		/* The oldest source has the most rows, as a rule.  First those of them that are in front of all others'. */
		if (order[oldest] < least || oldest == 0)
			ends = merge_stretch(window, oldest, least);
		if (ends || window->nrows >= WINDOW_ROWS)
			break;
		if (second > least && order[oldest] == least && same_short_keys(&window->lanes[winner], &window->lanes[oldest]))
		{
			add_row(window, winner, window->lanes[winner].row);
			ends = paimon_lane_move(window, winner, window->lanes[winner].row + 1);
			ends |= paimon_lane_move(window, oldest, window->lanes[oldest].row + 1);
			continue;
		}
		second = Min(second, order[oldest]);
		if (second == least)
			ends = merge_equal(window, winner, least);
		else
			ends = merge_stretch(window, winner, second);
	}
	window->base.end = window->rows + window->nrows;
	return true;
}

/* When the rows at hand have been given: what is left of a lane, then the next window. */
PaimonSource *
paimon_window_more(PaimonWindow *base)
{
	PaimonMergeWindow *window = (PaimonMergeWindow *) base;

	if (likely(window->left > 0))
	{
		window->left--;
		window->source->row++;
		return window->source;
	}
	if (window->rest_lane >= 0)
	{
		PaimonLane *lane = &window->lanes[window->rest_lane];

		window->source = lane->source;
		window->source->row = lane->row;
		window->left = lane->end - lane->row - 1;
		window->rest_lane = -1;
		return window->source;
	}
	return merge_window(window) ? paimon_window_next(base) : NULL;
}
