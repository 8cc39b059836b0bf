/* class_scores: the scores of a detector's classes. Inputs: the maps of class logits of levels 1 to
 * L [n,h,w,A * columns], columns = classes, and one more in front with background. Output:
 * [n,N,classes], the sigmoid or softmax of logits / logit_scale. The softmax is over all columns;
 * then the background is dropped. There is no gradient.
 *
 * With prune_outside the last input is the anchors [N,4], and the scores of those that are not
 * wholly inside 0..1 are 0: the training of Faster R-CNN proposes no box from an anchor that it
 * does not train. Rotated anchors [N,5] (rotated_overlap.h) are inside if all corners are in 0..1
 * along y and in 0..width along x. */
#include <math.h>
#include <string.h>

#include "decode_boxes.params.h"
#include "layers/anchors.h"
#include "layers/infer.h"
#include "layers/levels.h"
#include "layers/rotated_overlap.h"
#include "layers/vmath.h"
#include "onnx/export_nodes.h"

struct scores_cfg {
    int classes, converter;
    bool background, prune_outside;
    float logit_scale, width;
};

static const struct pm_opt opts[] = {
    PM_INT(scores_cfg, classes, 1, 1, 100000, "number of classes without the background"),
    PM_BOOL(scores_cfg, background, true, "logits have a column 0 for the background"),
    PM_ENUM(scores_cfg, converter, CLASS_SCORES_IDENTITY, "identity|sigmoid|softmax",
            "function that makes scores of logits"),
    PM_FLOAT(scores_cfg, logit_scale, 1, 1e-6, 1e6, "logits are divided by this number first"),
    PM_BOOL(scores_cfg, prune_outside, false,
            "anchors, the last input, that are not wholly inside the image have score 0"),
    PM_FLOAT(scores_cfg, width, 1, 1e-3, 1e3,
             "prune_outside with rotated anchors: width of the image over its height"),
    { 0 },
};

PM_INLINE void convert(const struct class_scores_params *p, const float *x, float *y)
{
    const int columns = p->columns, skip = p->background;
    float most = -INFINITY, sum = 0;

    if (p->converter == CLASS_SCORES_IDENTITY) {
        for (int k = skip; k < columns; k++)
            y[k - skip] = x[k] * p->scale;
        return;
    }
    if (p->converter == CLASS_SCORES_SIGMOID) {
        for (int k = skip; k < columns; k++)
            y[k - skip] = 1 / (1 + pm_expf(-x[k] * p->scale));
        return;
    }
    for (int k = 0; k < columns; k++)
        most = x[k] * p->scale > most ? x[k] * p->scale : most;
    if (skip)
        sum = pm_expf(x[0] * p->scale - most);
    for (int k = skip; k < columns; k++)
        y[k - skip] = pm_expf(x[k] * p->scale - most);
    for (int k = skip; k < columns; k++)
        sum += y[k - skip];
    for (int k = skip; k < columns; k++)
        y[k - skip] /= sum;
}

static bool is_kept(const struct class_scores_params *p, const float *boxes, size_t anchor)
{
    const float *box = boxes + 4 * anchor;

    if (p->width > 0)
        return pm_rotated_is_inside(boxes + PM_ROTATED_BOX * anchor, p->width,
                                    CLASS_SCORES_BORDER);
    return box[0] >= -CLASS_SCORES_BORDER && box[1] >= -CLASS_SCORES_BORDER &&
           box[2] <= 1 + CLASS_SCORES_BORDER && box[3] <= 1 + CLASS_SCORES_BORDER;
}

PM_CLONES static void scores_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct class_scores_params *p = a->params;
    const size_t columns = (size_t)p->columns, classes = columns - (size_t)p->background;
    const int first[] = { 0, p->first2, p->first3, p->first4, p->first5, p->first6, p->first7,
                          p->anchors };
    const float *boxes = a->buf[7];
    float *y = a->buf[8];
    int level = 0;

    for (size_t i = begin; i < end; i++) {
        const int anchor = (int)(i % (size_t)p->anchors);

        for (level = anchor == 0 ? 0 : level; anchor >= first[level + 1];)
            level++;
        const size_t at = i / (size_t)p->anchors * (size_t)(first[level + 1] - first[level]) +
                          (size_t)(anchor - first[level]);

        if (!boxes || is_kept(p, boxes, (size_t)anchor))
            convert(p, (const float *)a->buf[level] + at * columns, y + i * classes);
        else
            memset(y + i * classes, 0, classes * sizeof *y);
    }
}

static double scores_flops(const void *params, size_t count)
{
    return 10.0 * ((const struct class_scores_params *)params)->columns * (double)count;
}

#define BUFS "r:x1 r?:x2 r?:x3 r?:x4 r?:x5 r?:x6 r?:x7 r?:anchors w:y"
static const struct pm_kernel scores = {
    .name = "class_scores", .bufs = BUFS, .params_size = sizeof(struct class_scores_params),
    .cpu = scores_cpu, .grain = 64, .flops = scores_flops,
};
static const struct pm_kernel rotated = {
    .name = "class_scores_rotated", .bufs = BUFS,
    .params_size = sizeof(struct class_scores_params), .cpu = scores_cpu, .grain = 64,
    .flops = scores_flops,
};

static int levels_of(const struct pm_node *n)
{
    return n->inputs - ((const struct scores_cfg *)n->cfg)->prune_outside;
}

