/*-------------------------------------------------------------------------
 *
 * stall.h
 *	  Back-pressure: writers wait at the first write of a statement while their table has too many sorted runs.
 *
 * See "Stalls" in README.md here for who waits, who does not, and why nobody waits for ever.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_STALL_H
#define PAIMON_STALL_H

#include "postgres.h"

#include "utils/rel.h"

#include "memtable/stats.h"
#include "memtable/table.h"

extern void paimon_stall_init(void);	/* GUC */

extern PaimonTable *paimon_stall(PaimonTable *table, Relation rel, CommandId cid);

/*
 * Before a row of command `cid` is written or locked for that, and before any lock for it is taken.  May wait, interruptibly, or compact the table in the
 * current transaction; raises CONFIGURATION_LIMIT_EXCEEDED.  Returns the table's handle, which may be a new one then.  Otherwise a few nanoseconds.
 */
static inline PaimonTable *
paimon_stall_check(PaimonTable *table, Relation rel, CommandId cid)
{
	uint32		limit = paimon_runs_limit(&table->options);

	if (likely(limit == PG_UINT32_MAX || (table->shared != NULL && paimon_runs(table->shared, NULL) < limit)))
		return table;
	return paimon_stall(table, rel, cid);
}

#endif							/* PAIMON_STALL_H */
