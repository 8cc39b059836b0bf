/* options: one table is parser, defaults, ranges, documentation, schema and dump.
 *
 *     struct adamw_cfg { float lr, beta1; bool nesterov; };
 *     static const struct pm_opt opts[] = {
 *         PM_FLOAT(adamw_cfg, lr, 1e-3, 0, 10, "learning rate before the schedule"),
 *         PM_BOOL(adamw_cfg, nesterov, false, "look ahead along the mean"),
 *         { 0 },
 *     };
 *
 * The macro takes the key from the field name and checks the field's type at compile time. */
#ifndef PUMICE_OPTIONS_H
#define PUMICE_OPTIONS_H

#include <pumice/base.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

enum pm_opt_type {
    PM_OPT_NONE,
    PM_OPT_INT,    /* int */
    PM_OPT_INT64,  /* int64_t */
    PM_OPT_FLOAT,  /* float */
    PM_OPT_DOUBLE, /* double */
    PM_OPT_BOOL,   /* bool */
    PM_OPT_STRING, /* const char *, in the arena; may be NULL only by default */
    PM_OPT_ENUM,   /* int: index into choices, a "a|b|c" list */
    PM_OPT_INTS,   /* struct pm_ints; a single number is a list of one */
    PM_OPT_FLOATS, /* struct pm_floats */
    PM_OPT_STRINGS,/* struct pm_strings; a single string is a list of one */
    PM_OPT_JSON,   /* const struct cJSON *: any value, which its owner reads; NULL when absent.
                    * Borrowed from the parsed object, which must outlive it */
};

/* Value of an int or int64_t that is not set. Its option has the default NAN and a range without
 * negative numbers. */
enum { PM_UNSET = -1 };

struct pm_ints { int count; const int *v; };
struct pm_floats { int count; const float *v; };
struct pm_strings { int count; const char *const *v; };

struct pm_opt {
    const char *key;
    enum pm_opt_type type;
    size_t offset;      /* of the field */
    double def;         /* numbers, bool, enum index; NAN (numbers): unset, null in JSON */
    const char *text;   /* default of strings (NULL = null) and lists ("[1, 2]"); else NULL */
    double min, max;    /* inclusive; for lists, per element */
    const char *choices;/* enums: "a|b|c"; integers: a word for PM_WORD, or NULL */
    const char *help;   /* one line, no full stop */
};

#define PM_FIELD_(tag, f, T) \
    (offsetof(struct tag, f) + 0 * sizeof(_Generic(((struct tag *)0)->f, T : 0)))
#define PM_INT(tag, f, d, lo, hi, h)                                                          \
    {                                                                                         \
        .key = #f, .type = PM_OPT_INT, .offset = PM_FIELD_(tag, f, int), .def = d, .min = lo, \
        .max = hi, .help = h                                                                  \
    }
/* An integer, or a word in its place. The field is then PM_WORD, which is outside the range. */
enum { PM_WORD = -2 };
#define PM_INT_OR(tag, f, d, lo, hi, word, h)                                                 \
    {                                                                                         \
        .key = #f, .type = PM_OPT_INT, .offset = PM_FIELD_(tag, f, int), .def = d, .min = lo, \
        .max = hi, .choices = word, .help = h                                                 \
    }
#define PM_INT64(tag, f, d, lo, hi, h)                                                   \
    {                                                                                    \
        .key = #f, .type = PM_OPT_INT64, .offset = PM_FIELD_(tag, f, int64_t), .def = d, \
        .min = lo, .max = hi, .help = h                                                  \
    }
#define PM_FLOAT(tag, f, d, lo, hi, h)                                                            \
    {                                                                                             \
        .key = #f, .type = PM_OPT_FLOAT, .offset = PM_FIELD_(tag, f, float), .def = d, .min = lo, \
        .max = hi, .help = h                                                                      \
    }
#define PM_DOUBLE(tag, f, d, lo, hi, h)                                                  \
    {                                                                                    \
        .key = #f, .type = PM_OPT_DOUBLE, .offset = PM_FIELD_(tag, f, double), .def = d, \
        .min = lo, .max = hi, .help = h                                                  \
    }
#define PM_BOOL(tag, f, d, h)                                                                  \
    {                                                                                          \
        .key = #f, .type = PM_OPT_BOOL, .offset = PM_FIELD_(tag, f, bool), .def = d, .min = 0, \
        .max = 1, .help = h                                                                    \
    }
