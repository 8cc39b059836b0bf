/* check_finding_few_photos: proposes a recipe for a detector that is trained on few photos, because
 * it may overfit. The recipe's parts are those of fine-tuning small sets:
 *
 *   - start from weights that were learnt from many pictures, and keep their first layers, whose
 *     edges and textures all photos have (Yosinski et al. 2014);
 *   - a rate that falls to 0, so that the result does not depend on which photos came last;
 *   - small batches, with which the same number of photos makes more steps;
 *   - no mosaics in the last steps, so that training ends with pictures as prediction sees them
 *     (Ge et al. 2021, YOLOX).
 *
 * Only what the config lacks is proposed, as JSON to copy. */
#include "jobs/check_findings.h"
#include "jobs/smaller_batch.h"

#include "base/patterns.h"
#include "checkpoints/published.h"
#include "nets/first_blocks.h"
#include "optim/schedule.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* MOST: photos that are few. BATCH: largest small batch. */
enum { MOST = 500, BATCH = 8 };

/* What is proposed so far. */
struct proposal {
    struct pm_check *k;
    struct pm_str reasons;  /* a line for each part */
    cJSON *json;            /* owned */
    const char *key;        /* the first part's; NULL: nothing is proposed */
    int batch;              /* of the config or of the proposal */
    struct pm_smaller_batch factors; /* from the config's batch to the proposal's */
    bool without;           /* there is no checkpoint to start from */
};

/* Returns a section of the JSON. Adds it if it is missing. */
static cJSON *section_of(const struct proposal *p, const char *name)
{
    cJSON *section = cJSON_GetObjectItem(p->json, name);

    return section ? section : cJSON_AddObjectToObject(p->json, name);
}

/* Adds a part. Returns the section of the JSON that it is in. */
PM_PRINTF(4, 5)
static cJSON *propose(struct proposal *p, const char *section, const char *key,
                      const char *format, ...)
{
    va_list ap;

    pm_str_add(&p->reasons, "\n- ");
    va_start(ap, format);
    pm_str_add_args(&p->reasons, format, ap);
    va_end(ap);
    if (!p->key)
        p->key = key;
    return section_of(p, section);
}

/* ---- the parts ----------------------------------------------------------------------------- */

static void propose_checkpoint(struct proposal *p)
{
    const struct pm_config *c = p->k->config;
    const struct pm_published *published = pm_check_published(p->k);

    p->without = !c->init.checkpoint && !published;
    if (c->init.checkpoint || !published)
        return;
    cJSON_AddStringToObject(
        propose(p, "init", "init.checkpoint",
                "init.checkpoint: weights that were learnt from ImageNet's pictures (%s, which\n"
                "  is downloaded) already find the parts of objects.", published->name),
        "checkpoint", PM_PUBLISHED_IMAGENET);
}

/* Finds the net's stem and first block. *out stays NULL if they are not known, or none of their
 * variables is trained. */
static int find_trained(const struct pm_check *k, struct pm_arena *a, const char **out)
{
    struct pm_experiment *e = k->e;
    const struct pm_frame frame = e->frames_count ? e->frames[0] : (struct pm_frame){ 0 };
    struct pm_net *net = NULL;
    struct pm_patterns *first = NULL;
    const char *text;
    bool trained = false;
    int err = PM_OK;

    PM_TRY(pm_experiment_net(e, (struct pm_net_want){ PM_USE_HEADS, 1, frame.height, frame.width },
                             &net, NULL));
    text = pm_net_first_blocks(net, a);
    if (!text)
        goto out;
    PM_TRY(pm_patterns_compile(&text, 1, "first blocks", &first));
    for (int i = 0; i < net->var_count; i++)
        trained |= net->vars[i]->trainable && pm_patterns_one(first, 0, net->vars[i]->name) &&
                   pm_experiment_multiplier(net->vars[i]->name, e) != 0;
    if (trained)
        *out = text;
out:
    pm_patterns_destroy(&first);
    pm_net_destroy(&net);
    return err;
}

