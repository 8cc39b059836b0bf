/* box_predictor_convolutional: the predictor that has layers of its own for each map: an optional
 * tower of 1x1 convolutions, then BoxEncodingPredictor and ClassPredictor. SSDLite's depthwise form
 * puts a depthwise convolution before each of these two, which then are 1x1.
 *
 * TensorFlow's Object Detection API ignores class_prediction_bias_init in the depthwise form. Here
 * it applies. */
#include "nets/box_predictor.h"

static const struct pm_opt opts[] = {
    PM_PREDICTOR_OPTIONS(0, 1, 0),
    PM_INT(pm_predictor, min_depth, 0, 0, 1 << 16, "least channels of the tower"),
    PM_INT(pm_predictor, max_depth, 0, 0, 1 << 16, "most channels of the tower; 0 with min_depth "
                                                   "0: no tower"),
    { 0 },
};

static struct pm_node *tower(const struct pm_ssd *s, const struct pm_predictor *p,
                             const char *scope, struct pm_node *x)
{
    struct pm_arena *a = s->net->arena;
    const int channels = x->out_shape.dim[3];
    const int most = channels < p->max_depth ? channels : p->max_depth;
    const int depth = most > p->min_depth ? most : p->min_depth;

    for (int i = 0; i < p->num_layers_before_predictor && depth > 0; i++) {
        const struct pm_unit u = {
            .name = pm_arena_printf(a, "%sConv2d_%d_1x1_%d", scope, i, depth), .filters = depth,
            .kernel = 1,
        };
        x = pm_unit_build(s, &p->h, &u, x);
    }
    return x;
}

/* Builds the depthwise convolution before a predicting one, and returns the unit of that. */
static struct pm_unit predicting(const struct pm_ssd *s, const struct pm_predictor *p,
                                 const char *name, struct pm_node **x)
{
    const struct pm_unit first = {
        .name = pm_arena_printf(s->net->arena, "%s_depthwise", name), .kernel = p->kernel_size,
    };

    if (p->use_depthwise)
        *x = pm_unit_build(s, &p->h, &first, *x);
    return (struct pm_unit){ .name = name, .kernel = p->use_depthwise ? 1 : p->kernel_size };
}

static void build(struct pm_ssd *s, const struct pm_predictor *p)
{
    struct pm_arena *a = s->net->arena;

    if (p->use_depthwise && p->kernel_size == 1) {
        s->net->error = pm_fail(PM_ECONFIG, "model.box_predictor.kernel_size: 1 is not possible "
                                "with use_depthwise, set it to 3 or more");
        return;
    }
    for (int k = 1; k <= s->count; k++) {
        /* The original omits the scope if there is only one map. */
        const char *scope = s->form->predictor_scope ? s->form->predictor_scope
                            : s->count > 1 ? pm_arena_printf(a, "BoxPredictor_%d/", k - 1)
                                           : "";
        struct pm_node *x = tower(s, p, scope, s->maps[k - 1]), *y = x;
        struct pm_unit u;

        u = predicting(s, p, pm_arena_printf(a, "%sBoxEncodingPredictor", scope), &y);
        pm_predictor_boxes(s, p, k, u, y);
        y = pm_predictor_dropout(s, p, pm_arena_printf(a, "%sDropout", scope), x);
        u = predicting(s, p, pm_arena_printf(a, "%sClassPredictor", scope), &y);
        pm_predictor_classes(s, p, k, u, y);
    }
}

const struct pm_predictor_row pm_predictor_convolutional = {
    .type = "convolutional", .opts = opts, .build = build,
};
