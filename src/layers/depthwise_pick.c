/* depthwise_pick: picks the shaders of depthwise convolutions and of bias_grad; see conv_pick.h. */
#include "conv_pick.h"

#include "dispatches.h"

#include "bias_grad.params.h"
#include "conv2d.params.h"

/* Workgroup shape: lanes along the channels, and on GPUs enough lines for 64 invocations. */
static uint32_t lanes_of(const struct pm_caps *caps, int channels)
{
    uint32_t lanes = pm_class_on_cpu(caps->device_class) ? caps->subgroup_size : 64;

    while (lanes > 8 && lanes / 2 >= (uint32_t)channels)
        lanes /= 2;
    return lanes;
}

/* Returns the outputs per lane along x: a multiple of the stride. Narrow images get fewer. */
static uint32_t outputs_of(const struct pm_caps *caps, int wide, int stride)
{
    int outputs = pm_class_on_cpu(caps->device_class) ? 8 : 4;

    while (outputs > 2 && outputs / 2 >= wide)
        outputs /= 2;
    return pm_ceil_div(outputs, stride) * stride;
}

/* Whether windows fit in registers: small kernels and strides. */
static bool tiled(const struct conv2d_params *p)
{
    return p->kh <= 7 && p->kw <= 7 && p->stride_w <= 4 && p->dilation_w <= 8;
}

/* Picks strips of TX outputs of each line, for forward and data gradient. */
static bool strips(const struct pm_caps *caps, const char *shader, const struct conv2d_params *p,
                   bool back, struct pm_picks *out)
{
    int channels = back ? p->c : p->k, wide = back ? p->w : p->ow;
    uint32_t lanes = lanes_of(caps, channels),
             lines = pm_class_on_cpu(caps->device_class) ? 1 : 64 / lanes;
    uint32_t outputs = outputs_of(caps, wide, back ? p->stride_w : 1);
    size_t count = (size_t)p->n * (back ? p->h : p->oh) * pm_ceil_div(wide, outputs);
    struct pm_dispatch *d = pm_pick_add(out, shader, lanes, lines);

    pm_pick_constant(d, p->kw);
    pm_pick_constant(d, p->stride_w);
    pm_pick_constant(d, p->dilation_w);
    pm_pick_constant(d, outputs);
    if (back)
        pm_pick_constant(d, p->left);
    d->groups[0] = pm_ceil_div(channels, lanes);
    pm_pick_spread(d, 1, pm_ceil_div(count, lines));
    out->variant = "strips";
    return true;
}

/* Picks runs of lines for the filter's sums: enough workgroups, at least 4 lines each. */
static bool runs(const struct pm_caps *caps, const struct conv2d_params *p, struct pm_picks *out)
{
    uint32_t lanes = lanes_of(caps, p->k), parts = 1,
             wanted = pm_class_on_cpu(caps->device_class) ? 16 : 1024;
    size_t lines = (size_t)p->n * p->oh, filter = (size_t)p->kh * p->kw * p->k;
    struct pm_dispatch *d = pm_pick_add(out, "depthwise_bwd_filter", lanes, 1);

    while (parts < 1024 && lines / (2 * parts) >= 4
           && (pm_ceil_div(p->k, lanes) * parts < wanted || lines * p->ow / parts > 8192))
        parts *= 2;
    pm_pick_constant(d, p->kw);
    pm_pick_constant(d, p->stride_w);
    pm_pick_constant(d, p->dilation_w);
    pm_pick_constant(d, outputs_of(caps, p->ow, 1));
    pm_pick_constant(d, p->kh);
    pm_pick_constant(d, parts);
    d->groups[0] = pm_ceil_div(p->k, lanes);
    d->groups[1] = parts;
    if (parts > 1) {
        pm_pick_constant(pm_pick_items(out, "conv2d_combine", filter), parts);
        out->scratch[2] = filter * sizeof(float) * parts;
    }
    out->variant = "runs";
    return true;
}

bool pm_depthwise_fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                           struct pm_picks *out)
{
    const struct conv2d_params *p = params;

    (void)count;
    *out = (struct pm_picks){ 0 };
    if (tiled(p) && level-- == 0)
        return strips(caps, "depthwise_fwd", p, false, out);
    return level == 0
        && pm_pick_naive(out, "depthwise_fwd_naive", (size_t)p->n * p->oh * p->ow * p->k);
}

bool pm_depthwise_bwd_data_pick(const struct pm_caps *caps, const void *params, size_t count,
                                int level, struct pm_picks *out)
{
    const struct conv2d_params *p = params;

    (void)count;
    *out = (struct pm_picks){ 0 };
    if (tiled(p) && level-- == 0)
        return strips(caps, "depthwise_bwd_data", p, true, out);
    return level == 0
        && pm_pick_naive(out, "depthwise_bwd_data_naive", (size_t)p->n * p->h * p->w * p->c);
}

bool pm_depthwise_bwd_filter_pick(const struct pm_caps *caps, const void *params, size_t count,
                                  int level, struct pm_picks *out)
{
    const struct conv2d_params *p = params;

    (void)count;
    *out = (struct pm_picks){ 0 };
    if (tiled(p) && level-- == 0)
        return runs(caps, p, out);
    return level == 0
        && pm_pick_naive(out, "depthwise_bwd_filter_naive", (size_t)p->kh * p->kw * p->k);
}

/* Picks chunks for adding rows: at least 256 rows each and at most 256 chunks. So sums are short
 * and there are enough workgroups. */
bool pm_bias_grad_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    const struct bias_grad_params *p = params;
    uint32_t chunk = pm_ceil_div((size_t)p->rows, 256);
    uint32_t wide = 4;

    (void)caps, (void)count;
    *out = (struct pm_picks){ 0 };
    if (level > 0)
        return false;
    if (chunk < 256)
        chunk = 256;
    while (wide < 64 && wide < (uint32_t)p->channels)
        wide *= 2;
    uint32_t chunks = pm_ceil_div((size_t)p->rows, chunk);
    struct pm_dispatch *d = pm_pick_add(out, "bias_grad", wide, 64 / wide);
    pm_pick_constant(d, chunk);
    d->groups[0] = pm_ceil_div((size_t)p->channels, wide);
    d->groups[1] = chunks;
    d = pm_pick_add(out, "bias_grad_combine", 64, 1);
    pm_pick_constant(d, chunks);
    d->groups[0] = pm_ceil_div((size_t)p->channels, 64);
    out->scratch[1] = (size_t)chunks * p->channels * sizeof(float);
    out->variant = "chunks";
    return true;
}
