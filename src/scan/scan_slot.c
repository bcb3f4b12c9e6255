/*-------------------------------------------------------------------------
 *
 * scan_slot.c
 *	  Tuple table slots for paimon rows: columns are decoded when somebody asks for them.
 *
 * A slot holds one of: a row of a row group (with a reference on the group); a copy of a record's key and payload; or, as a virtual
 * slot does, nothing but values that the executor put there (INSERT and COPY fill slots of the table's kind in that way), perhaps materialized.  A merged row,
 * and what is copied from a slot of another kind, is such values, of which those by reference are copied into the slot's buffer.
 *
 * By-reference values of a group's row point into the group.  An error can end a slot's life without a call to us: a reset
 * callback of the slot's memory context gives the reference back then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/heap.h"
#include "replication/logicalworker.h"
#include "utils/datum.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

#include "run/run_group.h"
#include "scan/scan.h"

#define SLOT_BUFFER_KEEP (64 * 1024)	/* a larger copy of a record is freed when the slot is cleared */

/* Holds a slot's reference on a group where the slot's context can find it when it dies. */
typedef struct SlotGuard
{
	MemoryContextCallback callback;
	PaimonRunGroup *group;
} SlotGuard;

typedef struct PaimonSlot
{
	TupleTableSlot base;
	const PaimonTable *table;
	PaimonRunGroup *group;		/* a row of a group; = guard->group */
	uint32		row;
	PaimonDecode decode;
	bool		in_memory;		/* a record: key and payload point into buffer */
	bool		owned;			/* values: those by reference lie in buffer */
	bool		fetched;		/* by ctid: see tts_paimon_getsysattr */
	bool		scratch_used;
	const int16 *columns;		/* that are decoded, of a row of a group; NULL: all */
	int			ncolumns;
	PaimonBytes key;
	PaimonBytes payload;
	char	   *buffer;
	Size		buffer_size;
	char	   *data;			/* values of a materialized slot (TTS_SHOULDFREE) */
	MemoryContext scratch;		/* values that had to be made; NULL until needed */
	SlotGuard  *guard;			/* made at the first row of a group */
	int16	   *byref;			/* attributes passed by reference, of a slot whose descriptor never changes; NULL until needed */
	int			nbyref;
} PaimonSlot;

static void
guard_callback(void *arg)
{
	SlotGuard  *guard = arg;

	if (guard->group != NULL)
		paimon_run_group_unref(guard->group);
	guard->group = NULL;
}

/* Holds `group` (NULL: none) instead of what was held. */
static void
slot_hold(PaimonSlot *ps, PaimonRunGroup *group)
{
	PaimonRunGroup *old = ps->group;

	if (old == group)
		return;
	if (group != NULL)
	{
		if (ps->guard == NULL)
		{
			ps->guard = MemoryContextAllocZero(ps->base.tts_mcxt, sizeof(SlotGuard));
			ps->guard->callback.func = guard_callback;
			ps->guard->callback.arg = ps->guard;
			MemoryContextRegisterResetCallback(ps->base.tts_mcxt, &ps->guard->callback);
		}
		paimon_run_group_ref(group);
	}
	ps->group = group;
	ps->guard->group = group;
	if (old != NULL)
		paimon_run_group_unref(old);
}

/* Frees what belongs to the present row, except for the group. */
static inline void
slot_reset(PaimonSlot *ps)
{
	if (unlikely(TTS_SHOULDFREE(&ps->base)))
	{
		pfree(ps->data);
		ps->data = NULL;
		ps->base.tts_flags &= ~TTS_FLAG_SHOULDFREE;
	}
	if (unlikely(ps->scratch_used))
	{
		MemoryContextReset(ps->scratch);
		ps->scratch_used = false;
	}
}

static MemoryContext
slot_scratch(PaimonSlot *ps)
{
	if (ps->scratch == NULL)
		ps->scratch = AllocSetContextCreate(ps->base.tts_mcxt, "paimon slot", ALLOCSET_SMALL_SIZES);
	ps->scratch_used = true;
	return ps->scratch;
}

