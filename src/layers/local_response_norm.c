/* local_response_norm: y = x s^-beta, s = bias + alpha sum of x_j^2 over the channels within
 * radius. Backward: dx = dy s^-beta - 2 alpha beta x sum of dy_j y_j / s_j over the same channels.
 * s is saved by the forward call. */
#include <pumice/layer.h>

#include "onnx/export_nodes.h"
#include "layers/vmath.h"
#include "device/pick.h"
#include "local_response_norm.params.h"

struct lrn_cfg {
    int radius;
    float bias, alpha, beta;
};

static const struct pm_opt opts[] = {
    PM_INT(lrn_cfg, radius, 5, 0, 4096, "channels to either side that are included"),
    PM_FLOAT(lrn_cfg, bias, 1, 1e-6, 1e6, "added to the sum"),
    PM_FLOAT(lrn_cfg, alpha, 1, 0, 1e6, "factor for the sum of squares"),
    PM_FLOAT(lrn_cfg, beta, 0.5, 0, 10, "negative power of the sum"),
    { 0 },
};

/* out[k] = x[k] * s[k]^-beta. The usual exponents 3/4 and 1/2 are computed by square roots. */
PM_INLINE void scale_row(const float *x, const float *s, float beta, float *out, int c)
{
    if (beta == 0.75f) {
        for (int k = 0; k < c; k++) {
            float root = sqrtf(s[k]);
            out[k] = x[k] / (root * sqrtf(root));
        }
    } else if (beta == 0.5f) {
        for (int k = 0; k < c; k++)
            out[k] = x[k] / sqrtf(s[k]);
    } else {
        for (int k = 0; k < c; k++)
            out[k] = x[k] * powf(s[k], -beta);
    }
}

/* The range of channels k for which k + offset is a channel too. */
PM_INLINE int from_of(int offset)
{
    return offset < 0 ? -offset : 0;
}

PM_INLINE int to_of(int offset, int c)
{
    return offset > 0 ? c - offset : c;
}

PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct local_response_norm_params *p = a->params;
    int c = p->c;

    for (size_t row = begin; row < end; row++) {
        const float *x = (const float *)a->buf[0] + row * c;
        float *restrict s = (float *)a->buf[1] + row * c;
        float *restrict y = (float *)a->buf[2] + row * c;

        memset(s, 0, sizeof *s * c);
        for (int offset = -p->radius; offset <= p->radius; offset++)
            for (int k = from_of(offset); k < to_of(offset, c); k++)
                s[k] += x[k + offset] * x[k + offset];
        for (int k = 0; k < c; k++)
            s[k] = p->bias + p->alpha * s[k];
        scale_row(x, s, p->beta, y, c);
    }
}

enum { CHANNELS = 256 }; /* terms dy y / s held at a time */

PM_CLONES static void bwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct local_response_norm_params *p = a->params;
    float factor = -2 * p->alpha * p->beta, term[CHANNELS], scaled[CHANNELS];
    int c = p->c;

    for (size_t row = begin; row < end; row++) {
        const float *x = (const float *)a->buf[0] + row * c,
                    *s = (const float *)a->buf[1] + row * c;
        const float *y = (const float *)a->buf[2] + row * c,
                    *dy = (const float *)a->buf[3] + row * c;
        float *restrict dx = (float *)a->buf[4] + row * c;

        memset(dx, 0, sizeof *dx * c);
        for (int block = 0; block < c; block += CHANNELS) { /* sums over the j of this block */
            int stop = c < block + CHANNELS ? c : block + CHANNELS;

            for (int j = block; j < stop; j++)
                term[j - block] = dy[j] * y[j] / s[j];
            for (int offset = -p->radius; offset <= p->radius; offset++) {
                int first = block - offset < 0 ? 0 : block - offset;
                int last = stop - offset > c ? c : stop - offset;

                for (int k = first; k < last; k++)
                    dx[k] += term[k + offset - block];
            }
        }
        for (int block = 0; block < c; block += CHANNELS) {
            int width = c - block < CHANNELS ? c - block : CHANNELS;

            scale_row(dy + block, s + block, p->beta, scaled, width);
            for (int k = 0; k < width; k++)
                dx[block + k] = scaled[k] + factor * x[block + k] * dx[block + k];
        }
    }
}

