/* study_open: reads the section study and checks all points. */
#include "config/config_changes.h"
#include "study/study_parts.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* ---- halving ----------------------------------------------------------------------------- */

static const struct pm_opt halving_opts[] = {
    PM_DOUBLE(pm_study_halving, factor, 3, 1.1, 1000, "one in so many runs goes on"),
    PM_INT64(pm_study_halving, first_steps, NAN, 1, 1e15, "steps of all runs"),
    { 0 },
};

static int read_halving(struct pm_study *s, const struct pm_config *c)
{
    const cJSON *v = c->study.halving;
    const char *place = pm_config_source(c, "study.halving");
    int err = PM_OK;

    if (!v)
        return PM_OK;
    if (!cJSON_IsObject(v))
        return pm_fail(PM_ECONFIG, "%s: study.halving: an object such as { \"factor\": 3, "
                       "\"first_steps\": 200 } is needed, or null", place);
    PM_TRY(pm_opts_parse(halving_opts, v, NULL, &s->halving, s->arena,
                         pm_arena_printf(s->arena, "%s: study.halving", place)));
    if (s->halving.first_steps == PM_UNSET)
        return pm_fail(PM_ECONFIG, "%s: study.halving.first_steps: not set: give the steps after "
                       "which the runs are compared for the first time", place);
    if (c->run.steps <= 0)
        return pm_fail(PM_ECONFIG, "%s: study.halving: the steps of a whole run are needed: set "
                       "run.steps", place);
    if (pm_study_varies(s, "run.steps") || pm_study_varies(s, "run.epochs"))
        return pm_fail(PM_ECONFIG, "%s: study.halving: the runs must have equally many steps, but "
                       "%s varies: remove one of the two", place,
                       pm_study_varies(s, "run.steps") ? "run.steps" : "run.epochs");
    if (s->halving.first_steps >= c->run.steps)
        return pm_fail(PM_ECONFIG, "%s: study.halving.first_steps: %lld, but a whole run has %lld "
                       "steps (run.steps): give fewer", place, (long long)s->halving.first_steps,
                       (long long)c->run.steps);
out:
    return err;
}

/* ---- workers ----------------------------------------------------------------------------- */

static const char *device_name(const cJSON *d)
{
    const char *name = cJSON_GetStringValue(d);

    return name ? name : cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(d, "name"));
}

static int check_shared(const struct pm_study *s, const struct pm_config *c, int worker,
                        const cJSON *list)
{
    const cJSON *a, *b;

    for (int w = 0; w < worker; w++)
        cJSON_ArrayForEach(a, s->workers[w].devices)
            cJSON_ArrayForEach(b, list)
                if (device_name(a) && device_name(b) && !strcmp(device_name(a), device_name(b)))
                    return pm_fail(PM_ECONFIG, "%s: study.workers: workers %d and %d both have the "
                                   "device '%s': give each its own, or set study.share_devices to "
                                   "true", pm_config_source(c, "study.workers"), w, worker,
                                   device_name(a));
    return PM_OK;
}

/* Divides the cores among the workers with a CPU device; and among all workers, for reading. */
static void share_threads(struct pm_study *s, const struct pm_config *c)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const cJSON *d;
    int users = 0;

    for (int w = 0; w < s->workers_count && s->workers_count > 1 && c->data.threads == 0; w++)
        s->workers[w].data_threads =
            cores > s->workers_count ? (int)(cores / s->workers_count) : 1;

    for (int w = 0; w < s->workers_count; w++)
        cJSON_ArrayForEach(d, s->workers[w].devices)
            users += device_name(d) && strcmp(device_name(d), "cpu") == 0;
    if (users < 2)
        return;
    for (int w = 0; w < s->workers_count; w++)
        s->workers[w].threads = cores > users ? (int)(cores / users) : 1;
}

static int read_workers(struct pm_study *s, const struct pm_config *c)
{
    const cJSON *v = c->study.workers, *list;
    const char *place = pm_config_source(c, "study.workers");
    const int count = v ? cJSON_GetArraySize(v) : 1;
    int err = PM_OK;

    if (v && (!cJSON_IsArray(v) || count == 0))
        return pm_fail(PM_ECONFIG, "%s: study.workers: a list of lists of devices is needed, such "
                       "as [[\"vulkan:0\"], [\"vulkan:1\"]], or null", place);
    s->workers = pm_arena_alloc(s->arena, (size_t)count * sizeof *s->workers);
    if (!v)
        s->workers_count = 1;
    cJSON_ArrayForEach(list, v) {
        if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0)
            PM_TRY(pm_fail(PM_ECONFIG, "%s: study.workers.%d: a list of devices is needed, such as "
                           "[\"vulkan:0\"]", place, s->workers_count));
        if (!c->study.share_devices)
            PM_TRY(check_shared(s, c, s->workers_count, list));
        s->workers[s->workers_count++].devices = cJSON_Duplicate(list, true);
    }
    share_threads(s, c);