static void
tts_paimon_init(TupleTableSlot *slot)
{
	PaimonSlot *ps = (PaimonSlot *) slot;

	memset((char *) ps + sizeof(TupleTableSlot), 0, sizeof(PaimonSlot) - sizeof(TupleTableSlot));
}

static void
tts_paimon_clear(TupleTableSlot *slot)
{
	PaimonSlot *ps = (PaimonSlot *) slot;

	slot_reset(ps);
	if (ps->group != NULL)
		slot_hold(ps, NULL);
	if (ps->buffer_size > SLOT_BUFFER_KEEP)
	{
		pfree(ps->buffer);
		ps->buffer = NULL;
		ps->buffer_size = 0;
	}
	ps->in_memory = ps->owned = false;
	ps->fetched = false;
	slot->tts_nvalid = 0;
	slot->tts_flags |= TTS_FLAG_EMPTY;
	ItemPointerSetInvalid(&slot->tts_tid);
}

static void
tts_paimon_release(TupleTableSlot *slot)
{
	PaimonSlot *ps = (PaimonSlot *) slot;

	if (ps->group != NULL)
		slot_hold(ps, NULL);
	if (ps->buffer != NULL)
		pfree(ps->buffer);
	ps->buffer = NULL;
	ps->buffer_size = 0;
	if (ps->scratch != NULL)
		MemoryContextDelete(ps->scratch);
	ps->scratch = NULL;
	ps->scratch_used = false;

	/* the guard stays with the context, which calls it when it dies; it holds nothing any more */
}

/* An attribute of a group's row from its whole column: the path of scans. */
static inline void
slot_decode_whole(PaimonSlot *ps, int c)
{
	PaimonRunGroup *g = ps->group;
	const Datum *column = g->values[c];
	const bool *nulls;

	if (unlikely(column == NULL))
	{
		paimon_run_group_load(g, c);
		column = g->values[c];
	}
	nulls = g->nulls[c];
	ps->base.tts_values[c] = column[ps->row];
	ps->base.tts_isnull[c] = nulls != NULL && nulls[ps->row];
}

/* An attribute for who reads a short range. */
static inline void
slot_decode_block(PaimonSlot *ps, int c)
{
	ps->base.tts_values[c] = paimon_run_group_block_value(ps->group, ps->row, c, &ps->base.tts_isnull[c]);
}

static inline void
slot_decode_single(PaimonSlot *ps, int c)
{
	ps->base.tts_values[c] = paimon_run_group_value(ps->group, ps->row, c, false, &ps->base.tts_isnull[c]);
}

/* Attributes [first, natts) of a group's row. */
static void
slot_decode_group(PaimonSlot *ps, int first, int natts)
{
	MemoryContext old = NULL;

	if (ps->decode == PAIMON_DECODE_SINGLE)
		old = MemoryContextSwitchTo(slot_scratch(ps));
	if (ps->columns != NULL)
	{
		memset(ps->base.tts_isnull + first, true, (natts - first) * sizeof(bool));
		for (int i = 0; i < ps->ncolumns && ps->columns[i] < natts; i++)
		{
			if (ps->columns[i] < first)
				continue;
			if (ps->decode == PAIMON_DECODE_WHOLE)
				slot_decode_whole(ps, ps->columns[i]);
			else if (ps->decode == PAIMON_DECODE_BLOCK)
				slot_decode_block(ps, ps->columns[i]);
			else
				slot_decode_single(ps, ps->columns[i]);
		}
	}
	else if (ps->decode == PAIMON_DECODE_WHOLE)
		for (int c = first; c < natts; c++)
			slot_decode_whole(ps, c);
	else if (ps->decode == PAIMON_DECODE_BLOCK)
		for (int c = first; c < natts; c++)
			slot_decode_block(ps, c);
	else
		for (int c = first; c < natts; c++)
			slot_decode_single(ps, c);
	if (old != NULL)
		MemoryContextSwitchTo(old);
}

