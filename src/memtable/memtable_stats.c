/*-------------------------------------------------------------------------
 *
 * memtable_stats.c
 *	  Counters of tables: a bounded registry in shared memory.
 *
 * An entry is found by (database, table) when a storage is attached; the storage's entry in shared memory then points to it.  The registry has more places
 * than there can be tables in use, so one that nobody points to can always be thrown out.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/shmem.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "memtable/memtable_internal.h"
#include "memtable/stats.h"

/* Places for each table that can be in use. */
#define PLACES 4

typedef struct StatsKey
{
	Oid			dbid;
	Oid			relid;
} StatsKey;

struct PaimonTableStats
{
	StatsKey	key;			/* dbid Invalid: free */
	int			users;			/* entries of storages that point here */
	TimestampTz since;
	uint64		last_used;		/* a tick */
	pg_atomic_uint64 values[PAIMON_STAT_COUNT];
};

typedef struct StatsHashEntry
{
	StatsKey	key;
	int			index;
} StatsHashEntry;

/* What the running transaction has done to a storage and counts when it commits. */
typedef struct Noted
{
	PaimonShared *shared;
	int			level;			/* of nesting, when it was done */
	bool		published;
	bool		one_more;		/* than before; else `runs` */
	int			runs;
	uint64		values[PAIMON_STAT_COUNT];
} Noted;

static PaimonTableStats *places = NULL;
static HTAB *by_table = NULL;

static Noted *noted = NULL;		/* in TopMemoryContext */
static int	nnoted = 0;
static int	noted_room = 0;

/* ---- registry ---- */

static int
nplaces(void)
{
	return paimon_max_tables * PLACES;
}

Size
paimon_stats_shmem_size(void)
{
	return add_size(mul_size(nplaces(), sizeof(PaimonTableStats)), hash_estimate_size(nplaces(), sizeof(StatsHashEntry)));
}

/* Called with AddinShmemInitLock held. */
void
paimon_stats_shmem_init(void)
{
	HASHCTL		info = {.keysize = sizeof(StatsKey), .entrysize = sizeof(StatsHashEntry)};
	bool		found;

	places = ShmemInitStruct("paimon statistics", mul_size(nplaces(), sizeof(PaimonTableStats)), &found);
	if (!found)
	{
		memset(places, 0, mul_size(nplaces(), sizeof(PaimonTableStats)));
		for (int i = 0; i < nplaces(); i++)
		{
			for (int k = 0; k < PAIMON_STAT_COUNT; k++)
				pg_atomic_init_u64(&places[i].values[k], 0);
		}
	}
	by_table = ShmemInitHash("paimon statistics by table", nplaces(), nplaces(), &info, HASH_ELEM | HASH_BLOBS);
}

/* A free place, or the longest unused that no table in use points to. */
static PaimonTableStats *
take_place(void)
{
	PaimonTableStats *best = NULL;

	for (int i = 0; i < nplaces(); i++)
	{
		PaimonTableStats *p = &places[i];

		if (!OidIsValid(p->key.dbid))
			return p;
		if (p->users == 0 && (best == NULL || p->last_used < best->last_used))
			best = p;
	}
	if (best != NULL)
		(void) hash_search(by_table, &best->key, HASH_REMOVE, NULL);
	return best;
}

static PaimonTableStats *
find_place(Oid dbid, Oid relid)
{
	StatsKey	key = {dbid, relid};
	StatsHashEntry *e = hash_search(by_table, &key, HASH_FIND, NULL);
	PaimonTableStats *p = e != NULL ? &places[e->index] : take_place();

	if (p == NULL)
		return NULL;
	p->last_used = paimon_shared_tick();
	if (e != NULL)
		return p;
	e = hash_search(by_table, &key, HASH_ENTER_NULL, NULL);
	if (e == NULL)
	{
		p->key.dbid = InvalidOid;
		return NULL;
	}
	e->index = (int) (p - places);
	p->key = key;
	p->since = GetCurrentTimestamp();
	for (int k = 0; k < PAIMON_STAT_COUNT; k++)
		pg_atomic_write_u64(&p->values[k], 0);
	return p;
}

