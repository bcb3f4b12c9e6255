/*-------------------------------------------------------------------------
 *
 * verify_log.c
 *	  The delta log from the head that our snapshot sees to its tail, batch by batch, and the batches left over below.
 *
 * The head is that of a snapshot in use, so nothing from there on is freed meanwhile.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "verify/verify.h"

/* Reads and checks one batch; returns the position behind it. */
static uint64
read_batch(PaimonVerify *v, uint64 position)
{
	PaimonBatchHeader header;
	uint8	   *body;

	paimon_log_read_batch(v->rel, v->table->storage_id, position, &header, &body);
	pfree(body);
	return position + header.len;
}

static void
walk(PaimonVerify *v, void *arg)
{
	uint64		tail = paimon_shared_tail(v->table->shared, v->rel);
	uint64		position = v->log.head;

	while (position < tail)
	{
		CHECK_FOR_INTERRUPTS();
		position = read_batch(v, position);
	}
	if (position > tail)
		paimon_verify_report(v, "error", "log", "a batch ends at position " UINT64_FORMAT ", the log at " UINT64_FORMAT, position, tail);
}

static void
read_leftover(PaimonVerify *v, void *arg)
{
	for (int i = 0; i < v->log.nleftover; i++)
		(void) read_batch(v, v->log.leftover[i]);
}

void
paimon_verify_log(PaimonVerify *v)
{
	if (v->table->shared == NULL)
		return;
	(void) paimon_verify_guarded(v, "log", walk, NULL);
	(void) paimon_verify_guarded(v, "log", read_leftover, NULL);
}
