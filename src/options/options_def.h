/*-------------------------------------------------------------------------
 *
 * options_def.h
 *	  Shape of the options table; private to src/options.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_OPTIONS_DEF_H
#define PAIMON_OPTIONS_DEF_H

#include "options/options.h"

typedef enum PaimonOptionType
{
	PAIMON_OPT_BOOL,
	PAIMON_OPT_INT,
	PAIMON_OPT_FLOAT,
	PAIMON_OPT_SIZE,			/* bytes, "128 mb" */
	PAIMON_OPT_DURATION,		/* milliseconds, "1 h" */
	PAIMON_OPT_ENUM,
	PAIMON_OPT_STRING,
	PAIMON_OPT_COLUMN,			/* name of a column */
	PAIMON_OPT_COLUMNS			/* comma-separated names of columns */
} PaimonOptionType;

typedef enum PaimonOptionState
{
	PAIMON_OPT_IMPLEMENTED,
	PAIMON_OPT_NOT_YET,			/* has a meaning here, is not built: refused */
	PAIMON_OPT_NOT_HERE			/* has no meaning inside a database: refused */
} PaimonOptionState;

typedef enum PaimonOptionScope
{
	PAIMON_OPT_ANY_TABLE,
	PAIMON_OPT_KEY_TABLE,		/* tables with a primary key */
	PAIMON_OPT_APPEND_TABLE,	/* tables without */
	PAIMON_OPT_PARENT			/* partitioned tables */
} PaimonOptionScope;

typedef enum PaimonOptionEffect
{
	PAIMON_OPT_AT_ONCE,			/* read at each use */
	PAIMON_OPT_NEW_FILES,		/* files written from then on */
	PAIMON_OPT_WHOLE_TABLE,		/* shapes all stored data: fixed once the table holds rows */
} PaimonOptionEffect;

/*
 * One option.  `name` may be a family: "<c>" stands for a column, "<c>[,<c>]"
 * for one or more, "<x>" for any word.  For integers, sizes and durations the
 * range is min..max (in bytes and milliseconds); for enums `values` lists what
 * is implemented and `later` what Paimon knows beyond.  `offset` is the field of
 * PaimonOptions that takes the value (bool, int64 or an enum's int by type; an
 * int32 where `narrow` is set); columns are resolved by options_cache.c.
 */
typedef struct PaimonOptionDef
{
	const char *name;
	PaimonOptionType type;
	PaimonOptionState state;
	PaimonOptionScope scope;
	PaimonOptionEffect effect;
	const char *deflt;			/* as text; NULL = not set */
	const char *doc;			/* one sentence */
	const char *hint;			/* shown with the refusal; NULL = none */
	int64		min;
	int64		max;
	const char *const *values;
	const char *const *later;
	int			offset;			/* -1 = no field */
	bool		narrow;
} PaimonOptionDef;

/* Numbers with a fraction are kept, and their ranges given, in millionths. */
#define PAIMON_OPT_FLOAT_SCALE INT64CONST(1000000)

/* Other spellings of fixed names. */
typedef struct PaimonOptionAlias
{
	const char *name;
	const char *target;
} PaimonOptionAlias;

/* options_table.c: what is built or planned; options_table_foreign.c: what has no meaning here. */
extern const PaimonOptionDef paimon_option_defs[];
extern const PaimonOptionDef paimon_option_foreign_defs[];	/* both end with name = NULL */
extern const PaimonOptionAlias paimon_option_aliases[];

/* options_names.c */
extern const PaimonOptionDef *paimon_option_find(const char *name);
extern char *paimon_option_canonical(const char *name);
extern const char *paimon_option_nearest(const char *name);

/* options_value.c: text to value; false if it does not parse (range is the caller's business). */
extern bool paimon_parse_bool(const char *text, bool *value);
extern bool paimon_parse_int(const char *text, int64 *value);
extern bool paimon_parse_float(const char *text, int64 *millionths);
extern bool paimon_parse_size(const char *text, int64 *bytes);
extern bool paimon_parse_duration(const char *text, int64 *ms);
extern bool paimon_parse_enum(const char *text, const char *const *values, int *index);
extern List *paimon_parse_columns(const char *text);
extern const char *paimon_option_type_name(PaimonOptionType type);
extern const char *paimon_option_allowed(const PaimonOptionDef *def);

/*
 * Parse a value for an implemented option into the number its field takes.
 * Returns false if it is malformed, out of range or not implemented.
 */
extern bool paimon_option_parse(const PaimonOptionDef *def, const char *text, int64 *value);

#endif							/* PAIMON_OPTIONS_DEF_H */
