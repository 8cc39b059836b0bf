/* study_board: study_board.h has the contract. */
#include "study/study_board.h"

#include <pumice/formats.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* ---- values ------------------------------------------------------------------------------ */

struct values {
    struct pm_hparam *list; /* owned */
    size_t count, capacity;
};

/* Whether some values of a key are numbers and others are not: then all are texts. */
static bool is_mixed(const struct pm_study *s, int key)
{
    const cJSON *spec = s->parts[s->keys[key].part].spec, *e;
    int numbers = 0;

    if (!cJSON_IsArray(spec))
        return false;
    cJSON_ArrayForEach(e, spec)
        numbers += cJSON_IsNumber(e);
    return numbers > 0 && numbers < cJSON_GetArraySize(spec);
}

static void add_value(struct values *v, struct pm_arena *a, const char *name, const cJSON *value,
                      bool as_text)
{
    struct pm_hparam h = { .name = name };
    char *text;

    if (cJSON_IsNumber(value) && !as_text) {
        h.number = value->valuedouble;
    } else if (cJSON_IsString(value)) {
        h.text = value->valuestring;
    } else {
        text = cJSON_PrintUnformatted(value);
        h.text = pm_arena_strdup(a, text);
        cJSON_free(text);
    }
    PM_GROW(v->list, v->count, v->capacity);
    v->list[v->count++] = h;
}

/* The values of a point. An object with a name is its name, and a value for each other member:
 * "optim" and "optim.beta1". */
static struct values values_of(const struct pm_study *s, struct pm_arena *a, int point)
{
    struct values v = { 0 };

    for (int k = 0; k < s->keys_count; k++) {
        const cJSON *value = s->points[point].values[k];
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(value, "name");

        add_value(&v, a, s->keys[k].key, cJSON_IsString(name) ? name : value,
                  is_mixed(s, k));
        for (const cJSON *m = cJSON_IsString(name) ? value->child : NULL; m; m = m->next)
            if (m != name)
                add_value(&v, a, pm_arena_printf(a, "%s.%s", s->keys[k].key, m->string), m,
                          false);
    }
    return v;
}

/* ---- the study --------------------------------------------------------------------------- */

struct keys {
    struct key {
        struct pm_hparam_key k;
        const char **texts; /* owned: the values that are no numbers */
        size_t count, capacity;
    } *list;                /* owned */
    size_t count, capacity;
};

static struct key *find_key(struct keys *keys, const char *name)
{
    for (size_t i = 0; i < keys->count; i++)
        if (strcmp(keys->list[i].k.name, name) == 0)
            return &keys->list[i];
    PM_GROW(keys->list, keys->count, keys->capacity);
    keys->list[keys->count] =
        (struct key){ .k = { .name = name, .low = INFINITY, .high = -INFINITY } };
    return &keys->list[keys->count++];
}

static void add_to_key(struct key *key, const struct pm_hparam *h)
{
    if (!h->text) {
        key->k.low = fmin(key->k.low, h->number);
        key->k.high = fmax(key->k.high, h->number);
        return;
    }
    for (size_t i = 0; i < key->count; i++)
        if (strcmp(key->texts[i], h->text) == 0)
            return;
    PM_GROW(key->texts, key->count, key->capacity);
    key->texts[key->count++] = h->text;
}

static int write_keys(const struct pm_study *s, const struct keys *keys)
{
    struct pm_hparam_key *list = pm_calloc(keys->count + 1, sizeof *list);
    struct pm_events *e = NULL;
    int err = PM_OK;

    for (size_t i = 0; i < keys->count; i++) {
        list[i] = keys->list[i].k;
        list[i].texts = keys->list[i].texts;
        list[i].count = keys->list[i].count;
    }
    PM_TRY(pm_events_create(s->folder, &e));
    pm_events_experiment(e, list, keys->count, s->metric, (double)time(NULL));
    PM_TRY(pm_events_write(e, 0));
out:
    pm_events_close(&e);
    pm_free(list);
    return err;
}

/* Whether the folder has an event file. */
static bool has_events(const struct pm_study *s, struct pm_arena *a)
{
    static const char begin[] = "events.out.tfevents";
    char **names = NULL;
    size_t count = 0;

    if (pm_list_folder(a, s->folder, &names, &count) < 0)
        return true;
    for (size_t i = 0; i < count; i++)
        if (strncmp(names[i], begin, sizeof begin - 1) == 0)
            return true;
    return false;
}

void pm_study_board_start(const struct pm_study *s)
{
    struct pm_arena *a = pm_arena_create();
    struct keys keys = { 0 };

    if (!has_events(s, a)) {
        for (int i = 0; i < s->points_count; i++) {
            struct values v = values_of(s, a, i);

            for (size_t k = 0; k < v.count; k++)
                add_to_key(find_key(&keys, v.list[k].name), &v.list[k]);
            pm_free(v.list);
        }
        if (write_keys(s, &keys) < 0)
            PM_WARN("sweep", "%s", pm_error_text());
    }
    for (size_t i = 0; i < keys.count; i++)
        pm_free(keys.list[i].texts);
    pm_free(keys.list);
    pm_arena_destroy(&a);
}

/* ---- a run ------------------------------------------------------------------------------- */

static int write_run(const struct pm_study *s, const struct pm_study_result *one,
                     const char *run, uint64_t step, const struct values *v)
{
    const double now = (double)time(NULL);
    struct pm_events *e = NULL;
    int err = PM_OK;

    PM_TRY(pm_events_create(run, &e));
    pm_events_run(e, v->list, v->count, s->points[one->point].name, now - one->seconds, now,
                  one->message != NULL);
    PM_TRY(pm_events_write(e, 0));
    if (!one->message) {
        pm_events_scalar(e, s->metric, one->value);
        PM_TRY(pm_events_write(e, step));
    }
out:
    pm_events_close(&e);
    return err;
}

void pm_study_board_result(const struct pm_study *s, const struct pm_study_result *one,
                           const char *run, uint64_t step)
{
    struct pm_arena *a = pm_arena_create();
    struct values v = values_of(s, a, one->point);

    if (pm_is_folder(run) && write_run(s, one, run, step, &v) < 0)
        PM_WARN("sweep", "%s", pm_error_text());
    pm_free(v.list);
    pm_arena_destroy(&a);
}
