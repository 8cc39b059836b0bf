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
    PM_OPT_JSON,   /* const struct cJSON *: any value, read by its owner; NULL when absent. Borrowed
                    * from the parsed object, which must live as long */
};

struct pm_ints { int count; const int *v; };
struct pm_floats { int count; const float *v; };
struct pm_strings { int count; const char *const *v; };

struct pm_opt {
    const char *key;
    enum pm_opt_type type;
    size_t offset;      /* of the field; PM_NO_FIELD: the value is checked and not stored */
    double def;         /* numbers, bool, enum index; NAN (float, double): unset, written null */
    const char *text;   /* default of strings (NULL = null) and of lists ("[1, 2]"); else NULL */
    double min, max;    /* inclusive; of every element for lists */
    const char *choices;/* enums: "a|b|c" */
    const char *help;   /* one line, no full stop */
};

#define PM_FIELD_(tag, f, T) (offsetof(struct tag, f) + 0 * sizeof(_Generic(((struct tag *)0)->f, T: 0)))
#define PM_INT(tag, f, d, lo, hi, h) { .key = #f, .type = PM_OPT_INT, .offset = PM_FIELD_(tag, f, int), .def = d, .min = lo, .max = hi, .help = h }
#define PM_INT64(tag, f, d, lo, hi, h) { .key = #f, .type = PM_OPT_INT64, .offset = PM_FIELD_(tag, f, int64_t), .def = d, .min = lo, .max = hi, .help = h }
#define PM_FLOAT(tag, f, d, lo, hi, h) { .key = #f, .type = PM_OPT_FLOAT, .offset = PM_FIELD_(tag, f, float), .def = d, .min = lo, .max = hi, .help = h }
#define PM_DOUBLE(tag, f, d, lo, hi, h) { .key = #f, .type = PM_OPT_DOUBLE, .offset = PM_FIELD_(tag, f, double), .def = d, .min = lo, .max = hi, .help = h }
#define PM_BOOL(tag, f, d, h) { .key = #f, .type = PM_OPT_BOOL, .offset = PM_FIELD_(tag, f, bool), .def = d, .min = 0, .max = 1, .help = h }
#define PM_STRING(tag, f, d, h) { .key = #f, .type = PM_OPT_STRING, .offset = PM_FIELD_(tag, f, const char *), .text = d, .help = h }
#define PM_ENUM(tag, f, d, c, h) { .key = #f, .type = PM_OPT_ENUM, .offset = PM_FIELD_(tag, f, int), .def = d, .choices = c, .help = h }
#define PM_INTS(tag, f, d, lo, hi, h) { .key = #f, .type = PM_OPT_INTS, .offset = PM_FIELD_(tag, f, struct pm_ints), .text = d, .min = lo, .max = hi, .help = h }
#define PM_FLOATS(tag, f, d, lo, hi, h) { .key = #f, .type = PM_OPT_FLOATS, .offset = PM_FIELD_(tag, f, struct pm_floats), .text = d, .min = lo, .max = hi, .help = h }
#define PM_STRINGS(tag, f, d, h) { .key = #f, .type = PM_OPT_STRINGS, .offset = PM_FIELD_(tag, f, struct pm_strings), .text = d, .help = h }
#define PM_JSON(tag, f, h) { .key = #f, .type = PM_OPT_JSON, .offset = PM_FIELD_(tag, f, const struct cJSON *), .help = h }

/* Without a field: only the default is accepted. help says what any other value would need. */
#define PM_NO_FIELD SIZE_MAX
#define PM_ONLY_INT(name, d, h) { .key = #name, .type = PM_OPT_INT, .offset = PM_NO_FIELD, .def = d, .min = d, .max = d, .help = h }
#define PM_ONLY_BOOL(name, d, h) { .key = #name, .type = PM_OPT_BOOL, .offset = PM_NO_FIELD, .def = d, .min = d, .max = d, .help = h }

/* Fills out with the table's defaults. */
void pm_opts_defaults(const struct pm_opt *opts, void *out, struct pm_arena *a);
/* Sets one option from a JSON value; null means the default. where names the place in messages:
 * "x.json: optim" gives "x.json: optim.lr: ..."; one that ends in ':' is followed by a space. */
int pm_opt_set(const struct pm_opt *o, const struct cJSON *v, void *out, struct pm_arena *a,
               const char *where);
/* Defaults, then every member of object (may be NULL). `also` (may be NULL) is a list of further
 * keys that belong to somebody else and are passed over. An unknown key fails with PM_ECONFIG and
 * the nearest name. */
int pm_opts_parse(const struct pm_opt *opts, const struct cJSON *object, const char *const *also,
                  void *out, struct pm_arena *a, const char *where);
/* The same from "key=value key=[1,2] key=text"; a value with spaces is a JSON string: key="a b". */
int pm_opts_parse_text(const struct pm_opt *opts, const char *text, void *out, struct pm_arena *a,
                       const char *where);
/* Adds every option's value to object (created by the caller); with only_changed, those that
 * differ from the default. Floats print as the shortest text that reads back to the same bits. */
void pm_opts_dump(const struct pm_opt *opts, const void *in, struct cJSON *object,
                  bool only_changed);
/* One option's default as JSON; cJSON_Delete frees it. */
struct cJSON *pm_opt_default(const struct pm_opt *o);
/* JSON Schema "properties" for the table, added to object. */
void pm_opts_schema(const struct pm_opt *opts, struct cJSON *object);
/* Index of the option with this key, or -1. */
int pm_opts_find(const struct pm_opt *opts, const char *key);

/* ---- JSON text ------------------------------------------------------------------------- */

/* Parses text after blanking // comments (so line numbers hold); duplicate keys, integers beyond
 * 2^53 and trailing text are refused with "name:line:column: ...". The caller frees *out with
 * cJSON_Delete. */
int pm_json_parse(const char *name, const char *text, struct cJSON **out);
/* The same, and where each value stands (a member: its key), in document order: the value itself,
 * then its children one after the other with theirs. *places is freed with pm_free. */
struct pm_json_place { int line, column; };
int pm_json_parse_places(const char *name, const char *text, struct cJSON **out,
                         struct pm_json_place **places);
/* Pretty text of a value: two spaces a level, short arrays and short objects inside arrays on one
 * line, numbers as the shortest text that reads back to the same bits; freed with pm_free. */
char *pm_json_print(const struct cJSON *v);

#ifdef __cplusplus
}
#endif

#endif
