/*-------------------------------------------------------------------------
 *
 * ddl.h
 *	  Definition of paimon tables: hooks over core's DDL.  See README.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_DDL_H
#define PAIMON_DDL_H

/* Installs the utility and object-access hooks; called once from _PG_init. */
extern void paimon_ddl_init(void);

#endif							/* PAIMON_DDL_H */
