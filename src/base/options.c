/* Option tables: one row is an option's parser, default, range, documentation, schema and dump. */
#include <pumice/options.h>

#include <assert.h>
#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Room for one value of any type, so that a row can be read apart from its struct. */
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

static const char *joint(const char *where)
{
    size_t n = strlen(where);

    return n == 0 ? "" : where[n - 1] == ':' ? " " : ".";
}

static int fail_value(const struct pm_opt *o, const char *where, const cJSON *v, const char *rule)
{
    char *text = pm_json_print(v);
    int err = pm_fail(PM_ECONFIG, "%s%s%s: %.80s %s (%s)", where, joint(where), o->key, text, rule,
                      o->help ? o->help : "");

    pm_free(text);
    return err;
}

/* "is outside 1..64"; a range without an end names its one bound. */
static int fail_range(const struct pm_opt *o, const char *where, const cJSON *v)
{
    char rule[96];

    if (isinf(o->max))
        snprintf(rule, sizeof rule, "is below %.16g", o->min);
    else if (isinf(o->min))
        snprintf(rule, sizeof rule, "is above %.16g", o->max);
    else
        snprintf(rule, sizeof rule, "is outside %.16g..%.16g", o->min, o->max);
    return fail_value(o, where, v, rule);
}

static int check_number(const struct pm_opt *o, const char *where, const cJSON *v, bool integer)
{
    double x = v->valuedouble;

    if (!cJSON_IsNumber(v))
        return fail_value(o, where, v, integer ? "is not an integer" : "is not a number");
    if (integer && x != floor(x))
        return fail_value(o, where, v, "is not an integer");
    if (!(x >= o->min && x <= o->max))
        return fail_range(o, where, v);
    return PM_OK;
}

/* Index of a word in an "a|b|c" list, or -1. */
static int choice_index(const char *choices, const char *word)
{
    size_t n = strlen(word);
    int index = 0;

    for (const char *c = choices;; c++, index++) {
        size_t length = strcspn(c, "|");
        if (length == n && memcmp(c, word, n) == 0)
            return index;
        c += length;
        if (!*c)
            return -1;
    }
}

static char *choice_text(const char *choices, int index)
{
    const char *c = choices;

    for (; index > 0; index--)
        c += strcspn(c, "|") + 1;
    char *text = pm_strdup(c);
    text[strcspn(text, "|")] = '\0';
    return text;
}

static int set_enum(const struct pm_opt *o, const cJSON *v, int *out, const char *where)
{
    char rule[512];

    *out = cJSON_IsString(v) ? choice_index(o->choices, v->valuestring) : -1;
    if (*out >= 0)
        return PM_OK;
    snprintf(rule, sizeof rule, "is none of %s", o->choices);
    return fail_value(o, where, v, rule);
}

/* An array's items, or a single value as a list of one. */
static int items_of(const cJSON *v)
{
    return cJSON_IsArray(v) ? cJSON_GetArraySize(v) : 1;
}

static const cJSON *first_item(const cJSON *v)
{
    return cJSON_IsArray(v) ? v->child : v;
}

static const cJSON *next_item(const cJSON *list, const cJSON *item)
{
    return cJSON_IsArray(list) ? item->next : NULL;
}

/* These three and set_value use no PM_TRY: defaults pass through them and cannot fail. */
static int set_ints(const struct pm_opt *o, const cJSON *v, struct pm_ints *out, struct pm_arena *a,
                    const char *where)
{
    int *list = pm_arena_alloc(a, (size_t)items_of(v) * sizeof *list);
    int err, count = 0;

    for (const cJSON *item = first_item(v); item; item = next_item(v, item)) {
        if ((err = check_number(o, where, item, true)) < 0)
            return err;
        list[count++] = (int)item->valuedouble;
    }
    *out = (struct pm_ints){ count, list };
    return PM_OK;
}

static int set_floats(const struct pm_opt *o, const cJSON *v, struct pm_floats *out,
                      struct pm_arena *a, const char *where)
{
    float *list = pm_arena_alloc(a, (size_t)items_of(v) * sizeof *list);
    int err, count = 0;

    for (const cJSON *item = first_item(v); item; item = next_item(v, item)) {
        if ((err = check_number(o, where, item, false)) < 0)
            return err;
        list[count++] = (float)item->valuedouble;
    }
    *out = (struct pm_floats){ count, list };
    return PM_OK;
}

static int set_strings(const struct pm_opt *o, const cJSON *v, struct pm_strings *out,
                       struct pm_arena *a, const char *where)
{
    const char **list = pm_arena_alloc(a, (size_t)items_of(v) * sizeof *list);
    int count = 0;

    for (const cJSON *item = first_item(v); item; item = next_item(v, item)) {
        if (!cJSON_IsString(item))
            return fail_value(o, where, item, "is not a string");
        list[count++] = pm_arena_strdup(a, item->valuestring);
    }
    *out = (struct pm_strings){ count, list };
    return PM_OK;
}

