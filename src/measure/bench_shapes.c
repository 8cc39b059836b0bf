/* bench_shapes: see bench_shapes.h. */
#include "measure/bench_shapes.h"

#include <pumice/plan.h>
#include <pumice/task.h>

#include "layers/conv_rows.h"

#include <string.h>

struct shapes {
    struct pm_bench_shape *list; /* growing array */
    size_t count, capacity;
};

static bool is_depthwise(const struct pm_kernel *k)
{
    return k == &pm_depthwise_fwd || k == &pm_depthwise_bwd_data ||
           k == &pm_depthwise_bwd_filter;
}

static const char *pass_of(const struct pm_kernel *k)
{
    if (k == &pm_conv2d_fwd || k == &pm_depthwise_fwd)
        return "forward";
    if (k == &pm_conv2d_bwd_data || k == &pm_depthwise_bwd_data)
        return "data";
    return k == &pm_conv2d_bwd_filter || k == &pm_depthwise_bwd_filter ? "filter" : NULL;
}

static void add(struct shapes *s, const char *net, const struct pm_kernel *k,
                const struct conv2d_params *p, int uses)
{
    struct pm_bench_shape shape = { .net = net, .kernel = k, .pass = pass_of(k), .p = *p,
                                    .uses = uses };

    /* The convolution alone: it adds to nothing, writes no moments for batch norm, and transposes
     * its weights itself. */
    shape.p.accumulate = shape.p.moments = shape.p.transposed = 0;
    for (size_t i = 0; i < s->count; i++)
        if (s->list[i].kernel == k && strcmp(s->list[i].net, net) == 0 &&
            memcmp(&s->list[i].p, &shape.p, sizeof shape.p) == 0) {
            s->list[i].uses += uses;
            return;
        }
    PM_GROW(s->list, s->count, s->capacity);
    s->list[s->count++] = shape;
}

/* Adds forward, data gradient (unless nothing reads it) and filter gradient. */
static void add_passes(struct shapes *s, const char *net, bool depthwise, bool first,
                       const struct conv2d_params *p, int uses)
{
    add(s, net, depthwise ? &pm_depthwise_fwd : &pm_conv2d_fwd, p, uses);
    if (!first)
        add(s, net, depthwise ? &pm_depthwise_bwd_data : &pm_conv2d_bwd_data, p, uses);
    add(s, net, depthwise ? &pm_depthwise_bwd_filter : &pm_conv2d_bwd_filter, p, uses);
}

/* ---- nets that exist -------------------------------------------------------------------- */

static struct pm_net *build(const struct pm_net_row *row, int batch, int classes,
                            struct pm_arena *a)
{
    struct pm_net *net = pm_net_create();
    struct pm_heads heads = { 0 };
    void *cfg = pm_arena_alloc(a, row->cfg_size + 1);
    struct pm_node *images =
        pm_net_input(net, "images", PM_SHAPE4(batch, row->default_size, row->default_size,
                                              row->default_channels), PM_F32);

    if (row->opts)
        pm_opts_defaults(row->opts, cfg, a);
    row->build(net, images, classes, cfg, &heads);
    pm_net_input(net, "labels", PM_SHAPE1(batch), PM_I32);
    pm_net_add_many(net, "loss",
                    (struct pm_node *[]){ pm_heads_main(&heads), pm_net_find(net, "labels") },
                    2, "softmax_cross_entropy");
    return net;
}

/* Adds the convolutions among the calls of a net's training step. */
static int add_net(struct shapes *s, struct pm_device *d, const char *name, int batch, int classes,
                   struct pm_arena *a)
{
    const struct pm_planned_call *calls;
    struct pm_net *net = build(pm_net_row_find(name), batch, classes, a);
    struct pm_plan *plan = NULL;
    size_t count;
    int err = PM_OK;

    PM_TRY(net->error);
    PM_TRY(pm_plan_create(net, d, NULL, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .name = "bench" }, &plan));
    calls = pm_plan_calls(plan, &count);
    for (size_t i = 0; i < count; i++)
        if (pass_of(calls[i].kernel))
            add(s, name, calls[i].kernel, calls[i].params, 1);
out:
    pm_plan_destroy(&plan);
    pm_net_destroy(&net);
    return err;
}

/* ---- nets from the table ---------------------------------------------------------------- */

enum kind { DENSE, DEPTHWISE, FIRST };
struct entry {
    int uses, size, channels, filters, kernel_h, kernel_w, stride, dilation;
    enum pm_padding padding;
    enum kind kind;
};
#define SAME PM_PAD_SAME
#define VALID PM_PAD_VALID

