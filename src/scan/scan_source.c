/*-------------------------------------------------------------------------
 *
 * scan_source.c
 *	  Sources of the merge reader: a sorted run, the log's visible records, the transaction's own rows.
 *
 * All give rows of one bucket in key order, within the reader's key range.  Runs and the write buffer have one record a key, unless the table merges;
 * the log may have several, newest first.  Only a run that is read backward gives a key's records oldest first.
 *
 * A run's keys are decoded only where somebody needs them: a source that is alone in its section never does, and a merging one knows the
 * key of a group's first row from the file's footer.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "scan/scan_internal.h"

/* Keys of a group that a source takes one by one before it decodes all. */
#define KEYS_BEFORE_ALL 16

static PaimonResult
source_advance(PaimonMergeSource *m)
{
	paimon_source_next((PaimonSource *) m);
	return PAIMON_OK;
}

static PaimonSource *
source_make(PaimonSourceKind kind, const PaimonScanState *state, const PaimonKeyRange *range, int bucket, bool forward)
{
	PaimonSource *s = palloc0_object(PaimonSource);

	s->m.advance = source_advance;
	s->m.done = true;
	s->kind = kind;
	s->state = state;
	s->range = range;
	s->bucket = bucket;
	s->forward = forward;
	s->keyed = true;
	return s;
}

PaimonSource *
paimon_source_run(const PaimonScanState *state, const PaimonKeyRange *range, int bucket,
				  PaimonFileRow **files, int nfiles, bool forward, bool whole)
{
	PaimonSource *s = source_make(PAIMON_SOURCE_RUN, state, range, bucket, forward);

	s->file_rows = files;
	s->nfiles = nfiles;
	s->whole = whole;
	return s;
}

PaimonSource *
paimon_source_memory(const PaimonScanState *state, const PaimonKeyRange *range, int bucket,
					 PaimonMemView *view, int part, uint64 pos_lo, uint64 pos_hi, bool forward)
{
	PaimonSource *s = source_make(PAIMON_SOURCE_MEMORY, state, range, bucket, forward);

	s->pos_lo = pos_lo;
	s->pos_hi = pos_hi;
	s->mem = paimon_memiter_begin_part(view, part, bucket, forward);
	return s;
}

PaimonSource *
paimon_source_buffer(const PaimonScanState *state, const PaimonKeyRange *range, int bucket, bool forward)
{
	PaimonSource *s = source_make(PAIMON_SOURCE_BUFFER, state, range, bucket, forward);

	s->buf = paimon_bufiter_begin(state->table, state->rel, bucket, state->cid, forward);
	s->cxt = CurrentMemoryContext;
	return s;
}

void
paimon_source_drop_references(PaimonSource *s)
{
	if (s->group != NULL)
		paimon_run_group_unref(s->group);
	s->group = NULL;
	if (s->file != NULL)
		paimon_run_close(s->file);
	s->file = NULL;
}

void
paimon_source_close(PaimonSource *s)
{
	paimon_source_drop_references(s);
	if (s->mem != NULL)
		paimon_memiter_end(s->mem);
	s->mem = NULL;
	if (s->buf != NULL)
		paimon_bufiter_end(s->buf);
	s->buf = NULL;
}

/* ---------- ranges ---------- */

static inline bool
above_range(const PaimonKeyRange *range, const uint8 *key, uint32 len)
{
	int			c;

	if (range->upper.data == NULL)
		return false;
	c = paimon_bytes_cmp(key, len, range->upper.data, range->upper.len);
	return c > 0 || (c == 0 && range->upper_excluded);
}

static inline bool
below_range(const PaimonKeyRange *range, const uint8 *key, uint32 len)
{
	return range->lower.data != NULL && paimon_bytes_cmp(key, len, range->lower.data, range->lower.len) < 0;
}

/* ---------- records in memory ---------- */

/* From the record at hand on, the first one at a position of the source's. */
static void
memory_set(PaimonSource *s, bool found)
{
	const PaimonBytes *key = &s->memrec.key;

	while (found && (s->memrec.position < s->pos_lo || s->memrec.position >= s->pos_hi))
	{
		CHECK_FOR_INTERRUPTS();
		found = paimon_memiter_next(s->mem, &s->memrec);
	}
	if (!found || (s->forward ? above_range(s->range, key->data, key->len) : below_range(s->range, key->data, key->len)))
	{
		s->m.done = true;
		return;
	}
	s->m.done = false;
	s->m.key = key->data;
	s->m.len = key->len;
	s->m.prefix = paimon_key_prefix(key->data, key->len);
}