static void
slot_decode_memory(PaimonSlot *ps, int natts)
{
	MemoryContext old = MemoryContextSwitchTo(slot_scratch(ps));

	paimon_row_decode(ps->table->desc, ps->key.data, ps->key.len, ps->payload.data, ps->payload.len, natts,
					  ps->base.tts_values, ps->base.tts_isnull);
	MemoryContextSwitchTo(old);
}

static void
tts_paimon_getsomeattrs(TupleTableSlot *slot, int natts)
{
	PaimonSlot *ps = (PaimonSlot *) slot;
	int			known;

	if (ps->group != NULL)
	{
		/* a group knows all attributes that the table had when it was opened last */
		known = Min(natts, (int) ps->group->natts);
		slot_decode_group(ps, slot->tts_nvalid, known);
	}
	else if (ps->in_memory)
	{
		known = Min(natts, ps->table->desc->tupdesc->natts);
		slot_decode_memory(ps, known);
	}
	else if (ps->owned)
		known = slot->tts_nvalid;
	else
		elog(ERROR, "slot of access method paimon holds no row");

	/* core fills up what is missing behind, from its own descriptor: right for us, too */
	slot->tts_nvalid = known;
}

static Datum
tts_paimon_getsysattr(TupleTableSlot *slot, int attnum, bool *isnull)
{
	PaimonSlot *ps = (PaimonSlot *) slot;

	/*
	 * Foreign keys look at the xmin of old rows, which they fetch by ctid, ON CONFLICT at that of rows which it has locked, and both want to know
	 * one thing only: did this transaction write it?
	 */
	if (attnum == MinTransactionIdAttributeNumber && ps->fetched)
	{
		*isnull = false;
		if (paimon_tid_is_own(ps->table, &slot->tts_tid))
			return TransactionIdGetDatum(GetTopTransactionIdIfAny());
		return TransactionIdGetDatum(FrozenTransactionId);
	}
	/* Replication (18) asks who wrote the row that it is about to change, to report conflicts: nobody known, long ago. */
	if (attnum == MinTransactionIdAttributeNumber && IsLogicalWorker())
	{
		*isnull = false;
		return TransactionIdGetDatum(FrozenTransactionId);
	}
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("system column \"%s\" is not available for tables using access method paimon",
					NameStr(SystemAttributeDefinition(attnum)->attname))));
	return (Datum) 0;			/* keep compiler quiet */
}

pg_attribute_unused() static bool
tts_paimon_is_current_xact(TupleTableSlot *slot)
{
	PaimonSlot *ps = (PaimonSlot *) slot;

	return ps->table != NULL && paimon_buffer_has_rows(ps->table->storage_id);
}

/* Attributes of by-reference types; the array is the slot's, or the caller's to free. */
static int
slot_byref(PaimonSlot *ps, int16 **columns)
{
	TupleDesc	tupdesc = ps->base.tts_tupleDescriptor;
	int			n = 0;

	if (ps->byref != NULL)
	{
		*columns = ps->byref;
		return ps->nbyref;
	}
	*columns = MemoryContextAlloc(ps->base.tts_mcxt, Max(tupdesc->natts, 1) * sizeof(int16));
	for (int c = 0; c < tupdesc->natts; c++)
	{
		if (!TupleDescAttr(tupdesc, c)->attbyval)
			(*columns)[n++] = c;
	}
	if (TTS_FIXED(&ps->base))
	{
		ps->byref = *columns;
		ps->nbyref = n;
	}
	return n;
}

/* Bytes of a by-reference value when it is copied. */
static inline Size
value_length(Form_pg_attribute att, Datum value)
{
	if (att->attlen > 0)
		return att->attlen;
	if (att->attlen == -1 && unlikely(VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value))))
		return EOH_get_flat_size(DatumGetEOHP(value));
	return att_addlength_datum(0, att->attlen, value);
}

