/* Option tables, reading: sets defaults, and values from JSON or key=value words, and checks them
 * against their rows. options_write.c writes them. */
#include <pumice/options.h>

#include <assert.h>
#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* Fails with "is outside 1..64"; a range without an end names its one limit. */
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

static bool is_quoted_number(const cJSON *v)
{
    char *end;

    if (!cJSON_IsString(v) || !v->valuestring[0])
        return false;
    return isfinite(strtod(v->valuestring, &end)) && *end == '\0';
}

static int check_number(const struct pm_opt *o, const char *where, const cJSON *v, bool integer)
{
    double x = v->valuedouble;

    if (is_quoted_number(v))
        return fail_value(o, where, v, "is a text: write the number without quotes");
    if (!cJSON_IsNumber(v))
        return fail_value(o, where, v, integer ? "is not an integer" : "is not a number");
    if (integer && x != floor(x))
        return fail_value(o, where, v, "is not an integer");
    if (!(x >= o->min && x <= o->max))
        return fail_range(o, where, v);
    return PM_OK;
}

/* Returns the index of a word in an "a|b|c" list, or -1. */
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

static int set_enum(const struct pm_opt *o, const cJSON *v, int *out, const char *where)
{
    char rule[512];

    const char *word = cJSON_IsBool(v) ? cJSON_IsTrue(v) ? "true" : "false" : v->valuestring;

    *out = cJSON_IsString(v) || cJSON_IsBool(v) ? choice_index(o->choices, word) : -1;
    if (*out >= 0)
        return PM_OK;
    snprintf(rule, sizeof rule, "is not one of %s", o->choices);
    return fail_value(o, where, v, rule);
}

/* Returns an array's item count; a single value counts as a list of one. */
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

/* These three and set_value use no PM_TRY: they also set defaults, which cannot fail. */
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

/* The word that an integer's option takes in place of a number. */
static int set_word(const struct pm_opt *o, const cJSON *v, int *out, const char *where)
{
    char rule[128];

    assert(o->min > PM_WORD);
    *out = PM_WORD;
    if (strcmp(v->valuestring, o->choices) == 0)
        return PM_OK;
    snprintf(rule, sizeof rule, "is neither a number nor \"%s\"", o->choices);
    return fail_value(o, where, v, rule);
}

/* Sets the value at `at`; v is not null. */
static int set_value(const struct pm_opt *o, const cJSON *v, void *at, struct pm_arena *a,
                     const char *where)
{
    switch (o->type) {
    case PM_OPT_INT:
        assert(o->min >= INT_MIN && o->max <= INT_MAX);
        return o->choices && cJSON_IsString(v) ? set_word(o, v, at, where)
                                               : set_number(o, v, at, where);
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
        /* A whole number is converted to text: eval.checkpoint=77 on a command line is JSON. */
        if (cJSON_IsNumber(v) && fabs(v->valuedouble) <= 0x1p53 &&
            v->valuedouble == (double)(int64_t)v->valuedouble)
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

/* Sets a list's default from its text. A bad text is a mistake in the table, found by its first
 * test. */
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
        *(int *)at = isnan(o->def) ? PM_UNSET : (int)o->def;
        break;
    case PM_OPT_INT64:
        *(int64_t *)at = isnan(o->def) ? PM_UNSET : (int64_t)o->def;
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

/* Adds one key=value word to object: as a JSON value, else as a string. */
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

/* Returns the next word at *p and ends it with NUL in place. Words end at spaces outside of
 * "...". */
static char *next_word(char **p)
{
    char *word = *p + strspn(*p, " "), *end = word;

    for (bool quoted = false; *end && (quoted || *end != ' '); end++) {
        if (*end == '"')
            quoted = !quoted;
        else if (quoted && *end == '\\' && end[1])
            end++;
    }
    *p = *end ? end + 1 : end;
    *end = '\0';
    return *word ? word : NULL;
}

int pm_opts_parse_text(const struct pm_opt *opts, const char *text, void *out, struct pm_arena *a,
                       const char *where)
{
    int err = PM_OK;
    cJSON *object = cJSON_CreateObject();
    char *copy = pm_strdup(text), *at = copy;

    for (char *word = next_word(&at); word; word = next_word(&at))
        PM_TRY(add_word(object, word, where));
    for (const struct pm_opt *o = opts; o->type; o++)
        assert(o->type != PM_OPT_JSON && "a JSON option would outlive this function's object");
    PM_TRY(pm_opts_parse(opts, object, NULL, out, a, where));
out:
    pm_free(copy);
    cJSON_Delete(object);
    return err;
}
