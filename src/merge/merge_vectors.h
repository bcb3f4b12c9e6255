/*-------------------------------------------------------------------------
 *
 * merge_vectors.h
 *	  The fold of a key's records column by column, from the column vectors of run files, where nothing but adding happens.  Private to merge/.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_MERGE_VECTORS_H
#define PAIMON_MERGE_VECTORS_H

#include "merge/merge_server.h"
#include "run/run_group.h"

/* A record where it lies: a row of a group, whose columns are loaded when they are asked for, or (group NULL) values by attribute. */
typedef struct PaimonRecordRef
{
	PaimonRunGroup *group;
	uint32		row;
	uint8		kind;
	const Datum *values;
	const bool *nulls;
} PaimonRecordRef;

typedef struct PaimonVectorPlan PaimonVectorPlan;

/* In CurrentMemoryContext; NULL if a column of the plan must be folded otherwise. */
extern PaimonVectorPlan *paimon_vectors_plan(const PaimonMergePlan *plan);

/* Can a record of this kind be among them?  All but the oldest one are added; the oldest one may be exactly the row. */
static inline bool
paimon_vectors_take(uint8 kind)
{
	return kind == PAIMON_KIND_INSERT || kind == PAIMON_KIND_UPDATE_AFTER || kind == PAIMON_KIND_REPLACE;
}

/*
 * What records (newest first, at least one) come to, for what is seen as for what is stored, into values[] and nulls[] by attribute, where the plan's columns are
 * set.  False: something does not fit its column.  Values point to where the records lie.
 */
extern bool paimon_vectors_fold(const PaimonVectorPlan *plan, const PaimonRecordRef *refs, int n, Datum *values, bool *nulls);

#endif							/* PAIMON_MERGE_VECTORS_H */
