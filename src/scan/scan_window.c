/*-------------------------------------------------------------------------
 *
 * scan_window.c
 *	  Merging forward, a window of rows at a time.
 *
 * Sorted runs show the first eight bytes of a whole row group's keys as an array of numbers, and of the log's records such arrays are gathered.  As long as no source leaves its
 * array, the merge is a walk over these: find the source with the smallest number and the second smallest number; all rows of the one that are below the other come next, without
 * another look at anybody.  Where numbers are equal the keys are compared, the newest source gives its row, the others pass over theirs.  What comes of it is
 * a list of segments (source, row, number of rows), which the reader hands out before the sources move on: so rows given stay valid.
 *
 * A window ends where a source must move in another way than to its array's next row: at an array's end, and behind a record of the write buffer.
 *
 * With few sources looking at each of them costs less than a tree that remembers who lost to whom; with many the loser tree does the work (scan_reader.c), as
 * it does backward.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "scan/scan_internal.h"

#define WINDOW_SEGMENTS 512

/* A source as the merge sees it.  Its own position (source->row) is where the reader hands out rows. */
typedef struct Lane
{
	PaimonSource *source;
	bool		has_rows;		/* RUN, MEMORY; else (BUFFER) one record at a time */
	const uint64 *prefixes;		/* of the array; NULL: not decoded yet, only the row at hand's number is known */
	uint32		row;			/* next row to be merged */
	uint32		end;			/* of the rows in this array */
	bool		leave;			/* must move on before the next window: at its array's end, or behind its record */
} Lane;

typedef struct Segment
{
	PaimonSource *source;
	uint32		row;
	uint32		count;
} Segment;

struct PaimonWindow
{
	int			nlanes;			/* newest first; sources that are done have none */
	uint64		order[PAIMON_WINDOW_SOURCES];	/* first bytes of each lane's next key */
	Lane		lanes[PAIMON_WINDOW_SOURCES];

	int			nsegments;
	int			next_segment;
	uint32		left;			/* rows left of the segment at hand, after the present one */
	PaimonSource *source;		/* of the segment at hand */
	Segment		segments[WINDOW_SEGMENTS];
};

/* The lane takes its source's position. */
static void
lane_enter(PaimonWindow *window, int i)
{
	Lane	   *lane = &window->lanes[i];
	PaimonSource *s = lane->source;

	window->order[i] = s->m.prefix;
	lane->leave = false;
	lane->has_rows = s->kind != PAIMON_SOURCE_BUFFER;
	lane->prefixes = s->kind == PAIMON_SOURCE_MEMORY ? s->prefixes : NULL;
	lane->row = lane->has_rows ? s->row : 0;
	lane->end = lane->has_rows ? s->row_hi : 1;
}

PaimonWindow *
paimon_window_begin(PaimonSource **sources, int nsources)
{
	PaimonWindow *window = palloc_object(PaimonWindow);

	Assert(nsources <= PAIMON_WINDOW_SOURCES);
	window->nlanes = nsources;
	window->nsegments = window->next_segment = 0;
	window->left = 0;
	window->source = NULL;
	for (int i = 0; i < nsources; i++)
	{
		window->lanes[i].source = sources[i];
		if (sources[i]->kind == PAIMON_SOURCE_MEMORY)
			paimon_source_gather(sources[i]);
		lane_enter(window, i);
	}
	return window;
}

