/* segmentation_eval_modes: a net's outputs in evaluation, prediction and export.
 *
 * The predicted class has the largest logit; it is the lowest class if several are equal. With
 * several scales or mirrored pictures (evaluation modes), the net is built once for each mode, with
 * shared variables. Probabilities are averaged after the softmax. */
#include "tasks/segmentation/segmentation.h"

struct modes_net {
    struct pm_net *net;
    struct pm_node *images;
    const struct pm_net_maker *maker;
    const struct pm_task *task;
    const struct pm_segmentation_eval_modes *modes;
    int height, width;
    struct pm_node **edges; /* probabilities of edges, summed over modes; *edges NULL: none yet */
    struct pm_instance_maps *instances; /* sums over modes */
};
/* An evaluation mode. */
struct mode {
    float scale;        /* 0: not scaled */
    bool mirrored;
    const char *pass;   /* of the net (net.h); NULL: the first pass, whose variables the others
                         * share */
    const char *method; /* method of enlarging logits */
};

static int at_scale(int size, float scale)
{
    return (int)(((float)size - 1.0f) * scale + 1.0f); /* in float32, as in TensorFlow */
}

/* Adds one mode. out: logits at the pictures' size; small: as output by the net. */
static int add_mode(const struct modes_net *v, const struct mode *mode, struct pm_node **out,
               struct pm_node **small)
{
    struct pm_net *net = v->net;
    struct pm_node *x = v->images;
    struct pm_heads heads = { 0 };
    int err = PM_OK;

    net->pass = mode->pass;
    net->eval_scale = (struct pm_eval_scale){ mode->scale, v->height, v->width };
    if (mode->mirrored)
        x = pm_net_add(net, pm_segmentation_own(net, "mirrored"), x, "flip");
    if (mode->scale > 0)
        x = pm_segmentation_resized(net, pm_segmentation_own(net, "scaled"), x,
                                    at_scale(v->height, mode->scale),
                                    at_scale(v->width, mode->scale), "bilinear");
    PM_TRY(net->error);
    err = v->maker->heads(v->maker->ctx, net, x, &heads);
    if (err < 0 && mode->scale > 0)
        err =
            pm_fail((enum pm_error)err, "%s (at scale %g the pictures are %d x %d)",
                    pm_error_text(), (double)mode->scale, x->out_shape.dim[1], x->out_shape.dim[2]);
    PM_TRY(err);
    if (pm_heads_find(&heads, "edge"))
        pm_segmentation_add_edges(net, pm_heads_find(&heads, "edge"), mode->mirrored, v->height,
                                  v->width, v->edges);
    if (v->task->pixels.instance.on)
        pm_segmentation_add_instances(net, &heads, &(struct pm_segmentation_view){
            mode->scale, mode->mirrored, v->height, v->width, x->out_shape.dim[1],
            x->out_shape.dim[2] }, v->task, v->instances);
    x = pm_heads_main(&heads);
    if (mode->mirrored)
        x = pm_net_add(net, pm_segmentation_own(net, "logits_mirrored_back"), x, "flip");
    *small = x;
    *out = pm_segmentation_resized(net, pm_segmentation_own(net, "logits_enlarged"), x, v->height,
                                   v->width, mode->method);
    err = net->error;
out:
    net->pass = NULL;
    net->eval_scale = (struct pm_eval_scale){ 0 };
    return err;
}

static bool is_unscaled(const struct pm_segmentation_eval_modes *s)
{
    return s->scales.count == 0 || (s->scales.count == 1 && s->scales.v[0] == 1);
}

/* Sums probabilities over every scale, mirrored or not. They are added one after the other, in the
 * original's order. */
static int add_modes(const struct modes_net *v, int *count, struct pm_node **sum)
{
    const struct pm_segmentation_eval_modes *s = v->modes;
    const int each = s->flip ? 2 : 1, n = each * (s->scales.count ? s->scales.count : 1);
    struct pm_net *net = v->net;
    int err = PM_OK;

    for (*count = 0; *count < n; ++*count) {
        const char *pass = pm_arena_printf(net->arena, "mode_%d", *count + 1);
        const struct mode mode = { .scale = is_unscaled(s) ? 0 : s->scales.v[*count / each],
                                   .mirrored = *count % each == 1,
                                   .pass = *count ? pass : NULL,
                                   .method = "bilinear" };
        struct pm_node *x = NULL, *small;

        PM_TRY(add_mode(v, &mode, &x, &small));
        const char *single = pm_arena_printf(net->arena, "%s/probabilities", pass);
        const char *all = pm_segmentation_own(net, pm_arena_printf(net->arena, "%s/sum", pass));

        x = pm_net_add(net, pm_segmentation_own(net, single), x, "softmax");
        *sum =
            *count == 0 ? x : pm_net_add_many(net, all, (struct pm_node *[]){ *sum, x }, 2, "add");
    }
    err = net->error;
out:
    return err;
}