static int propose_freeze(struct proposal *p, struct pm_arena *a)
{
    const struct pm_strings *own = &p->k->config->optim.freeze;
    const char *text = NULL;
    cJSON *list, *optim;
    int err = PM_OK;

    PM_TRY(find_trained(p->k, a, &text));
    if (!text)
        goto out;
    optim = propose(p, "optim", "optim.freeze",
                    "optim.freeze: the checkpoint's first layers find edges and textures, which\n"
                    "  all photos have. Layers that are not trained cannot overfit.");
    list = cJSON_AddArrayToObject(optim, "freeze");
    for (int i = 0; i < own->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(own->v[i]));
    cJSON_AddItemToArray(list, cJSON_CreateString(text));
out:
    return err;
}

/* Whether the entries of data.folders have batches. Their sum is then the batch. */
static bool folders_have_batches(const struct pm_config *c)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, c->data.folders) {
        const cJSON *batch = cJSON_GetObjectItemCaseSensitive(v, "batch");

        if (cJSON_IsNumber(batch) && batch->valuedouble > 0)
            return true;
    }
    return false;
}

/* Returns a length in steps of the proposal. */
static double stretched(const struct proposal *p, double steps)
{
    return pm_smaller_batch_steps(&p->factors, steps);
}

static int propose_batch(struct proposal *p)
{
    const struct pm_config *c = p->k->config;
    cJSON *run;
    int err = PM_OK;

    p->batch = c->run.batch_size;
    if (c->run.batch_size <= BATCH || c->devices_count > BATCH || folders_have_batches(c))
        goto out;
    PM_TRY(pm_smaller_batch_of(c, BATCH, &p->factors));
    run = propose(p, "run", "run.batch_size",
                  "run.batch_size: with small batches the same number of photos makes more steps.");
    pm_smaller_batch_describe(&p->factors, c, &p->reasons);
    cJSON_AddNumberToObject(run, "batch_size", p->batch = BATCH);
    if (c->run.micro_batches > 1)
        cJSON_AddNumberToObject(run, "micro_batches", 1);
    if (p->factors.steps > 1 && c->run.steps > 0)
        cJSON_AddNumberToObject(run, "steps", stretched(p, (double)c->run.steps));
out:
    return err;
}

/* The steps of a run with the proposal; 0: it has no end. */
static int64_t steps_of(const struct proposal *p)
{
    const int64_t own = p->k->config->run.steps;

    return pm_experiment_steps(p->k->e, p->batch,
                               own == PM_UNSET ? 0 : (int64_t)stretched(p, (double)own));
}

/* Makes a schedule for a run of this many steps with this batch. */
static int make_schedule(const struct proposal *p, const struct pm_config_schedule *s, int batch,
                         int64_t steps, struct pm_schedule *out)
{
    return pm_schedule_make(s, (size_t)pm_dataset_get_info(p->k->e->train)->count, batch,
                            p->k->config->devices_count, steps, out);
}

/* Whether the config's rate ends at a hundredth of its largest value or below. A schedule that
 * training refuses does not. */
static bool ends_near_zero(const struct proposal *p)
{
    const struct pm_config *c = p->k->config;
    const int64_t steps = p->k->e->steps;
    struct pm_schedule s;

    return make_schedule(p, &c->schedule, c->run.batch_size, steps, &s) == PM_OK &&
           (double)pm_schedule_rate(&s, steps) <=
               0.01 * pm_check_largest_rate(&c->schedule) * (1 + 1e-6);
}

/* Whether cosine over the whole run, with the config's warm-up, fits the run. */
static bool cosine_fits(const struct proposal *p)
{
    struct pm_config_schedule s = p->k->config->schedule;
    struct pm_schedule made;

    s.policy = PM_POLICY_COSINE;
    s.decay_steps = 0;
    s.min_lr = 0;
    s.warmup_steps = (int64_t)stretched(p, (double)s.warmup_steps);
    s.hold_steps = (int64_t)stretched(p, (double)s.hold_steps);
    return steps_of(p) > 0 && make_schedule(p, &s, p->batch, steps_of(p), &made) == PM_OK;
}

/* Proposes cosine over the whole run. Takes back what belongs to other policies. */
static void propose_cosine(struct proposal *p)
{
    const struct pm_config_schedule *s = &p->k->config->schedule;
    cJSON *schedule = propose(p, "schedule", "schedule.policy", "schedule.policy: the rate falls "
                              "to 0, so that the result depends less on which\n  photos came "
                              "last.");

    cJSON_AddStringToObject(schedule, "policy", "cosine");
    cJSON_AddNumberToObject(schedule, "end_lr", 0);
    if (s->decay_steps > 0)
        cJSON_AddNumberToObject(schedule, "decay_steps", 0);
    if (s->min_lr > 0)
        cJSON_AddNumberToObject(schedule, "min_lr", 0);
    if (s->boundaries.count)
        cJSON_AddNullToObject(schedule, "boundaries");
    if (s->rates.count)
        cJSON_AddNullToObject(schedule, "rates");
}

