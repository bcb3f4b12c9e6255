/*-------------------------------------------------------------------------
 *
 * merge.h
 *	  What the kind of a record alone tells.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_MERGE_H
#define PAIMON_MERGE_H

#include "postgres.h"

#include "core/core_group.h"

/* Does a record of this kind say that the row is gone?  Where the newest record of a key decides; elsewhere it may be a row that is taken back in part. */
static inline bool
paimon_kind_is_removal(uint8 kind)
{
	return kind == PAIMON_KIND_DELETE || kind == PAIMON_KIND_REMOVE || kind == PAIMON_KIND_UPDATE_BEFORE;
}

#endif							/* PAIMON_MERGE_H */
