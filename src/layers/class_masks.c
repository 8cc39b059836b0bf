/* class_masks: selects for each detection the mask of its class and returns it as probabilities.
 * Inputs: logits [n * D,h,w,C], or [n * D,h,w,1]: the same for all classes; classes I32 [n,D], 0 to
 * C - 1; count I32 [n], the number of detections of each image. Output: [n,h,w,D], which is
 * [n,D,h,w] in ONNX: the sigmoid; 0 after the last detection. For evaluation: there is no
 * gradient. */
#include "class_masks.params.h"
#include "layers/activation.h"
#include "layers/infer.h"
#include "onnx/export_nodes.h"

enum { LOGITS, CLASSES, COUNT };

static const struct pm_opt no_opts[] = { { 0 } };

/* Items: pixels of all images. */
PM_CLONES static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct class_masks_params *p = a->params;
    const size_t c = (size_t)p->c, pixels = (size_t)p->pixels, per = (size_t)p->per;
    float *y = a->buf[3];

    for (size_t i = begin; i < end; i++) {
        const size_t image = i / pixels;
        const int *classes = (const int *)a->buf[1] + image * per;
        const int count = ((const int *)a->buf[2])[image];

        for (size_t d = 0; d < per; d++) {
            const int k = p->c == 1 ? 0 : classes[d];
            const size_t at = ((image * per + d) * pixels + i % pixels) * c;

            y[i * per + d] = (int)d < count && k >= 0 && k < p->c
                                 ? pm_sigmoid(((const float *)a->buf[0])[at + (size_t)k])
                                 : 0;
        }
    }
}

static double fwd_flops(const void *params, size_t count)
{
    return 10.0 * ((const struct class_masks_params *)params)->per * (double)count;
}

/* The shader's items are values. */
static bool fwd_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                     struct pm_picks *out)
{
    (void)caps;
    if (level > 0)
        return false;
    pm_pick_elements("class_masks", 64,
                     count * (size_t)((const struct class_masks_params *)params)->per, out);
    return true;
}

static const struct pm_kernel fwd = {
    .name = "class_masks", .bufs = "r:x r:classes r:count w:y",
    .params_size = sizeof(struct class_masks_params), .cpu = fwd_cpu, .grain = 16,
    .pick = fwd_pick, .flops = fwd_flops,
};

static int infer(struct pm_node *n)
{
    const struct pm_shape x = n->in[LOGITS]->out_shape, d = n->in[CLASSES]->out_shape;
    char text[2][64];
    int err = PM_OK;

    PM_TRY(pm_need_floats(n, LOGITS, LOGITS));
    if (n->in[CLASSES]->out_type != PM_I32 || n->in[COUNT]->out_type != PM_I32)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: class_masks needs int32 classes and counts after the "
                                   "logits, the outputs 2 and 3 of suppress", n->name));
    if (x.rank != 4 || d.rank != 2 || x.dim[0] != d.dim[0] * d.dim[1])
        PM_TRY(pm_fail(PM_ECONFIG, "%s: logits have shape %s, but classes have %s: the logits need "
                                   "height x width x C numbers for each detection", n->name,
                       pm_shape_text(x, text[0]), pm_shape_text(d, text[1])));
    if (!pm_shape_equal(n->in[COUNT]->out_shape, PM_SHAPE1(d.dim[0])))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: count has shape %s instead of %d: give the number of "
                                   "detections of each image", n->name,
                       pm_shape_text(n->in[COUNT]->out_shape, text[0]), d.dim[0]));
    n->out_shape = PM_SHAPE4(d.dim[0], x.dim[1], x.dim[2], d.dim[1]);
    n->out_rows = n->in[CLASSES]->out_rows;
    n->out_type = PM_F32;
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct pm_shape x = n->xs[LOGITS].shape, d = n->xs[CLASSES].shape;
    const struct class_masks_params p = { .images = d.dim[0], .per = d.dim[1],
                                          .pixels = x.dim[1] * x.dim[2], .c = x.dim[3] };

    pm_call(c, &fwd, (size_t)p.images * (size_t)p.pixels, &p,
            PM_BUFS(n->xs[LOGITS], n->xs[CLASSES], n->xs[COUNT], n->y));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct pm_shape x = n->in[LOGITS]->out_shape;
    const int64_t column[] = { -1, 1, 1, 1 }, mask[] = { 1, 1, x.dim[1], x.dim[2] };
    const int64_t y[] = { -1, n->out_shape.dim[3], x.dim[1], x.dim[2] };
    const char *of = pm_export_x(g, n, LOGITS), *index, *valid; /* [n D,C,h,w] in the graph */

    if (x.dim[3] > 1) {
        index = pm_export_view(g, pm_export_x(g, n, CLASSES), 4, column);
        index = pm_export_op2(g, "Expand", index, pm_export_integers(g, 4, mask));
        of = pm_export_op2(g, "GatherElements", of, index);
        pm_export_int(g, "axis", 1);
    }
    of = pm_export_view(g, pm_export_op(g, "Sigmoid", PM_VALUES(of)), 4, y);
    valid = pm_export_below(g, pm_export_x(g, n, COUNT), 4, 1, n->out_shape.dim[3]);
    return pm_export_op(g, "Where", PM_VALUES(valid, of, pm_export_number(g, 0)));
}

const struct pm_layer pm_layer_class_masks = {
    .name = "class_masks",
    .help = "masks of the detected classes as probabilities: inputs logits, classes, count; no "
            "gradient",
    .opts = no_opts, .cfg_size = 4, .min_inputs = 3, .max_inputs = 3, .infer = infer,
    .forward = forward, .onnx = onnx,
};
