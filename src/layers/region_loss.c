/* region_loss: the checks and the sum that losses of regions share. */
#include "layers/region_loss.h"

#include <math.h>

#include "layers/infer.h"
#include "layers/vmath.h"

static float factor_of(const struct region_loss_sum_params *p, float weights)
{
    return p->scale / fmaxf(weights * p->pixels, 1);
}

static void sum_cpu(const struct pm_args *a)
{
    const struct region_loss_sum_params *p = a->params;
    const float *losses = a->buf[0], *used = a->buf[1];
    float *factors = a->buf[3], total = 0, all_losses = 0, all_weights = 0;

    for (int i = 0; i < p->images; i++, losses += p->per, used += p->per) {
        const float loss = pm_row_sum(losses, p->per), weights = pm_row_sum(used, p->per);

        all_losses += loss, all_weights += weights;
        factors[i] = factor_of(p, weights);
        total += loss * factors[i];
    }
    if (p->together)
        total = all_losses * factor_of(p, all_weights);
    const float bad = isfinite(total) ? 0 : NAN;

    for (int i = 0; i < p->images; i++)
        factors[i] = (p->together ? factor_of(p, all_weights) : factors[i]) + bad;
    *(float *)a->buf[2] = total + bad;
}

static bool sum_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps, (void)params, (void)count;
    return level == 0 && pm_pick_elements("region_loss_sum", 64, 64, out);
}

static const struct pm_kernel sum = {
    .name = "region_loss_sum", .bufs = "r:losses r:used w:loss w:factors",
    .params_size = sizeof(struct region_loss_sum_params), .cpu_all = sum_cpu, .pick = sum_pick,
};

int pm_region_loss_check(const struct pm_node *n, const char *numbers, const char *need)
{
    const struct pm_shape b = n->in[1]->out_shape;
    char text[64];
    int err = PM_OK;

    PM_TRY(pm_need_box_maps(n, numbers, need));
    if (!pm_input_is_shape(n, 2, PM_SHAPE2(b.dim[0], b.dim[1])))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: matches have shape %s; for boxes of n x R x 4 they must be "
                       "%dx%d", n->name, pm_shape_text(n->in[2]->out_shape, text), b.dim[0],
                       b.dim[1]));
out:
    return err;
}

void pm_region_loss_sum(struct pm_calls *c, struct region_loss_sum_params p, float weight,
                        struct pm_tensor losses, struct pm_tensor used, struct pm_tensor loss,
                        struct pm_tensor factors)
{
    p.scale = weight * pm_loss_share(c) / (p.together ? 1 : (float)p.images);
    pm_call(c, &sum, (size_t)p.images * (size_t)p.per, &p, PM_BUFS(losses, used, loss, factors));
}
