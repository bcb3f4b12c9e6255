/*-------------------------------------------------------------------------
 *
 * am_index.h
 *	  What the files of the index access method share: conditions on the key as ranges of encoded keys.  Private to am_index*.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_AM_INDEX_H
#define PAIMON_AM_INDEX_H

#include "postgres.h"

#include "access/relscan.h"
#include "access/skey.h"

#include "am/am.h"

/* One key, or all keys in [lower, upper); data NULL = unbounded. */
typedef struct PaimonKeySegment
{
	PaimonBytes lower;			/* the key of a point */
	PaimonBytes upper;
	int32		bucket;			/* -1: not to be told */
	bool		point;
} PaimonKeySegment;

/* Segments that together hold every key the conditions allow: ascending, none touching another. */
typedef struct PaimonKeyPlan
{
	int			nsegments;
	PaimonKeySegment *segments;
	bool		exact;			/* they hold no other key */
} PaimonKeyPlan;

/*
 * Makes the plan of scan keys, in CurrentMemoryContext; `scratch` is an empty buffer that is used again and again.
 */
extern void paimon_key_plan(const PaimonRowDesc *desc, ScanKey keys, int nkeys, StringInfo scratch, PaimonKeyPlan *plan);

/* am_index_value.c */

/* What an argument of a condition is in terms of the column's type. */
typedef enum PaimonArgument
{
	PAIMON_ARG_UNKNOWN,			/* cannot be told: the condition must be checked row by row */
	PAIMON_ARG_EXACT,			/* the value */
	PAIMON_ARG_BETWEEN,			/* between the value and the next larger one */
	PAIMON_ARG_BELOW_ALL,		/* smaller than every value of the type */
	PAIMON_ARG_ABOVE_ALL
} PaimonArgument;

extern PaimonArgument paimon_key_argument(Oid column, Oid argument, Datum in, Datum *out);

/* am_index_scan.c */
extern IndexScanDesc paimon_key_beginscan(Relation index, int nkeys, int norderbys);
extern void paimon_key_rescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys, int norderbys);
extern bool paimon_key_gettuple(IndexScanDesc scan, ScanDirection direction);
extern void paimon_key_markpos(IndexScanDesc scan);
extern void paimon_key_restrpos(IndexScanDesc scan);
extern void paimon_key_endscan(IndexScanDesc scan);
extern bool paimon_key_canreturn(Relation index, int attno);

#endif							/* PAIMON_AM_INDEX_H */