static void
memory_first(PaimonSource *s)
{
	const PaimonBytes *start = s->forward ? &s->range->lower : &s->range->upper;
	bool		found;

	if (start->data == NULL)
		found = paimon_memiter_first(s->mem, &s->memrec);
	else
		found = paimon_memiter_seek(s->mem, start->data, start->len, &s->memrec);
	/* an excluded upper end, reached by seeking backward: several records may have that key */
	while (found && !s->forward && above_range(s->range, s->memrec.key.data, s->memrec.key.len))
		found = paimon_memiter_next(s->mem, &s->memrec);
	memory_set(s, found);
}

#define GATHER_FIRST	8			/* a short range has few */
#define GATHER_MOST		512

/* Fills the arrays from where the iterator is. */
static void
memory_gather(PaimonSource *s)
{
	uint32		n = (uint32) paimon_memiter_newest(s->mem, s->pos_lo, s->pos_hi, s->gathered, (int) s->gathered_room);
	uint64		differ = 0;

	while (n > 0 && above_range(s->range, s->gathered[n - 1].key.data, s->gathered[n - 1].key.len))
		n--;
	s->row = s->row_lo = 0;
	s->row_hi = n;
	s->m.done = n == 0;
	if (n == 0)
		return;
	for (uint32 i = 0; i < n; i++)
	{
		const PaimonBytes *key = &s->gathered[i].key;

		s->gathered_prefixes[i] = paimon_key_prefix(key->data, key->len);
		differ |= key->len ^ s->gathered[0].key.len;
	}
	s->prefixes = s->gathered_prefixes;
	s->fixed_len = differ == 0 ? s->gathered[0].key.len : PG_UINT32_MAX;
	s->m.key = s->gathered[0].key.data;
	s->m.len = s->gathered[0].key.len;
	s->m.prefix = s->prefixes[0];
}

static void
gather_room(PaimonSource *s, uint32 room)
{
	s->gathered_room = room;
	s->gathered = palloc_array(PaimonMemRecord, room);
	s->gathered_prefixes = palloc_array(uint64, room);
}

/* See scan_internal.h. */
void
paimon_source_gather(PaimonSource *s)
{
	Assert(s->kind == PAIMON_SOURCE_MEMORY && s->forward && !s->m.done);
	s->cxt = CurrentMemoryContext;
	gather_room(s, GATHER_FIRST);
	memory_gather(s);
}

static void
gathered_next(PaimonSource *s)
{
	if (++s->row < s->row_hi)
	{
		const PaimonBytes *key = &s->gathered[s->row].key;

		s->m.key = key->data;
		s->m.len = key->len;
		s->m.prefix = s->prefixes[s->row];
		return;
	}
	if (s->row_hi < s->gathered_room)
	{
		s->m.done = true;
		return;
	}
	if (s->gathered_room < GATHER_MOST)
	{
		MemoryContext old = MemoryContextSwitchTo(s->cxt);

		pfree(s->gathered);
		pfree(s->gathered_prefixes);
		gather_room(s, s->gathered_room * 4);
		MemoryContextSwitchTo(old);
	}
	memory_gather(s);
}

static void
buffer_set(PaimonSource *s, bool found)
{
	Size		payload_size;
	PaimonBytes *key = &s->bufrec.key;
	PaimonBytes *payload = &s->bufrec.payload;

	if (!found || (s->forward ? above_range(s->range, key->data, key->len) : below_range(s->range, key->data, key->len)))
	{
		s->m.done = true;
		return;
	}
	payload_size = MAXALIGN(payload->len);
	if (payload_size + key->len > s->copy_size)
	{
		Size		want = Max(payload_size + key->len, 1024);

		if (s->copy != NULL)
			pfree(s->copy);
		s->copy = NULL;
		s->copy_size = 0;
		s->copy = MemoryContextAllocExtended(s->cxt, want, MCXT_ALLOC_HUGE);
		s->copy_size = want;
	}
	if (payload->len > 0)
		memcpy(s->copy, payload->data, payload->len);
	memcpy(s->copy + payload_size, key->data, key->len);
	payload->data = s->copy;
	key->data = s->copy + payload_size;
	s->m.done = false;
	s->m.key = key->data;
	s->m.len = key->len;
	s->m.prefix = paimon_key_prefix(key->data, key->len);
}