/* Whether anchors are pruned and rotated. */
static bool prunes_rotated(const struct pm_node *n)
{
    return ((const struct scores_cfg *)n->cfg)->prune_outside &&
           n->in[n->inputs - 1]->out_shape.dim[1] == PM_ROTATED_BOX;
}

static int infer(struct pm_node *n)
{
    const struct scores_cfg *cfg = n->cfg;
    const struct pm_shape last = n->in[n->inputs - 1]->out_shape;
    int first[PM_MAX_LEVELS + 1], levels = levels_of(n), err = PM_OK;
    char text[64];

    if (levels < 1 || levels > PM_MAX_LEVELS)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: class_scores needs 1 to %d maps%s, not %d", n->name,
                       PM_MAX_LEVELS, cfg->prune_outside ? " before the anchors" : "", levels));
    PM_TRY(pm_levels_read(n, 0, levels, cfg->classes + cfg->background, first));
    if (cfg->prune_outside)
        PM_TRY(pm_need_floats(n, levels, levels));
    if (cfg->prune_outside && !pm_shape_equal(last, PM_SHAPE2(first[levels], 4)) &&
        !pm_shape_equal(last, PM_SHAPE2(first[levels], PM_ROTATED_BOX)))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: prune_outside needs the anchors, %dx4 or rotated ones, "
                       "%dx5, as the last input, not %s", n->name, first[levels], first[levels],
                       pm_shape_text(last, text)));
    n->out_shape = PM_SHAPE3(n->in[0]->out_shape.dim[0], first[levels], cfg->classes);
    n->out_type = PM_F32;
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct scores_cfg *cfg = n->cfg;
    const int columns = cfg->classes + cfg->background, levels = levels_of(n);
    struct pm_tensor x[PM_MAX_LEVELS];
    int first[PM_MAX_LEVELS + 1];

    pm_levels_read(n, 0, levels, columns, first); /* infer() checked it */
    for (int k = 0; k < PM_MAX_LEVELS; k++)
        x[k] = k < levels ? n->xs[k] : PM_NO_TENSOR;
    const struct class_scores_params p = {
        .rows = n->y.shape.dim[0] * first[PM_MAX_LEVELS], .anchors = first[PM_MAX_LEVELS],
        .first2 = first[1], .first3 = first[2], .first4 = first[3], .first5 = first[4],
        .first6 = first[5], .first7 = first[6], .columns = columns,
        .background = cfg->background, .converter = cfg->converter,
        .scale = 1 / cfg->logit_scale, .width = prunes_rotated(n) ? cfg->width : 0,
    };

    pm_call(c, p.width > 0 ? &rotated : &scores, (size_t)p.rows, &p,
            PM_BUFS(x[0], x[1], x[2], x[3], x[4], x[5], x[6],
                    cfg->prune_outside ? n->xs[levels] : PM_NO_TENSOR, n->y));
}

/* Multiplies the scores [n,N,classes] by 1 or 0 for each anchor. */
static const char *pruned(const struct pm_node *n, struct pm_export *g, const char *x)
{
    const struct pm_node *anchors = n->in[n->inputs - 1];
    const size_t count = (size_t)anchors->out_shape.dim[0];
    const size_t numbers = (size_t)anchors->out_shape.dim[1];
    const struct class_scores_params p = {
        .width = prunes_rotated(n) ? ((const struct scores_cfg *)n->cfg)->width : 0,
    };
    const int64_t dim[] = { 1, (int64_t)count, 1 };
    float *boxes, *kept;

    if (!pm_is_anchors(anchors)) {
        pm_export_refuse(g, "prune_outside needs anchors of a layer of anchors: give it such a "
                            "layer as the last input, or set prune_outside=false");
        return x;
    }
    boxes = pm_malloc(count * numbers * sizeof *boxes);
    kept = pm_malloc(count * sizeof *kept);
    pm_anchors_write(anchors, boxes);
    for (size_t i = 0; i < count; i++)
        kept[i] = is_kept(&p, boxes, i);
    x = pm_export_op2(g, "Mul", x, pm_export_tensor(g, "inside", PM_DTYPE_F32, 3, dim, kept));
    pm_free(boxes);
    pm_free(kept);
    return x;
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct scores_cfg *cfg = n->cfg;
    const int64_t begin = 1, end = INT32_MAX, axis = 2;
    const char *x = pm_levels_onnx(n, g, 0, levels_of(n), cfg->classes + cfg->background);

    if (cfg->logit_scale != 1)
        x = pm_export_op(g, "Mul", PM_VALUES(x, pm_export_number(g, 1 / cfg->logit_scale)));
    if (cfg->converter == CLASS_SCORES_SIGMOID)
        x = pm_export_op(g, "Sigmoid", PM_VALUES(x));
    if (cfg->converter == CLASS_SCORES_SOFTMAX) {
        x = pm_export_op(g, "Softmax", PM_VALUES(x));
        pm_export_int(g, "axis", -1);
    }
    if (cfg->background)
        x = pm_export_op(g, "Slice", PM_VALUES(x, pm_export_integers(g, 1, &begin),
                                               pm_export_integers(g, 1, &end),
                                               pm_export_integers(g, 1, &axis)));
    return cfg->prune_outside ? pruned(n, g, x) : x;
}

const struct pm_layer pm_layer_class_scores = {
    .name = "class_scores",
    .help = "scores of a detector's classes from the logits of all levels; no gradient",
    .opts = opts, .cfg_size = sizeof(struct scores_cfg), .min_inputs = 1,
    .max_inputs = PM_MAX_LEVELS + 1, .infer = infer, .forward = forward, .onnx = onnx,
};
