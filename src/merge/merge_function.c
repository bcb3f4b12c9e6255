/*-------------------------------------------------------------------------
 *
 * merge_function.c
 *	  Which merge function belongs to which merge engine.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/merge.h"

const PaimonMergeFunction *
paimon_merge_function(PaimonMergeEngine engine)
{
	switch (engine)
	{
		case PAIMON_ENGINE_DEDUPLICATE:
			return &paimon_merge_deduplicate;
		case PAIMON_ENGINE_PARTIAL_UPDATE:
		case PAIMON_ENGINE_AGGREGATION:
		case PAIMON_ENGINE_FIRST_ROW:
			break;
	}
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("this merge engine is not supported yet"),
			 errhint("Use \"merge-engine\" = 'deduplicate'.")));
	return NULL;				/* keep compiler quiet */
}
