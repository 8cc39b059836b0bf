/* Option tables, writing: the values of a struct as JSON, and the table as JSON Schema. */
#include <pumice/options.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Room for one value of any type, so a row can be read apart from its struct. */
union slot {
    int i;
    int64_t i64;
    float f;
    double d;
    bool b;
    const char *s;
    struct pm_ints ints;
    struct pm_floats floats;
    struct pm_strings strings;
    const cJSON *json;
};

/* Returns the double whose shortest text, read as a float, is x again: 0.94 rather than
 * 0.9399999976. */
static double shortest(float x)
{
    char text[32];
    double value = x;

    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        value = strtod(text, NULL);
        if ((float)value == x)
            break;
    }
    return value;
}

static cJSON *list_of(const struct pm_opt *o, const void *at)
{
    const struct pm_ints *ints = at;
    const struct pm_floats *floats = at;
    const struct pm_strings *strings = at;
    int count = o->type == PM_OPT_INTS     ? ints->count
                : o->type == PM_OPT_FLOATS ? floats->count
                                           : strings->count;
    cJSON *list = cJSON_CreateArray();

    for (int i = 0; i < count; i++) {
        if (o->type == PM_OPT_INTS)
            cJSON_AddItemToArray(list, cJSON_CreateNumber(ints->v[i]));
        else if (o->type == PM_OPT_FLOATS)
            cJSON_AddItemToArray(list, cJSON_CreateNumber(shortest(floats->v[i])));
        else
            cJSON_AddItemToArray(list, cJSON_CreateString(strings->v[i]));
    }
    return list;
}

static cJSON *number_or_null(double value)
{
    return isnan(value) ? cJSON_CreateNull() : cJSON_CreateNumber(value);
}

static cJSON *integer_or_null(const struct pm_opt *o, int64_t value)
{
    return isnan(o->def) && value == PM_UNSET ? cJSON_CreateNull()
                                              : cJSON_CreateNumber((double)value);
}

static cJSON *string_or_null(const char *text)
{
    return text ? cJSON_CreateString(text) : cJSON_CreateNull();
}

/* Returns word number index of an "a|b|c" list; free with pm_free. */
static char *choice_text(const char *choices, int index)
{
    const char *c = choices;

    for (; index > 0; index--)
        c += strcspn(c, "|") + 1;
    char *text = pm_strdup(c);
    text[strcspn(text, "|")] = '\0';
    return text;
}

static cJSON *choice_of(const struct pm_opt *o, int index)
{
    char *text = choice_text(o->choices, index);
    cJSON *v = cJSON_CreateString(text);

    pm_free(text);
    return v;
}

static cJSON *value_of(const struct pm_opt *o, const void *at)
{
    const cJSON *json;

    switch (o->type) {
    case PM_OPT_INT:
        if (o->choices && *(const int *)at == PM_WORD)
            return cJSON_CreateString(o->choices);
        return integer_or_null(o, *(const int *)at);
    case PM_OPT_INT64:
        return integer_or_null(o, *(const int64_t *)at);
    case PM_OPT_FLOAT:
        return number_or_null(shortest(*(const float *)at));
    case PM_OPT_DOUBLE:
        return number_or_null(*(const double *)at);
    case PM_OPT_BOOL:
        return cJSON_CreateBool(*(const bool *)at);
    case PM_OPT_STRING:
        return string_or_null(*(const char *const *)at);
    case PM_OPT_ENUM:
        return choice_of(o, *(const int *)at);
    case PM_OPT_INTS:
    case PM_OPT_FLOATS:
    case PM_OPT_STRINGS:
        return list_of(o, at);
    case PM_OPT_JSON:
        json = *(const cJSON *const *)at;
        return json ? cJSON_Duplicate(json, true) : cJSON_CreateNull();
    case PM_OPT_NONE:
        break;
    }
    return cJSON_CreateNull();
}

struct cJSON *pm_opt_default(const struct pm_opt *o)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_opt row[] = { *o, { 0 } };
    union slot slot;

    row[0].offset = 0;
    pm_opts_defaults(row, &slot, a);
    cJSON *v = value_of(o, &slot);
    pm_arena_destroy(&a);
    return v;
}

