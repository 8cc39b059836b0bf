/* check_finding_few_photos: proposes a recipe for a detector that is trained on few photos. It
 * would learn them by heart. The recipe's parts are those of fine-tuning small sets:
 *
 *   - start from weights that were learnt from many pictures, and keep their first layers, whose
 *     edges and textures all photos have (Yosinski et al. 2014);
 *   - a rate that falls to 0, so that the result does not depend on which photos came last;
 *   - small batches, which make more steps of the same number of photos;
 *   - no mosaics in the last steps, so that training ends with pictures as prediction sees them
 *     (Ge et al. 2021, YOLOX).
 *
 * Only what the config lacks is proposed, as JSON to copy. */
#include "jobs/check_findings.h"

#include "base/patterns.h"
#include "checkpoints/published.h"
#include "nets/first_blocks.h"

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
    bool without;           /* there is no checkpoint to start from */
};

/* Adds a part. Returns the section of the JSON that it is in. */
PM_PRINTF(4, 5)
static cJSON *propose(struct proposal *p, const char *section, const char *key,
                      const char *format, ...)
{
    cJSON *object = cJSON_GetObjectItem(p->json, section);
    va_list ap;

    pm_str_add(&p->reasons, "\n- ");
    va_start(ap, format);
    pm_str_add_args(&p->reasons, format, ap);
    va_end(ap);
    if (!p->key)
        p->key = key;
    return object ? object : cJSON_AddObjectToObject(p->json, section);
}

/* ---- the parts ----------------------------------------------------------------------------- */

/* Returns whether training starts from a checkpoint, of the config or of the proposal. */
static bool propose_checkpoint(struct proposal *p)
{
    const struct pm_config *c = p->k->config;
    const struct pm_published *published = pm_check_published(p->k);

    p->without = !c->init.checkpoint && !published;
    if (c->init.checkpoint || !published)
        return !p->without;
    cJSON_AddStringToObject(
        propose(p, "init", "init.checkpoint",
                "init.checkpoint: weights that were learnt from ImageNet's pictures (%s, which\n"
                "  is downloaded) already find the parts of objects.", published->name),
        "checkpoint", "imagenet");
    return true;
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
                    "  all photos have. Few photos would only make them worse.");
    list = cJSON_AddArrayToObject(optim, "freeze");
    for (int i = 0; i < own->count; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(own->v[i]));
    cJSON_AddItemToArray(list, cJSON_CreateString(text));
out:
    return err;
}

/* A smaller batch takes a smaller rate: with plain gradients in the same proportion (Goyal et al.
 * 2017). */
static double propose_batch(struct proposal *p)
{
    const struct pm_config *c = p->k->config;
    const double rate = c->schedule.base_lr;
    cJSON *run;

    p->batch = c->run.batch_size;
    if ((c->run.batch_size != PM_WORD && c->run.batch_size <= BATCH) || c->devices_count > BATCH)
        return rate;
    run = propose(p, "run", "run.batch_size", "run.batch_size: small batches make more steps of "
                  "as many photos. The rate\n  is smaller in the same proportion.");
    cJSON_AddNumberToObject(run, "batch_size", p->batch = BATCH);
    if (c->run.micro_batches > 1)
        cJSON_AddNumberToObject(run, "micro_batches", 1);
    return c->run.batch_size == PM_WORD ? rate : rate * BATCH / c->run.batch_size;
}

static void propose_schedule(struct proposal *p, double rate)
{
    const struct pm_config_schedule *s = &p->k->config->schedule;
    cJSON *schedule = NULL;

    if (s->policy != PM_POLICY_COSINE) {
        schedule = propose(p, "schedule", "schedule.policy", "schedule.policy: a rate that falls "
                           "to 0 lets the net settle; otherwise the\n  last photos count most.");
        cJSON_AddStringToObject(schedule, "policy", "cosine");
        cJSON_AddNumberToObject(schedule, "end_lr", 0);
        if (s->boundaries.count)
            cJSON_AddNullToObject(schedule, "boundaries");
        if (s->rates.count)
            cJSON_AddNullToObject(schedule, "rates");
    }
    if (rate < s->base_lr) {
        if (!schedule)
            schedule = cJSON_AddObjectToObject(p->json, "schedule");
        cJSON_AddNumberToObject(schedule, "base_lr", rate);
    }
}

/* The steps of a run with the proposed batch; 0: it has no end. */
static double steps_of(const struct proposal *p)
{
    const struct pm_config *c = p->k->config;
    const double pictures = (double)pm_dataset_get_info(p->k->e->train)->count;
    const double steps = c->run.steps == PM_UNSET ? 0 : (double)c->run.steps;

    if (isnan(c->run.epochs))
        return steps;
    const double of_epochs = floor(pictures * c->run.epochs / p->batch);
    return steps > 0 ? fmin(steps, of_epochs) : of_epochs;
}

/* Nine tenths of the steps may have mosaics. */
static void propose_last_steps(struct proposal *p)
{
    const cJSON *rows = p->k->config->input.augment, *row;
    const double steps = steps_of(p), last = ceil(steps * 0.9);
    cJSON *list = NULL;
    int i = 0;

    if (steps < 2)
        return; /* without an end */
    cJSON_ArrayForEach(row, rows) {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "name"));
        const cJSON *until = cJSON_GetObjectItemCaseSensitive(row, "until_steps");
        const double own = cJSON_IsNumber(until) ? until->valuedouble : 0;

        if (name && strcmp(name, "mosaic") == 0 && (own <= 0 || own >= steps)) {
            if (!list)
                list = cJSON_Duplicate(rows, true);
            cJSON *copy = cJSON_GetArrayItem(list, i);
            cJSON_DeleteItemFromObjectCaseSensitive(copy, "until_steps");
            cJSON_AddNumberToObject(copy, "until_steps", last);
        }
        i++;
    }
    if (list)
        cJSON_AddItemToObject(
            propose(p, "input", "input.augment", "until_steps of mosaic: the last tenth of the "
                    "%.0f steps then sees pictures as\n  prediction does.", steps),
            "augment", list);
}

/* ---- the finding --------------------------------------------------------------------------- */

static void add(const struct proposal *p, uint64_t pictures)
{
    static const char without[] = "No published weights fit this net and these pictures. A start "
                                  "from a run on more\npictures (init.checkpoint) would help, "
                                  "too.\n";
    char *text = pm_json_print(p->json);
    cJSON *found = pm_check_add(p->k, PM_CHECK_NOTE, p->key,
                                "%llu training pictures are few for a detector, which may learn "
                                "them by heart.\nThese settings often find more objects in other "
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
    struct proposal p = { .k = k, .json = cJSON_CreateObject() };
    int err = PM_OK;

    if (!pm_check_few_photos(k) ||
        (c->run.folder && pm_checkpoint_newest_step(c->run.folder) >= 0)) /* it has begun */
        goto out;
    if (propose_checkpoint(&p))
        PM_TRY(propose_freeze(&p, a));
    propose_schedule(&p, propose_batch(&p));
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
