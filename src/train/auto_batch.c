/* auto_batch: run.batch_size "auto" becomes the largest batch that fits.
 *
 * The batch is run.micro_batches times a power of two, as in the original recipes; all
 * micro-batches are equally large. It is doubled from the smallest one until the plans of all
 * clones no longer fit, or the training split has fewer pictures. The figures are those of the
 * plans, laid out without allocating anything:
 *
 * - A device holds the plans of its clones, and the first device also the plan of evaluation. One
 *   eighth of its memory is left to the driver and to other programs, as for run.recompute.
 * - The host holds the inputs and outputs of all clones, the loader's batches, and the plans of
 *   devices without memory of their own. One quarter of its free memory is left for the pictures
 *   that the loader decodes, and for the page cache.
 *
 * A run that is continued keeps the number in its folder's config.json. Free memory differs from
 * one start to the next, and a different batch would be another training. */
#include <pumice/train.h>

#include "clones/clones.h"
#include "experiment/experiment.h"
#include "observers/activation_summaries.h"
#include "observers/summaries.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 19 }; /* if the number of pictures is not known */

struct search {
    struct pm_config *c;       /* a copy with a number */
    struct pm_experiment *e;
    struct pm_clone_spec *specs;
    int count;
    const char *const *observed; /* pm_clones_options.observed */
    uint64_t host;             /* free memory of the host, less the margin */
    uint64_t evaluation;       /* of the first device; 0: nothing is evaluated in training */
    char full[160];            /* what did not fit in the last try */
};

/* ---- the number of an earlier start ----------------------------------------------------- */

static int of_run(const struct pm_config *c)
{
    char path[4096], *text = NULL;
    const cJSON *v;
    cJSON *tree;
    int batch = 0;

    if (!c->run.folder)
        return 0;
    snprintf(path, sizeof path, "%s/config.json", c->run.folder);
    if (!pm_file_exists(path) || pm_text_read(path, PM_MOST_TEXT, &text) < 0)
        return 0;
    tree = cJSON_Parse(text);
    v = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(tree, "run"),
                                         "batch_size");
    if (cJSON_IsNumber(v) && v->valuedouble >= 1 && v->valuedouble <= 1000000)
        batch = (int)v->valuedouble;
    cJSON_Delete(tree);
    pm_free(text);
    return batch % c->run.micro_batches == 0 && batch >= c->devices_count * c->run.micro_batches
               ? batch : 0;
}

/* ---- memory of the host ----------------------------------------------------------------- */

