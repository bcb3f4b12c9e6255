/*-------------------------------------------------------------------------
 *
 * core_expire.c
 *	  Which snapshots of a table expire.  See core_expire.h and README.md here, "Expiry".
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_expire.h"

#define MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b) ((a) > (b) ? (a) : (b))

void
paimon_retention_init(PaimonRetention *r, int64_t hour)
{
	r->min = 10;
	r->max = INT64_MAX;
	r->time = hour;
	r->limit = 50;
}

/* a - b, for b >= 0, without overflow. */
static int64_t
minus(int64_t a, int64_t b)
{
	return a < INT64_MIN + b ? INT64_MIN : a - b;
}

int64_t
paimon_expire_until(int64_t earliest, const int64_t *times, int64_t n, const PaimonRetention *r, int64_t now, int64_t *next)
{
	int64_t		latest = earliest + n - 1;
	int64_t		keep_min = MAX_OF(r->min, 1);
	int64_t		keep_max = MAX_OF(r->max, keep_min);
	int64_t		limit = MAX_OF(r->limit, 1);
	int64_t		time = MAX_OF(r->time, 0);
	int64_t		id = keep_max > n ? earliest : latest - keep_max + 1;
	int64_t		guarded = keep_min > n ? earliest : latest - keep_min + 1;	/* the first one that the smallest number protects */
	int64_t		end = limit > n ? guarded : MIN_OF(guarded, earliest + limit);

	if (next != NULL)
		*next = INT64_MAX;

	/* A snapshot goes when its successor is old enough: until then it was what a reader of that moment saw. */
	for (; id < end; id++)
	{
		int64_t		successor = times[id + 1 - earliest];

		if (successor >= minus(now, time))
		{
			/* old enough is strictly older */
			if (next != NULL && successor < INT64_MAX - 1 - time)
				*next = successor + time + 1;
			break;
		}
	}
	id = MAX_OF(MIN_OF(id, end), earliest);
	if (next != NULL && id == end && end < guarded)
		*next = now;
	return id;
}

int64_t
paimon_retained_bytes(const PaimonRetainedFile *files, int64_t n, int64_t earliest)
{
	int64_t		bytes = 0;

	for (int64_t i = 0; i < n; i++)
	{
		if (files[i].removed > earliest)
			bytes += files[i].bytes;
	}
	return bytes;
}

int64_t
paimon_expire_for_space(int64_t until, int64_t latest, const PaimonRetainedFile *files, int64_t n, int64_t bytes)
{
	int64_t		kept = paimon_retained_bytes(files, n, until);
	int64_t		i = 0;

	while (i < n && files[i].removed <= until)
		i++;

	/* A file goes with the last snapshot that has it: only the ids without some file matter. */
	while (i < n && kept > bytes && files[i].removed <= latest)
	{
		until = files[i].removed;
		for (; i < n && files[i].removed == until; i++)
			kept -= files[i].bytes;
	}
	return until;
}
