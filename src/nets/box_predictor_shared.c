/* box_predictor_shared: the predictor whose weights are the same for all maps (Lin et al. 2017, the
 * heads of RetinaNet): two towers of convolutions, or one for both, then BoxPredictor and
 * ClassPredictor. Each map has batch norms of its own, because the statistics of maps differ. Maps
 * that differ in their channels are first projected to the commonest number. With separate_heads
 * nothing is shared; the scope then ends in the level's number. */
#include "nets/box_predictor.h"

#include <cjson/cJSON.h>
#include <string.h>

#define SCOPE "WeightSharedConvolutionalBoxPredictor"

static const struct pm_opt opts[] = {
    PM_PREDICTOR_OPTIONS(4, 3, -4.6),
    PM_INT(pm_predictor, depth, 256, 1, 1 << 16, "channels of the towers"),
    PM_BOOL(pm_predictor, share_prediction_tower, false, "one tower for boxes and classes"),
    { 0 },
};

/* ---- maps of different channels -------------------------------------------------------------- */

static int times(const struct pm_ssd *s, int channels)
{
    int n = 0;

    for (int i = 0; i < s->count; i++)
        n += s->maps[i]->out_shape.dim[3] == channels;
    return n;
}

/* Returns the commonest number of channels, the first of equally common ones. 0: all are equal. */
static int commonest(const struct pm_ssd *s)
{
    int best = s->maps[0]->out_shape.dim[3];

    for (int i = 1; i < s->count; i++)
        if (times(s, s->maps[i]->out_shape.dim[3]) > times(s, best))
            best = s->maps[i]->out_shape.dim[3];
    return times(s, best) == s->count ? 0 : best;
}

static struct pm_node *projected(const struct pm_ssd *s, const struct pm_predictor *p, int k,
                                 int channels)
{
    const struct pm_unit u = {
        .name = pm_arena_printf(s->net->arena, SCOPE "/ProjectionLayer/conv2d_%d", k - 1),
        .filters = channels, .kernel = 1, .linear = true,
    };

    return channels ? pm_unit_build(s, &p->h, &u, s->maps[k - 1]) : s->maps[k - 1];
}

/* ---- the predictor --------------------------------------------------------------------------- */

/* Returns the unit NAME of level k, whose weights the levels share. */
static struct pm_unit unit(const struct pm_ssd *s, const struct pm_predictor *p, const char *name,
                           int k)
{
    struct pm_arena *a = s->net->arena;
    const char *scope = s->o->separate_heads ? pm_arena_printf(a, SCOPE "_%d", k - 1) : SCOPE;

    return (struct pm_unit){
        .name = pm_arena_printf(a, "%s/%s", scope, name), .kernel = p->kernel_size,
        .separable = p->use_depthwise, .level = s->o->separate_heads ? 0 : k,
    };
}

static const char *activation_of(const struct pm_ssd *s)
{
    return s->form->tower_activation ? s->form->tower_activation : "relu6";
}

static struct pm_node *tower(const struct pm_ssd *s, const struct pm_predictor *p, const char *name,
                             int k, struct pm_node *x)
{
    for (int i = 0; i < p->num_layers_before_predictor; i++) {
        struct pm_unit u = unit(s, p, pm_arena_printf(s->net->arena, "%s/conv2d_%d", name, i), k);

        u.filters = p->depth;
        u.activation = activation_of(s);
        x = pm_unit_build(s, &p->h, &u, x);
    }
    return x;
}

/* Whether all maps have the same number of anchors per cell, as shared weights need. Sets the net's
 * error if not. */
static bool anchors_agree(struct pm_ssd *s)
{
    const int first = pm_anchors_per_cell(s->anchors, 1);

    for (int k = 2; k <= s->count && !s->net->error && !s->o->separate_heads; k++)
        if (pm_anchors_per_cell(s->anchors, k) != first)
            s->net->error = pm_fail(
                PM_ECONFIG, "model.anchors: map %d has %d anchors per cell and map 1 has %d, but "
                "a weight_shared predictor needs equal numbers: set \"reduce_boxes_in_lowest_"
                "layer\" to false, or choose a convolutional predictor", k,
                pm_anchors_per_cell(s->anchors, k), first);
    return !s->net->error;
}

/* The towers' activation is fixed, as in the original. Sets the net's error if the predictor's own
 * hyperparams name another one. */
static void check_activation(struct pm_ssd *s, const struct pm_predictor *p)
{
    const char *given = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(p->hyperparams, "activation"));

    if (!s->net->error && given && strcmp(given, activation_of(s)) != 0)
        s->net->error = pm_fail(PM_ECONFIG, "model.box_predictor.hyperparams.activation: \"%s\" "
                                "has no effect, because the towers of this net's weight_shared "
                                "predictor always have %s: remove the key", given,
                                activation_of(s));
}

static void build(struct pm_ssd *s, const struct pm_predictor *p)
{
    const bool one = p->share_prediction_tower;
    const int channels = anchors_agree(s) ? commonest(s) : 0;

    check_activation(s, p);
    for (int k = 1; k <= s->count && !s->net->error; k++) {
        struct pm_node *x = projected(s, p, k, channels);
        struct pm_node *boxes = tower(s, p, one ? "PredictionTower" : "BoxPredictionTower", k, x);
        struct pm_node *classes = one ? boxes : tower(s, p, "ClassPredictionTower", k, x);
        const char *dropout = pm_arena_printf(s->net->arena, SCOPE "/Dropout_%d", k - 1);

        pm_predictor_boxes(s, p, k, unit(s, p, "BoxPredictor", k), boxes);
        classes = pm_predictor_dropout(s, p, dropout, classes);
        pm_predictor_classes(s, p, k, unit(s, p, "ClassPredictor", k), classes);
    }
}

const struct pm_predictor_row pm_predictor_shared = {
    .type = "weight_shared", .opts = opts, .build = build,
};
