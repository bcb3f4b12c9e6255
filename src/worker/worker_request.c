#include "postgres.h"

#include "worker/worker.h"

PaimonWorkOutcome
paimon_worker_do(Relation rel, int work, int64 *snapshot_id)
{
	return PAIMON_WORK_NO_WORKER;
}