static void
buffer_first(PaimonSource *s)
{
	const PaimonBytes *start = s->forward ? &s->range->lower : &s->range->upper;
	bool		found;

	if (start->data == NULL)
		found = paimon_bufiter_first(s->buf, &s->bufrec);
	else
		found = paimon_bufiter_seek(s->buf, start->data, start->len, &s->bufrec);
	while (found && !s->forward && above_range(s->range, s->bufrec.key.data, s->bufrec.key.len))
		found = paimon_bufiter_next(s->buf, &s->bufrec);
	buffer_set(s, found);
}

/* ---------- runs ---------- */

static void
run_leave_group(PaimonSource *s)
{
	if (s->group != NULL)
		paimon_run_group_unref(s->group);
	s->group = NULL;
	s->keys = NULL;
	s->prefixes = NULL;
}

static void
run_leave_file(PaimonSource *s)
{
	run_leave_group(s);
	if (s->file != NULL)
		paimon_run_close(s->file);
	s->file = NULL;
}

/* Opens a group of the present file and finds its rows in range; false if there are none. */
static bool
run_enter_group(PaimonSource *s, uint32 group_no)
{
	const PaimonKeyRange *range = s->range;
	const PaimonBytes *first = paimon_run_group_first_key(s->file, group_no);
	PaimonRunGroup *old = s->group;
	const PaimonBytes *end;
	bool		last;

	CHECK_FOR_INTERRUPTS();
	s->group = NULL;
	s->keys = NULL;
	s->prefixes = NULL;
	if (old != NULL)
		paimon_run_group_unref(old);
	s->group_no = group_no;
	s->singles = 0;
	s->group = paimon_run_group(s->file, group_no);
	paimon_run_group_load_kinds(s->group);
	s->block = paimon_run_group_block(s->group);
	s->row_lo = 0;
	s->row_hi = paimon_run_group_nrows(s->group);
	if (below_range(range, first->data, first->len))
	{
		bool		equal;

		s->row_lo = paimon_run_group_seek(s->group, range->lower.data, range->lower.len, &equal);
	}

	/* an upper end for all keys: the last one, or the next group's first one */
	last = group_no + 1 == paimon_run_ngroups(s->file);
	end = last ? paimon_run_max_key(s->file) : paimon_run_group_first_key(s->file, group_no + 1);
	if (above_range(range, end->data, end->len))
	{
		bool		equal;
		uint32		row = paimon_run_group_seek(s->group, range->upper.data, range->upper.len, &equal);

		s->row_hi = equal && !range->upper_excluded ? row + 1 : row;
		while (s->row_hi > row && s->row_hi < paimon_run_group_nrows(s->group) && paimon_run_repeats(s->file) > 0)
		{
			PaimonBytes key = paimon_run_group_key(s->group, s->row_hi);

			if (paimon_bytes_cmp(key.data, key.len, range->upper.data, range->upper.len) != 0)
				break;
			s->row_hi++;
		}
	}
	if (s->row_lo >= s->row_hi)
		return false;
	s->row = s->forward ? s->row_lo : s->row_hi - 1;
	s->m.done = false;
	if (s->keyed)
		paimon_source_set_key(s);
	return true;
}

/* From a group on, in the scan's direction, the first one with rows in range within the present file. */
static bool
run_enter_from(PaimonSource *s, int64 group_no)
{
	int64		ngroups = paimon_run_ngroups(s->file);

	for (; group_no >= 0 && group_no < ngroups; group_no += s->forward ? 1 : -1)
	{
		const PaimonBytes *first = paimon_run_group_first_key(s->file, (uint32) group_no);

		if (s->forward && above_range(s->range, first->data, first->len))
			return false;
		if (run_enter_group(s, (uint32) group_no))
			return true;
		/* backward, and nothing in range though its first key is not above: what is before is below */
		if (!s->forward && !above_range(s->range, first->data, first->len))
			return false;
	}
	return false;
}

