/* box_predictor: chooses a detector's predictor and builds what both kinds have; and the
 * convolutional predictor, which has layers of its own for each map: an optional tower of 1x1
 * convolutions, then BoxEncodingPredictor and ClassPredictor. SSDLite's depthwise form puts a
 * depthwise convolution before each of these two, which then are 1x1.
 *
 * TensorFlow's Object Detection API ignores class_prediction_bias_init in the depthwise form. Here
 * it applies. */
#include "nets/ssd.h"

#include <cjson/cJSON.h>
#include <string.h>

const struct pm_opt pm_predictor_convolutional_opts[] = {
    PM_PREDICTOR_OPTIONS(0, 1, 0),
    PM_INT(pm_predictor, min_depth, 0, 0, 1 << 16, "least channels of the tower"),
    PM_INT(pm_predictor, max_depth, 0, 0, 1 << 16, "most channels of the tower; 0 with min_depth "
                                                   "0: no tower"),
    { 0 },
};

/* ---- both kinds ---------------------------------------------------------------------------- */

void pm_predictor_boxes(struct pm_ssd *s, const struct pm_predictor *p, int k, struct pm_unit u,
                      struct pm_node *x)
{
    const bool clip = p->box_encodings_clip_range.count > 0;
    const float *range = p->box_encodings_clip_range.v;
    struct pm_arena *a = s->net->arena;
    const char *node = pm_arena_printf(a, "boxes_%d", k);

    u.filters = 4 * pm_anchors_per_cell(s->anchors, k);
    u.plain = true;
    u.node = clip ? pm_arena_printf(a, "%s/unclipped", node) : node;
    u.first = clip ? "boxes_1/unclipped" : "boxes_1";
    x = pm_unit_build(s, &p->h, &u, x);
    if (clip)
        pm_net_add(s->net, node, x, "clip min=%.9g max=%.9g", (double)range[0], (double)range[1]);
}

void pm_predictor_classes(struct pm_ssd *s, const struct pm_predictor *p, int k, struct pm_unit u,
                        struct pm_node *x)
{
    struct pm_arena *a = s->net->arena;

    u.filters = s->columns * pm_anchors_per_cell(s->anchors, k);
    u.plain = true;
    u.node = pm_arena_printf(a, "classes_%d", k);
    u.first = "classes_1";
    u.bias_init = pm_arena_printf(a, "constant(%.9g)", (double)p->class_prediction_bias_init);
    pm_unit_build(s, &p->h, &u, x);
}

struct pm_node *pm_predictor_dropout(struct pm_ssd *s, const struct pm_predictor *p,
                                   const char *name, struct pm_node *x)
{
    return p->use_dropout ? pm_net_add(s->net, name, x, "dropout keep=%.9g",
                                       (double)p->dropout_keep_probability)
                          : x;
}

static void check(struct pm_net *net, const struct pm_predictor *p)
{
    const struct pm_floats range = p->box_encodings_clip_range;

    if (!net->error && range.count && (range.count != 2 || range.v[0] > range.v[1]))
        net->error = pm_fail(PM_ECONFIG, "model.box_predictor.box_encodings_clip_range: two "
                             "numbers are needed, the least and the greatest, or none");
}

void pm_predictor_build(struct pm_ssd *s)
{
    static const char *const also[] = { "type", NULL };
    static const char place[] = "model.box_predictor";
    struct pm_predictor p;
    struct pm_net *net = s->net;
    cJSON *defaults = cJSON_Parse(s->form->box_predictor);
    cJSON *object = pm_ssd_merged(net, "box_predictor", defaults, s->o->box_predictor);
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(object, "type");
    const bool shared = cJSON_IsString(type) && strcmp(type->valuestring, "weight_shared") == 0;
    const struct pm_opt *opts = shared ? pm_predictor_shared_opts : pm_predictor_convolutional_opts;

    if (!net->error && !shared && (!cJSON_IsString(type) || strcmp(type->valuestring,
                                                                   "convolutional") != 0))
        net->error = pm_fail(PM_ECONFIG, "%s.type: must be \"convolutional\" or \"weight_shared\"",
                             place);
    memset(&p, 0, sizeof p);
    if (!net->error)
        net->error = pm_opts_parse(opts, object, also, &p, net->arena, place);
    cJSON *h = pm_ssd_merged(net, "box_predictor.hyperparams", s->hyperparams_json, p.hyperparams);
    pm_hyperparams_read(net, h, "model.box_predictor.hyperparams", &p.h);
    check(net, &p);
    if (!net->error && shared)
        pm_predictor_shared(s, &p);
    else if (!net->error)
        pm_predictor_convolutional(s, &p);
    cJSON_Delete(h);
    cJSON_Delete(object);
    cJSON_Delete(defaults);
}

/* ---- the convolutional predictor ------------------------------------------------------------ */

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

void pm_predictor_convolutional(struct pm_ssd *s, const struct pm_predictor *p)
{
    struct pm_arena *a = s->net->arena;

    if (p->use_depthwise && p->kernel_size == 1) {
        s->net->error = pm_fail(PM_ECONFIG, "model.box_predictor.kernel_size: 1 is not possible "
                                "with use_depthwise, set it to 3 or more");
        return;
    }
    for (int k = 1; k <= s->count; k++) {
        /* The original omits the scope if there is only one map. */
        const char *scope = s->count > 1 ? pm_arena_printf(a, "BoxPredictor_%d/", k - 1) : "";
        struct pm_node *x = tower(s, p, scope, s->maps[k - 1]), *y = x;
        struct pm_unit u;

        u = predicting(s, p, pm_arena_printf(a, "%sBoxEncodingPredictor", scope), &y);
        pm_predictor_boxes(s, p, k, u, y);
        y = pm_predictor_dropout(s, p, pm_arena_printf(a, "%sDropout", scope), x);
        u = predicting(s, p, pm_arena_printf(a, "%sClassPredictor", scope), &y);
        pm_predictor_classes(s, p, k, u, y);
    }
}
