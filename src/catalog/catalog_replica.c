/*-------------------------------------------------------------------------
 *
 * catalog_replica.c
 *	  The manifest is this database's own: what logical replication brings for it is left out.
 *
 * To a publication FOR ALL TABLES the manifest's tables are tables like others, and a subscriber with the extension has tables of the same names.
 * Rows of the publisher's manifest would name files here that do not exist, or say something about storages that are somebody else's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/trigger.h"
#include "fmgr.h"

#include "compat.h"

PG_FUNCTION_INFO_V1(paimon_skip_replicated);

/*
 * Trigger BEFORE a row of the manifest is changed, enabled for session_replication_role = replica only: nothing happens to the row.  Code in C
 * that writes the manifest fires no triggers.
 */
Datum
paimon_skip_replicated(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by trigger manager", "paimon.skip_replicated")));
	PG_RETURN_POINTER(NULL);
}
