/* argmax: y = the index of the largest value along the last axis, which is removed; int32. Among
 * equal values the first wins. 0 equals -0. A NaN is never the largest, and a row of NaNs gives 0.
 * Values are compared as integers in the floats' order. So all devices give the same indices,
 * regardless of their rules for NaN and for numbers near zero. There is no gradient. */
#include <limits.h>
#include <string.h>

#include "argmax.params.h"
#include "layers/infer.h"
#include "device/pick.h"
#include "layers/tiles.h"
#include "onnx/export_nodes.h"

static const struct pm_opt opts[] = { { 0 } };

PM_INLINE int32_t key_of(float x)
{
    int32_t bits, magnitude;

    memcpy(&bits, &x, sizeof bits);
    magnitude = bits & INT32_MAX;
    return magnitude > 0x7f800000 ? INT32_MIN : bits < 0 ? -magnitude : bits;
}

PM_INLINE void tile_of(const float *x, int k, int32_t *y)
{
    float tile[PM_TILE_VALUES * PM_TILE];
    int32_t best[PM_TILE], at[PM_TILE] = { 0 };

    for (int r = 0; r < PM_TILE; r++)
        best[r] = INT32_MIN;
    for (int first = 0; first < k; first += PM_TILE_VALUES) {
        const int count = k - first < PM_TILE_VALUES ? k - first : PM_TILE_VALUES;

        pm_tile_take(x + first, (size_t)k, count, tile);
        for (int i = 0; i < count; i++)
            for (int r = 0; r < PM_TILE; r++) {
                const int32_t key = key_of(tile[i * PM_TILE + r]);

                at[r] = key > best[r] ? first + i : at[r];
                best[r] = key > best[r] ? key : best[r];
            }
    }
    memcpy(y, at, sizeof at);
}

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const size_t k = (size_t)((const struct argmax_params *)a->params)->k;
    const float *x = a->buf[0];
    int32_t *y = a->buf[1];

    for (; begin + PM_TILE <= end; begin += PM_TILE)
        tile_of(x + begin * k, (int)k, y + begin);
    for (; begin < end; begin++) {
        int32_t best = INT32_MIN;

        y[begin] = 0;
        for (size_t i = 0; i < k; i++)
            if (key_of(x[begin * k + i]) > best)
                best = key_of(x[begin * k + i]), y[begin] = (int32_t)i;
    }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps;
    return pick_wide("argmax_wide", "argmax", count, ((const struct argmax_params *)params)->k,
                     level, out);
}

static double flops(const void *params, size_t count)
{
    return 2.0 * ((const struct argmax_params *)params)->k * (double)count;
}

static const struct pm_kernel fwd = {
    .name = "argmax",
    .bufs = "r:x w:y",
    .params_size = sizeof(struct argmax_params),
    .cpu = fwd_cpu,
    .grain = 256,
    .pick = fwd_pick,
    .flops = flops,
};

static int infer(struct pm_node *n)
{
    const struct pm_shape x = n->in[0]->out_shape;
    char text[64];

    if (x.rank < 2)
        return pm_fail(PM_ECONFIG,
                       "%s: argmax needs an input with an axis beside the batch, not %s", n->name,
                       pm_shape_text(x, text));
    n->out_shape = x;
    n->out_shape.rank--;
    n->out_type = PM_I32;
    return pm_need_floats(n, 0, 0);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const int k = n->x.shape.dim[n->x.shape.rank - 1];
    const struct argmax_params p = { (int)(pm_count(n->x) / (size_t)k), k };

    pm_call(c, &fwd, (size_t)p.rows, &p, PM_BUFS(n->x, n->y));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const int rank = n->in[0]->out_shape.rank;
    const char *y = pm_export_op(g, "ArgMax", PM_VALUES(pm_export_x(g, n, 0)));

    pm_export_int(g, "axis", pm_export_axis(rank, rank - 1));
    pm_export_int(g, "keepdims", 0);
    y = pm_export_cast(g, y, PM_EXPORT_INT32); /* ArgMax gives int64 */
    return rank == 5 ? pm_export_nchw(g, y, n->out_shape) : y;
}

const struct pm_layer pm_layer_argmax = {
    .name = "argmax", .help = "index of the largest value along the last axis, as int32; no "
                              "gradient",
    .opts = opts, .cfg_size = 4, .infer = infer, .forward = forward, .onnx = onnx,
};
