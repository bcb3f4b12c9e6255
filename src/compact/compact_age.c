/*-------------------------------------------------------------------------
 *
 * compact_age.c
 *	  record-level.expire-time: rows that are older than that are left out by compactions.
 *
 * A row is what all records of its key come to, so only a merge with nothing older beneath it (the same that may drop delete markers) can tell how old one is, and
 * leave it out without an older state of it coming to light.  Readers do not look at ages.  Files that a compaction would keep or lift as they are must be
 * merged if they hold such a row: for the core it is one more that may go, as a delete marker is.
 *
 * The time is seconds since 1970 (integer; bigint also milliseconds, from 10^12 on), or a timestamp, which without time zone counts as UTC.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "common/int.h"
#include "datatype/timestamp.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "compact/compact_internal.h"
#include "run/run.h"

#define MILLISECONDS_FROM INT64CONST(1000000000000)
#define UNIX_TO_SERVER ((int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY)

/* See compact_internal.h. */
bool
paimon_age_limit(const PaimonTable *table, PaimonAgeLimit *limit)
{
	const PaimonOptions *options = &table->options;
	int64		ago;

	limit->column = options->record_time_field - 1;
	if (options->record_expire_time_ms < 0 || limit->column < 0 || limit->column >= table->desc->tupdesc->natts)
		return false;
	if (pg_mul_s64_overflow(options->record_expire_time_ms, 1000, &ago) || pg_sub_s64_overflow(GetCurrentTimestamp(), ago, &limit->before))
		return false;
	limit->type = getBaseType(TupleDescAttr(table->desc->tupdesc, limit->column)->atttypid);
	return true;
}

/* In the server's microseconds.  What is out of their range is before or behind all others. */
static int64
time_of(Oid type, Datum value)
{
	int64		unit = USECS_PER_SEC;
	int64		time;
	int64		micros;

	if (type == TIMESTAMPOID || type == TIMESTAMPTZOID)
		return DatumGetTimestamp(value);
	time = type == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);
	if (type == INT8OID && time >= MILLISECONDS_FROM)
		unit = USECS_PER_SEC / 1000;
	if (pg_mul_s64_overflow(time, unit, &micros) || pg_sub_s64_overflow(micros, UNIX_TO_SERVER, &micros))
		return time < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	return micros;
}

static inline bool
is_old(const PaimonAgeLimit *limit, Datum value, bool isnull)
{
	return !isnull && time_of(limit->type, value) < limit->before;
}

/* See compact_internal.h. */
bool
paimon_row_is_old(const PaimonAgeLimit *limit, const PaimonTable *table, const PaimonRowRef *row)
{
	Datum		value;
	bool		isnull = false;

	if (row->kind == PAIMON_KIND_DELETE || row->kind == PAIMON_KIND_REMOVE || row->kind == PAIMON_KIND_UPDATE_BEFORE)
		return false;
	if (table->desc->in_key[limit->column])
		value = paimon_key_decode_column(table->desc, row->key.data, row->key.len, limit->column);
	else if (row->values != NULL)
	{
		value = row->values[limit->column];
		isnull = row->isnull[limit->column];
	}
	else
		value = paimon_run_group_value(row->group, row->row, limit->column, true, &isnull);
	return is_old(limit, value, isnull);
}

/* See compact_internal.h. */
bool
paimon_file_has_old(const PaimonAgeLimit *limit, Relation rel, const PaimonTable *table, const PaimonFileRow *row)
{
	PaimonRunFile *file = paimon_run_open(rel, table->desc, row);
	bool		found = false;

	for (uint32 i = 0; i < paimon_run_ngroups(file) && !found; i++)
	{
		PaimonRunGroup *group = paimon_run_group(file, i);
		uint32		nrows = paimon_run_group_nrows(group);

		CHECK_FOR_INTERRUPTS();
		for (uint32 r = 0; r < nrows && !found; r++)
		{
			bool		isnull;
			Datum		value = paimon_run_group_value(group, r, limit->column, true, &isnull);

			found = is_old(limit, value, isnull);
		}
		paimon_run_group_unref(group);
	}
	paimon_run_close(file);
	return found;
}
