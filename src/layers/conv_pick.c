/* conv_pick: see conv_pick.h. Each function walks its levels from the tuned variant to the naive
 * one; a level that cannot run a shape is left out, so that levels stay dense. */
#include "conv_pick.h"

#include "bias_grad.params.h"
#include "conv2d.params.h"

enum { GRID_MAX = 65535 };

static uint32_t ceil_div(size_t a, size_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

/* Appends a dispatch without constants beyond a workgroup of `lanes` x `lines` x 1. */
static struct pm_dispatch *add(struct pm_picks *out, const char *shader, uint32_t lanes,
                               uint32_t lines)
{
    struct pm_dispatch *d = &out->d[out->count++];

    *d = (struct pm_dispatch){
        .shader = shader, .spec = { lanes, lines, 1 }, .specs = 3, .groups = { 1, 1, 1 },
    };
    return d;
}

static void constant(struct pm_dispatch *d, uint32_t value)
{
    d->spec[d->specs++] = value;
}

/* One item an invocation, numbered as by conv_item() of lib/conv.glsl. */
static struct pm_dispatch *add_items(struct pm_picks *out, const char *shader, size_t items)
{
    struct pm_dispatch *d = add(out, shader, 64, 1);
    uint32_t groups = ceil_div(items, 64);

    d->groups[0] = groups > GRID_MAX ? GRID_MAX : groups;
    d->groups[1] = ceil_div(groups, GRID_MAX);
    return d;
}

static bool naive(struct pm_picks *out, const char *shader, size_t items)
{
    add_items(out, shader, items);
    out->variant = "naive";
    return true;
}

static size_t filter_count(const struct conv2d_params *p)
{
    return (size_t)p->kh * p->kw * (p->c / p->groups) * p->k;
}

bool pm_conv2d_fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const struct conv2d_params *p = params;

    (void)caps, (void)count;
    *out = (struct pm_picks){ 0 };
    return level == 0 && naive(out, "conv2d_fwd_naive", (size_t)p->n * p->oh * p->ow * p->k);
}

bool pm_conv2d_bwd_data_pick(const struct pm_caps *caps, const void *params, size_t count,
                             int level, struct pm_picks *out)
{
    const struct conv2d_params *p = params;

    (void)caps, (void)count;
    *out = (struct pm_picks){ 0 };
    return level == 0 && naive(out, "conv2d_bwd_data_naive", (size_t)p->n * p->h * p->w * p->c);
}

bool pm_conv2d_bwd_filter_pick(const struct pm_caps *caps, const void *params, size_t count,
                               int level, struct pm_picks *out)
{
    (void)caps, (void)count;
    *out = (struct pm_picks){ 0 };
    return level == 0 && naive(out, "conv2d_bwd_filter_naive", filter_count(params));
}

bool pm_depthwise_fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                           struct pm_picks *out)
{
    const struct conv2d_params *p = params;

    (void)caps, (void)count;
    *out = (struct pm_picks){ 0 };
    return level == 0 && naive(out, "depthwise_fwd_naive", (size_t)p->n * p->oh * p->ow * p->k);
}

bool pm_depthwise_bwd_data_pick(const struct pm_caps *caps, const void *params, size_t count,
                                int level, struct pm_picks *out)
{
    const struct conv2d_params *p = params;

    (void)caps, (void)count;
    *out = (struct pm_picks){ 0 };
    return level == 0 && naive(out, "depthwise_bwd_data_naive", (size_t)p->n * p->h * p->w * p->c);
}

bool pm_depthwise_bwd_filter_pick(const struct pm_caps *caps, const void *params, size_t count,
                                  int level, struct pm_picks *out)
{
    const struct conv2d_params *p = params;

    (void)caps, (void)count;
    *out = (struct pm_picks){ 0 };
    return level == 0
        && naive(out, "depthwise_bwd_filter_naive", (size_t)p->kh * p->kw * p->k);
}

/* Rows are added in chunks of at least 256, at most 256 chunks: short sums, and enough workgroups. */
bool pm_bias_grad_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    const struct bias_grad_params *p = params;
    uint32_t chunk = ceil_div((size_t)p->rows, 256);
    uint32_t wide = 4;

    (void)caps, (void)count;
    *out = (struct pm_picks){ 0 };
    if (level > 0)
        return false;
    if (chunk < 256)
        chunk = 256;
    while (wide < 64 && wide < (uint32_t)p->channels)
        wide *= 2;
    uint32_t chunks = ceil_div((size_t)p->rows, chunk);
    struct pm_dispatch *d = add(out, "bias_grad", wide, 64 / wide);
    constant(d, chunk);
    d->groups[0] = ceil_div((size_t)p->channels, wide);
    d->groups[1] = chunks;
    d = add(out, "bias_grad_combine", 64, 1);
    constant(d, chunks);
    d->groups[0] = ceil_div((size_t)p->channels, 64);
    out->scratch[1] = (size_t)chunks * p->channels * sizeof(float);
    out->variant = "chunks";
    return true;
}