/* TF-Slim's net, 299x299, with the auxiliary head. */
static const struct entry inception_v3[] = {
    { 1, 299, 3, 32, 3, 3, 2, 1, VALID, FIRST },
    { 1, 149, 32, 32, 3, 3, 1, 1, VALID, DENSE },
    { 1, 147, 32, 64, 3, 3, 1, 1, SAME, DENSE },
    { 1, 73, 64, 80, 1, 1, 1, 1, VALID, DENSE },
    { 1, 73, 80, 192, 3, 3, 1, 1, VALID, DENSE },
    /* Mixed_5b, 5c, 5d and 6a */
    { 2, 35, 192, 64, 1, 1, 1, 1, SAME, DENSE },
    { 1, 35, 192, 48, 1, 1, 1, 1, SAME, DENSE },
    { 1, 35, 192, 32, 1, 1, 1, 1, SAME, DENSE },
    { 3, 35, 256, 64, 1, 1, 1, 1, SAME, DENSE },
    { 1, 35, 256, 48, 1, 1, 1, 1, SAME, DENSE },
    { 4, 35, 288, 64, 1, 1, 1, 1, SAME, DENSE },
    { 1, 35, 288, 48, 1, 1, 1, 1, SAME, DENSE },
    { 3, 35, 48, 64, 5, 5, 1, 1, SAME, DENSE },
    { 4, 35, 64, 96, 3, 3, 1, 1, SAME, DENSE },
    { 3, 35, 96, 96, 3, 3, 1, 1, SAME, DENSE },
    { 1, 35, 288, 384, 3, 3, 2, 1, VALID, DENSE },
    { 1, 35, 96, 96, 3, 3, 2, 1, VALID, DENSE },
    /* Mixed_6b to 6e and 7a */
    { 12, 17, 768, 192, 1, 1, 1, 1, SAME, DENSE },
    { 2, 17, 768, 128, 1, 1, 1, 1, SAME, DENSE },
    { 4, 17, 768, 160, 1, 1, 1, 1, SAME, DENSE },
    { 2, 17, 128, 128, 1, 7, 1, 1, SAME, DENSE },
    { 2, 17, 128, 128, 7, 1, 1, 1, SAME, DENSE },
    { 1, 17, 128, 192, 1, 7, 1, 1, SAME, DENSE },
    { 1, 17, 128, 192, 7, 1, 1, 1, SAME, DENSE },
    { 4, 17, 160, 160, 1, 7, 1, 1, SAME, DENSE },
    { 4, 17, 160, 160, 7, 1, 1, 1, SAME, DENSE },
    { 2, 17, 160, 192, 1, 7, 1, 1, SAME, DENSE },
    { 2, 17, 160, 192, 7, 1, 1, 1, SAME, DENSE },
    { 4, 17, 192, 192, 1, 7, 1, 1, SAME, DENSE },
    { 4, 17, 192, 192, 7, 1, 1, 1, SAME, DENSE },
    { 1, 17, 192, 320, 3, 3, 2, 1, VALID, DENSE },
    { 1, 17, 192, 192, 3, 3, 2, 1, VALID, DENSE },
    /* the auxiliary head */
    { 1, 5, 768, 128, 1, 1, 1, 1, SAME, DENSE },
    { 1, 5, 128, 768, 5, 5, 1, 1, VALID, DENSE },
    { 1, 1, 768, 1001, 1, 1, 1, 1, SAME, DENSE },
    /* Mixed_7b, 7c and the logits */
    { 1, 8, 1280, 320, 1, 1, 1, 1, SAME, DENSE },
    { 1, 8, 1280, 384, 1, 1, 1, 1, SAME, DENSE },
    { 1, 8, 1280, 448, 1, 1, 1, 1, SAME, DENSE },
    { 1, 8, 1280, 192, 1, 1, 1, 1, SAME, DENSE },
    { 1, 8, 2048, 320, 1, 1, 1, 1, SAME, DENSE },
    { 1, 8, 2048, 384, 1, 1, 1, 1, SAME, DENSE },
    { 1, 8, 2048, 448, 1, 1, 1, 1, SAME, DENSE },
    { 1, 8, 2048, 192, 1, 1, 1, 1, SAME, DENSE },
    { 4, 8, 384, 384, 1, 3, 1, 1, SAME, DENSE },
    { 4, 8, 384, 384, 3, 1, 1, 1, SAME, DENSE },
    { 2, 8, 448, 384, 3, 3, 1, 1, SAME, DENSE },
    { 1, 1, 2048, 1001, 1, 1, 1, 1, SAME, DENSE },
};

/* The parts specific to DeepLab, at crop 513: xception_65's middle and exit flow, the pyramid with
 * separable and (resnet) dense convolutions, the decoder; at output stride 16 (33x33) and 8
 * (65x65). It is not a whole net. */