static void propose_schedule(struct proposal *p)
{
    if (!ends_near_zero(p) && cosine_fits(p))
        propose_cosine(p);
    pm_smaller_batch_schedule(&p->factors, &p->k->config->schedule, p->json);
}

/* The steps that have mosaics: those of the config, or nine tenths if mosaics would not end.
 * *proposed becomes true in the second case. until: of the config; 0: mosaics do not end. */
static double mosaic_steps(const struct proposal *p, double until, bool *proposed)
{
    const double adapted = stretched(p, until), steps = (double)steps_of(p);

    if (steps < 2 || (adapted > 0 && adapted < steps))
        return adapted;
    *proposed = true;
    return ceil(steps * 0.9);
}

/* Proposes input.augment if until_steps of a mosaic changes. */
static void propose_last_steps(struct proposal *p)
{
    cJSON *list = cJSON_Duplicate(p->k->config->input.augment, true), *row;
    bool proposed = false, changed = false;

    cJSON_ArrayForEach(row, list) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "name"));

        if (!name || strcmp(name, "mosaic") != 0)
            continue;
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(row, "until_steps");
        const double own = cJSON_IsNumber(v) ? v->valuedouble : 0;
        const double until = mosaic_steps(p, own, &proposed);

        if (until == own)
            continue;
        changed = true;
        cJSON_DeleteItemFromObjectCaseSensitive(row, "until_steps");
        cJSON_AddNumberToObject(row, "until_steps", until);
    }
    if (proposed)
        propose(p, "input", "input.augment", "until_steps of mosaic: the last tenth of the %lld "
                "steps has no mosaics, as\n  prediction has none.", (long long)steps_of(p));
    if (changed)
        cJSON_AddItemToObject(section_of(p, "input"), "augment", list);
    else
        cJSON_Delete(list);
}

/* ---- the finding --------------------------------------------------------------------------- */

static void add(const struct proposal *p, uint64_t pictures)
{
    static const char without[] = "No published weights fit this net and these pictures. A start "
                                  "from a run on more\npictures (init.checkpoint) would help, "
                                  "too.\n";
    char *text = pm_json_print(p->json);
    cJSON *found = pm_check_add(p->k, PM_CHECK_NOTE, p->key,
                                "%llu training pictures are few for a detector: it may overfit.\n"
                                "These settings often find more objects in other "
                                "pictures:%s\n%sThe same as JSON, to copy into the config:\n%s",
                                (unsigned long long)pictures, p->reasons.text,
                                p->without ? without : "", text);

    cJSON_AddItemToObject(found, "config", cJSON_Duplicate(p->json, true));
    pm_free(text);
}

bool pm_check_few_photos(const struct pm_check *k)
{
    const struct pm_config *c = k->config;

    return strcmp(c->task, "detection") == 0 && c->model.name && c->data.make == PM_MAKE_NONE &&
           pm_dataset_get_info(k->e->train)->count <= MOST;
}

static int check_few_photos(struct pm_check *k)
{
    const struct pm_config *c = k->config;
    struct pm_arena *a = pm_arena_create();
    struct proposal p = { .k = k, .json = cJSON_CreateObject(),
                          .factors = PM_SAME_BATCH };
    int err = PM_OK;

    if (!pm_check_few_photos(k) ||
        (c->run.folder && pm_checkpoint_newest_step(c->run.folder) >= 0)) /* it has begun */
        goto out;
    propose_checkpoint(&p);
    if (!p.without)
        PM_TRY(propose_freeze(&p, a));
    PM_TRY(propose_batch(&p));
    propose_schedule(&p);
    propose_last_steps(&p);
    if (p.key)
        add(&p, pm_dataset_get_info(k->e->train)->count);
out:
    pm_str_free(&p.reasons);
    cJSON_Delete(p.json);
    pm_arena_destroy(&a);
    return err;
}
const struct pm_check_finding pm_check_finding_few_photos = { true, check_few_photos };
