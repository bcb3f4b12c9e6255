/*-------------------------------------------------------------------------
 *
 * paimon_am.h
 *	  What the library offers to its own modules: is it preloaded?
 *
 * Lies beside the folders, not above them: any server-side folder may include it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_AM_H
#define PAIMON_AM_H

#include "postgres.h"

/*
 * Throws OBJECT_NOT_IN_PREREQUISITE_STATE unless the library came in by
 * shared_preload_libraries.  For everything that needs shared memory, the hooks or the
 * resource manager and can be reached otherwise: access method handlers, SQL functions.
 */
extern void paimon_require_preload(void);

/* The same as a question. */
extern bool paimon_is_preloaded(void);

#endif							/* PAIMON_AM_H */
