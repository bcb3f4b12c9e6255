/*-------------------------------------------------------------------------
 *
 * memtable_batch.c
 *	  Records inside a batch of the delta log: building, walking, reading one.
 *
 * Layout (README.md has a drawing), all little-endian, offsets from the first byte of the batch's header:
 *
 *	directory, one entry a bucket, ascending:	bucket u32, nrecords u32, offset u32, bytes u32
 *	sections, one a bucket, in the same order, without gaps; records of a section in the order of arrival:
 *		payload_len u32, crc u32, (kind << 24 | offset / 8) u32, key_len u16, bucket u16,
 *		key, zeros up to 8, payload, zeros up to 8
 *
 * A record names its bucket and its own offset, so that a position alone leads to it and to its batch; `crc` covers
 * all of the record but itself, so that one can be read without the rest of the batch.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "catalog/manifest.h"
#include "memtable/memtable_internal.h"

#define FIRST_OFFSET ((uint32) sizeof(PaimonBatchHeader))
#define KEY_MAX 49152 /* so that a node with an external payload fits PAIMON_SKIP_MAX_NODE */
#define INITIAL_SECTION 256

StaticAssertDecl(sizeof(PaimonBatchHeader) == 24, "records must stay aligned to 8");
StaticAssertDecl(PAIMON_BATCH_MAX / 8 <= (1 << 24), "offset of a record must fit 24 bits");

typedef struct Section
{
	int    bucket;
	uint32 nrecords;
	uint32 len;
	uint32 cap;
	uint8 *data;
} Section;

struct PaimonBatchBuilder
{
	MemoryContext cxt;
	int           nbuckets;
	int           nsections;
	int           cap;
	int           last;     /* section used last */
	Section      *sections; /* ascending by bucket */
	uint64        bytes;    /* of all sections */
};

static inline uint32
align8(uint32 n)
{
	return (n + 7) & ~(uint32) 7;
}

static inline uint64
record_size(uint32 keylen, uint32 len)
{
	return PAIMON_RECORD_HEADER + (uint64) align8(keylen) + (((uint64) len + 7) & ~UINT64CONST(7));
}

/* Starts a batch for a table of `nbuckets` buckets; memory belongs to the current context. */
PaimonBatchBuilder *
paimon_batch_begin(int nbuckets)
{
	PaimonBatchBuilder *b = palloc0(sizeof(PaimonBatchBuilder));

	Assert(nbuckets > 0 && nbuckets <= PAIMON_LEAVES * PAIMON_LEAF_BUCKETS);
	b->cxt = CurrentMemoryContext;
	b->nbuckets = nbuckets;
	b->cap = 4;
	b->sections = palloc(b->cap * sizeof(Section));
	return b;
}

/* The section of a bucket, made if it is new. */
static Section *
section_for(PaimonBatchBuilder *b, int bucket)
{
	int      lo = 0;
	int      hi = b->nsections;
	Section *s;

	if (b->last < b->nsections && b->sections[b->last].bucket == bucket)
		return &b->sections[b->last];
	while (lo < hi)
	{
		int mid = (lo + hi) / 2;

		if (b->sections[mid].bucket < bucket)
			lo = mid + 1;
		else
			hi = mid;
	}
	b->last = lo;
	if (lo < b->nsections && b->sections[lo].bucket == bucket)
		return &b->sections[lo];

	if (b->nsections == b->cap)
	{
		b->cap *= 2;
		b->sections = repalloc(b->sections, b->cap * sizeof(Section));
	}
	s = &b->sections[lo];
	memmove(s + 1, s, (b->nsections - lo) * sizeof(Section));
	memset(s, 0, sizeof(Section));
	s->bucket = bucket;
	s->cap = INITIAL_SECTION;
	s->data = MemoryContextAlloc(b->cxt, s->cap);
	b->nsections++;
	return s;
}

/*
 * Adds a record; key and payload are copied.  Raises PROGRAM_LIMIT_EXCEEDED for a key of more than 48 kB and for a
 * batch that would grow beyond PAIMON_BATCH_MAX.
 */
