/* detection_targets: which anchors learn, and the field truth_classes: a class, or a target for
 * each class. Soft labels of records become targets here; merged labels do where boxes are merged
 * (detection_samples.c). */
#include "tasks/detection/detection.h"

#include <pumice/rng.h>

#include <string.h>

/* Whether truth_classes has a target for each class instead of a class. */
static bool has_targets(const struct pm_task *t)
{
    return t->data.merge_multiple_label_boxes || t->data.multiclass_scores;
}

int32_t pm_detection_class_of(const struct pm_task *t, const void *truth_classes, size_t row)
{
    const size_t classes = (size_t)t->facts.num_classes;
    size_t best = 0;

    if (!has_targets(t))
        return ((const int32_t *)truth_classes)[row];
    const float *targets = (const float *)truth_classes + classes * row;
    for (size_t k = 1; k < classes; k++)
        if (targets[k] > targets[best])
            best = k;
    return (int32_t)best;
}

float pm_detection_score_of(const struct pm_task *t, const void *truth_classes, size_t row)
{
    const size_t classes = (size_t)t->facts.num_classes;
    const float *targets = (const float *)truth_classes + classes * row;
    float sum = 0;

    if (!t->data.multiclass_scores)
        return 1;
    for (size_t k = 0; k < classes; k++)
        sum += targets[k];
    return sum < 1 ? sum : 1;
}

struct pm_field pm_detection_classes_field(const struct pm_task *t)
{
    const int most = t->data.max_boxes, classes = t->facts.num_classes;

    if (has_targets(t))
        return (struct pm_field){ "truth_classes", PM_F32, PM_SHAPE2(most, classes),
                                  .values = { 0, 1 } };
    return (struct pm_field){ "truth_classes", PM_I32, PM_SHAPE1(most),
                              .values = { 0, classes > 1 ? classes - 1 : 0.5 } };
}

int pm_detection_soft_labels(const struct pm_task *t, const struct pm_objects *o,
                             const char *where, struct pm_arena *a, struct pm_sample *out)
{
    const size_t classes = (size_t)t->facts.num_classes, bytes = classes * sizeof(float);
    float *scores;

    if ((o->has & PM_HAS_SCORES) && o->score_count != t->facts.num_classes)
        return pm_fail(PM_ECORRUPT, "%s: image/object/class/multiclass_scores has %d values for "
                       "each object, but there are %d classes: write one value for each class",
                       where, o->score_count, t->facts.num_classes);
    scores = pm_arena_alloc(a, o->count * bytes + 1);
    memset(scores, 0, o->count * bytes);
    for (size_t i = 0; i < o->count; i++)
        if (o->has & PM_HAS_SCORES)
            memcpy(scores + classes * i, o->item[i].scores, bytes);
        else
            scores[classes * i + (size_t)o->item[i].label - 1] = 1;
    out->scores = scores;
    out->score_count = t->facts.num_classes;
    return PM_OK;
}

/* ---- which anchors count ----------------------------------------------------------------- */

/* Whether an anchor is positive (learns an object), or negative. One that is matched with a box of
 * weight 0 is neither. */
static bool is(const float *weights, int32_t match, bool positive)
{
    return positive ? match >= 0 && weights[match] > 0 : match == PM_NEGATIVE;
}

static int64_t count(const float *weights, const int32_t *matches, int anchors, bool positive)
{
    int64_t n = 0;

    for (int i = 0; i < anchors; i++)
        n += is(weights, matches[i], positive);
    return n;
}

/* Chooses `wanted` of the `left` positive anchors, or of the `left` negative ones, and ignores the
 * rest of them. Each choice is equally likely. */
static void choose(struct pm_rng *rng, const float *weights, int32_t *matches, int anchors,
                 bool positive, int64_t left, int64_t wanted)
{
    for (int i = 0; i < anchors; i++)
        if (is(weights, matches[i], positive)) {
            const bool chosen = pm_rng_int(rng, 0, left - 1) < wanted;

            left--;
            wanted -= chosen;
            if (!chosen)
                matches[i] = PM_IGNORED;
        }
}

void pm_detection_sample_anchors(const struct pm_task *t, const struct pm_loader_record *r,
                                 const float *weights, int32_t *matches, int anchors)
{
    const float fraction = t->anchor_sampler.positive_sample_fraction;
    struct pm_rng rng = pm_rng_make(r->seed, pm_hash("random_example_sampler"), (uint32_t)r->step,
                                    r->example);
    const int64_t positive = count(weights, matches, anchors, true);
    const int64_t left = count(weights, matches, anchors, false);
    /* As in TensorFlow: a float32 product, without its fraction. */
    const int64_t wanted =
        (int64_t)((float)((1 - (double)fraction) / (double)fraction) * (float)positive);

    choose(&rng, weights, matches, anchors, false, left, wanted);
}

int pm_detection_sample_minibatch(const struct pm_task *t, const struct pm_loader_record *r,
                                  const float *weights, int32_t *matches, int anchors)
{
    const struct pm_detection_minibatch *m = &t->minibatch;
    struct pm_rng rng = pm_rng_make(r->seed, pm_hash("minibatch_sampler"), (uint32_t)r->step,
                                    r->example);
    const int64_t positive = count(weights, matches, anchors, true);
    const int64_t negative = count(weights, matches, anchors, false);
    const int64_t most = (int64_t)((double)m->positive_fraction * m->batch_size);
    const int64_t first = positive < most ? positive : most;
    const int64_t second = negative < m->batch_size - first ? negative : m->batch_size - first;

    choose(&rng, weights, matches, anchors, true, positive, first);
    choose(&rng, weights, matches, anchors, false, negative, second);
    for (int i = 0; i < anchors; i++)
        if (matches[i] >= 0 && !(weights[matches[i]] > 0))
            matches[i] = PM_IGNORED;
    return (int)(first + second);
}
