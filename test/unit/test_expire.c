/*-------------------------------------------------------------------------
 *
 * test_expire.c
 *	  Which snapshots expire: the specification's example, each limit, and random histories against the rule written down naively.
 *
 *-------------------------------------------------------------------------
 */
#include "unit.h"

#include "core/core_expire.h"

#define MINUTE ((int64_t) 60)
#define HOUR (60 * MINUTE)
#define AT(h, m) ((h) * HOUR + (m) * MINUTE)

static PaimonRetention
retention(int64_t min, int64_t max, int64_t time)
{
	PaimonRetention r;

	paimon_retention_init(&r, HOUR);
	r.min = min;
	r.max = max;
	r.time = time;
	return r;
}

/* Min 2, max 5, one hour; snapshots 1 to 5 at 10:00, 10:20, 10:40, 11:00, 11:20. */
static void
test_example(void)
{
	PaimonRetention r = retention(2, 5, HOUR);
	int64_t		times[] = {AT(10, 0), AT(10, 20), AT(10, 40), AT(11, 0), AT(11, 20), AT(11, 30)};
	int64_t		next;

	CHECK_EQ(paimon_expire_until(1, times, 5, &r, AT(11, 20), &next), 1);
	CHECK_EQ(next, AT(11, 20) + 1);
	CHECK_EQ(paimon_expire_until(1, times, 5, &r, next, &next), 2);
	CHECK_EQ(next, AT(11, 40) + 1);
	CHECK_EQ(paimon_expire_until(1, times, 5, &r, AT(11, 20) + 1, NULL), 2);
	/* with a sixth at 11:30: 1 goes if it is still there, 2 stays */
	CHECK_EQ(paimon_expire_until(1, times, 6, &r, AT(11, 30), NULL), 2);
	CHECK_EQ(paimon_expire_until(2, times + 1, 5, &r, AT(11, 30), NULL), 2);
	/* much later the smallest number is left */
	CHECK_EQ(paimon_expire_until(2, times + 1, 5, &r, AT(20, 0), &next), 5);
	CHECK_EQ(next, INT64_MAX);
}

static void
test_limits(void)
{
	PaimonRetention r;
	int64_t		times[200];
	int64_t		next;

	for (int i = 0; i < 200; i++)
		times[i] = i;

	/* defaults: 10 stay, 50 go at once */
	paimon_retention_init(&r, HOUR);
	CHECK_EQ(paimon_expire_until(1, times, 200, &r, 100, NULL), 1);
	CHECK_EQ(paimon_expire_until(1, times, 200, &r, 10 * HOUR, &next), 51);
	CHECK_EQ(next, 10 * HOUR);
	CHECK_EQ(paimon_expire_until(51, times + 50, 150, &r, 10 * HOUR, NULL), 101);
	CHECK_EQ(paimon_expire_until(151, times + 150, 50, &r, 10 * HOUR, &next), 191);
	CHECK_EQ(next, INT64_MAX);
	CHECK_EQ(paimon_expire_until(191, times + 190, 10, &r, 10 * HOUR, NULL), 191);
	CHECK_EQ(paimon_expire_until(1, times, 1, &r, 10 * HOUR, NULL), 1);

	/* the largest number goes before the time, and the limit before the largest number */
	r = retention(1, 3, HOUR);
	CHECK_EQ(paimon_expire_until(1, times, 20, &r, 20, NULL), 18);
	CHECK_EQ(paimon_expire_until(1, times, 200, &r, 200, &next), 51);
	CHECK_EQ(next, 200);
	r = retention(1, 1, HOUR);
	CHECK_EQ(paimon_expire_until(7, times, 20, &r, 20, NULL), 26);
	CHECK_EQ(paimon_expire_until(7, times, 1, &r, 20, NULL), 7);

	/* values out of range do no harm */
	r = retention(0, 0, -5);
	r.limit = 0;
	CHECK_EQ(paimon_expire_until(7, times, 20, &r, 20, NULL), 8);
	r = retention(INT64_MAX, INT64_MAX, INT64_MAX);
	r.limit = INT64_MAX;
	CHECK_EQ(paimon_expire_until(7, times, 20, &r, INT64_MAX, NULL), 7);
	r = retention(1, INT64_MAX, INT64_MAX);
	CHECK_EQ(paimon_expire_until(7, times, 20, &r, INT64_MIN, &next), 7);
	CHECK_EQ(next, INT64_MAX);
}

