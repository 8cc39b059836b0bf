/* matmul: multiplies the matrices in the last two axes of two inputs, [..][m][k] and [..][k][n],
 * one product per index of the leading axes, which must agree. Either input may be given
 * transposed. Backward: da = dy b', db = a' dy, or their transposes. */
#include <pumice/layer.h>

#include "device/cpu/gemm.h"
#include "layers/dispatches.h"
#include "onnx/export_nodes.h"
#include "layers/infer.h"
#include "matmul.params.h"

struct matmul_cfg { bool transpose_a, transpose_b; };

static const struct pm_opt opts[] = {
    PM_BOOL(matmul_cfg, transpose_a, false, "the first input's matrices are [k][m]"),
    PM_BOOL(matmul_cfg, transpose_b, false, "the second input's matrices are [n][k]"),
    { 0 },
};

/* ---- the row --------------------------------------------------------------------------- */

static void matmul_cpu(const struct pm_args *args)
{
    const struct matmul_params *p = args->params;
    const struct pm_gemm g = {
        .m = p->m, .n = p->n, .k = p->k, .a_across = p->a_across, .b_across = p->b_across,
        .lda = p->a_across ? p->m : p->k, .ldb = p->b_across ? p->k : p->n, .ldc = p->n,
    };
    const size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;

    for (size_t z = 0; z < (size_t)p->batch; z++)
        pm_gemm(&g, (const float *)args->buf[0] + z * m * k,
                (const float *)args->buf[1] + z * k * n, (float *)args->buf[2] + z * m * n);
}

static bool matmul_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    enum { TILE = 32 };
    const struct matmul_params *p = params;
    struct pm_dispatch *d;

    (void)caps;
    if (level == 1) {
        out->variant = "naive";
        return pm_pick_elements("matmul_naive", 64, count, out);
    }
    if (level > 1)
        return false;
    d = pm_pick_add(out, "matmul", 64, 1);
    pm_pick_constant(d, (uint32_t)p->a_across);
    pm_pick_constant(d, (uint32_t)p->b_across);
    d->groups[0] = pm_ceil_div((size_t)p->n, TILE);
    d->groups[1] = pm_ceil_div((size_t)p->m, TILE);
    d->groups[2] = p->batch < PM_GRID_MAX ? (uint32_t)p->batch : PM_GRID_MAX;
    out->variant = "tiles";
    if (d->groups[0] <= PM_GRID_MAX && d->groups[1] <= PM_GRID_MAX)
        return true;
    out->count = 0;
    out->variant = "naive";
    return pm_pick_elements("matmul_naive", 64, count, out);
}

static double flops(const void *params, size_t count)
{
    const struct matmul_params *p = params;
    return 2.0 * (double)count * p->k;
}

static const struct pm_kernel row = {
    .name = "matmul", .bufs = "r:a r:b w:y", .params_size = sizeof(struct matmul_params),
    .cpu_all = matmul_cpu, .pick = matmul_pick, .flops = flops,
};

/* ---- the layer ------------------------------------------------------------------------- */

static struct matmul_params params_of(const struct pm_node *n)
{
    const struct matmul_cfg *cfg = n->cfg;
    const struct pm_shape a = n->in[0]->out_shape, b = n->in[1]->out_shape;
    struct matmul_params p = {
        .batch = 1, .m = a.dim[a.rank - (cfg->transpose_a ? 1 : 2)],
        .k = a.dim[a.rank - (cfg->transpose_a ? 2 : 1)],
        .n = b.dim[b.rank - (cfg->transpose_b ? 2 : 1)],
        .a_across = cfg->transpose_a, .b_across = cfg->transpose_b,
    };

    for (int i = 0; i < a.rank - 2; i++)
        p.batch *= a.dim[i];
    return p;
}

static int infer(struct pm_node *n)
{
    const struct matmul_cfg *cfg = n->cfg;
    const struct pm_shape a = n->in[0]->out_shape, b = n->in[1]->out_shape;
    struct matmul_params p;
    char first[64], second[64];
    bool fits = a.rank >= 2 && a.rank == b.rank;

    for (int i = 0; i < a.rank - 2; i++)
        fits = fits && a.dim[i] == b.dim[i];
    if (!fits ||
        a.dim[a.rank - (cfg->transpose_a ? 2 : 1)] != b.dim[b.rank - (cfg->transpose_b ? 1 : 2)])
        return pm_fail(PM_ECONFIG,
                       "%s: matmul's inputs have shapes %s and %s, not [..][m][k] and "
                       "[..][k][n] (transpose_a and transpose_b exchange the last two axes)",
                       n->name, pm_shape_text(a, first), pm_shape_text(b, second));
    p = params_of(n);
    n->out_shape = a;
    n->out_shape.dim[a.rank - 2] = p.m;
    n->out_shape.dim[a.rank - 1] = p.n;
    n->out_type = PM_F32;
    return pm_need_floats(n, 0, 1);
}

/* Appends y = op(a) op(b) for matrices y of m x n. */
static void call(struct pm_calls *c, const struct matmul_params *like, int m, int n, int k,
                 struct pm_tensor a, bool a_across, struct pm_tensor b, bool b_across,
                 struct pm_tensor y)
{
    const struct matmul_params p = { like->batch, m, n, k, a_across, b_across };

    pm_call(c, &row, pm_count(y), &p, PM_BUFS(a, b, y));
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct matmul_params p = params_of(n);

    call(c, &p, p.m, p.n, p.k, n->xs[0], p.a_across, n->xs[1], p.b_across, n->y);
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    const struct matmul_params p = params_of(n);
    const struct pm_tensor a = n->xs[0], b = n->xs[1], dy = n->dy;

    if (pm_has(n->dxs[0]) && p.a_across)
        call(c, &p, p.k, p.m, p.n, b, p.b_across, dy, true, n->dxs[0]);
    else if (pm_has(n->dxs[0]))
        call(c, &p, p.m, p.k, p.n, dy, false, b, !p.b_across, n->dxs[0]);
    if (pm_has(n->dxs[1]) && p.b_across)
        call(c, &p, p.n, p.k, p.m, dy, true, a, p.a_across, n->dxs[1]);
    else if (pm_has(n->dxs[1]))
        call(c, &p, p.k, p.n, p.m, a, !p.a_across, dy, false, n->dxs[1]);
}

/* Exports input i with the net's axis order and with the matrices in the order of the product. */
static const char *export_input(const struct pm_node *n, struct pm_export *g, int i, bool transpose)
{
    const struct pm_shape s = n->in[i]->out_shape;
    const char *x = pm_export_nhwc(g, pm_export_x(g, n, i), s);
    int64_t perm[PM_MAX_RANK];

    if (!transpose)
        return x;
    for (int k = 0; k < s.rank; k++)
        perm[k] = k < s.rank - 2 ? k : 2 * s.rank - 3 - k;
    x = pm_export_op(g, "Transpose", PM_VALUES(x));
    pm_export_ints(g, "perm", s.rank, perm);
    return x;
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct matmul_cfg *cfg = n->cfg;
    const char *a = export_input(n, g, 0, cfg->transpose_a);
    const char *b = export_input(n, g, 1, cfg->transpose_b);

    return pm_export_nchw(g, pm_export_op(g, "MatMul", PM_VALUES(a, b)), n->out_shape);
}

const struct pm_layer pm_layer_matmul = {
    .name = "matmul", .help = "matrix products of two inputs over the last two axes", .opts = opts,
    .cfg_size = sizeof(struct matmul_cfg), .min_inputs = 2, .max_inputs = 2, .infer = infer,
    .forward = forward, .backward = backward, .onnx = onnx,
};