/* Size of a copy of all by-reference values. */
static Size
values_size(TupleTableSlot *slot, const int16 *columns, int n)
{
	Size		size = 0;

	for (int i = 0; i < n; i++)
	{
		int			c = columns[i];

		if (!slot->tts_isnull[c])
			size += MAXALIGN(value_length(TupleDescAttr(slot->tts_tupleDescriptor, c), slot->tts_values[c]));
	}
	return size;
}

/* Copies them. */
static void
copy_values(TupleTableSlot *slot, const int16 *columns, int n, char *at)
{
	for (int i = 0; i < n; i++)
	{
		int			c = columns[i];
		Form_pg_attribute att = TupleDescAttr(slot->tts_tupleDescriptor, c);
		Datum		value = slot->tts_values[c];
		Size		len;

		if (slot->tts_isnull[c])
			continue;
		len = value_length(att, value);
		if (att->attlen == -1 && unlikely(VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value))))
			EOH_flatten_into(DatumGetEOHP(value), at, len);
		else
			memcpy(at, DatumGetPointer(value), len);
		slot->tts_values[c] = PointerGetDatum(at);
		at += MAXALIGN(len);
	}
}

static void
tts_paimon_materialize(TupleTableSlot *slot)
{
	PaimonSlot *ps = (PaimonSlot *) slot;
	char	   *data = NULL;
	int16	   *columns;
	int			n;
	Size		size;

	if (TTS_SHOULDFREE(slot) || ps->owned)
		return;
	slot_getallattrs(slot);
	n = slot_byref(ps, &columns);
	size = values_size(slot, columns, n);
	if (size > 0)
	{
		data = MemoryContextAllocExtended(slot->tts_mcxt, size, MCXT_ALLOC_HUGE);
		copy_values(slot, columns, n, data);
	}
	if (columns != ps->byref)
		pfree(columns);

	/* the values are ours now; group, record and scratch are not needed any more */
	if (ps->group != NULL)
		slot_hold(ps, NULL);
	ps->in_memory = false;
	if (ps->scratch_used)
	{
		MemoryContextReset(ps->scratch);
		ps->scratch_used = false;
	}
	if (data != NULL)
	{
		ps->data = data;
		slot->tts_flags |= TTS_FLAG_SHOULDFREE;
	}
}

static void
slot_reserve(PaimonSlot *ps, Size size)
{
	Size		want = Max(size + size / 4, 256);

	if (size <= ps->buffer_size)
		return;
	if (ps->buffer != NULL)
		pfree(ps->buffer);
	ps->buffer = NULL;
	ps->buffer_size = 0;
	ps->buffer = MemoryContextAllocExtended(ps->base.tts_mcxt, want, MCXT_ALLOC_HUGE);
	ps->buffer_size = want;
}

static void
tts_paimon_copyslot(TupleTableSlot *dst, TupleTableSlot *src)
{
	PaimonSlot *pd = (PaimonSlot *) dst;
	PaimonSlot *ps = (PaimonSlot *) src;
	int			natts = src->tts_tupleDescriptor->natts;
	int16	   *columns;
	int			n;

	if (src->tts_ops == &paimon_slot_ops && ps->group != NULL && ps->base.tts_tupleDescriptor->natts == natts)
	{
		/* another reference will do: nothing can change a group */
		slot_hold(pd, ps->group);
		slot_reset(pd);
		pd->table = ps->table;
		pd->row = ps->row;
		pd->decode = ps->decode;
		pd->in_memory = pd->owned = false;
		pd->fetched = ps->fetched;
		dst->tts_nvalid = 0;
		dst->tts_flags &= ~TTS_FLAG_EMPTY;
		dst->tts_tid = src->tts_tid;
		dst->tts_tableOid = src->tts_tableOid;
		return;
	}

	slot_getallattrs(src);
	tts_paimon_clear(dst);
	memcpy(dst->tts_values, src->tts_values, natts * sizeof(Datum));
	memcpy(dst->tts_isnull, src->tts_isnull, natts * sizeof(bool));
	dst->tts_nvalid = natts;
	dst->tts_flags &= ~TTS_FLAG_EMPTY;
	if (src->tts_ops == &paimon_slot_ops)
	{
		pd->table = ps->table;
		pd->fetched = ps->fetched;
	}
	dst->tts_tid = src->tts_tid;

	n = slot_byref(pd, &columns);
	slot_reserve(pd, values_size(dst, columns, n));
	copy_values(dst, columns, n, pd->buffer);
	pd->owned = true;
	if (columns != pd->byref)
		pfree(columns);
}

