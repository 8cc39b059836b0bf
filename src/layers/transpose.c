/* transpose: y's axis i is x's axis perm[i]. Backward is the inverse transposition. The row copies
 * along any strides, so it can also repeat values (strided.h). */
#include "onnx/export_nodes.h"
#include "layers/strided.h"

#include <string.h>

#include "layers/infer.h"
#include "device/pick.h"
#include "layers/vmath.h"

/* ---- axes ------------------------------------------------------------------------------ */

void pm_axes_strides(struct pm_shape s, int stride[PM_MAX_RANK])
{
    int step = 1;

    for (int i = s.rank - 1; i >= 0; i--) {
        stride[i] = s.dim[i] > 1 ? step : 0;
        step *= s.dim[i];
    }
}

struct pm_axes pm_axes_make(int rank, const int *size, const int *a, const int *b)
{
    struct pm_axes x = { .a = { 0 } };
    int n = PM_MAX_RANK; /* the next axis goes in front of axis n */

    for (int i = rank - 1; i >= 0; i--) {
        int sa = a[i], sb = b ? b[i] : 0;

        if (size[i] == 1)
            continue;
        if (n < PM_MAX_RANK && sa == x.a[n] * x.size[n] && sb == x.b[n] * x.size[n]) {
            x.size[n] *= size[i];
            continue;
        }
        n--;
        x.size[n] = size[i], x.a[n] = sa, x.b[n] = sb;
    }
    for (int i = 0; i < n; i++)
        x.size[i] = 1;
    return x;
}

bool pm_axes_four(const int size[PM_MAX_RANK], const int stride[PM_MAX_RANK])
{
    for (int i = 0; i < PM_MAX_RANK - 1; i++)
        if (stride[i] % 4 != 0)
            return false;
    return size[PM_MAX_RANK - 1] % 4 == 0 && stride[PM_MAX_RANK - 1] == 1;
}

uint32_t pm_axes_rank(const int size[PM_MAX_RANK])
{
    uint32_t rank = PM_MAX_RANK;

    while (rank > 1 && size[PM_MAX_RANK - rank] == 1)
        rank--;
    return rank;
}

/* ---- the row --------------------------------------------------------------------------- */

PM_CLONES static void copy_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const struct strided_params *p = args->params;
    const float scale = p->scale;
    const size_t step = (size_t)p->s[5];

    for (size_t n; begin < end; begin += n) {
        const float *x = (const float *)args->buf[0] + pm_axes_place(p->d, p->s, begin);
        float *y = (float *)args->buf[1] + begin;

        n = pm_axes_run(p->d, begin, end);
        if (step == 1) {
            PM_SIMD
            for (size_t i = 0; i < n; i++)
                y[i] = scale * x[i];
        } else {
            for (size_t i = 0; i < n; i++)
                y[i] = scale * x[i * step];
        }
    }
}

static bool copy_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct strided_params *p = params;

    (void)caps;
    return pick_four("strided_copy4", "strided_copy", pm_axes_four(p->d, p->s), count,
                     pm_axes_rank(p->d), level, out);
}

const struct pm_kernel pm_row_strided_copy = {
    .name = "strided_copy", .bufs = "r:x w:y", .params_size = sizeof(struct strided_params),
    .cpu = copy_cpu, .pick = copy_pick,
};

void pm_strided_copy(struct pm_calls *c, const struct pm_axes *axes, float scale,
                     struct pm_tensor x, struct pm_tensor y)
{
    struct strided_params p = { .count = (int)pm_count(y), .scale = scale };

    memcpy(p.d, axes->size, sizeof p.d);
    memcpy(p.s, axes->a, sizeof p.s);
    pm_call(c, &pm_row_strided_copy, pm_count(y), &p, PM_BUFS(x, y));
}

/* ---- the layer ------------------------------------------------------------------------- */

struct transpose_cfg { struct pm_ints perm; };

static const struct pm_opt opts[] = {
    PM_INTS(transpose_cfg, perm, "[0, 2, 3, 1]", 0, PM_MAX_RANK - 1,
            "for each output axis, the input axis"),
    { 0 },
};

static int infer(struct pm_node *n)
{
    const struct pm_ints perm = ((const struct transpose_cfg *)n->cfg)->perm;
    const struct pm_shape x = n->in[0]->out_shape;
    unsigned seen = 0;
    char text[64];

    n->out_shape = x;
    for (int i = 0; i < perm.count; i++)
        seen |= 1u << perm.v[i];
    if (perm.count != x.rank || seen != (1u << x.rank) - 1)
        return pm_fail(PM_ECONFIG, "%s: perm must name each of the %d axes of the input %s once",
                       n->name, x.rank, pm_shape_text(x, text));
    for (int i = 0; i < perm.count; i++)
        n->out_shape.dim[i] = x.dim[perm.v[i]];
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, 0);
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const int *perm = ((const struct transpose_cfg *)n->cfg)->perm.v, rank = n->x.shape.rank;
    int from[PM_MAX_RANK], stride[PM_MAX_RANK];
    struct pm_axes axes;

    pm_axes_strides(n->x.shape, from);
    for (int i = 0; i < rank; i++)
        stride[i] = from[perm[i]];
    axes = pm_axes_make(rank, n->out_shape.dim, stride, NULL);
    pm_strided_copy(c, &axes, 1, n->x, n->y);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const int *perm = ((const struct transpose_cfg *)n->cfg)->perm.v, rank = n->x.shape.rank;
    int from[PM_MAX_RANK], stride[PM_MAX_RANK] = { 0 };
    struct pm_axes axes;

    pm_axes_strides(n->out_shape, from);
    for (int i = 0; i < rank; i++)
        stride[perm[i]] = from[i];
    axes = pm_axes_make(rank, n->x.shape.dim, stride, NULL);
    if (pm_has(n->dx))
        pm_strided_copy(c, &axes, 1, n->dy, n->dx);
}

/* Exports a transposition in the net's axis order. The graph's images have another axis order. */
static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct pm_ints perm = ((const struct transpose_cfg *)n->cfg)->perm;
    int64_t axes[PM_MAX_RANK];
    const char *y;

    for (int i = 0; i < perm.count; i++)
        axes[pm_export_axis(perm.count, i)] = pm_export_axis(perm.count, perm.v[i]);
    y = pm_export_op(g, "Transpose", PM_VALUES(pm_export_x(g, n, 0)));
    pm_export_ints(g, "perm", perm.count, axes);
    return y;
}

const struct pm_layer pm_layer_transpose = {
    .name = "transpose", .help = "permutes the axes", .opts = opts,
    .cfg_size = sizeof(struct transpose_cfg), .copies_values = true, .infer = infer,
    .forward = forward, .backward = backward, .onnx = onnx,
};