void
paimon_batch_add(PaimonBatchBuilder *b, int bucket, uint8 kind, const uint8 *key, uint32 keylen, const uint8 *payload,
				 uint32 len)
{
	uint64   size = record_size(keylen, len);
	uint32   padded = align8(keylen);
	Section *s;
	uint8   *p;

	Assert(bucket >= 0 && bucket < b->nbuckets);
	if (keylen > KEY_MAX)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("encoded key of %u bytes exceeds the maximum of %d", keylen, KEY_MAX)));
	if (paimon_batch_size(b) + size + PAIMON_DIRECTORY_ENTRY > PAIMON_BATCH_MAX)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("changes of a transaction exceed the maximum of %d bytes for a batch of the delta log",
							   PAIMON_BATCH_MAX),
						errhint("Set a smaller write-buffer-size, so that large transactions are written as files.")));

	s = section_for(b, bucket);
	if (s->len + size > s->cap)
	{
		while (s->len + size > s->cap)
			s->cap *= 2;
		s->data = repalloc(s->data, s->cap);
	}
	p = s->data + s->len;
	paimon_put_u32(p, len);
	paimon_put_u32(p + 4, 0);
	paimon_put_u32(p + 8, (uint32) kind << 24);
	paimon_put_u16(p + 12, (uint16) keylen);
	paimon_put_u16(p + 14, (uint16) bucket);
	p += PAIMON_RECORD_HEADER;
	memcpy(p, key, keylen);
	memset(p + keylen, 0, padded - keylen);
	p += padded;
	if (len > 0)
		memcpy(p, payload, len);
	memset(p + len, 0, size - PAIMON_RECORD_HEADER - padded - len);
	s->len += (uint32) size;
	s->nrecords++;
	b->bytes += size;
}

/* Adds a lock of a transaction that prepares; such a batch has PAIMON_BATCH_LOCKS in its flags. */
void
paimon_batch_add_lock(PaimonBatchBuilder *b, const PaimonKeyLock *lock)
{
	uint8 hash[8];

	paimon_put_u64(hash, lock->key_hash);
	paimon_batch_add(b, lock->bucket, (uint8) (PAIMON_RECORD_LOCK | lock->mode << 1 | (lock->all ? 1 : 0)), hash,
					 sizeof(hash), NULL, 0);
}

/* Bytes of the batch as it is now, header included. */
uint64
paimon_batch_size(const PaimonBatchBuilder *b)
{
	return FIRST_OFFSET + (uint64) b->nsections * PAIMON_DIRECTORY_ENTRY + b->bytes;
}

/* CRC of a record of `size` bytes, its own field left out. */
static uint32
record_crc(const uint8 *p, uint64 size)
{
	uint32 crc = paimon_crc32c(0, p, 4);

	return paimon_crc32c(crc, p + 8, size - 8);
}

/* Tells the records of a section where they are and sums them up. */
static void
finish_section(Section *s, uint32 offset)
{
	uint32 at = 0;

	while (at < s->len)
	{
		uint8 *p = s->data + at;
		uint64 size = record_size(paimon_get_u16(p + 12), paimon_get_u32(p));

		paimon_put_u32(p + 8, (paimon_get_u32(p + 8) & 0xFF000000) | (offset + at) / 8);
		paimon_put_u32(p + 4, record_crc(p, size));
		at += (uint32) size;
	}
	Assert(at == s->len);
}

/*
 * Ends the batch: fills header->nbuckets and ->nrecords (flags and the rest are the caller's) and gives the pieces
 * that follow the header. Pieces point into the builder's memory.
 */