static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct local_response_norm_params *p = params;
    (void)caps;
    return level == 0 &&
           pm_pick_elements("local_response_norm_fwd", 64, count * (size_t)p->c, out);
}

static bool bwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    const struct local_response_norm_params *p = params;
    (void)caps;
    return level == 0 &&
           pm_pick_elements("local_response_norm_bwd", 64, count * (size_t)p->c, out);
}

static double flops(const void *params, size_t count)
{
    const struct local_response_norm_params *p = params;
    return (double)count * p->c * (4.0 * p->radius + 20);
}

static const struct pm_kernel fwd = {
    .name = "local_response_norm_fwd", .bufs = "r:x w:s w:y",
    .params_size = sizeof(struct local_response_norm_params), .cpu = fwd_cpu, .grain = 16,
    .pick = fwd_pick, .flops = flops,
};
static const struct pm_kernel bwd = {
    .name = "local_response_norm_bwd", .bufs = "r:x r:s r:y r:dy w:dx",
    .params_size = sizeof(struct local_response_norm_params), .cpu = bwd_cpu, .grain = 16,
    .pick = bwd_pick, .flops = flops,
};

static int infer(struct pm_node *n)
{
    char text[64];

    if (n->in[0]->out_shape.rank < 2)
        return pm_fail(PM_ECONFIG,
                       "%s: local_response_norm needs an input with channels last, not %s", n->name,
                       pm_shape_text(n->in[0]->out_shape, text));
    return pm_infer_same(n);
}

static struct local_response_norm_params params_of(const struct pm_node *n)
{
    const struct lrn_cfg *cfg = n->cfg;
    int c = n->x.shape.dim[n->x.shape.rank - 1];

    return (struct local_response_norm_params){
        .rows = (int)(pm_count(n->x) / (size_t)c), .c = c,
        .radius = cfg->radius < c ? cfg->radius : c - 1,
        .bias = cfg->bias, .alpha = cfg->alpha, .beta = cfg->beta,
    };
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    struct local_response_norm_params p = params_of(n);
    pm_call(c, &fwd, (size_t)p.rows, &p, PM_BUFS(n->x, pm_save(c, n, 0, n->x.shape, PM_F32), n->y));
}

static void backward(struct pm_node *n, struct pm_calls *c)
{
    struct local_response_norm_params p = params_of(n);

    if (pm_has(n->dx))
        pm_call(c, &bwd, (size_t)p.rows, &p, PM_BUFS(n->x, n->saved[0], n->y, n->dy, n->dx));
}

/* ONNX divides alpha by the number of channels, and requires images. */
static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct lrn_cfg *cfg = n->cfg;
    const struct pm_shape x = n->out_shape;
    const int c = x.dim[x.rank - 1], radius = cfg->radius < c ? cfg->radius : c - 1;
    const struct pm_shape images =
        x.rank == 4 ? x : PM_SHAPE4((int)(pm_shape_count(x) / (size_t)c), 1, 1, c);
    const char *y = pm_export_op(g, "LRN", PM_VALUES(pm_export_reshape(g, pm_export_x(g, n, 0), x,
                                                                       images)));

    pm_export_int(g, "size", 2 * radius + 1);
    pm_export_float(g, "alpha", cfg->alpha * (float)(2 * radius + 1));
    pm_export_float(g, "beta", cfg->beta);
    pm_export_float(g, "bias", cfg->bias);
    return pm_export_reshape(g, y, images, x);
}

const struct pm_layer pm_layer_local_response_norm = {
    .name = "local_response_norm", .help = "divides by the energy of neighbouring channels",
    .opts = opts, .cfg_size = sizeof(struct lrn_cfg), .infer = infer, .forward = forward,
    .backward = backward, .onnx = onnx,
};
