/* class_codes: of the codes that a second stage predicts for each class, those of the class of the
 * matched box. Declared in detection_rows.h. */
#include "layers/detection_rows.h"

#include <string.h>

/* The class whose codes count for a row; -1: none. */
static int class_of(const struct pm_args *a, size_t row)
{
    const struct class_codes_params *p = a->params;
    const int g = ((const int *)a->buf[1])[row];
    const size_t truth = row / (size_t)p->per * (size_t)p->m + (size_t)g;
    int own;

    if (g < 0 || g >= p->m)
        return -1;
    if (p->labels)
        return pm_target_class((const float *)a->buf[2] + truth * (size_t)p->labels, p->labels,
                               p->classes);
    own = ((const int *)a->buf[2])[truth];
    return own < p->classes ? own : -1;
}

static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct class_codes_params *p = a->params;
    const size_t codes = (size_t)p->codes;
    const float *x = a->buf[0];
    float *y = a->buf[3];

    for (size_t row = begin; row < end; row++) {
        const int k = class_of(a, row);

        for (size_t i = 0; i < codes; i++)
            y[row * codes + i] =
                k < 0 ? 0 : x[(row * (size_t)p->classes + (size_t)k) * codes + i];
    }
}

static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct class_codes_params *p = a->params;
    const size_t codes = (size_t)p->codes, width = codes * (size_t)p->classes;
    const float *dy = a->buf[0];
    float *dx = a->buf[3];

    for (size_t row = begin; row < end; row++) {
        const int k = class_of(a, row);

        memset(dx + row * width, 0, width * sizeof *dx);
        if (k >= 0)
            memcpy(dx + row * width + (size_t)k * codes, dy + row * codes, codes * sizeof *dx);
    }
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct class_codes_params *p = params;

    (void)caps;
    return level == 0 &&
           pm_pick_elements("class_codes_bwd", 64, count * (size_t)p->classes, out);
}

static const struct pm_kernel fwd = {
    .name = "class_codes_fwd", .bufs = "r:x r:matches r:classes w:y",
    .params_size = sizeof(struct class_codes_params), .cpu = fwd_cpu, .grain = 64,
};
static const struct pm_kernel bwd = {
    .name = "class_codes_bwd", .bufs = "r:dy r:matches r:classes w:dx",
    .params_size = sizeof(struct class_codes_params), .cpu = bwd_cpu, .grain = 64,
    .pick = bwd_pick,
};

void pm_class_codes(struct pm_calls *c, const struct class_codes_params *p, struct pm_tensor x,
                    const struct pm_detection_truth *t, struct pm_tensor y)
{
    pm_call(c, &fwd, (size_t)p->rows, p, PM_BUFS(x, t->matches, t->classes, y));
}

void pm_class_codes_back(struct pm_calls *c, const struct class_codes_params *p,
                         struct pm_tensor dy, const struct pm_detection_truth *t,
                         struct pm_tensor dx)
{
    pm_call(c, &bwd, (size_t)p->rows, p, PM_BUFS(dy, t->matches, t->classes, dx));
}