/* Reads a number that follows `key` in a file of the kernel; UINT64_MAX: none. */
static uint64_t read_number(const char *path, const char *key)
{
    FILE *f = fopen(path, "re");
    char line[256];
    uint64_t value = UINT64_MAX;
    unsigned long long v;

    while (f && value == UINT64_MAX && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%llu", &v) == 1)
            value = v;
    if (f)
        fclose(f);
    return value;
}

/* Returns the memory that the host can still give, within the limit of the control group.
 * PM_FREE_MEMORY=BYTES replaces it, for tests. */
static uint64_t free_memory(void)
{
    const char *given = getenv("PM_FREE_MEMORY");
    uint64_t kib = read_number("/proc/meminfo", "MemAvailable:"), most, used;

    if (given)
        return strtoull(given, NULL, 10);
    most = read_number("/sys/fs/cgroup/memory.max", "");
    used = read_number("/sys/fs/cgroup/memory.current", "");
    kib = kib == UINT64_MAX ? kib : 1024 * kib;
    if (most == UINT64_MAX || used == UINT64_MAX || used > most)
        return kib;
    return most - used < kib ? most - used : kib;
}

/* Whether the device's memory is the host's. */
static bool on_host(const struct pm_device_info *info)
{
    return info->kind != PM_KIND_DISCRETE && info->kind != PM_KIND_VIRTUAL;
}

/* ---- one size --------------------------------------------------------------------------- */

/* Returns the bytes of the batches that the loader prepares ahead. */
static uint64_t ring_bytes(const struct search *s, int batch)
{
    uint64_t each = 0;

    for (int i = 0; i < s->e->train_fields.count; i++) {
        const struct pm_field *f = &s->e->train_fields.list[i];

        each += pm_shape_count(f->shape) * pm_type_size(f->type);
    }
    return each * (uint64_t)batch * (uint64_t)s->c->data.ring;
}

/* Lays out the plan of evaluation. */
static int plan_evaluation(struct search *s, struct pm_device *d)
{
    struct pm_outputs outputs;
    struct pm_net *net = NULL;
    struct pm_plan *plan = NULL;
    int err = PM_OK;

    PM_TRY(pm_experiment_net(s->e, (struct pm_net_want){
        PM_USE_EVAL, s->c->eval.batch_size, 0, 0 }, &net, &outputs));
    PM_TRY(pm_plan_create(net, d, NULL, &(struct pm_plan_options){
        .name = "eval", .outputs = outputs.node, .loss_share = 1 }, &plan));
    const struct pm_plan_memory m = pm_plan_memory(plan);
    s->evaluation = m.activations + m.constants;
out:
    pm_plan_destroy(&plan);
    pm_net_destroy(&net);
    return err;
}

/* Adds up the clones' memory. Returns whether it fits. */
static bool has_room(struct search *s, const struct pm_clones *clones, int batch)
{
    uint64_t host = ring_bytes(s, batch);
    char want[24], limit[24];

    for (int i = 0; i < s->count; i++) {
        const struct pm_device_info *info = &s->specs[i].info;
        uint64_t device = i == 0 ? s->evaluation : 0;

        for (int k = 0; k < s->count; k++)
            if (strcmp(s->specs[k].info.address, info->address) == 0)
                device += pm_clones_memory(clones, k).total;
        host += pm_clones_memory(clones, i).staging;
        if (on_host(info))
            host += pm_clones_memory(clones, i).total + (i == 0 ? s->evaluation : 0);
        if (info->memory_bytes && device > info->memory_bytes / 8 * 7) {
            snprintf(s->full, sizeof s->full, "%s needs %s, and may use %s", info->address,
                     pm_bytes_text(device, want),
                     pm_bytes_text(info->memory_bytes / 8 * 7, limit));
            return false;
        }
    }
    if (host <= s->host)
        return true;
    snprintf(s->full, sizeof s->full, "the host needs %s, and may use %s",
             pm_bytes_text(host, want), pm_bytes_text(s->host, limit));
    return false;
}

static int try_batch(struct search *s, int batch, bool *fits)
{
    struct pm_clones_options options;
    struct pm_clones *clones = NULL;
    int err = PM_OK;

    *fits = false;
    pm_experiment_clones(s->e, s->specs, s->count, &options);
    options.batch = batch;
    options.slots = PM_STEP_SLOTS;
    options.observed = s->observed;
    options.dry_run = true;
    err = pm_clones_create(&options, &clones);
    if (err == PM_EMEMORY) {
        snprintf(s->full, sizeof s->full, "%s", pm_error_text());
        err = PM_OK;
        goto out;
    }
    PM_TRY(err);
    if (s->c->eval.every_steps > 0 && s->e->eval && s->evaluation == 0)
        PM_TRY(plan_evaluation(s, pm_clones_device(clones, 0)));
    *fits = has_room(s, clones, batch);
out:
    pm_clones_destroy(&clones);
    for (int i = 0; i < s->e->frames_count; i++)
        pm_experiment_forget(s->e, (struct pm_net_want){
            PM_USE_TRAIN, 0, s->e->frames[i].height, s->e->frames[i].width });
    return err;
}

/* ---- the search ------------------------------------------------------------------------- */

static int find_batch(struct search *s, int *out)
{
    const int64_t pictures = s->e->train ? (int64_t)pm_dataset_get_info(s->e->train)->count : MOST;
    int batch = s->c->run.batch_size;
    bool fits;
    int err = PM_OK;

    PM_TRY(try_batch(s, batch, &fits));
    if (!fits)
        PM_TRY(pm_fail(PM_EMEMORY,
                       "%s: run.batch_size: \"auto\": even a batch of %d does not fit: %s; "
                       "make input.size smaller, or use another device",
                       s->c->path, batch, s->full));
    for (; fits && 2 * (int64_t)batch <= pictures && 2 * batch <= MOST; batch *= fits ? 2 : 1)
        PM_TRY(try_batch(s, 2 * batch, &fits));
    if (fits)
        PM_INFO("train", "run.batch_size: auto is %d, because the training split has %lld pictures",
                batch, (long long)pictures);
    else
        PM_INFO("train", "run.batch_size: auto is %d; for %d %s", batch, 2 * batch, s->full);
    *out = batch;
out:
    return err;
}

/* Batches of data.folders leave no choice. */
static int check_folders(const struct pm_config *c)
{
    const cJSON *entry;
    double sum = 0;

    cJSON_ArrayForEach(entry, c->data.folders)
    {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(entry, "batch");

        sum += cJSON_IsNumber(v) ? v->valuedouble : 0;
    }
    if (sum > 0)
        return pm_fail(PM_ECONFIG, "%s: run.batch_size: \"auto\", but the entries of data.folders "
                       "have batches: set it to their sum, %.0f", c->path, sum);
    return PM_OK;
}

/* Whether the net can be built without the data. */
static bool is_complete(const struct pm_config *c)
{
    return c->model.num_classes > 0 || (c->model.onnx && !c->model.onnx_new_head);
}

int pm_settle_batch(struct pm_config *c)
{
    const bool data = c->data.folder && (pm_is_folder(c->data.folder) ||
                                         c->data.make != PM_MAKE_NONE);
    struct pm_config own = *c;
    struct search s = { .c = &own, .host = free_memory() / 4 * 3 };
    int batch = c->run.batch_size, err = PM_OK;

    if (batch != PM_WORD || (!data && !is_complete(c)))
        return PM_OK;
    PM_TRY(check_folders(c));
    if ((batch = of_run(c)) > 0) {
        PM_INFO("train", "run.batch_size: auto is %d, as in %s/config.json", batch, c->run.folder);
        goto out;
    }
    own.run.batch_size = c->run.micro_batches;
    while (own.run.batch_size < c->devices_count * c->run.micro_batches)
        own.run.batch_size *= 2;
    PM_TRY(pm_experiment_open(&own, !data ? 0 :
                              c->eval.every_steps > 0 ? PM_OPEN_TRAIN | PM_OPEN_EVAL
                                                      : PM_OPEN_TRAIN, &s.e));
    PM_TRY(pm_experiment_devices(s.e, &s.specs, &s.count));
    if (pm_summaries_observe(c))
        PM_TRY(pm_activations_observed(s.e, &s.observed));
    PM_TRY(find_batch(&s, &batch));
out:
    pm_experiment_close(&s.e);
    if (err == PM_OK)
        c->run.batch_size = batch;
    return err;
}