/* From a file on, the first one with rows in range. */
static void
run_enter_file(PaimonSource *s, int index)
{
	for (; index >= 0 && index < s->nfiles; index += s->forward ? 1 : -1)
	{
		PaimonFileRow *row = s->file_rows[index];
		const PaimonBytes *start = s->forward ? &s->range->lower : &s->range->upper;
		int64		group_no;

		if (!paimon_file_row_overlaps(row, &s->range->lower, &s->range->upper))
			continue;
		run_leave_file(s);
		s->file = paimon_run_open(s->state->rel, s->state->table->desc, row);
		s->file_index = index;
		if (start->data != NULL)
			group_no = s->forward ? paimon_run_find_first_group(s->file, start->data, start->len)
				: paimon_run_find_group(s->file, start->data, start->len);
		else
			group_no = s->forward ? 0 : (int64) paimon_run_ngroups(s->file) - 1;
		if (run_enter_from(s, group_no))
			return;
	}
	run_leave_file(s);
	s->m.done = true;
}

static void
run_next(PaimonSource *s)
{
	if (s->forward)
	{
		if (++s->row < s->row_hi)
		{
			if (s->keyed)
				paimon_source_set_key(s);
			return;
		}
		/* row_hi before the group's end: the range ends here */
		if (s->row_hi == paimon_run_group_nrows(s->group) && run_enter_from(s, (int64) s->group_no + 1))
			return;
		run_enter_file(s, s->file_index + 1);
	}
	else
	{
		if (s->row > s->row_lo)
		{
			s->row--;
			if (s->keyed)
				paimon_source_set_key(s);
			return;
		}
		if (s->row_lo == 0 && run_enter_from(s, (int64) s->group_no - 1))
			return;
		run_enter_file(s, s->file_index - 1);
	}
}

void
paimon_source_load_keys(PaimonSource *s)
{
	if (s->keys == NULL)
		paimon_run_group_keys(s->group, &s->keys, &s->prefixes, &s->fixed_len);
}

void
paimon_source_load_prefixes(PaimonSource *s)
{
	if (s->prefixes == NULL && !paimon_run_group_prefixes(s->group, &s->prefixes, &s->fixed_len))
		paimon_source_load_keys(s);
}

void
paimon_source_set_key(PaimonSource *s)
{
	if (s->kind != PAIMON_SOURCE_RUN)
		return;
	if (s->keys == NULL && s->row == 0)
	{
		const PaimonBytes *first = paimon_run_group_first_key(s->file, s->group_no);

		s->m.key = first->data;
		s->m.len = first->len;
		s->m.prefix = paimon_key_prefix(first->data, first->len);
		return;
	}
	if (s->keys == NULL && s->singles < KEYS_BEFORE_ALL)
	{
		/* where a range begins: perhaps nobody will ask for another */
		PaimonBytes key = paimon_run_group_key(s->group, s->row);

		s->singles++;
		s->m.key = key.data;
		s->m.len = key.len;
		s->m.prefix = paimon_key_prefix(key.data, key.len);
		return;
	}
	paimon_source_load_keys(s);
	s->m.key = s->keys[s->row].data;
	s->m.len = s->keys[s->row].len;
	s->m.prefix = s->prefixes[s->row];
}

PaimonBytes
paimon_source_key(PaimonSource *s)
{
	PaimonBytes key;

	if (s->kind == PAIMON_SOURCE_RUN && !s->keyed)
	{
		if (s->keys == NULL && s->whole)
			paimon_source_load_keys(s);
		return s->keys != NULL ? s->keys[s->row] : paimon_run_group_key(s->group, s->row);
	}
	if (s->kind == PAIMON_SOURCE_RUN)
	{
		/* within a stretch m's key is not kept */
		if (s->keys != NULL)
			return s->keys[s->row];
		if (s->row == 0)
			return *paimon_run_group_first_key(s->file, s->group_no);
		if (s->singles < KEYS_BEFORE_ALL)
		{
			s->singles++;
			return paimon_run_group_key(s->group, s->row);
		}
		paimon_source_load_keys(s);
		return s->keys[s->row];
	}
	if (s->gathered != NULL)
		return s->gathered[s->row].key;
	key.data = s->m.key;
	key.len = s->m.len;
	return key;
}

static inline bool
run_row_before(PaimonSource *s, const PaimonLoserTree *tree, int64 row, const PaimonMergeSource *other)
{
	return paimon_merge_key_before(tree, s->prefixes[row], s->keys[row].data, s->keys[row].len, other);
}

