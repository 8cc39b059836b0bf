/* argmax: y = the place of the largest value along the last axis, which goes away; int32. Of equal ones
 * it is the first; 0 equals -0; a NaN is never the largest, and a row of NaNs alone gives 0. Values are
 * compared as integers in the floats' order, so that no device's rules for NaN or for numbers near
 * zero matter: all give the same places. No gradient. */
#include <limits.h>
#include <string.h>

#include "argmax.params.h"
#include "layers/infer.h"
#include "layers/pick.h"
#include "layers/vmath.h"
#include "net/export_nodes.h"

static const struct pm_opt opts[] = { { 0 } };

enum { TILE = 16 }; /* rows side by side */

PM_INLINE int32_t key_of(int32_t bits)
{
    const int32_t magnitude = bits & INT32_MAX;

    return magnitude > 0x7f800000 ? INT32_MIN : bits < 0 ? -magnitude : bits;
}

PM_INLINE void rows_of(const int32_t *x, int k, int rows, int32_t *y)
{
    int32_t best[TILE], bits[TILE], at[TILE] = { 0 };

    for (int r = 0; r < TILE; r++)
        best[r] = INT32_MIN;
    for (int i = 0; i < k; i++) {
        for (int r = 0; r < rows; r++)
            bits[r] = x[r * k + i];
        for (int r = 0; r < rows; r++) {
            const int32_t key = key_of(bits[r]);

            at[r] = key > best[r] ? i : at[r];
            best[r] = key > best[r] ? key : best[r];
        }
    }
    memcpy(y, at, (size_t)rows * sizeof *y);
}

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const int k = ((const struct argmax_params *)a->params)->k;
    const int32_t *x = a->buf[0]; /* the floats' bits */
    int32_t *y = a->buf[1];

    for (; begin + TILE <= end; begin += TILE)
        rows_of(x + begin * (size_t)k, k, TILE, y + begin);
    if (begin < end)
        rows_of(x + begin * (size_t)k, k, (int)(end - begin), y + begin);
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps;
    return pick_wide("argmax_wide", "argmax", count, ((const struct argmax_params *)params)->k, level,
                     out);
}

static double flops(const void *params, size_t count)
{
    return 2.0 * ((const struct argmax_params *)params)->k * (double)count;
}

static const struct pm_kernel fwd = {
    .name = "argmax", .bufs = "r:x w:y", .params_size = sizeof(struct argmax_params), .cpu = fwd_cpu,
    .grain = 256, .pick = fwd_pick, .flops = flops,
};

static int infer(struct pm_node *n)
{
    const struct pm_shape x = n->in[0]->out_shape;
    char text[64];

    if (x.rank < 2)
        return pm_fail(PM_ECONFIG, "%s: argmax needs an input with an axis beside the batch, not %s",
                       n->name, pm_shape_text(x, text));
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
    enum { INT32 = 6 }; /* of TensorProto.DataType; ArgMax gives int64 */
    const int rank = n->in[0]->out_shape.rank;
    const char *y = pm_export_op(g, "ArgMax", PM_VALUES(pm_export_x(g, n, 0)));

    pm_export_int(g, "axis", pm_export_axis(rank, rank - 1));
    pm_export_int(g, "keepdims", 0);
    y = pm_export_op(g, "Cast", PM_VALUES(y));
    pm_export_int(g, "to", INT32);
    return rank == 5 ? pm_export_nchw(g, y, n->out_shape) : y;
}

const struct pm_layer pm_layer_argmax = {
    .name = "argmax", .help = "the place of the largest value of the last axis, as int32; no gradient",
    .opts = opts, .cfg_size = 4, .infer = infer, .forward = forward, .onnx = onnx,
};
