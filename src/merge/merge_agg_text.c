/*-------------------------------------------------------------------------
 *
 * merge_agg_text.c
 *	  Aggregate function listagg: texts, one behind the other.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_varlena.h"
#include "merge/merge_internal.h"

static bool
is_space(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool
is_blank(const uint8_t *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
	{
		if (!is_space(s[i]))
			return false;
	}
	return true;
}

/* Values of a fold are plain varlenas; anything else counts as empty. */
static PaimonBytes
text_of(uint64_t word)
{
	PaimonBytes bytes = {.data = (const uint8_t *) "", .len = 0};

	(void) paimon_varlena_payload((const void *) (uintptr_t) word, &bytes);
	return bytes;
}

/* Long texts begin at multiples of 8 by themselves: the arena's memory does. */
uint64_t
paimon_merge_text_pack(const PaimonGrowingText *text, const PaimonAllocator *alloc)
{
	uint8_t    *p = paimon_core_alloc(alloc, PAIMON_VARLENA_ROOM(text->len));
	uint8_t    *at = p;

	return (uint64_t) (uintptr_t) paimon_varlena_put(&at, text->data, (uint32_t) text->len);
}

static void
text_append(const PaimonAggContext *cx, PaimonGrowingText *text, const uint8_t *s, size_t len)
{
	if (text->cap - text->len < len)
	{
		size_t		cap = text->cap * 2 > text->len + len ? text->cap * 2 : text->len + len;
		uint8_t    *data = paimon_core_alloc(cx->alloc, cap);

		memcpy(data, text->data, text->len);
		text->data = data;
		text->cap = cap;
	}
	memcpy(text->data + text->len, s, len);
	text->len += len;
}

static PaimonGrowingText *
make_text(const PaimonAggContext *cx, PaimonAcc *acc)
{
	PaimonGrowingText *text;
	PaimonBytes bytes;

	if (acc->form == PAIMON_ACC_TEXT)
		return acc->u.text;
	bytes = text_of(acc->word);
	text = paimon_core_alloc(cx->alloc, sizeof(PaimonGrowingText));
	text->len = bytes.len;
	text->cap = 2 * (size_t) bytes.len + 64;
	text->data = paimon_core_alloc(cx->alloc, text->cap);
	memcpy(text->data, bytes.data, bytes.len);
	acc->u.text = text;
	acc->form = PAIMON_ACC_TEXT;
	return text;
}

static bool
acc_is_blank(const PaimonAcc *acc)
{
	PaimonBytes bytes;

	if (acc->isnull)
		return true;
	if (acc->form == PAIMON_ACC_TEXT)
		return is_blank(acc->u.text->data, acc->u.text->len);
	bytes = text_of(acc->word);
	return is_blank(bytes.data, bytes.len);
}

/* Length of the token that begins at s. */
static size_t
token_length(const uint8_t *s, size_t len, const char *delimiter, size_t dlen)
{
	if (dlen > 0)
	{
		for (size_t i = 0; i + dlen <= len; i++)
		{
			if (memcmp(s + i, delimiter, dlen) == 0)
				return i;
		}
	}
	return len;
}

static bool
has_token(const PaimonGrowingText *text, const uint8_t *token, size_t tlen, const char *delimiter, size_t dlen)
{
	size_t		at = 0;

	for (;;)
	{
		size_t		n = token_length(text->data + at, text->len - at, delimiter, dlen);

		if (n == tlen && memcmp(text->data + at, token, n) == 0)
			return true;
		at += n;
		if (at >= text->len)
			return false;
		at += dlen;
	}
}

static void
append_tokens(const PaimonAggContext *cx, PaimonGrowingText *text, PaimonBytes in, const char *delimiter, size_t dlen)
{
	size_t		at = 0;

	while (at <= in.len)
	{
		size_t		n = token_length(in.data + at, in.len - at, delimiter, dlen);

		if (!is_blank(in.data + at, n) && !has_token(text, in.data + at, n, delimiter, dlen))
		{
			text_append(cx, text, (const uint8_t *) delimiter, dlen);
			text_append(cx, text, in.data + at, n);
		}
		if (at + n >= in.len)
			break;
		at += n + dlen;
	}
}

static PaimonFoldCode
listagg_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	const char *delimiter = cx->col->delimiter;
	size_t		dlen = strlen(delimiter);
	PaimonBytes bytes;
	PaimonGrowingText *text;

	if (in->isnull)
		return PAIMON_FOLD_OK;
	bytes = text_of(in->word);
	if (is_blank(bytes.data, bytes.len))
		return PAIMON_FOLD_OK;
	if (acc_is_blank(acc))
	{
		paimon_acc_set(acc, in);
		return PAIMON_FOLD_OK;
	}
	text = make_text(cx, acc);
	if (text->len + dlen + bytes.len > PAIMON_VARLENA_MAX)
		return PAIMON_FOLD_OVERFLOW;
	if (cx->col->distinct)
		append_tokens(cx, text, bytes, delimiter, dlen);
	else
	{
		text_append(cx, text, (const uint8_t *) delimiter, dlen);
		text_append(cx, text, bytes.data, bytes.len);
	}
	return PAIMON_FOLD_OK;
}

/* The older row's text comes in front; a blank one is ignored there too. */
static PaimonFoldCode
listagg_fold_under(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	PaimonCell	stored;
	PaimonAcc	state;
	PaimonFoldCode code;

	paimon_acc_set(&state, in);
	if (acc_is_blank(&state))
		return PAIMON_FOLD_OK;
	stored = paimon_acc_cell(cx, acc);
	code = listagg_fold(cx, &state, &stored, false);
	if (code == PAIMON_FOLD_OK)
		*acc = state;
	return code;
}

static bool
listagg_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	size_t		len = 0;

	if (how != PAIMON_JOIN_AA)
		return false;
	if (!older->isnull)
		len = older->form == PAIMON_ACC_TEXT ? older->u.text->len : text_of(older->word).len;
	return newer->isnull || len + strlen(cx->col->delimiter) + text_of(newer->word).len <= PAIMON_VARLENA_MAX;
}

static void
listagg_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	(void) listagg_fold(cx, older, newer, false);
}

const PaimonAggFunction paimon_agg_listagg = {
	.name = "listagg", .id = PAIMON_AGG_LISTAGG, .classes = PAIMON_MC_BIT(PAIMON_MC_TEXT), .types = "text",
	.null_is_nothing = true,
	.fold = listagg_fold, .fold_under = listagg_fold_under, .can_join = listagg_can_join, .join = listagg_join,
};
