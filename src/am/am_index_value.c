/*-------------------------------------------------------------------------
 *
 * am_index_value.c
 *	  Arguments of conditions on key columns as values of the columns' types.
 *
 * An operator class compares a column with values of other types, too: a bigint with an int, a timestamp with a date.  To find a place in the encoded
 * keys we need a value of the column's own type, or to know where between two such values the argument lies.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/am_index.h"
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/timestamp.h"

static PaimonArgument
integer_argument(Oid column, int64 i, Datum *out)
{
	switch (column)
	{
		case INT2OID:
			if (i < PG_INT16_MIN || i > PG_INT16_MAX)
				return i < 0 ? PAIMON_ARG_BELOW_ALL : PAIMON_ARG_ABOVE_ALL;
			*out = Int16GetDatum((int16) i);
			return PAIMON_ARG_EXACT;
		case INT4OID:
			if (i < PG_INT32_MIN || i > PG_INT32_MAX)
				return i < 0 ? PAIMON_ARG_BELOW_ALL : PAIMON_ARG_ABOVE_ALL;
			*out = Int32GetDatum((int32) i);
			return PAIMON_ARG_EXACT;
		case INT8OID:
			*out = Int64GetDatum(i);
			return PAIMON_ARG_EXACT;
		default:
			return PAIMON_ARG_UNKNOWN;
	}
}

/* A real column against a double precision argument: the next smaller or equal real. */
static PaimonArgument
real_argument(float8 d, Datum *out)
{
	float4		f = (float4) d;

	if (float8_eq((float8) f, d))
	{
		*out = Float4GetDatum(f);
		return PAIMON_ARG_EXACT;
	}
	if (isinf(f) || f == 0)
		return PAIMON_ARG_UNKNOWN;	/* out of range: rare enough to be checked row by row */
	if ((float8) f > d)
		f = nextafterf(f, -get_float4_infinity());
	*out = Float4GetDatum(f);
	return isinf(f) ? PAIMON_ARG_UNKNOWN : PAIMON_ARG_BETWEEN;
}

/* A date column against a timestamp: the day it lies in. */
static PaimonArgument
date_argument(Timestamp ts, Datum *out)
{
	int64		day;

	if (TIMESTAMP_IS_NOBEGIN(ts))
	{
		*out = DateADTGetDatum(DATEVAL_NOBEGIN);
		return PAIMON_ARG_EXACT;
	}
	if (TIMESTAMP_IS_NOEND(ts))
	{
		*out = DateADTGetDatum(DATEVAL_NOEND);
		return PAIMON_ARG_EXACT;
	}
	day = ts / USECS_PER_DAY;
	if (ts % USECS_PER_DAY < 0)
		day--;
	*out = DateADTGetDatum((DateADT) day);
	return day * USECS_PER_DAY == ts ? PAIMON_ARG_EXACT : PAIMON_ARG_BETWEEN;
}

/*
 * A timestamp column, with or without time zone, against a date or, with time zone, a timestamp.  The comparison operators convert in the same way.
 * (A timestamp against an instant cannot be converted: when clocks are put back, two instants have the same time.)
 */
static PaimonArgument
timestamp_argument(Oid column, Oid argument, Datum in, Datum *out)
{
	Timestamp	ts;
	int			overflow = 0;

	if (argument == DATEOID)
		ts = column == TIMESTAMPOID ? date2timestamp_opt_overflow(DatumGetDateADT(in), &overflow)
			: date2timestamptz_opt_overflow(DatumGetDateADT(in), &overflow);
	else if (argument == TIMESTAMPOID && column == TIMESTAMPTZOID)
		ts = timestamp2timestamptz_opt_overflow(DatumGetTimestamp(in), &overflow);
	else
		return PAIMON_ARG_UNKNOWN;
	if (overflow != 0)
		return PAIMON_ARG_UNKNOWN;
	*out = TimestampGetDatum(ts);
	return PAIMON_ARG_EXACT;
}

/*
 * `column`: the column's base type; `argument`: the type of `in` as the operator declares it.
 */
PaimonArgument
paimon_key_argument(Oid column, Oid argument, Datum in, Datum *out)
{
	*out = in;
	/* operators over any enum or array are given two of the same */
	if (!OidIsValid(argument) || argument == column || argument == ANYENUMOID || argument == ANYARRAYOID)
		return PAIMON_ARG_EXACT;
	switch (argument)
	{
		case INT2OID:
			return integer_argument(column, DatumGetInt16(in), out);
		case INT4OID:
			return integer_argument(column, DatumGetInt32(in), out);
		case INT8OID:
			return integer_argument(column, DatumGetInt64(in), out);
		case FLOAT4OID:
			if (column != FLOAT8OID)
				return PAIMON_ARG_UNKNOWN;
			*out = Float8GetDatum((float8) DatumGetFloat4(in));
			return PAIMON_ARG_EXACT;
		case FLOAT8OID:
			return column == FLOAT4OID ? real_argument(DatumGetFloat8(in), out) : PAIMON_ARG_UNKNOWN;
		case DATEOID:
		case TIMESTAMPOID:
			if (column == DATEOID)
				return date_argument(DatumGetTimestamp(in), out);
			return timestamp_argument(column, argument, in, out);
		default:
			return IsBinaryCoercible(argument, column) ? PAIMON_ARG_EXACT : PAIMON_ARG_UNKNOWN;
	}
}
