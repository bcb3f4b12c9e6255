/*-------------------------------------------------------------------------
 *
 * unit.h
 *	  The unit tests' few tools: checks that count, a seeded generator, an
 *	  allocator that frees everything at once.
 *
 * A test program is one file: it includes this header, calls
 * unit_begin("name", argc, argv) first and returns unit_end() from main.
 * The seed comes from argv[1], else from the clock, and is always printed,
 * so that a failure can be run again.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_UNIT_H
#define PAIMON_UNIT_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/core.h"

#define UNIT_UNUSED __attribute__((unused))
#define UNIT_MAX_SHOWN 20		/* failures printed in full; all are counted */

static uint64_t unit_passed UNIT_UNUSED;
static uint64_t unit_failed UNIT_UNUSED;
static uint64_t unit_seed UNIT_UNUSED;
static uint64_t unit_state UNIT_UNUSED;
static const char *unit_name UNIT_UNUSED = "?";

/* Counts one check; the expression's value is the result. */
#define CHECK(cond) unit_check((cond), #cond, __FILE__, __LINE__)

/* The same with a printf-style explanation that is shown on failure. */
#define CHECK_MSG(cond, ...) \
	do { \
		if (!unit_check((cond), #cond, __FILE__, __LINE__) && unit_failed <= UNIT_MAX_SHOWN) \
		{ \
			printf("    "); \
			printf(__VA_ARGS__); \
			printf("\n"); \
		} \
	} while (0)

/* Two integers must be equal; both are shown if not. */
#define CHECK_EQ(a, b) \
	do { \
		int64_t		unit_a_ = (int64_t) (a); \
		int64_t		unit_b_ = (int64_t) (b); \
		CHECK_MSG(unit_a_ == unit_b_, "%s = %" PRId64 ", %s = %" PRId64, #a, unit_a_, #b, unit_b_); \
	} while (0)

static UNIT_UNUSED bool
unit_check(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		unit_passed++;
	else if (++unit_failed <= UNIT_MAX_SHOWN)
		printf("%s:%d: failed: %s\n", file, line, what);
	return ok;
}

/* splitmix64 over a state of the caller's (one per thread). */
static UNIT_UNUSED uint64_t
unit_rand_r(uint64_t *state)
{
	uint64_t	z = (*state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static UNIT_UNUSED uint64_t
unit_rand(void)
{
	return unit_rand_r(&unit_state);
}

/* A number in [0, n); 0 if n is 0. */
static UNIT_UNUSED uint64_t
unit_below(uint64_t n)
{
	return n == 0 ? 0 : unit_rand() % n;
}

/* A number of random magnitude: small ones are as likely as huge ones. */
static UNIT_UNUSED uint64_t
unit_rand_skewed(void)
{
	return unit_rand() >> (unit_rand() % 64);
}

static UNIT_UNUSED void
unit_fill(void *buf, size_t len)
{
	uint8_t    *p = buf;

	for (size_t i = 0; i < len; i++)
		p[i] = (uint8_t) unit_rand();
}

/* ---- an allocator whose memory is freed together ---- */

typedef struct UnitBlock
{
	struct UnitBlock *next;
	uint64_t	pad;			/* keeps what follows aligned to 16 */
} UnitBlock;

typedef struct UnitArena
{
	UnitBlock  *blocks;
	int64_t		fail_after;		/* allocations until NULL is returned; < 0 = never */
} UnitArena;

static UNIT_UNUSED void *
unit_arena_alloc(void *arg, size_t size)
{
	UnitArena  *a = arg;
	UnitBlock  *b;

	if (a->fail_after == 0)
		return NULL;
	if (a->fail_after > 0)
		a->fail_after--;
	b = malloc(sizeof(UnitBlock) + size);
	if (b == NULL)
	{
		fprintf(stderr, "out of memory\n");
		abort();
	}
	b->next = a->blocks;
	a->blocks = b;
	return b + 1;
}

static UNIT_UNUSED void
unit_arena_reset(UnitArena *a)
{
	while (a->blocks != NULL)
	{
		UnitBlock  *next = a->blocks->next;

		free(a->blocks);
		a->blocks = next;
	}
}

/* Makes *a empty and returns the allocator to hand to core. */
static UNIT_UNUSED PaimonAllocator
unit_arena_init(UnitArena *a)
{
	PaimonAllocator alloc = {unit_arena_alloc, a};

	a->blocks = NULL;
	a->fail_after = -1;
	return alloc;
}

/* ---- frame of a test program ---- */

static UNIT_UNUSED void
unit_begin(const char *name, int argc, char **argv)
{
	struct timespec now;

	unit_name = name;
	if (argc > 1)
		unit_seed = strtoull(argv[1], NULL, 0);
	else
	{
		clock_gettime(CLOCK_REALTIME, &now);
		unit_seed = ((uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec) & UINT64_C(0xffffffffff);
	}
	unit_state = unit_seed;
	printf("%s: seed %" PRIu64 "\n", name, unit_seed);
	fflush(stdout);
}

/* Prints the totals; the value is main's return value.  A test without a single check fails. */
static UNIT_UNUSED int
unit_end(void)
{
	if (unit_passed + unit_failed == 0)
	{
		printf("%s: no check ran\n", unit_name);
		unit_failed++;
	}
	printf("%s: %" PRIu64 " passed, %" PRIu64 " failed\n", unit_name, unit_passed, unit_failed);
	return unit_failed == 0 ? 0 : 1;
}

#endif							/* PAIMON_UNIT_H */
