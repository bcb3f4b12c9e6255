/*-------------------------------------------------------------------------
 *
 * core_key_internal.h
 *	  What the files of the key encoding share among themselves.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_KEY_INTERNAL_H
#define PAIMON_CORE_KEY_INTERNAL_H

#include "core/core_key.h"

extern PaimonResult paimon_keybuf_room(PaimonKeyBuf *buf, size_t n, uint8_t **out);

#endif							/* PAIMON_CORE_KEY_INTERNAL_H */