out:
    return err;
}

/* ---- a run's config ---------------------------------------------------------------------- */

int pm_study_config(const struct pm_study *s, int point, int repeat, const char *const *overrides,
                    size_t n, const struct pm_open_sections *open, struct pm_config **out)
{
    const char **list = pm_arena_alloc(s->arena, (n + (size_t)s->keys_count + 2) * sizeof *list);
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        list[count++] = overrides[i];
    for (int k = 0; k < s->keys_count; k++) {
        char *text = cJSON_PrintUnformatted(s->points[point].values[k]);
        list[count++] = pm_arena_printf(s->arena, "%s=%s", s->keys[k].key, text);
        cJSON_free(text);
    }
    if (!pm_study_varies(s, "run.seed"))
        list[count++] = pm_arena_printf(s->arena, "run.seed=%lld", (long long)(s->seed + repeat));
    list[count++] = pm_arena_printf(s->arena, "run.folder=\"%s/%s\"", s->folder,
                                    pm_study_run_name(s, point, repeat));
    return pm_config_load(s->path, list, count, open, out);
}

static const char *identity_of(struct pm_study *s, const struct pm_config *c)
{
    char text[PM_IDENTITY];
    cJSON *dump = pm_config_dump(c);

    pm_config_identity(dump, text);
    cJSON_Delete(dump);
    return pm_arena_strdup(s->arena, text);
}

/* Loads the config of each point. The values of a point are overrides, so a message about them
 * begins with "command line: ". */
static int check_points(struct pm_study *s, const struct pm_config *c,
                        const char *const *overrides, size_t n,
                        const struct pm_open_sections *open)
{
    static const char from[] = "command line: ";
    int err = PM_OK;

    for (int i = 0; i < s->points_count; i++) {
        struct pm_config *one = NULL;
        char why[1024];

        if ((err = pm_study_config(s, i, 0, overrides, n, open, &one)) < 0) {
            snprintf(why, sizeof why, "%s", pm_error_text());
            return pm_fail((enum pm_error)err, "%s: study.vary: the point %s is refused: %s",
                           pm_config_source(c, "study.vary"), s->points[i].name,
                           strncmp(why, from, sizeof from - 1) == 0 ? why + sizeof from - 1 : why);
        }
        if (!one->model.name && !one->model.layers && !one->model.onnx) {
            pm_config_destroy(&one);
            return pm_fail(PM_ECONFIG, "%s: study.vary: the point %s has no net: set "
                           "model.name", pm_config_source(c, "study.vary"), s->points[i].name);
        }
        const struct pm_metric_kind *m = one->task_row ? one->task_row->metrics : NULL;
        while (m && m->name && strcmp(s->metric, "auto") != 0 && strcmp(m->name, s->metric) != 0)
            m++;
        if (m && m->name) {
            s->metric = m->name;
            s->higher_is_better = m->higher_is_better;
        }
        s->points[i].identity = identity_of(s, one);
        pm_config_destroy(&one);
    }
    return err;
}

/* ---- the whole --------------------------------------------------------------------------- */

/* A value of the command line for a key that varies would have no effect. */
static int check_overrides(const struct pm_study *s, const char *const *overrides, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int length = (int)strcspn(overrides[i], "=");

        for (int k = 0; k < s->keys_count; k++)
            if (pm_study_overlap(pm_arena_printf(s->arena, "%.*s", length, overrides[i]),
                                 s->keys[k].key))
                return pm_fail(PM_ECONFIG, "command line: %.*s: study.vary sets %s: change it "
                               "there, or remove it", length, overrides[i], s->keys[k].key);
    }
    return PM_OK;
}

static int check_size(const struct pm_study *s, const struct pm_config *c, bool many)
{
    const int64_t runs = (int64_t)s->points_count * s->repeats;

    if (many)
        return PM_OK;
    if (runs == 1)
        return pm_fail(PM_ECONFIG, "%s: study.vary: the study has a single run: give a key more "
                       "values, or add --yes to the command", pm_config_source(c, "study.vary"));
    if (runs > PM_STUDY_MANY)
        return pm_fail(PM_ECONFIG, "%s: study.vary: the study has %lld runs, more than %d: make it "
                       "smaller, or add --yes to the command", pm_config_source(c, "study.vary"),
                       (long long)runs, PM_STUDY_MANY);
    return PM_OK;
}

