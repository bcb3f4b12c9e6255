/*-------------------------------------------------------------------------
 *
 * fuzz_key.c
 *	  Key decoders on any bytes: no overrun, and whatever they accept is
 *	  exactly what the encoder writes.
 *
 * The input's first byte says how many columns, the next ones their types; the
 * rest is the key.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/core_key.h"

#define REQUIRE(cond) \
	do { \
		if (!(cond)) \
		{ \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort(); \
		} \
	} while (0)

#define NTYPES 12

/* Decodes one value of a type and encodes it again. */
static PaimonResult
recode(int type, PaimonKeyReader *r, PaimonKeyBuf *again)
{
	static int16_t digits[PAIMON_KEY_NUMERIC_MAX_DIGITS];
	static uint8_t bytes[PAIMON_KEY_MAX];
	PaimonResult res;
	union
	{
		bool		b;
		int16_t		i16;
		int32_t		i32;
		int64_t		i64;
		uint32_t	u32;
		uint64_t	u64;
		float		f;
		double		d;
		PaimonBytes text;
		const uint8_t *fixed;
		uint32_t	len;
		PaimonNumeric n;
	}			v;

#define RECODE(get, put) ((res = (get)) == PAIMON_OK ? (put) : res)
	switch (type)
	{
		case 0:
			return RECODE(paimon_key_get_bool(r, &v.b), paimon_key_put_bool(again, v.b));
		case 1:
			return RECODE(paimon_key_get_int16(r, &v.i16), paimon_key_put_int16(again, v.i16));
		case 2:
			return RECODE(paimon_key_get_int32(r, &v.i32), paimon_key_put_int32(again, v.i32));
		case 3:
			return RECODE(paimon_key_get_int64(r, &v.i64), paimon_key_put_int64(again, v.i64));
		case 4:
			return RECODE(paimon_key_get_uint32(r, &v.u32), paimon_key_put_uint32(again, v.u32));
		case 5:
			return RECODE(paimon_key_get_uint64(r, &v.u64), paimon_key_put_uint64(again, v.u64));
		case 6:
			return RECODE(paimon_key_get_float4(r, &v.f), paimon_key_put_float4(again, v.f));
		case 7:
			return RECODE(paimon_key_get_float8(r, &v.d), paimon_key_put_float8(again, v.d));
		case 8:
			return RECODE(paimon_key_get_text(r, &v.text), paimon_key_put_text(again, v.text.data, v.text.len));
		case 9:
			return RECODE(paimon_key_get_bytes(r, bytes, sizeof(bytes), &v.len), paimon_key_put_bytes(again, bytes, v.len));
		case 10:
			return RECODE(paimon_key_get_fixed(r, 16, &v.fixed), paimon_key_put_fixed(again, v.fixed, 16));
		default:
			return RECODE(paimon_key_get_numeric(r, &v.n, digits, PAIMON_KEY_NUMERIC_MAX_DIGITS),
						  paimon_key_put_numeric(again, &v.n));
	}
}

int			LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[PAIMON_KEY_MAX];
	uint32_t	ncolumns;
	const uint8_t *key;
	PaimonKeyReader r;
	PaimonKeyBuf again;

	if (size < 1 || size > PAIMON_KEY_MAX)
		return 0;
	ncolumns = data[0] % 8;
	if (size < 1 + ncolumns)
		return 0;
	key = data + 1 + ncolumns;
	paimon_keyreader_init(&r, key, (uint32_t) (size - 1 - ncolumns));
	paimon_keybuf_init(&again, out, sizeof(out), NULL);
	for (uint32_t c = 0; c < ncolumns; c++)
	{
		const uint8_t *before = r.p;
		PaimonResult res = recode(data[1 + c] % NTYPES, &r, &again);

		if (res != PAIMON_OK)
		{
			/* only the decoder can have failed, and it did not move */
			REQUIRE(res == PAIMON_CORRUPT && r.p == before);
			break;
		}
		REQUIRE(r.p > before && r.p <= r.end);
	}
	REQUIRE(again.len == (uint32_t) (r.p - key));
	REQUIRE(again.len == 0 || memcmp(out, key, again.len) == 0);
	return 0;
}
