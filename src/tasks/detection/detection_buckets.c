/* detection_buckets: training pictures of several sizes (input.buckets). The input's resizer gives
 * each picture a size that does not depend on the batch. The loader takes the smallest bucket that
 * holds the pictures of a batch, and the padding fills the rest. So rows of input.augment that
 * bring a picture to the input's size are refused, and so is mosaic, whose canvas has twice the
 * input's sides. */
#include "tasks/detection/detection.h"
#include "tasks/detection/detection_input_steps.h"
#include "tasks/record.h"

#include <limits.h>

/* ---- the config ---------------------------------------------------------------------------- */

/* where: "net.json: input.augment". */
static int check_rows(const struct pm_augment *a, const char *where)
{
    for (int i = 0; a && i < a->count; i++) {
        const struct pm_augmentation *row = a->entry[i].row;

        if (row->others)
            return pm_fail(PM_ECONFIG, "%s.%d: %s joins pictures on a canvas of the input's size, "
                           "which input.buckets leaves open until the batch is complete: remove "
                           "it from the list, or set input.size instead of input.buckets",
                           where, i, row->name);
        if (row->sizing == PM_SIZE_INPUT || (row->then && row->then->sizing == PM_SIZE_INPUT))
            return pm_fail(PM_ECONFIG, "%s.%d: %s brings a picture to the input's size, which "
                           "input.buckets leaves open until the batch is complete: remove it "
                           "from the list; input.resizer resizes the pictures", where, i,
                           row->name);
    }
    return PM_OK;
}

/* Checks input.augment and those of data.folders. */
static int check_lists(const struct pm_task_facts *f)
{
    char where[512];
    int err;

    snprintf(where, sizeof where, "%s: input.augment",
             pm_config_source(f->config, "input.augment"));
    err = check_rows(f->augment, where);
    for (int i = 0; err == PM_OK && i < f->augments_count; i++) {
        snprintf(where, sizeof where, "%s: data.folders.%d.augment",
                 pm_config_source(f->config, "data.folders"), i);
        if (f->augments[i] != f->augment)
            err = check_rows(f->augments[i], where);
    }
    return err;
}

int pm_detection_check_buckets(const struct pm_task *t, const struct pm_normal *normal)
{
    const struct pm_task_facts *f = &t->facts;
    const char *place = pm_detection_place(f->config, "input.buckets");
    int err = PM_OK;

    if (f->config->buckets_count == 0)
        return PM_OK;
    if (!f->preprocessing->resizes)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: input.preprocessing=%s does not keep the aspect ratio and "
                       "pad: set input.preprocessing to ssd or ssd_means, with "
                       "input.resizer=keep_aspect_ratio", place, f->preprocessing->name));
    if (!normal->padded)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: input.resizer=fixed_shape stretches every picture to one "
                       "size: set input.resizer=keep_aspect_ratio, input.min_dimension and "
                       "input.max_dimension", place));
    if (normal->range.rule == PM_RULE_RATIO && !normal->range.min)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: the size of a picture is not known, because "
                       "input.resizer=keep_aspect_ratio has no input.min_dimension: set it, and "
                       "input.max_dimension", place));
    err = check_lists(f);
out:
    return err;
}

/* ---- the size of a picture ------------------------------------------------------------------ */

int pm_detection_need_of(const struct pm_task *t, const struct pm_sample *sample,
                         const struct pm_loader_record *r, struct pm_frame *out)
{
    struct pm_loader_record any = *r;
    struct pm_placed placed;
    int err = PM_OK;

    any.frame = (struct pm_frame){ INT_MAX, INT_MAX };
    PM_TRY(pm_record_place(&t->facts, true, sample, &any, &placed));
    *out = pm_placed_need(&placed);
out:
    return err;
}

/* Whether the random numbers of the example depend on its boxes. */
static bool wants_boxes(const struct pm_task_facts *f, int part)
{
    const struct pm_augment *a = pm_task_augment(f, part);

    return a ? a->wants_boxes : f->preprocessing->wants_boxes;
}

int pm_detection_need(void *ctx, const struct pm_example *e, const struct pm_loader_record *r,
                      int height, int width, struct pm_frame *out)
{
    const struct pm_sampler *sampler = ctx;
    const struct pm_task *t = sampler->task;
    struct pm_detection_record record = {
        .picture = { height, width, t->facts.channels, NULL }
    };
    struct pm_sample sample = { .picture = &record.picture };
    struct pm_arena *a = NULL;
    int err = PM_OK;

    if (wants_boxes(&t->facts, r->part)) {
        a = pm_arena_create();
        PM_TRY(pm_record_damage(pm_detection_objects(t, e, height, width, r->where,
                                                     &record.objects)));
        PM_TRY(pm_detection_cutoff(sampler, r, &record.objects, &record.picture));
        PM_TRY(pm_detection_boxes(sampler, &record, r->where, a, &sample));
    }
    PM_TRY(pm_detection_need_of(t, &sample, r, out));
out:
    pm_objects_free(&record.objects);
    if (a)
        pm_arena_destroy(&a);
    return err;
}