#define PM_STRING(tag, f, d, h)                                                                 \
    {                                                                                           \
        .key = #f, .type = PM_OPT_STRING, .offset = PM_FIELD_(tag, f, const char *), .text = d, \
        .help = h                                                                               \
    }
#define PM_ENUM(tag, f, d, c, h)                                                                  \
    {                                                                                             \
        .key = #f, .type = PM_OPT_ENUM, .offset = PM_FIELD_(tag, f, int), .def = d, .choices = c, \
        .help = h                                                                                 \
    }
#define PM_INTS(tag, f, d, lo, hi, h)                                                           \
    {                                                                                           \
        .key = #f, .type = PM_OPT_INTS, .offset = PM_FIELD_(tag, f, struct pm_ints), .text = d, \
        .min = lo, .max = hi, .help = h                                                         \
    }
#define PM_FLOATS(tag, f, d, lo, hi, h)                                                  \
    {                                                                                    \
        .key = #f, .type = PM_OPT_FLOATS, .offset = PM_FIELD_(tag, f, struct pm_floats), \
        .text = d, .min = lo, .max = hi, .help = h                                       \
    }
#define PM_STRINGS(tag, f, d, h)                                                           \
    {                                                                                      \
        .key = #f, .type = PM_OPT_STRINGS, .offset = PM_FIELD_(tag, f, struct pm_strings), \
        .text = d, .help = h                                                               \
    }
#define PM_JSON(tag, f, h)                                                                 \
    {                                                                                      \
        .key = #f, .type = PM_OPT_JSON, .offset = PM_FIELD_(tag, f, const struct cJSON *), \
        .help = h                                                                          \
    }

/* Fills out with the table's defaults. */
void pm_opts_defaults(const struct pm_opt *opts, void *out, struct pm_arena *a);
/* Sets one option from a JSON value; null means the default. where: the place for messages.
 * "x.json: optim" gives "x.json: optim.lr: ..."; if where ends in ':', a space follows it. */
int pm_opt_set(const struct pm_opt *o, const struct cJSON *v, void *out, struct pm_arena *a,
               const char *where);
/* Sets the defaults, then every member of object (may be NULL). `also` (may be NULL) lists further
 * keys that another owner reads; they are skipped. An unknown key fails with PM_ECONFIG and the
 * nearest name. */
int pm_opts_parse(const struct pm_opt *opts, const struct cJSON *object, const char *const *also,
                  void *out, struct pm_arena *a, const char *where);
/* Parses the same from "key=value key=[1,2] key=text". Quote a value with spaces as a JSON string:
 * key="a b". */
int pm_opts_parse_text(const struct pm_opt *opts, const char *text, void *out, struct pm_arena *a,
                       const char *where);
/* Options of an object of a config: key is its place, such as "model.matcher", text its options as
 * "option=value ...". */
struct pm_object_default {
    const char *key, *text;
};
/* Adds every option's value to object, which the caller created. With only_changed, adds only
 * values that differ from the default. Floats print as the shortest text that reads back to the
 * same bits. */
void pm_opts_dump(const struct pm_opt *opts, const void *in, struct cJSON *object,
                  bool only_changed);
/* Returns one option's default as JSON; cJSON_Delete frees it. */
struct cJSON *pm_opt_default(const struct pm_opt *o);
/* Adds the table's JSON Schema "properties" to object. */
void pm_opts_schema(const struct pm_opt *opts, struct cJSON *object);
/* Returns the index of the option with this key, or -1. */
int pm_opts_find(const struct pm_opt *opts, const char *key);

/* ---- JSON text ------------------------------------------------------------------------- */

/* Parses text. // comments are blanked first, so line numbers stay valid. Duplicate keys, integers
 * beyond 2^53 and trailing text fail with "name:line:column: ...". The caller frees *out with
 * cJSON_Delete. */
int pm_json_parse(const char *name, const char *text, struct cJSON **out);
/* Parses the same, and returns the place of each value (for a member: of its key) in document
 * order: first the value, then each child followed by its own children. *places is freed with
 * pm_free. */
struct pm_json_place { int line, column; };
int pm_json_parse_places(const char *name, const char *text, struct cJSON **out,
                         struct pm_json_place **places);
/* Prints a value: two spaces per level; short arrays, and short objects inside arrays, on one line;
 * numbers as the shortest text that reads back to the same bits. Freed with pm_free. */
char *pm_json_print(const struct cJSON *v);

#ifdef __cplusplus
}
#endif

#endif