static HeapTuple
tts_paimon_copy_heap_tuple(TupleTableSlot *slot)
{
	HeapTuple	tuple;

	slot_getallattrs(slot);
	tuple = heap_form_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
	tuple->t_self = slot->tts_tid;
	tuple->t_tableOid = slot->tts_tableOid;
	return tuple;
}

static MinimalTuple
tts_paimon_copy_minimal_tuple(PAIMON_COPY_MINIMAL_ARGS)
{
	slot_getallattrs(slot);
	return paimon_form_minimal_tuple(slot->tts_tupleDescriptor, slot->tts_values, slot->tts_isnull);
}

const TupleTableSlotOps paimon_slot_ops = {
	.base_slot_size = sizeof(PaimonSlot),
	.init = tts_paimon_init,
	.release = tts_paimon_release,
	.clear = tts_paimon_clear,
	.getsomeattrs = tts_paimon_getsomeattrs,
	.getsysattr = tts_paimon_getsysattr,
	PAIMON_SLOT_IS_CURRENT_XACT(tts_paimon_is_current_xact)
	.materialize = tts_paimon_materialize,
	.copyslot = tts_paimon_copyslot,

	/* a heap tuple would have to be freed with the slot: copies are as good */
	.get_heap_tuple = NULL,
	.get_minimal_tuple = NULL,
	.copy_heap_tuple = tts_paimon_copy_heap_tuple,
	.copy_minimal_tuple = tts_paimon_copy_minimal_tuple,
};

/* Copies a merged row's values, of the slot's columns if it has any set: those by reference into the slot's buffer. */
static void
slot_store_merged(PaimonSlot *ps, const PaimonRowRef *row)
{
	TupleTableSlot *slot = &ps->base;
	int			natts = Min(slot->tts_tupleDescriptor->natts, ps->table->desc->tupdesc->natts);
	int16	   *byref;
	int			nbyref;

	if (ps->columns == NULL)
	{
		memcpy(slot->tts_isnull, row->isnull, natts * sizeof(bool));
		memcpy(slot->tts_values, row->values, natts * sizeof(Datum));
	}
	else
	{
		memset(slot->tts_isnull, true, natts * sizeof(bool));
		for (int i = 0; i < ps->ncolumns && ps->columns[i] < natts; i++)
		{
			slot->tts_isnull[ps->columns[i]] = row->isnull[ps->columns[i]];
			slot->tts_values[ps->columns[i]] = row->values[ps->columns[i]];
		}
	}
	slot->tts_nvalid = natts;
	nbyref = slot_byref(ps, &byref);
	while (nbyref > 0 && byref[nbyref - 1] >= natts)
		nbyref--;
	slot_reserve(ps, values_size(slot, byref, nbyref));
	copy_values(slot, byref, nbyref, ps->buffer);
	if (byref != ps->byref)
		pfree(byref);
}

/* Copies a record into the slot's buffer. */
static void
slot_store_memory(PaimonSlot *ps, const PaimonRowRef *row)
{
	Size		payload_size = MAXALIGN(row->payload.len);

	slot_reserve(ps, payload_size + row->key.len);
	if (row->payload.len > 0)
		memcpy(ps->buffer, row->payload.data, row->payload.len);
	memcpy(ps->buffer + payload_size, row->key.data, row->key.len);
	ps->payload.data = (const uint8 *) ps->buffer;
	ps->payload.len = row->payload.len;
	ps->key.data = (const uint8 *) ps->buffer + payload_size;
	ps->key.len = row->key.len;
}