/* Everything on which the points and their results depend. */
static void identify(struct pm_study *s, const struct pm_config *c)
{
    cJSON *o = s->identity = cJSON_CreateObject(), *points = cJSON_CreateArray(), *halving;

    cJSON_AddStringToObject(o, "metric", s->metric);
    cJSON_AddNumberToObject(o, "repeats", s->repeats);
    cJSON_AddNumberToObject(o, "seed", (double)s->seed);
    halving = cJSON_AddObjectToObject(o, "halving"); /* factor 0: none */
    cJSON_AddNumberToObject(halving, "factor", s->halving.factor);
    cJSON_AddNumberToObject(halving, "first_steps", (double)s->halving.first_steps);
    cJSON_AddBoolToObject(o, "higher_is_better", s->higher_is_better);
    for (int i = 0; i < s->points_count; i++) {
        cJSON *p = cJSON_CreateObject(), *values = cJSON_CreateObject();
        cJSON_AddStringToObject(p, "name", s->points[i].name);
        cJSON_AddStringToObject(p, "identity", s->points[i].identity);
        for (int k = 0; k < s->keys_count; k++)
            cJSON_AddItemToObject(values, s->keys[k].key,
                                  cJSON_Duplicate(s->points[i].values[k], true));
        cJSON_AddItemToObject(p, "values", values);
        cJSON_AddItemToArray(points, p);
    }
    cJSON_AddItemToObject(o, "vary", cJSON_Duplicate(c->study.vary, true));
    cJSON_AddItemToObject(o, "points", points);
}

static int read_section(struct pm_study *s, const struct pm_config *c)
{
    int err = PM_OK;

    if (!c->study.vary)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: the file has no study.vary: it describes one run: start it "
                       "with pumice train %s", s->path, s->path));
    if (!c->study.folder)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: study.folder: not set: give the folder for the study's "
                       "runs, such as \"studies/first\"", pm_config_source(c, "study")));
    if (c->run.pause_step > 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: run.pause_step: %lld, but a study sets it itself: remove "
                       "it", pm_config_source(c, "run.pause_step"),
                       (long long)c->run.pause_step));
    if (strpbrk(c->study.folder, "\"\\"))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: study.folder: quotation marks and backslashes are not "
                       "possible", pm_config_source(c, "study.folder")));
    s->folder = pm_arena_strdup(s->arena, c->study.folder);
    s->metric = pm_arena_strdup(s->arena, c->study.metric);
    s->seed = c->run.seed;
    s->steps = c->run.steps > 0 ? c->run.steps : 0;
    s->repeats = c->study.repeats;
    PM_TRY(pm_study_read_vary(s, c));
    PM_TRY(pm_study_make_points(s, c));
    PM_TRY(read_halving(s, c));
    PM_TRY(read_workers(s, c));
out:
    return err;
}

int pm_study_open(const char *path, const char *const *overrides, size_t n, bool many,
                  const struct pm_open_sections *open, struct pm_study **out)
{
    /* Without rows the names of nets and optimizers are not checked: they may be what varies. */
    const struct pm_open_sections none = { 0 };
    struct pm_study *s = pm_calloc(1, sizeof *s);
    int err = PM_OK;

    s->arena = pm_arena_create();
    s->path = pm_arena_strdup(s->arena, path);
    PM_TRY(pm_config_load(path, overrides, n, &none, &s->config));
    PM_TRY(read_section(s, s->config));
    PM_TRY(check_overrides(s, overrides, n));
    PM_TRY(check_size(s, s->config, many));
    PM_TRY(check_points(s, s->config, overrides, n, open));
    identify(s, s->config);
    *out = s, s = NULL;
out:
    pm_study_close(&s);
    return err;
}

void pm_study_close(struct pm_study **study)
{
    struct pm_study *s = *study;

    if (!s)
        return;
    for (int i = 0; i < s->points_count; i++) {
        for (int k = 0; k < s->keys_count; k++)
            cJSON_Delete(s->points[i].values[k]);
        pm_free(s->points[i].values);
    }
    for (int w = 0; w < s->workers_count; w++)
        cJSON_Delete(s->workers[w].devices);
    cJSON_Delete(s->identity);
    pm_config_destroy(&s->config);
    pm_arena_destroy(&s->arena);
    pm_free(s);
    *study = NULL;
}
