/*-------------------------------------------------------------------------
 *
 * memtable_predicate.c
 *	  SERIALIZABLE: writers of one key that do not wait for each other (H8).
 *
 * Core's detection of dangerous structures rests upon that of two concurrent transactions that write one row the second fails.  Upserts of one key
 * both succeed, and the order of append says which was first.  So a transaction that writes a key counts as having read what it wrote: whoever
 * writes the key afterwards is in a read-write conflict with it, and two such conflicts in a row are found as always.
 *
 * The predicate lock is that of a page that stands for the key's hash; many of them become one of the relation, as core does it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "storage/predicate.h"
#include "utils/snapmgr.h"

#include "core/core_bloom.h"
#include "memtable/memtable_internal.h"

/* Equal hashes of different keys conflict needlessly. */
static BlockNumber
block_of(uint64 hash)
{
	return (BlockNumber) ((hash >> 16) % MaxBlockNumber);
}

/* See shared.h. */
void
paimon_predicate_put(Relation rel, const uint8 *key, uint32 len)
{
	BlockNumber block;

	if (!IsolationIsSerializable())
		return;
	block = block_of(paimon_key_hash(key, len));
	PredicateLockPage(rel, block, GetTransactionSnapshot());
	CheckForSerializableConflictIn(rel, NULL, block);
}

/* See shared.h. */
void
paimon_predicate_check(Relation rel, uint64 hash)
{
	if (IsolationIsSerializable())
		CheckForSerializableConflictIn(rel, NULL, block_of(hash));
}