static int set_number(const struct pm_opt *o, const cJSON *v, void *at, const char *where)
{
    bool integer = o->type == PM_OPT_INT || o->type == PM_OPT_INT64;
    int err = check_number(o, where, v, integer);

    if (err < 0)
        return err;
    if (o->type == PM_OPT_INT)
        *(int *)at = (int)v->valuedouble;
    else if (o->type == PM_OPT_INT64)
        *(int64_t *)at = (int64_t)v->valuedouble;
    else if (o->type == PM_OPT_FLOAT)
        *(float *)at = (float)v->valuedouble;
    else
        *(double *)at = v->valuedouble;
    return PM_OK;
}

/* Sets the value at `at`; v is not null. */
static int set_value(const struct pm_opt *o, const cJSON *v, void *at, struct pm_arena *a,
                     const char *where)
{
    switch (o->type) {
    case PM_OPT_INT:
        assert(o->min >= INT_MIN && o->max <= INT_MAX);
        return set_number(o, v, at, where);
    case PM_OPT_INT64:
        assert(o->min >= -0x1p63 && o->max < 0x1p63);
        return set_number(o, v, at, where);
    case PM_OPT_FLOAT:
    case PM_OPT_DOUBLE:
        return set_number(o, v, at, where);
    case PM_OPT_BOOL:
        if (!cJSON_IsBool(v))
            return fail_value(o, where, v, "is neither true nor false");
        *(bool *)at = cJSON_IsTrue(v);
        return PM_OK;
    case PM_OPT_STRING:
        /* A whole number stands for its text: eval.checkpoint=77 on a command line is JSON. */
        if (cJSON_IsNumber(v) && v->valuedouble == (double)(int64_t)v->valuedouble)
            *(const char **)at = pm_arena_printf(a, "%lld", (long long)v->valuedouble);
        else if (cJSON_IsString(v))
            *(const char **)at = pm_arena_strdup(a, v->valuestring);
        else
            return fail_value(o, where, v, "is not a string");
        return PM_OK;
    case PM_OPT_ENUM:
        return set_enum(o, v, at, where);
    case PM_OPT_INTS:
        return set_ints(o, v, at, a, where);
    case PM_OPT_FLOATS:
        return set_floats(o, v, at, a, where);
    case PM_OPT_STRINGS:
        return set_strings(o, v, at, a, where);
    case PM_OPT_JSON:
        *(const cJSON **)at = v;
        return PM_OK;
    case PM_OPT_NONE:
        break;
    }
    return PM_OK;
}

/* A list's default is text; a bad one is a mistake in the table, seen by its first test. */
static void set_default_list(const struct pm_opt *o, void *at, struct pm_arena *a)
{
    cJSON *v = cJSON_Parse(o->text ? o->text : "[]");
    int err = v ? set_value(o, v, at, a, "default") : PM_ECONFIG;

    assert(err == PM_OK && "the table's default list");
    (void)err;
    cJSON_Delete(v);
}

static void set_default(const struct pm_opt *o, void *at, struct pm_arena *a)
{

    switch (o->type) {
    case PM_OPT_INT:
    case PM_OPT_ENUM:
        *(int *)at = (int)o->def;
        break;
    case PM_OPT_INT64:
        *(int64_t *)at = (int64_t)o->def;
        break;
    case PM_OPT_FLOAT:
        *(float *)at = (float)o->def;
        break;
    case PM_OPT_DOUBLE:
        *(double *)at = o->def;
        break;
    case PM_OPT_BOOL:
        *(bool *)at = o->def != 0;
        break;
    case PM_OPT_STRING:
        *(const char **)at = o->text ? pm_arena_strdup(a, o->text) : NULL;
        break;
    case PM_OPT_JSON:
        *(const cJSON **)at = NULL;
        break;
    default:
        set_default_list(o, at, a);
    }
}

void pm_opts_defaults(const struct pm_opt *opts, void *out, struct pm_arena *a)
{
    for (; opts->type; opts++)
        set_default(opts, (char *)out + opts->offset, a);
}

int pm_opt_set(const struct pm_opt *o, const struct cJSON *v, void *out, struct pm_arena *a,
               const char *where)
{
    void *at = (char *)out + o->offset;

    if (!cJSON_IsNull(v))
        return set_value(o, v, at, a, where);
    set_default(o, at, a);
    return PM_OK;
}

int pm_opts_find(const struct pm_opt *opts, const char *key)
{
    for (int i = 0; opts[i].type; i++)
        if (strcmp(opts[i].key, key) == 0)
            return i;
    return -1;
}

static bool is_listed(const char *key, const char *const *list)
{
    for (; list && *list; list++)
        if (strcmp(*list, key) == 0)
            return true;
    return false;
}