void
paimon_batch_finish(PaimonBatchBuilder *b, PaimonLogBatch *batch)
{
	MemoryContext old = MemoryContextSwitchTo(b->cxt);
	uint8        *dir = palloc(Max(b->nsections, 1) * PAIMON_DIRECTORY_ENTRY);
	PaimonBytes  *out = palloc((b->nsections + 1) * sizeof(PaimonBytes));
	uint32        offset = FIRST_OFFSET + b->nsections * PAIMON_DIRECTORY_ENTRY;
	uint32        nrecords = 0;

	MemoryContextSwitchTo(old);
	for (int i = 0; i < b->nsections; i++)
	{
		Section *s = &b->sections[i];
		uint8   *d = dir + i * PAIMON_DIRECTORY_ENTRY;

		CHECK_FOR_INTERRUPTS();
		finish_section(s, offset);
		paimon_put_u32(d, s->bucket);
		paimon_put_u32(d + 4, s->nrecords);
		paimon_put_u32(d + 8, offset);
		paimon_put_u32(d + 12, s->len);
		out[i + 1].data = s->data;
		out[i + 1].len = s->len;
		offset += s->len;
		nrecords += s->nrecords;
	}
	out[0].data = dir;
	out[0].len = b->nsections * PAIMON_DIRECTORY_ENTRY;
	*batch = (PaimonLogBatch){.header = {.nbuckets = (uint16) b->nsections, .nrecords = nrecords},
							  .pieces = out, .npieces = b->nsections + 1};
}

/* ---- reading ---- */

static bool
reader_corrupt(PaimonBatchReader *r, const char *why)
{
	r->corrupt = true;
	r->why = why;
	return false;
}

/* Starts a walk.  `body` has header->len - sizeof(PaimonBatchHeader) bytes. */
void
paimon_batch_read_begin(PaimonBatchReader *r, uint64 position, const PaimonBatchHeader *header, const uint8 *body)
{
	memset(r, 0, sizeof(*r));
	r->position = position;
	r->header = header;
	r->body = body;
	r->size = header->len;
	r->bucket = -1;
	r->end = FIRST_OFFSET + header->nbuckets * PAIMON_DIRECTORY_ENTRY;
	if (r->size < FIRST_OFFSET || r->end > r->size)
		reader_corrupt(r, "directory exceeds the batch");
	r->offset = r->end;
}

/* Opens the next section of the directory. */
static bool
next_section(PaimonBatchReader *r)
{
	const uint8 *d = r->body + r->section * PAIMON_DIRECTORY_ENTRY;
	uint32       bucket = paimon_get_u32(d);
	uint32       offset = paimon_get_u32(d + 8);
	uint32       bytes = paimon_get_u32(d + 12);

	if (bucket >= PAIMON_LEAVES * PAIMON_LEAF_BUCKETS || (int) bucket <= r->bucket)
		return reader_corrupt(r, "buckets are out of order");
	if (offset != r->end || bytes > r->size - offset)
		return reader_corrupt(r, "section exceeds the batch");
	r->bucket = (int) bucket;
	r->left = paimon_get_u32(d + 4);
	r->offset = offset;
	r->end = offset + bytes;
	r->section++;
	return true;
}

/*
 * The next record; false at the end, or with r->corrupt set if the bytes violate the format.  Looks at no byte
 * outside the batch. Key and payload point into the body.
 */
bool
paimon_batch_read_next(PaimonBatchReader *r, PaimonBatchRecord *rec)
{
	const uint8 *p;
	uint32       keylen;
	uint32       len;
	uint32       where;
	uint64       size;

	if (r->corrupt)
		return false;
	while (r->left == 0)
	{
		if (r->offset != r->end)
			return reader_corrupt(r, "section is longer than its records");
		if (r->section == r->header->nbuckets)
			return false;
		if (!next_section(r))
			return false;
	}
	if (r->end - r->offset < PAIMON_RECORD_HEADER)
		return reader_corrupt(r, "record exceeds its section");
	p = r->body + (r->offset - FIRST_OFFSET);
	len = paimon_get_u32(p);
	where = paimon_get_u32(p + 8);
	keylen = paimon_get_u16(p + 12);
	size = record_size(keylen, len);
	if (size > r->end - r->offset || keylen > KEY_MAX)
		return reader_corrupt(r, "record exceeds its section");
	if (paimon_get_u16(p + 14) != r->bucket || (where & 0x00FFFFFF) != r->offset / 8)
		return reader_corrupt(r, "record does not belong where it is");

	rec->position = r->position + r->offset;
	rec->bucket = r->bucket;
	rec->kind = (uint8) (where >> 24);
	rec->key.data = p + PAIMON_RECORD_HEADER;
	rec->key.len = keylen;
	rec->payload.data = p + PAIMON_RECORD_HEADER + align8(keylen);
	rec->payload.len = len;
	if ((rec->kind & PAIMON_RECORD_LOCK) ? keylen != 8 : rec->kind > PAIMON_KIND_REMOVE)
		return reader_corrupt(r, "record has an unknown kind");
	r->offset += (uint32) size;
	r->left--;
	return true;
}

