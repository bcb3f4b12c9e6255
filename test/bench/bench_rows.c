/*-------------------------------------------------------------------------
 *
 * bench_rows.c
 *	  Rows of the workloads as COPY text, the same for the same arguments.
 *
 *	  bench_rows FIRST COUNT SEED
 *
 * Writes COUNT rows to standard output: their ids are FIRST .. FIRST + COUNT - 1, each once, in random order.  A row has about 100 bytes of text
 * and 16 bytes of entropy: id, ts (one of 30 days, seconds), customer (one of 100,000), region (20), status (6, uneven), amount (two
 * decimals), qty (1..50), note (40 bytes, half of them random).
 *
 *-------------------------------------------------------------------------
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_SECONDS 86400
#define DAYS		30

static const char *const statuses[] = {"new", "paid", "packed", "shipped", "delivered", "returned"};
static const char *const words[] = {"leave at the door", "call before noon", "gift wrap please", "ring twice, wait"};

/* splitmix64: a stream of well mixed numbers from a counter. */
static uint64_t
mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/*
 * A permutation of 0 .. count - 1 without memory: four Feistel rounds over the next even power of two, again and again until the
 * result is in range.
 */
static uint64_t
permute(uint64_t i, uint64_t count, uint64_t seed)
{
	int			half = 1;
	uint64_t	mask;

	while ((UINT64_C(1) << (2 * half)) < count)
		half++;
	mask = (UINT64_C(1) << half) - 1;
	do
	{
		uint64_t	left = i >> half;
		uint64_t	right = i & mask;

		for (int round = 0; round < 4; round++)
		{
			uint64_t	next = left ^ (mix(right ^ mix(seed + (uint64_t) round)) & mask);

			left = right;
			right = next;
		}
		i = (left << half) | right;
	} while (i >= count);
	return i;
}

static void
print_row(uint64_t id, uint64_t seed)
{
	uint64_t	a = mix(id ^ mix(seed));
	uint64_t	b = mix(a);
	uint64_t	c = mix(b);
	unsigned	second = (unsigned) (a % (DAYS * DAY_SECONDS));
	unsigned	in_day = second % DAY_SECONDS;
	unsigned	status = (unsigned) ((b >> 8) & 15);

	/* half of all orders are delivered */
	if (status > 5)
		status = status < 12 ? 4 : status - 10 - (status > 13);
	printf("%llu\t2026-06-%02u %02u:%02u:%02u+00\t%u\tregion-%02u\t%s\t%u.%02u\t%u\t%s %016llx%06x\n",
		   (unsigned long long) id, second / DAY_SECONDS + 1, in_day / 3600, in_day / 60 % 60, in_day % 60,
		   (unsigned) ((a >> 32) % 100000), (unsigned) ((b >> 16) % 20), statuses[status],
		   (unsigned) ((b >> 24) % 10000), (unsigned) ((b >> 40) % 100), (unsigned) ((b >> 48) % 50) + 1,
		   words[a >> 62], (unsigned long long) c, (unsigned) (mix(c) & 0xffffff));
}

int
main(int argc, char **argv)
{
	uint64_t	first;
	uint64_t	count;
	uint64_t	seed;
	static char buffer[1 << 20];

	if (argc != 4)
	{
		fprintf(stderr, "usage: %s FIRST COUNT SEED\n", argv[0]);
		return 2;
	}
	first = strtoull(argv[1], NULL, 10);
	count = strtoull(argv[2], NULL, 10);
	seed = strtoull(argv[3], NULL, 10);
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	for (uint64_t i = 0; i < count; i++)
		print_row(first + permute(i, count, seed), seed);
	return fflush(stdout) != 0 || ferror(stdout);
}
