/*-------------------------------------------------------------------------
 *
 * core_column.c
 *	  Small services of the row group code: buffers, checksums with identity.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"

/* Slow half of paimon_buf_reserve. */
bool
paimon_buf_grow(PaimonBuf *b, size_t need)
{
	size_t		cap;
	uint8_t    *data;

	if (b->err != PAIMON_OK)
		return false;
	if (need > PAIMON_GROUP_MAX_BYTES || b->len + need > PAIMON_GROUP_MAX_BYTES)
	{
		b->err = PAIMON_NO_SPACE;
		return false;
	}
	cap = b->cap < 4096 ? 4096 : b->cap * 2;
	if (cap < b->len + need)
		cap = b->len + need;
	data = paimon_core_alloc(b->a, cap);
	if (data == NULL)
	{
		b->err = PAIMON_NO_MEMORY;
		return false;
	}
	if (b->len > 0)
		memcpy(data, b->data, b->len);
	b->data = data;
	b->cap = cap;
	return true;
}

/* Appends bytes. */
void
paimon_buf_put(PaimonBuf *b, const void *data, size_t len)
{
	if (len > 0 && paimon_buf_reserve(b, len))
	{
		memcpy(b->data + b->len, data, len);
		b->len += len;
	}
}

/* Checksum of a group's identity, from which all checksums in it continue. */
uint32_t
paimon_group_id_crc(const PaimonGroupId *id)
{
	uint8_t		b[24];

	paimon_put_u64(b, id->storage_id);
	paimon_put_u64(b + 8, id->file_no);
	paimon_put_u32(b + 16, id->group_no);
	paimon_put_u32(b + 20, id->bucket);
	return paimon_crc32c(0, b, sizeof(b));
}

/* Checksum of one part (head or unit number) of a column, its place included. */
uint32_t
paimon_part_crc(uint32_t id_crc, uint32_t column, uint32_t part, const void *data, size_t len)
{
	uint8_t		b[8];

	paimon_put_u32(b, column);
	paimon_put_u32(b + 4, part);
	return paimon_crc32c(paimon_crc32c(id_crc, b, sizeof(b)), data, len);
}