void
paimon_slot_store(TupleTableSlot *slot, const PaimonTable *table, const PaimonRowRef *row, PaimonDecode decode)
{
	PaimonSlot *ps = (PaimonSlot *) slot;

	Assert(slot->tts_ops == &paimon_slot_ops);
	slot_reset(ps);
	if (row->group != ps->group)
		slot_hold(ps, row->group);
	slot->tts_nvalid = 0;
	slot->tts_flags &= ~TTS_FLAG_EMPTY;
	slot->tts_tid = row->tid;
	slot->tts_tableOid = table->relid;
	ps->table = table;
	ps->row = row->row;
	ps->decode = decode;
	ps->fetched = false;
	ps->owned = row->values != NULL;
	ps->in_memory = row->group == NULL && !ps->owned;
	if (ps->in_memory)
		slot_store_memory(ps, row);
	else if (ps->owned)
		slot_store_merged(ps, row);
}

void
paimon_slot_set_columns(TupleTableSlot *slot, const int16 *columns, int ncolumns)
{
	PaimonSlot *ps = (PaimonSlot *) slot;

	Assert(slot->tts_ops == &paimon_slot_ops);
	ps->columns = columns;
	ps->ncolumns = ncolumns;
}

const int16 *
paimon_slot_columns(TupleTableSlot *slot, int *ncolumns)
{
	PaimonSlot *ps = (PaimonSlot *) slot;

	*ncolumns = 0;
	if (slot->tts_ops != &paimon_slot_ops || ps->columns == NULL)
		return NULL;
	*ncolumns = ps->ncolumns;
	return ps->columns;
}

void
paimon_slot_set_fetched(TupleTableSlot *slot)
{
	if (slot->tts_ops == &paimon_slot_ops)
		((PaimonSlot *) slot)->fetched = true;
}

void
paimon_slot_fill(TupleTableSlot *slot, const PaimonTable *table, const PaimonRowRef *row)
{
	TupleDesc	tupdesc = slot->tts_tupleDescriptor;
	int			natts = Min(tupdesc->natts, table->desc->tupdesc->natts);
	Datum	   *values = palloc0_array(Datum, tupdesc->natts + 1);
	bool	   *isnull = palloc_array(bool, tupdesc->natts + 1);

	if (slot->tts_ops == &paimon_slot_ops)
	{
		paimon_slot_store(slot, table, row, PAIMON_DECODE_SINGLE);
		return;
	}
	memset(isnull, true, tupdesc->natts + 1);
	if (row->values != NULL)
	{
		memcpy(values, row->values, natts * sizeof(Datum));
		memcpy(isnull, row->isnull, natts * sizeof(bool));
	}
	else if (row->group == NULL)
		paimon_row_decode(table->desc, row->key.data, row->key.len, row->payload.data, row->payload.len, natts,
						  values, isnull);
	else
		for (int c = 0; c < natts; c++)
			values[c] = paimon_run_group_value(row->group, row->row, c, false, &isnull[c]);

	ExecClearTuple(slot);
	if (TTS_IS_VIRTUAL(slot))
	{
		memcpy(slot->tts_values, values, tupdesc->natts * sizeof(Datum));
		memcpy(slot->tts_isnull, isnull, tupdesc->natts * sizeof(bool));
		ExecStoreVirtualTuple(slot);
		ExecMaterializeSlot(slot);
	}
	else
		ExecForceStoreHeapTuple(heap_form_tuple(tupdesc, values, isnull), slot, true);
	slot->tts_tid = row->tid;
	slot->tts_tableOid = table->relid;
	pfree(values);
	pfree(isnull);
}