PaimonBatchRecord
paimon_batch_read_again(uint64 position, const uint8 *body, uint32 offset)
{
	const uint8 *p = body + (offset - FIRST_OFFSET);
	uint32       keylen = paimon_get_u16(p + 12);

	return (PaimonBatchRecord) {.position = position + offset,
								.bucket = paimon_get_u16(p + 14),
								.kind = (uint8) (paimon_get_u32(p + 8) >> 24),
								.key = {p + PAIMON_RECORD_HEADER, keylen},
								.payload = {p + PAIMON_RECORD_HEADER + align8(keylen), paimon_get_u32(p)}};
}

void
paimon_batch_report_corrupt(Relation rel, uint64 position, const char *why)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("delta log of table \"%s\" is damaged at position " UINT64_FORMAT,
						   RelationGetRelationName(rel), position),
					errdetail("The %s.", why)));
}

/* End of a batch, after checks that reading on is sane. */
static uint64
batch_end(Relation rel, uint64 position, const PaimonBatchHeader *header)
{
	if (header->len < FIRST_OFFSET || header->len > PAIMON_BATCH_MAX || header->len % 8 != 0)
		paimon_batch_report_corrupt(rel, position, "length of the batch is impossible");
	return position + header->len;
}

uint64
paimon_batch_load(Relation rel, uint64 storage_id, uint64 position, PaimonBatchHeader *header, uint8 **body)
{
	paimon_log_read_batch(rel, storage_id, position, header, body);
	return batch_end(rel, position, header);
}

uint64
paimon_batch_peek(Relation rel, uint64 storage_id, uint64 position, uint64 tail, PaimonBatchHeader *header)
{
	uint64 end;

	paimon_log_read_header(rel, storage_id, position, header);
	end = batch_end(rel, position, header);
	if (end > tail)
		paimon_batch_report_corrupt(rel, position, "batch exceeds the end of the log");
	return end;
}

/* Reads the record at `position` into the current context; NULL, or what is wrong with it. */
static const char *
read_record(Relation rel, uint64 storage_id, uint64 position, uint64 tail, PaimonBatchRecord *rec, uint64 *batch)
{
	uint8  head[PAIMON_RECORD_HEADER];
	uint32 keylen;
	uint32 len;
	uint32 where;
	uint64 size;
	uint64 offset;
	uint8 *p;

	paimon_log_read(rel, storage_id, position, PAIMON_RECORD_HEADER, head);
	len = paimon_get_u32(head);
	where = paimon_get_u32(head + 8);
	keylen = paimon_get_u16(head + 12);
	size = record_size(keylen, len);
	offset = (uint64) (where & 0x00FFFFFF) * 8;
	if (keylen > KEY_MAX || size > PAIMON_BATCH_MAX || position + size > tail ||
		offset < FIRST_OFFSET + PAIMON_DIRECTORY_ENTRY || offset > position)
		return "record has an impossible length or place";

	p = palloc(size);
	paimon_log_read(rel, storage_id, position, (uint32) size, p);
	if (record_crc(p, size) != paimon_get_u32(p + 4))
		return "checksum of the record does not match";

	rec->position = position;
	rec->bucket = paimon_get_u16(p + 14);
	rec->kind = (uint8) (where >> 24);
	rec->key.data = p + PAIMON_RECORD_HEADER;
	rec->key.len = keylen;
	rec->payload.data = p + PAIMON_RECORD_HEADER + align8(keylen);
	rec->payload.len = len;
	if (rec->kind > PAIMON_KIND_REMOVE || rec->bucket >= PAIMON_LEAVES * PAIMON_LEAF_BUCKETS)
		return "record has an unknown kind or bucket";
	*batch = position - offset;
	return NULL;
}