static int fail_unknown(const struct pm_opt *opts, const char *const *also, const char *key,
                        const char *where)
{
    size_t count = 0, capacity = 0;
    const char **names = NULL;
    struct pm_str all = { 0 };
    int err;

    for (; opts->type; opts++) {
        PM_GROW(names, count, capacity);
        names[count++] = opts->key;
    }
    for (; also && *also; also++) {
        PM_GROW(names, count, capacity);
        names[count++] = *also;
    }
    for (size_t i = 0; i < count; i++)
        pm_str_add(&all, "%s%s", i ? ", " : "", names[i]);
    const char *nearest = pm_nearest(key, names, count);
    if (nearest)
        err = pm_fail(PM_ECONFIG, "%s%s%s: unknown key, did you mean '%s'?", where, joint(where),
                      key, nearest);
    else
        err = pm_fail(PM_ECONFIG, "%s%s%s: unknown key (known: %s)", where, joint(where), key,
                      count ? all.text : "none");
    pm_str_free(&all);
    pm_free(names);
    return err;
}

int pm_opts_parse(const struct pm_opt *opts, const struct cJSON *object, const char *const *also,
                  void *out, struct pm_arena *a, const char *where)
{
    int err = PM_OK;

    pm_opts_defaults(opts, out, a);
    if (!object || cJSON_IsNull(object))
        return PM_OK;
    if (!cJSON_IsObject(object))
        return pm_fail(PM_ECONFIG, "%s: an object { \"key\": value, ... } is needed here", where);
    for (const cJSON *v = object->child; v; v = v->next) {
        int i = pm_opts_find(opts, v->string);
        if (i >= 0)
            PM_TRY(pm_opt_set(&opts[i], v, out, a, where));
        else if (!is_listed(v->string, also))
            PM_TRY(fail_unknown(opts, also, v->string, where));
    }
out:
    return err;
}

/* One key=value word into object: a JSON value, else a string. */
static int add_word(cJSON *object, char *word, const char *where)
{
    char *equals = strchr(word, '=');

    if (!equals || equals == word)
        return pm_fail(PM_ECONFIG, "%s: '%s' is not key=value", where, word);
    *equals = '\0';
    if (cJSON_GetObjectItemCaseSensitive(object, word))
        return pm_fail(PM_ECONFIG, "%s%s%s: is given twice", where, joint(where), word);
    cJSON *v = NULL;
    if (pm_json_parse(word, equals + 1, &v) < 0)
        v = cJSON_CreateString(equals + 1);
    cJSON_AddItemToObject(object, word, v);
    return PM_OK;
}

int pm_opts_parse_text(const struct pm_opt *opts, const char *text, void *out, struct pm_arena *a,
                       const char *where)
{
    int err = PM_OK;
    cJSON *object = cJSON_CreateObject();
    char *copy = pm_strdup(text), *save = NULL;

    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        PM_TRY(add_word(object, word, where));
    for (const struct pm_opt *o = opts; o->type; o++)
        assert(o->type != PM_OPT_JSON && "a JSON option would outlive this function's object");
    PM_TRY(pm_opts_parse(opts, object, NULL, out, a, where));
out:
    pm_free(copy);
    cJSON_Delete(object);
    return err;
}

/* The double whose shortest text, read as a float, is x again: 0.94 rather than 0.9399999976. */
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

static cJSON *string_or_null(const char *text)
{
    return text ? cJSON_CreateString(text) : cJSON_CreateNull();
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
        return cJSON_CreateNumber(*(const int *)at);
    case PM_OPT_INT64:
        return cJSON_CreateNumber((double)*(const int64_t *)at);
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

static cJSON *default_of(const struct pm_opt *o)
{
    struct pm_arena *a = pm_arena_create();
    union slot slot;

    set_default(o, &slot, a);
    cJSON *v = value_of(o, &slot);
    pm_arena_destroy(&a);
    return v;
}

void pm_opts_dump(const struct pm_opt *opts, const void *in, struct cJSON *object,
                  bool only_changed)
{
    for (; opts->type; opts++) {
        cJSON *v = value_of(opts, (const char *)in + opts->offset);
        cJSON *def = only_changed ? default_of(opts) : NULL;
        if (def && cJSON_Compare(v, def, true))
            cJSON_Delete(v);
        else
            cJSON_AddItemToObject(object, opts->key, v);
        cJSON_Delete(def);
    }
}

/* ---- schema ---------------------------------------------------------------------------- */

/* {"type": [name, "null"]}: null is every option's way to say "the default". */
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

/* A list of such items, or one of them. */
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
        return v;
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
            cJSON_AddItemToObject(v, "default", default_of(opts));
        cJSON_AddItemToObject(object, opts->key, v);
    }
}
