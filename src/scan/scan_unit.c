/*-------------------------------------------------------------------------
 *
 * scan_unit.c
 *	  A reader's range in units: one bucket and a key range each.
 *
 * Cut at the row groups of the bucket's largest run: rows of other sources are spread by the same keys, so units are of about equal
 * size, and that run's groups are read without searching.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"

#include "scan/scan_internal.h"

static PaimonBytes
copy_key(const PaimonBytes *key)
{
	PaimonBytes copy;
	uint8	   *data = palloc(Max(key->len, 1));

	memcpy(data, key->data, key->len);
	copy.data = data;
	copy.len = key->len;
	return copy;
}

static PaimonReadUnit *
add_unit(PaimonReader *reader, uint32 *allocated, int bucket)
{
	PaimonReadUnit *unit;

	if (reader->nunits == *allocated)
	{
		*allocated = Max(*allocated * 2, 64);
		reader->units = reader->units == NULL ? palloc_array(PaimonReadUnit, *allocated)
			: repalloc_array(reader->units, PaimonReadUnit, *allocated);
	}
	unit = &reader->units[reader->nunits++];
	memset(unit, 0, sizeof(*unit));
	unit->bucket = bucket;
	unit->range.lower = reader->spec.lower;
	unit->range.upper = reader->spec.upper;
	return unit;
}

/* Ends the last unit of a bucket before a key and begins another one there, if the key is inside the reader's range. */
static void
cut_unit(PaimonReader *reader, uint32 *allocated, int bucket, const PaimonBytes *key)
{
	PaimonReadUnit *last = &reader->units[reader->nunits - 1];
	const PaimonKeyRange *range = &last->range;
	PaimonReadUnit *next;
	PaimonBytes copy;

	if (range->lower.data != NULL && paimon_bytes_cmp(key->data, key->len, range->lower.data, range->lower.len) <= 0)
		return;
	if (range->upper.data != NULL && paimon_bytes_cmp(key->data, key->len, range->upper.data, range->upper.len) >= 0)
		return;
	copy = copy_key(key);
	last->range.upper = copy;
	last->range.upper_excluded = true;
	next = add_unit(reader, allocated, bucket);
	next->range.lower = copy;
}

static void
add_bucket(PaimonReader *reader, uint32 *allocated, int bucket)
{
	const PaimonBucketRuns *runs = NULL;
	const PaimonSortedRun *largest = NULL;

	add_unit(reader, allocated, bucket);
	if (reader->inputs == NULL && reader->state.levels != NULL)
		runs = paimon_levels_bucket(reader->state.levels, bucket);
	if (runs == NULL)
		return;
	for (int i = 0; i < runs->nruns; i++)
		if (!runs->runs[i].order_unsure && (largest == NULL || runs->runs[i].rows > largest->rows))
			largest = &runs->runs[i];
	if (largest == NULL)
		return;
	for (int i = 0; i < largest->nfiles; i++)
	{
		PaimonRunFile *file = paimon_run_open(reader->spec.rel, reader->spec.table->desc, largest->files[i]);

		CHECK_FOR_INTERRUPTS();
		for (uint32 g = i == 0 ? 1 : 0; g < paimon_run_ngroups(file); g++)
			cut_unit(reader, allocated, bucket, paimon_run_group_first_key(file, g));
		paimon_run_close(file);
	}
}

uint32
paimon_reader_units(PaimonReader *reader)
{
	const PaimonReadSpec *spec = &reader->spec;
	MemoryContext old;
	uint32		allocated = 0;

	if (reader->units != NULL || spec->table->storage_id == 0)
		return reader->nunits;
	old = MemoryContextSwitchTo(reader->cxt);
	if (spec->bucket >= 0)
		add_bucket(reader, &allocated, spec->bucket);
	else
		for (int b = 0; b < spec->table->desc->nbuckets; b++)
			add_bucket(reader, &allocated, b);
	MemoryContextSwitchTo(old);
	return reader->nunits;
}

void
paimon_reader_set_unit(PaimonReader *reader, uint32 unit)
{
	Assert(unit < reader->nunits);
	paimon_reader_close_bucket(reader);
	reader->bucket = reader->units[unit].bucket;
	reader->bucket_end = reader->bucket + 1;
	reader->range = reader->units[unit].range;
}