/* The rule as the specification says it. */
static int64_t
naive(int64_t earliest, const int64_t *times, int64_t n, const PaimonRetention *r, int64_t now)
{
	int64_t		latest = earliest + n - 1;
	int64_t		min = latest - r->max + 1 > earliest ? latest - r->max + 1 : earliest;
	int64_t		limit = latest - r->min + 1;

	if (limit > earliest + r->limit)
		limit = earliest + r->limit;
	for (int64_t id = min; id < limit; id++)
	{
		if (now - times[id + 1 - earliest] <= r->time)
			return id;
	}
	return limit > earliest ? limit : earliest;
}

static void
test_random(void)
{
	for (int round = 0; round < 200000; round++)
	{
		int64_t		times[64];
		int64_t		n = 1 + (int64_t) (unit_rand() % 64);
		int64_t		earliest = 1 + (int64_t) (unit_rand() % 100);
		int64_t		now = 0;
		int64_t		until;
		int64_t		next;
		PaimonRetention r;

		for (int i = 0; i < n; i++)
			times[i] = now += (int64_t) (unit_rand() % 4);
		now += (int64_t) (unit_rand() % 40);
		r.min = 1 + (int64_t) (unit_rand() % 20);
		r.max = r.min + (int64_t) (unit_rand() % 40);
		r.time = (int64_t) (unit_rand() % 100);
		r.limit = 1 + (int64_t) (unit_rand() % 40);
		until = paimon_expire_until(earliest, times, n, &r, now, &next);
		CHECK_EQ(until, naive(earliest, times, n, &r, now));
		CHECK(until >= earliest && until <= earliest + n - 1);
		/* what remains is stable until `next`, and not after */
		if (next > now)
		{
			int64_t		left = n - (until - earliest);

			CHECK_EQ(paimon_expire_until(until, times + (until - earliest), left, &r, now, NULL), until);
			if (next < INT64_MAX)
			{
				CHECK_EQ(paimon_expire_until(until, times + (until - earliest), left, &r, next - 1, NULL), until);
				CHECK(paimon_expire_until(until, times + (until - earliest), left, &r, next, NULL) > until);
			}
		}
		else
			CHECK_EQ(until, earliest + r.limit);
	}
}

static void
test_space(void)
{
	PaimonRetainedFile files[] = {{3, 10}, {5, 20}, {5, 20}, {9, 100}};

	CHECK_EQ(paimon_retained_bytes(files, 4, 1), 150);
	CHECK_EQ(paimon_retained_bytes(files, 4, 3), 140);
	CHECK_EQ(paimon_retained_bytes(files, 4, 9), 0);
	CHECK_EQ(paimon_expire_for_space(1, 20, files, 4, 150), 1);
	CHECK_EQ(paimon_expire_for_space(1, 20, files, 4, 149), 3);
	CHECK_EQ(paimon_expire_for_space(1, 20, files, 4, 139), 5);
	CHECK_EQ(paimon_expire_for_space(4, 20, files, 4, 139), 5);
	CHECK_EQ(paimon_expire_for_space(1, 20, files, 4, 0), 9);
	CHECK_EQ(paimon_expire_for_space(1, 8, files, 4, 0), 5);
	CHECK_EQ(paimon_expire_for_space(7, 20, files, 0, 0), 7);
	for (int round = 0; round < 20000; round++)
	{
		PaimonRetainedFile f[30];
		int64_t		n = (int64_t) (unit_rand() % 30);
		int64_t		removed = 1;
		int64_t		until = 1 + (int64_t) (unit_rand() % 30);
		int64_t		latest;
		int64_t		bytes = (int64_t) (unit_rand() % 200);
		int64_t		want;

		for (int i = 0; i < n; i++)
		{
			f[i].removed = removed += (int64_t) (unit_rand() % 3);
			f[i].bytes = (int64_t) (unit_rand() % 30);
		}
		latest = (removed > until ? removed : until) + (int64_t) (unit_rand() % 3);
		for (want = until; want < latest && paimon_retained_bytes(f, n, want) > bytes; want++)
			;
		CHECK_EQ(paimon_expire_for_space(until, latest, f, n, bytes), want);
	}
}

int
main(int argc, char **argv)
{
	unit_begin("expire", argc, argv);
	test_example();
	test_limits();
	test_random();
	test_space();
	return unit_end();
}