void
paimon_batch_load_record(Relation rel, uint64 storage_id, uint64 position, uint64 tail, PaimonBatchHeader *header,
						 PaimonBatchRecord *rec)
{
	uint64      batch;
	const char *why = read_record(rel, storage_id, position, tail, rec, &batch);

	if (why != NULL)
		paimon_batch_report_corrupt(rel, position, why);
	if (paimon_batch_peek(rel, storage_id, batch, tail, header) <
		position + record_size(rec->key.len, rec->payload.len))
		paimon_batch_report_corrupt(rel, position, "record exceeds its batch");
}

/* Does a record of the batch at `position` begin at `wanted`? */
static bool
batch_has_record(Relation rel, uint64 storage_id, uint64 position, uint64 wanted)
{
	PaimonBatchHeader header;
	PaimonBatchReader reader;
	PaimonBatchRecord rec;
	uint8            *body;
	bool              found = false;

	(void) paimon_batch_load(rel, storage_id, position, &header, &body);
	paimon_batch_read_begin(&reader, position, &header, body);
	while (!found && paimon_batch_read_next(&reader, &rec))
		found = rec.position == wanted;
	pfree(body);
	return found || reader.corrupt;
}

/*
 * What does not look like a record at `wanted`: is it a damaged one, or does none begin there?  A made-up ctid may lead anywhere.  Goes
 * through the log from its head on; what lies below is no row to anybody who could not have read it before.
 */
static bool
record_begins_at(Relation rel, uint64 storage_id, uint64 wanted, uint64 tail)
{
	Snapshot          snapshot = RegisterSnapshot(GetLatestSnapshot());
	PaimonLogRow      log;
	PaimonBatchHeader header;
	uint64            position;

	if (!paimon_catalog_log_get(storage_id, snapshot, &log))
		memset(&log, 0, sizeof(log));
	UnregisterSnapshot(snapshot);
	for (int i = 0; i < log.nleftover; i++)
	{
		if (log.leftover[i] <= wanted && wanted < paimon_batch_peek(rel, storage_id, log.leftover[i], tail, &header))
			return batch_has_record(rel, storage_id, log.leftover[i], wanted);
	}
	for (position = log.head; position <= wanted;)
	{
		uint64 end = paimon_batch_peek(rel, storage_id, position, tail, &header);

		CHECK_FOR_INTERRUPTS();
		if (wanted < end)
			return batch_has_record(rel, storage_id, position, wanted);
		position = end;
	}
	return false;
}

/*
 * Reads the record that begins at `position`, whatever its visibility, into the current context: for a ctid.  False
 * if none begins there.  rec->xid is Invalid if the batch is frozen.
 */
bool
paimon_log_record_at(PaimonShared *shared, Relation rel, uint64 position, int *bucket, PaimonMemRecord *rec)
{
	uint64            storage_id = paimon_shared_storage_id(shared);
	uint64            tail = paimon_shared_read_tail(shared, rel);
	PaimonBatchHeader header;
	PaimonBatchRecord r;
	uint64            batch;
	const char       *why;

	if (position % 8 != 0 || position >= tail || tail - position < PAIMON_RECORD_HEADER)
		return false;
	if (position < paimon_log_first(rel, storage_id))
		return false;
	why = read_record(rel, storage_id, position, tail, &r, &batch);
	if (why != NULL)
	{
		if (record_begins_at(rel, storage_id, position, tail))
			paimon_batch_report_corrupt(rel, position, why);
		return false;
	}
	if (paimon_batch_peek(rel, storage_id, batch, tail, &header) < position + record_size(r.key.len, r.payload.len))
		paimon_batch_report_corrupt(rel, position, "record exceeds its batch");
	*bucket = r.bucket;
	rec->key = r.key;
	rec->position = position;
	rec->kind = r.kind;
	rec->external = false;
	rec->payload = r.payload;
	return true;
}
