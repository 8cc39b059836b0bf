/* box_predictor: the layers at the end of every predictor. */
#include "nets/box_predictor.h"

void pm_predictor_boxes(struct pm_ssd *s, const struct pm_predictor *p, int k, struct pm_unit u,
                        struct pm_node *x)
{
    const bool clip = p->box_encodings_clip_range.count > 0;
    const float *range = p->box_encodings_clip_range.v;
    struct pm_arena *a = s->net->arena;
    const char *node = pm_arena_printf(a, "boxes_%d", k);

    u.filters = (pm_anchors_numbers(s->anchors) + 2 * s->net->ends.coded_keypoints) *
                pm_anchors_per_cell(s->anchors, k);
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