static const struct entry deeplab[] = {
    { 48, 33, 728, 728, 3, 3, 1, 1, SAME, DEPTHWISE },
    { 48, 33, 728, 728, 1, 1, 1, 1, SAME, DENSE },
    { 2, 33, 1536, 1536, 3, 3, 1, 2, SAME, DEPTHWISE },
    { 1, 33, 1536, 2048, 1, 1, 1, 1, SAME, DENSE },
    { 4, 33, 2048, 256, 1, 1, 1, 1, SAME, DENSE },
    { 1, 33, 2048, 2048, 3, 3, 1, 6, SAME, DEPTHWISE },
    { 1, 33, 2048, 2048, 3, 3, 1, 12, SAME, DEPTHWISE },
    { 1, 33, 2048, 2048, 3, 3, 1, 18, SAME, DEPTHWISE },
    { 1, 33, 2048, 256, 3, 3, 1, 6, SAME, DENSE },
    { 1, 33, 2048, 256, 3, 3, 1, 12, SAME, DENSE },
    { 1, 33, 2048, 256, 3, 3, 1, 18, SAME, DENSE },
    { 3, 33, 512, 512, 3, 3, 1, 2, SAME, DENSE },
    { 48, 65, 728, 728, 3, 3, 1, 2, SAME, DEPTHWISE },
    { 48, 65, 728, 728, 1, 1, 1, 1, SAME, DENSE },
    { 1, 65, 2048, 256, 3, 3, 1, 12, SAME, DENSE },
    { 1, 65, 2048, 256, 3, 3, 1, 24, SAME, DENSE },
    { 1, 65, 2048, 256, 3, 3, 1, 36, SAME, DENSE },
    { 3, 65, 512, 512, 3, 3, 1, 4, SAME, DENSE },
    { 1, 129, 304, 304, 3, 3, 1, 1, SAME, DEPTHWISE },
    { 1, 129, 304, 256, 1, 1, 1, 1, SAME, DENSE },
    { 1, 129, 256, 256, 3, 3, 1, 1, SAME, DEPTHWISE },
    { 1, 129, 256, 256, 1, 1, 1, 1, SAME, DENSE },
};

static void add_table(struct shapes *s, const char *net, const struct entry *e, size_t count,
                      int batch)
{
    for (; count > 0; count--, e++) {
        struct pm_axis h = pm_axis_of(e->size, e->kernel_h, e->stride, e->dilation, e->padding, 0,
                                      0);
        struct pm_axis w = pm_axis_of(e->size, e->kernel_w, e->stride, e->dilation, e->padding, 0,
                                      0);
        const struct conv2d_params p = {
            .n = batch, .h = e->size, .w = e->size, .c = e->channels, .oh = h.out, .ow = w.out,
            .k = e->filters, .kh = e->kernel_h, .kw = e->kernel_w, .stride_h = e->stride,
            .stride_w = e->stride, .dilation_h = e->dilation, .dilation_w = e->dilation,
            .top = h.before, .left = w.before,
            .groups = e->kind == DEPTHWISE ? e->channels : 1,
        };

        add_passes(s, net, e->kind == DEPTHWISE, e->kind == FIRST, &p, e->uses);
    }
}

/* Adds a product [n][c] x [c][k], as in fully_connected. */
static void add_product(struct shapes *s, int n, int c, int k)
{
    const struct conv2d_params p = { .n = n, .h = 1, .w = 1, .c = c, .oh = 1, .ow = 1, .k = k,
                                     .kh = 1, .kw = 1, .stride_h = 1, .stride_w = 1,
                                     .dilation_h = 1, .dilation_w = 1, .groups = 1 };

    add_passes(s, "gemm", false, false, &p, 1);
}

int pm_bench_shapes(struct pm_device *d, int batch, struct pm_arena *a,
                    struct pm_bench_shape **out, size_t *count)
{
    struct shapes s = { 0 };
    int err = PM_OK;

    for (int n = 256; n <= 1024; n *= 2)
        add_product(&s, n, n, n);
    PM_TRY(add_net(&s, d, "lenet", 32, 10, a));
    PM_TRY(add_net(&s, d, "resnet_v1_50", batch, 1000, a));
    PM_TRY(add_net(&s, d, "mobilenet_v1", batch, 1001, a));
    add_table(&s, "inception_v3", inception_v3, PM_COUNT(inception_v3), batch);
    add_table(&s, "deeplab", deeplab, PM_COUNT(deeplab), batch < 4 ? 1 : batch / 4);
    *out = pm_arena_alloc(a, s.count * sizeof *s.list);
    memcpy(*out, s.list, s.count * sizeof *s.list);
    *count = s.count;
out:
    pm_free(s.list);
    return err;
}

char *pm_bench_shape_text(const struct pm_bench_shape *s, char buf[96])
{
    const struct conv2d_params *p = &s->p;
    char dilation[16] = "";

    if (p->h == 1 && p->w == 1) {
        snprintf(buf, 96, "%dx%dx%d", p->n, p->c, p->k);
        return buf;
    }
    if (p->dilation_h > 1)
        snprintf(dilation, sizeof dilation, " d%d", p->dilation_h);
    snprintf(buf, 96, "%dx%dx%dx%d %dx%d/%d%s%s -> %dx%dx%d", p->n, p->h, p->w, p->c, p->kh, p->kw,
             p->stride_h, is_depthwise(s->kernel) ? " dw" : "", dilation, p->oh, p->ow, p->k);
    return buf;
}
