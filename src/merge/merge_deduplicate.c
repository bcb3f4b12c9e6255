/*-------------------------------------------------------------------------
 *
 * merge_deduplicate.c
 *	  Merge engine deduplicate: the newest record of a key is its row.
 *
 * Grouping does not matter: the newest of some neighbours and an older rest is the newest of all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/merge.h"

static void *
deduplicate_begin(const PaimonRowDesc *desc, const PaimonOptions *options)
{
	(void) desc;
	(void) options;
	return palloc0(sizeof(const PaimonMergeRecord *));
}

static bool
deduplicate_add(void *state, const PaimonMergeRecord *record, bool first)
{
	if (first)
		*(const PaimonMergeRecord **) state = record;
	return false;
}

static void
deduplicate_finish(void *state, PaimonMergeResult *result)
{
	const PaimonMergeRecord *newest = *(const PaimonMergeRecord **) state;

	memset(result, 0, sizeof(*result));
	result->record = newest;
	result->gone = paimon_kind_is_removal(newest->kind);
}

const PaimonMergeFunction paimon_merge_deduplicate = {
	.engine = PAIMON_ENGINE_DEDUPLICATE,
	.name = "deduplicate",
	.newest_decides = true,
	.begin = deduplicate_begin,
	.add = deduplicate_add,
	.finish = deduplicate_finish,
};