int64
paimon_source_stretch(PaimonSource *s, const PaimonLoserTree *tree, const PaimonMergeSource *other)
{
	int64		limit = s->forward ? s->row_hi : (int64) s->row_lo - 1;
	int64		dir = s->forward ? 1 : -1;
	int64		good;			/* comes before the other's key, or is the row at hand */
	int64		bad;			/* does not, or is the limit */
	int64		step = 1;

	if (other == NULL)
		return limit;
	if (s->forward && s->group_no + 1 < paimon_run_ngroups(s->file))
	{
		/* all keys are smaller than the next group's first one: this often settles it without decoding keys */
		const PaimonBytes *next = paimon_run_group_first_key(s->file, s->group_no + 1);

		if (paimon_bytes_cmp(next->data, next->len, other->key, other->len) <= 0)
			return limit;
	}
	else if (s->forward)
	{
		const PaimonBytes *max = paimon_run_max_key(s->file);

		if (paimon_bytes_cmp(max->data, max->len, other->key, other->len) < 0)
			return limit;
	}
	paimon_source_load_keys(s);
	good = s->row;
	bad = limit;
	for (;;)
	{
		int64		row = good + dir * step;

		if (dir > 0 ? row >= limit : row <= limit)
			break;
		if (!run_row_before(s, tree, row, other))
		{
			bad = row;
			break;
		}
		good = row;
		step *= 2;
	}
	while ((bad - good) * dir > 1)
	{
		int64		row = good + (bad - good) / 2;

		if (run_row_before(s, tree, row, other))
			good = row;
		else
			bad = row;
	}
	return bad;
}

/* ---------- all kinds ---------- */

void
paimon_source_first(PaimonSource *s)
{
	switch (s->kind)
	{
		case PAIMON_SOURCE_RUN:
			run_enter_file(s, s->forward ? 0 : s->nfiles - 1);
			break;
		case PAIMON_SOURCE_MEMORY:
			memory_first(s);
			break;
		case PAIMON_SOURCE_BUFFER:
			buffer_first(s);
			break;
	}
}

void
paimon_source_next(PaimonSource *s)
{
	switch (s->kind)
	{
		case PAIMON_SOURCE_RUN:
			run_next(s);
			break;
		case PAIMON_SOURCE_MEMORY:
			if (s->gathered != NULL)
				gathered_next(s);
			else
				memory_set(s, paimon_memiter_next(s->mem, &s->memrec));
			break;
		case PAIMON_SOURCE_BUFFER:
			buffer_set(s, paimon_bufiter_next(s->buf, &s->bufrec));
			break;
	}
}

/*
 * As next, where the key at hand is of no more interest: many records of one key in the log are passed over at once.
 */
void
paimon_source_next_key(PaimonSource *s)
{
	if (s->kind == PAIMON_SOURCE_MEMORY && s->gathered == NULL)
		memory_set(s, paimon_memiter_next_key(s->mem, &s->memrec));
	else
		paimon_source_next(s);
}

void
paimon_source_ref(PaimonSource *s, PaimonRowRef *ref, bool with_key)
{
	ref->bucket = s->bucket;
	ref->values = NULL;
	ref->kind = paimon_source_row_kind(s);
	ref->group = s->group;
	if (s->kind == PAIMON_SOURCE_RUN)
	{
		ref->row = s->row;
		ItemPointerSet(&ref->tid, s->block, (OffsetNumber) (s->row + 1));
		if (with_key)
			ref->key = paimon_source_key(s);
		else
			ref->key.data = NULL;
		return;
	}
	ref->key = paimon_source_key(s);
	if (s->kind == PAIMON_SOURCE_MEMORY)
	{
		const PaimonMemRecord *rec = paimon_source_record(s);

		ref->payload = rec->payload;
		if (rec->external && s->gathered != NULL)
		{
			PaimonMemRecord large = *rec;

			paimon_memiter_payload(s->mem, &large);
			ref->payload = large.payload;
		}
		paimon_log_position_to_tid(s->state->rel, s->state->table->storage_id, rec->position, &ref->tid);
	}
	else
	{
		ref->payload = s->bufrec.payload;
		ref->tid = s->bufrec.tid;
	}
}