void pm_opts_dump(const struct pm_opt *opts, const void *in, struct cJSON *object,
                  bool only_changed)
{
    for (; opts->type; opts++) {
        cJSON *v = value_of(opts, (const char *)in + opts->offset);
        cJSON *def = only_changed ? pm_opt_default(opts) : NULL;
        if (def && cJSON_Compare(v, def, true))
            cJSON_Delete(v);
        else
            cJSON_AddItemToObject(object, opts->key, v);
        cJSON_Delete(def);
    }
}

/* ---- schema ---------------------------------------------------------------------------- */

/* Returns {"type": [name, "null"]}: for every option, null means "the default". */
static cJSON *typed(const char *name)
{
    cJSON *v = cJSON_CreateObject();
    cJSON *types = cJSON_AddArrayToObject(v, "type");

    cJSON_AddItemToArray(types, cJSON_CreateString(name));
    cJSON_AddItemToArray(types, cJSON_CreateString("null"));
    return v;
}

static void add_range(cJSON *v, const struct pm_opt *o)
{
    if (isfinite(o->min))
        cJSON_AddNumberToObject(v, "minimum", o->min);
    if (isfinite(o->max))
        cJSON_AddNumberToObject(v, "maximum", o->max);
}

/* Returns the schema of a list of such items, or of a single item. */
static cJSON *list_schema(const struct pm_opt *o, const char *item)
{
    cJSON *v = cJSON_CreateObject();
    cJSON *types = cJSON_AddArrayToObject(v, "type");
    cJSON *items = cJSON_AddObjectToObject(v, "items");

    cJSON_AddItemToArray(types, cJSON_CreateString("array"));
    cJSON_AddItemToArray(types, cJSON_CreateString(item));
    cJSON_AddItemToArray(types, cJSON_CreateString("null"));
    cJSON_AddStringToObject(items, "type", item);
    if (o->type != PM_OPT_STRINGS)
        add_range(items, o);
    return v;
}

/* Returns {"anyOf": [number, {"enum": [word]}]}. */
static cJSON *or_word(cJSON *number, const struct pm_opt *o)
{
    cJSON *v = cJSON_CreateObject();
    cJSON *any = cJSON_AddArrayToObject(v, "anyOf"), *word = cJSON_CreateObject();

    cJSON_AddItemToArray(any, number);
    cJSON_AddItemToArray(any, word);
    cJSON_AddItemToArray(cJSON_AddArrayToObject(word, "enum"), cJSON_CreateString(o->choices));
    return v;
}

static cJSON *enum_schema(const struct pm_opt *o)
{
    cJSON *v = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(v, "enum");
    int count = 1;

    for (const char *c = o->choices; *c; c++)
        count += *c == '|';
    for (int i = 0; i < count; i++)
        cJSON_AddItemToArray(list, choice_of(o, i));
    cJSON_AddItemToArray(list, cJSON_CreateNull());
    return v;
}

static cJSON *schema_of(const struct pm_opt *o)
{
    cJSON *v;

    switch (o->type) {
    case PM_OPT_INT:
    case PM_OPT_INT64:
        v = typed("integer");
        add_range(v, o);
        return o->choices ? or_word(v, o) : v;
    case PM_OPT_FLOAT:
    case PM_OPT_DOUBLE:
        v = typed("number");
        add_range(v, o);
        return v;
    case PM_OPT_BOOL:
        return typed("boolean");
    case PM_OPT_STRING:
        return typed("string");
    case PM_OPT_ENUM:
        return enum_schema(o);
    case PM_OPT_INTS:
        return list_schema(o, "integer");
    case PM_OPT_FLOATS:
        return list_schema(o, "number");
    case PM_OPT_STRINGS:
        return list_schema(o, "string");
    default:
        return cJSON_CreateObject();
    }
}

void pm_opts_schema(const struct pm_opt *opts, struct cJSON *object)
{
    for (; opts->type; opts++) {
        cJSON *v = schema_of(opts);
        cJSON_AddStringToObject(v, "description", opts->help ? opts->help : "");
        if (opts->type != PM_OPT_JSON)
            cJSON_AddItemToObject(v, "default", pm_opt_default(opts));
        cJSON_AddItemToObject(object, opts->key, v);
    }
}