/* Sources that ended the last window move on; those that are done lose their lanes. */
static void
leave_window(PaimonWindow *window)
{
	int			n = 0;

	for (int i = 0; i < window->nlanes; i++)
	{
		Lane	   *lane = &window->lanes[i];
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

static void
add_segment(PaimonWindow *window, Lane *lane, uint32 row, uint32 count)
{
	Segment    *segment = &window->segments[window->nsegments++];

	segment->source = lane->source;
	segment->row = row;
	segment->count = count;
}

static inline void
load_prefixes(Lane *lane)
{
	if (lane->prefixes == NULL)
	{
		paimon_source_load_prefixes(lane->source);
		lane->prefixes = lane->source->prefixes;
	}
}

/* A lane goes on to a row; true if that is the end of its array. */
static inline bool
lane_move(PaimonWindow *window, int i, uint32 row)
{
	Lane	   *lane = &window->lanes[i];

	lane->row = row;
	lane->leave = row == lane->end;
	if (!lane->leave)
		window->order[i] = lane->prefixes[row];
	return lane->leave;
}

/* The key of a lane's next row, for comparisons: set in a copy, since the source's own is where rows are handed out. */
static void
lane_key(PaimonWindow *window, int i, PaimonMergeSource *key)
{
	Lane	   *lane = &window->lanes[i];
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
	load_prefixes(lane);
	key->key = s->keys != NULL ? s->keys[lane->row].data : NULL;
	key->len = s->keys != NULL ? s->keys[lane->row].len : s->fixed_len;
}

/* Lanes of the set whose next keys are equal and smallest, of those that begin alike. */
static uint32
smallest_keys(PaimonWindow *window, uint32 lanes)
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

/* Is the lane's next key no longer than its first bytes?  Its length then, else 0. */
static inline uint32
short_key(Lane *lane)
{
	if (!lane->has_rows)
		return 0;
	load_prefixes(lane);
	return lane->source->fixed_len <= sizeof(uint64) ? lane->source->fixed_len : 0;
}

/*
 * Some lanes' next keys begin alike: finds the smallest, gives the newest source's row, and moves all that have the key.  True if the window ends.
 */
static bool
merge_equal(PaimonWindow *window, uint64 order)
{
	uint32		alike = 0;
	uint32		same;
	uint32		len;
	bool		ends = false;
	Lane	   *newest;

	for (int i = 0; i < window->nlanes; i++)
		alike |= (uint32) (window->order[i] == order) << i;

	/* short keys of one length that begin alike are equal */
	newest = &window->lanes[pg_rightmost_one_pos32(alike)];
	len = short_key(newest);
	for (uint32 rest = alike; rest != 0 && len != 0; rest &= rest - 1)
		if (short_key(&window->lanes[pg_rightmost_one_pos32(rest)]) != len)
			len = 0;
	same = len != 0 ? alike : smallest_keys(window, alike);

	newest = &window->lanes[pg_rightmost_one_pos32(same)];
	add_segment(window, newest, newest->row, 1);
	for (; same != 0; same &= same - 1)
	{
		int			i = pg_rightmost_one_pos32(same);
		Lane	   *lane = &window->lanes[i];

		if (lane->has_rows)
			ends |= lane_move(window, i, lane->row + 1);
		else
			ends = lane->leave = true;
	}
	return ends;
}

/* All rows that are left in the lane's group come before `limit`, as the file's footer tells?  Then their keys need not be decoded. */
static bool
group_before(const Lane *lane, uint64 limit)
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

/* Lane i alone has the smallest number, the others are at `limit` or above.  True if the window ends. */
static bool
merge_stretch(PaimonWindow *window, int i, uint64 limit)
{
	Lane	   *lane = &window->lanes[i];
	uint32		row = lane->row;

	if (!lane->has_rows)
	{
		add_segment(window, lane, 0, 1);
		lane->leave = true;
		return true;
	}
	if (window->nlanes == 1 || group_before(lane, limit))
	{
		add_segment(window, lane, row, lane->end - row);
		lane->leave = true;
		return true;
	}
	load_prefixes(lane);
	do
		row++;
	while (row < lane->end && lane->prefixes[row] < limit);
	add_segment(window, lane, lane->row, row - lane->row);
	return lane_move(window, i, row);
}

/* Fills the list of segments; false at the end. */
static bool
merge_window(PaimonWindow *window)
{
	bool		ends = false;

	CHECK_FOR_INTERRUPTS();
	leave_window(window);
	window->nsegments = window->next_segment = 0;
	if (window->nlanes == 0)
		return false;
	while (!ends && window->nsegments < WINDOW_SEGMENTS)
	{
		const uint64 *order = window->order;
		uint64		least = order[0];
		uint64		second = PG_UINT64_MAX;
		int			winner = 0;

		/* without branches: who wins cannot be foretold */
		for (int i = 1; i < window->nlanes; i++)
		{
			uint64		o = order[i];
			bool		less = o < least;
			uint64		higher = less ? least : o;

			second = higher < second ? higher : second;
			winner = less ? i : winner;
			least = less ? o : least;
		}
		if (second == least && window->nlanes > 1)
			ends = merge_equal(window, least);
		else
			ends = merge_stretch(window, winner, second);
	}
	return true;
}

PaimonSource *
paimon_window_next(PaimonWindow *window)
{
	Segment    *segment;

	if (likely(window->left > 0))
	{
		window->left--;
		window->source->row++;
		return window->source;
	}
	if (window->next_segment == window->nsegments && !merge_window(window))
		return NULL;
	segment = &window->segments[window->next_segment++];
	window->source = segment->source;
	window->left = segment->count - 1;
	segment->source->row = segment->row;
	return segment->source;
}
