/* hard_examples: see hard_examples.h. suppress_rows.h orders and suppresses; here the scores are
 * made and the limit on unmatched anchors is applied. This file is compiled without fused
 * multiply-add, so that all devices order anchors alike. */
#include "layers/hard_examples.h"

#include <string.h>

#include "hard_examples.params.h"
#include "layers/detection_rows.h"
#include "layers/suppress_rows.h"
#include "layers/vmath.h"

enum { MOST = 1 << 30 }; /* no image has so many anchors */

PM_CLONES static void scores_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct hard_scores_params *p = a->params;
    const float *loc = a->buf[0], *cls = a->buf[1];
    float *scores = a->buf[2];

    for (size_t i = begin; i < end; i++)
        scores[i] = cls[i] * p->cls + loc[i] * p->loc;
}

static void mark_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct hard_examples_params *p = a->params;

    for (size_t image = begin; image < end; image++) {
        const int *chosen = (const int *)a->buf[0] + image * (size_t)p->most;
        const int *matches = (const int *)a->buf[1] + image * (size_t)p->anchors;
        float *kept = (float *)a->buf[2] + image * (size_t)p->anchors, negatives = 0;
        int count = 0, matched = 0, unmatched = 0;

        memset(kept, 0, (size_t)p->anchors * sizeof *kept);
        for (; count < p->most && chosen[count] >= 0; count++)
            matched += matches[chosen[count]] >= 0;
        const float share = p->ratio * (float)matched;
        const int limit = share < MOST ? (int)share : MOST;
        const int budget = limit > p->min_negatives ? limit : p->min_negatives;

        for (int i = 0; i < count; i++) {
            const int g = matches[chosen[i]];

            unmatched += g == -1;
            kept[chosen[i]] = p->ratio == 0 || g >= 0 || unmatched <= budget ? 1 : 0;
            negatives += g == -1 ? kept[chosen[i]] : 0;
        }
        ((float *)a->buf[3])[image] = (float)matched;
        ((float *)a->buf[4])[image] = negatives;
    }
}

static bool mark_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct hard_examples_params *p = params;

    (void)caps;
    if (level > 0)
        return false;
    pm_pick_elements("hard_examples", 64, count * (size_t)p->anchors, out);
    out->d[0].spec[3] = 0;
    out->d[0].specs = 4;
    out->d[1] = out->d[0];
    out->d[1].groups[0] = (uint32_t)count < 65535 ? (uint32_t)count : 65535;
    out->d[1].spec[3] = 1;
    out->count = 2;
    return true;
}

static double mark_flops(const void *params, size_t count)
{
    return 4.0 * ((const struct hard_examples_params *)params)->anchors * (double)count;
}

static const struct pm_kernel scores = {
    .name = "hard_scores", .bufs = "r:loc r:cls w:scores", .cpu = scores_cpu,
    .params_size = sizeof(struct hard_scores_params),
};
static const struct pm_kernel mark = {
    .name = "hard_examples", .bufs = "r:chosen r:matches w:kept w:positives w:negatives",
    .cpu = mark_cpu, .grain = 1, .params_size = sizeof(struct hard_examples_params),
    .pick = mark_pick, .flops = mark_flops,
};

/* The losses that order the anchors. */
static struct pm_tensor scores_of(struct pm_calls *c, struct pm_hard_examples h,
                                  struct pm_tensor loc, struct pm_tensor cls)
{
    const struct hard_scores_params p = { (int)pm_count(loc), h.loc_weight, h.cls_weight };
    struct pm_tensor t;

    if (h.loc_weight == 0 || h.cls_weight == 0)
        return h.loc_weight == 0 ? cls : loc;
    t = pm_temp(c, loc.shape, PM_F32);
    pm_call(c, &scores, (size_t)p.count, &p, PM_BUFS(loc, cls, t));
    return t;
}

struct pm_mined pm_mined_make(struct pm_calls *c, struct pm_node *n, int i, int images,
                              int anchors)
{
    return (struct pm_mined){ pm_save(c, n, i, PM_SHAPE2(images, anchors), PM_F32),
                              pm_example_output(n, c, "mined_positives", images),
                              pm_example_output(n, c, "mined_negatives", images) };
}

void pm_hard_examples(struct pm_calls *c, struct pm_hard_examples h, struct pm_tensor loc,
                      struct pm_tensor cls, struct pm_tensor boxes, struct pm_tensor matches,
                      const struct pm_mined *out)
{
    const int images = boxes.shape.dim[0], anchors = boxes.shape.dim[1];
    const int most = h.most > 0 && h.most < anchors ? h.most : anchors;
    const struct pm_suppress s = { .score_threshold = -INFINITY,
                                   .iou_threshold = h.iou_threshold };
    const struct hard_examples_params p = { images, anchors, most, h.ratio, h.min_negatives };
    const struct pm_tensor chosen = pm_temp(c, PM_SHAPE3(images, 1, most), PM_I32);
    const struct pm_tensor values = pm_temp(c, PM_SHAPE3(images, 1, most), PM_F32);

    pm_suppress(c, s, boxes, scores_of(c, h, loc, cls), PM_NO_TENSOR, chosen, values);
    pm_call(c, &mark, (size_t)images, &p,
            PM_BUFS(chosen, matches, out->kept, out->positives, out->negatives));
}

void pm_hard_examples_order(struct pm_hard_examples *h, int loss_type, float loc, float cls)
{
    const bool both = loss_type == PM_HARD_BOTH;

    h->loc_weight = both ? loc : loss_type == PM_HARD_LOCALIZATION;
    h->cls_weight = both ? cls : loss_type == PM_HARD_CLASSIFICATION;
}
