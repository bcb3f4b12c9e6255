/*-------------------------------------------------------------------------
 *
 * merge_records.h
 *	  The fold over records as they lie in logs, buffers and run files: what readers, flush and compaction call.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_MERGE_RECORDS_H
#define PAIMON_MERGE_RECORDS_H

#include "postgres.h"

#include "merge/merge_fold.h"
#include "row/row.h"

typedef struct PaimonMerger PaimonMerger;
struct PaimonRunGroup;

/*
 * Folds key after key of a storage by a plan, which may be a projected one for what is seen.  Memory is a child of CurrentMemoryContext.  `desc`, `plan`
 * and `relname` must outlive it.  show_key: errors may name the key's values.
 */
extern PaimonMerger *paimon_merger_begin(const char *relname, const PaimonRowDesc *desc, const PaimonMergePlan *plan, bool show_key);
extern void paimon_merger_end(PaimonMerger *m);

/* Begins a key, whose bytes are copied.  What was given for the key before is gone. */
extern void paimon_merger_key(PaimonMerger *m, const uint8 *key, uint32 len);

/*
 * The key's next record, newest first: a payload (8-aligned), or a row of an open group.  copy: what it points to may go before the fold of the
 * key is over.  False: no older record can change anything.
 */
extern bool paimon_merger_add(PaimonMerger *m, uint8 kind, const uint8 *payload, uint32 len, bool copy);
/* whole: the group's columns are decoded whole, since many of its rows will be read; otherwise just this row's values. */
extern bool paimon_merger_add_row(PaimonMerger *m, uint8 kind, struct PaimonRunGroup *group, uint32 row, bool whole);
extern bool paimon_merger_add_values(PaimonMerger *m, uint8 kind, const Datum *values, const bool *isnull);

/*
 * The row that is seen, by attribute (the plan's columns only); false: there is none.  Valid until the next key.  Raises the errors of values,
 * naming table, column and key.
 */
extern bool paimon_merger_row(PaimonMerger *m, const Datum **values, const bool **isnull);

/*
 * What is stored for the key: the number of records, which paimon_merger_record gives newest first.  oldest: no older record of the key exists
 * anywhere.  Several records of a key must stay together in one file, in this order.
 */
extern int	paimon_merger_partial(PaimonMerger *m, bool oldest);
extern uint8 paimon_merger_record(PaimonMerger *m, int i, const Datum **values, const bool **isnull);

/* The same as a payload, which is added to `payload`.  Returns its kind. */
extern uint8 paimon_merger_encode(PaimonMerger *m, int i, StringInfo payload);

/* The key at hand. */
extern PaimonBytes paimon_merger_key_bytes(const PaimonMerger *m);

/* A record that is the only one of its key is the row as it stands: nothing need be folded to see it. */
static inline bool
paimon_merge_shows_alone(const PaimonMergePlan *plan, uint8 kind)
{
	if (plan->must_fit)
		return false;
	if (kind == PAIMON_KIND_REPLACE)
		return true;
	return (kind == PAIMON_KIND_INSERT || kind == PAIMON_KIND_UPDATE_AFTER) && plan->plain_single;
}

/*
 * The kind of a merged row that is written into a storage that has nothing of its key.  Added where that makes the same row of it, so that late rows find
 * what they would have found; otherwise it is exactly this.
 */
extern uint8 paimon_merge_rewrite_kind(const PaimonMergePlan *plan, const bool *isnull);

/* ... is stored as it stands, whether or not anything older exists. */
static inline bool
paimon_merge_stores_alone(uint8 kind)
{
	return kind == PAIMON_KIND_INSERT || kind == PAIMON_KIND_UPDATE_AFTER || kind == PAIMON_KIND_REPLACE;
}

#endif							/* PAIMON_MERGE_RECORDS_H */