/* Mapping lock held exclusively, here and in the next one. */
void
paimon_stats_attach(PaimonShared *shared, Oid relid)
{
	paimon_stats_detach(shared);
	shared->stats = find_place(paimon_locator_db(shared->key.locator), relid);
	if (shared->stats != NULL)
		shared->stats->users++;
}

void
paimon_stats_detach(PaimonShared *shared)
{
	if (shared->stats != NULL)
		shared->stats->users--;
	shared->stats = NULL;
}

/* ---- counters ---- */

void
paimon_stats_add(PaimonShared *shared, PaimonStat stat, uint64 n)
{
	PaimonTableStats *stats = shared->stats;

	if (stats != NULL && n > 0)
		pg_atomic_fetch_add_u64(&stats->values[stat], (int64) n);
}

void
paimon_stats_get(PaimonShared *shared, PaimonStats *result)
{
	PaimonTableStats *stats = shared->stats;

	memset(result, 0, sizeof(*result));
	if (stats == NULL)
		return;
	result->since = stats->since;
	for (int k = 0; k < PAIMON_STAT_COUNT; k++)
		result->values[k] = pg_atomic_read_u64(&stats->values[k]);
}

/* ---- what counts at commit ---- */

static Noted *
note(PaimonShared *shared)
{
	int			level = GetCurrentTransactionNestLevel();
	Noted	   *n;

	/* The last one: they are applied in order. */
	for (int i = nnoted - 1; i >= 0; i--)
	{
		if (noted[i].shared == shared && noted[i].level == level)
			return &noted[i];
	}
	if (noted == NULL)
		noted = MemoryContextAlloc(TopMemoryContext, sizeof(Noted) * (noted_room = 8));
	else if (nnoted == noted_room)
	{
		noted = repalloc(noted, sizeof(Noted) * 2 * noted_room);
		noted_room *= 2;
	}
	n = &noted[nnoted++];
	memset(n, 0, sizeof(*n));
	n->shared = shared;
	n->level = level;
	return n;
}

void
paimon_stats_note(PaimonShared *shared, PaimonStat stat, uint64 n)
{
	if (shared != NULL && n > 0)
		note(shared)->values[stat] += n;
}

void
paimon_runs_note(PaimonShared *shared, int runs)
{
	Noted	   *n;

	if (shared == NULL)
		return;
	n = note(shared);
	if (runs == PAIMON_RUNS_ONE_MORE && n->published && !n->one_more)
		n->runs++;				/* two publications by one transaction */
	else
	{
		n->one_more = runs == PAIMON_RUNS_ONE_MORE;
		n->runs = runs;
	}
	n->published = true;
}

bool
paimon_runs_noted(PaimonShared *shared)
{
	for (int i = 0; i < nnoted; i++)
	{
		if (noted[i].shared == shared && noted[i].published)
			return true;
	}
	return false;
}

void
paimon_stats_at_end(bool commit)
{
	for (int i = 0; i < nnoted && commit; i++)
	{
		Noted	   *n = &noted[i];

		for (int k = 0; k < PAIMON_STAT_COUNT; k++)
			paimon_stats_add(n->shared, k, n->values[k]);
		if (n->published)
			paimon_runs_change(n->shared, n->one_more, (uint32) n->runs);
	}
	nnoted = 0;
}

/* What a sub-transaction has noted becomes its parent's, or is forgotten. */
static void
subxact_callback(SubXactEvent event, SubTransactionId mySubid, SubTransactionId parentSubid, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();
	int			kept = 0;

	if (nnoted == 0 || (event != SUBXACT_EVENT_COMMIT_SUB && event != SUBXACT_EVENT_ABORT_SUB))
		return;
	for (int i = 0; i < nnoted; i++)
	{
		if (noted[i].level >= level && event == SUBXACT_EVENT_ABORT_SUB)
			continue;
		noted[kept] = noted[i];
		noted[kept].level = Min(noted[kept].level, event == SUBXACT_EVENT_COMMIT_SUB ? Max(level - 1, 1) : level);
		kept++;
	}
	nnoted = kept;
}

void
paimon_stats_init(void)
{
	RegisterSubXactCallback(subxact_callback, NULL);
}