static bool is_single(const struct pm_segmentation_eval_modes *s)
{
    return !s->flip && is_unscaled(s);
}

/* x: logits (count 0), or the sum of the probabilities of `count` modes. */
static void add_modes_loss(const struct modes_net *v, struct pm_node *x, int count)
{
    struct pm_net *net = v->net;
    const struct pm_shape size = v->images->out_shape;
    struct pm_node *labels;

    if (count > 0) { /* the logarithm of the mean; 1e-30 keeps its argument above 0 */
        x = pm_net_add(net, pm_segmentation_own(net, "mean"), x, "affine scale=%.9g shift=1e-30",
                       1.0 / count);
        x = pm_net_add(net, pm_segmentation_own(net, "log"), x, "log");
    }
    labels = pm_net_input(net, "labels", PM_SHAPE3(size.dim[0], v->height, v->width),
                          v->task->pixels.matting ? PM_F32 : PM_I32);
    pm_net_set_values(labels, (struct pm_values){
        .high = v->task->pixels.matting ? 1 : v->task->facts.num_classes - 1 });
    if (v->task->pixels.matting) {
        pm_segmentation_matting_loss(net, "loss", x, labels, NULL);
        return;
    }
    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2,
                    "softmax_cross_entropy ignore_label=%d", v->task->pixels.ignore_label);
}

/* x as above. */
static struct pm_node *add_probabilities(const struct modes_net *v, struct pm_node *x,
                                         struct pm_node *small, int count, enum pm_use use)
{
    struct pm_net *net = v->net;
    const char *name = pm_segmentation_output(net, "SemanticProbabilities", use);

    if (count > 0 && v->modes->double_softmax) {
        x = pm_net_add(net, pm_segmentation_own(net, "mean"), x, "affine scale=%.9g", 1.0 / count);
        return pm_net_add(net, name, x, "softmax");
    }
    if (count > 0)
        return pm_net_add(net, name, x, "affine scale=%.9g", 1.0 / count);
    if (v->task->pixels.predict_upsampled)
        return pm_net_add(net, name, x, "softmax");
    x = pm_net_add(net, pm_segmentation_own(net, "probabilities"), small, "softmax");
    return pm_net_add(net, name, x, "resize size=[%d,%d] coordinates=align_corners",
                      v->height, v->width);
}

int pm_segmentation_outputs(struct pm_net *net, struct pm_node *images,
                            const struct pm_net_maker *maker, const struct pm_task *s,
                            enum pm_use use, struct pm_outputs *out)
{
    const struct pm_shape size = images->out_shape;
    struct pm_node *x = NULL, *small = NULL, *edges = NULL, *classes;
    struct pm_instance_maps instances = { 0 };
    const struct pm_segmentation_eval_modes *modes =
        use == PM_USE_EXPORT ? &s->pixels.export_modes : &s->pixels.eval_modes;
    const struct modes_net v = { net, images, maker, s, modes, size.dim[1], size.dim[2], &edges,
                                 &instances };
    int count = 0, err = PM_OK;

    if (is_single(modes))
        PM_TRY(add_mode(&v, &(struct mode){
            .method = s->pixels.predict_upsampled ? "bilinear" : "nearest" }, &x, &small));
    else
        PM_TRY(add_modes(&v, &count, &x));
    classes = pm_net_add(
        net, use == PM_USE_EXPORT ? "SemanticPredictions" : pm_segmentation_own(net, "predictions"),
        x, "argmax");
    if (use == PM_USE_EVAL)
        add_modes_loss(&v, x, count);
    if (use == PM_USE_EXPORT)
        pm_outputs_add(net, out, add_probabilities(&v, x, small, count, use),
                       PM_PLACES_NONE);
    pm_outputs_add(net, out, classes, PM_PLACES_NONE);
    if (instances.center)
        pm_segmentation_instance_outputs(
            net, &instances, count,
            use == PM_USE_EXPORT ? NULL : add_probabilities(&v, x, small, count, use), use, out);
    if (edges)
        pm_segmentation_edge_outputs(net, edges, count, use, out);
    err = net->error;
out:
    return err;
}
