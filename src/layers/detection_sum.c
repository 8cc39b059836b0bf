/* detection_sum: adds the losses of all anchors and divides them, for the layers that have a
 * localization and a classification loss of each row. A divisor of all examples divides the sums; a
 * divisor of each example divides its rows before they are added. */
#include <pumice/plan.h>

#include "layers/detection_rows.h"

#include <math.h>
#include <string.h>

#include "layers/dispatches.h"

enum { BLOCK = 256, GROUPS = 256 };

static bool is_absent(const struct pm_args *a, int image)
{
    const struct detection_sum_params *p = a->params;

    return pm_example_is_absent(a->buf[3], p->m, (size_t)image);
}

/* 1 / divisor of one example; 1 if the sum has one divisor for all. */
static float own_factor(const struct pm_args *a, int image)
{
    const struct detection_sum_params *p = a->params;

    if (p->divisor == DETECTION_BY_IMAGE)
        return 1 / ((const float *)a->buf[4])[image];
    if (p->divisor == DETECTION_BY_COUNT)
        return is_absent(a, image) ? 0 : 1 / fmaxf((float)((const int *)a->buf[4])[image], 1);
    return 1;
}

/* The divisor of all examples. */
static float divisor_of(const struct pm_args *a, float matched)
{
    const struct detection_sum_params *p = a->params;
    const int images = p->rows / p->anchors;
    int present = 0;

    if (p->divisor == DETECTION_BY_FIRST)
        return *(const float *)a->buf[4];
    if (p->divisor == DETECTION_BY_MATCHES)
        return fmaxf(matched, 1);
    if (p->divisor != DETECTION_BY_COUNT)
        return 1;
    for (int image = 0; image < images; image++)
        present += !is_absent(a, image);
    return fmaxf((float)present, 1) / (float)images;
}

/* Adds blocks of a fixed size, then the blocks in order. */
static void sum_cpu(const struct pm_args *a)
{
    const struct detection_sum_params *p = a->params;
    const float *loc = a->buf[0], *cls = a->buf[1], *weights = a->buf[3], *kept = a->buf[5];
    const int *matches = a->buf[2];
    float *factors = a->buf[9], loc_sum = 0, cls_sum = 0, matched = 0;

    for (int block = 0; block < p->rows; block += BLOCK) {
        const int stop = block + BLOCK < p->rows ? block + BLOCK : p->rows;
        float l = 0, c = 0, w = 0;

        for (int i = block; i < stop; i++) {
            const int g = matches[i], image = i / p->anchors;
            const float factor = own_factor(a, image);

            /* A NaN is never kept, but must not be lost. An infinite loss that is not kept does
             * not count. */
            if (!kept || kept[i] != 0 || isnan(loc[i]) || isnan(cls[i]))
                l += loc[i] * factor, c += cls[i] * factor;
            w += g >= 0 && g < p->m ? weights[(size_t)image * (size_t)p->m + (size_t)g] : 0;
        }
        loc_sum += l, cls_sum += c, matched += w;
    }
    const float divisor = divisor_of(a, matched);
    const float bad = isfinite(loc_sum + cls_sum) ? 0 : NAN;

    for (int image = 0; image < p->rows / p->anchors; image++) {
        const float own = own_factor(a, image);

        factors[2 * image] = p->loc_scale / divisor * own + bad;
        factors[2 * image + 1] = p->cls_scale / divisor * own + bad;
    }
    *(float *)a->buf[7] = loc_sum * (p->loc_scale / divisor) + bad;
    *(float *)a->buf[8] = cls_sum * (p->cls_scale / divisor) + bad;
}

static bool sum_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const uint32_t groups = pm_ceil_div(count, 256);

    (void)caps, (void)params;
    if (level > 0)
        return false;
    pm_pick_elements("detection_sum_part", 64, 64 * (size_t)(groups < GROUPS ? groups : GROUPS),
                     out);
    out->d[1] = out->d[0];
    out->d[1].shader = "detection_sum";
    out->d[1].groups[0] = 1;
    out->d[1].spec[3] = out->d[0].groups[0];
    out->d[1].specs = 4;
    out->count = 2;
    out->scratch[6] = 3 * GROUPS * sizeof(float);
    return true;
}

static const struct pm_kernel sum = {
    .name = "detection_sum",
    .bufs = "r:loc r:cls r:matches r:weights r?:normalizer r?:kept t:part w:loc_loss w:cls_loss "
            "w:factors",
    .params_size = sizeof(struct detection_sum_params), .cpu_all = sum_cpu, .pick = sum_pick,
};

void pm_detection_sum(struct pm_calls *c, const struct detection_sum_params *p,
                      struct pm_tensor loc, struct pm_tensor cls,
                      const struct pm_detection_truth *t, struct pm_tensor normalizer,
                      struct pm_tensor kept, const struct pm_tensor loss[2],
                      struct pm_tensor factors)
{
    pm_call(c, &sum, (size_t)p->rows, p,
            PM_BUFS(loc, cls, t->matches, t->weights, normalizer, kept, PM_NO_TENSOR, loss[0],
                    loss[1], factors));
}

int pm_detection_divisor(bool per_image, bool normalizer, bool by_matches)
{
    return per_image    ? DETECTION_BY_IMAGE
           : normalizer ? DETECTION_BY_FIRST
           : by_matches ? DETECTION_BY_MATCHES
                        : DETECTION_BY_NOTHING;
}

float pm_detection_share(const struct pm_calls *c, int divisor, int examples)
{
    return divisor == DETECTION_BY_IMAGE   ? pm_loss_share(c) / (float)examples
           : divisor == DETECTION_BY_FIRST ? 1
                                           : pm_loss_share(c);
}

struct pm_tensor pm_example_output(const struct pm_node *n, struct pm_calls *c, const char *which,
                                   int examples)
{
    struct pm_str name = { 0 };

    pm_str_add(&name, "%s/%s", n->name, which);
    const struct pm_tensor t = pm_calls_output(c, name.text, PM_SHAPE1(examples), PM_F32);
    pm_str_free(&name);
    return t;
}

void pm_detection_scalars(const struct pm_node *n, struct pm_calls *c, struct pm_tensor loss[2])
{
    static const char *const parts[] = { "localization", "classification" };

    for (int i = 0; i < 2; i++) {
        struct pm_str name = { 0 };

        pm_str_add(&name, "%s/%s_loss", n->name, parts[i]);
        loss[i] = pm_loss_scalar(c, name.text);
        pm_str_free(&name);
    }
}
