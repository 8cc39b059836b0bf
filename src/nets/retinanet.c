/* retinanet: RetinaNet (Lin et al. 2017) as in keras-retinanet: ResNet with frozen batch norm, a
 * feature pyramid without batch norm, heads of five levels with shared weights, nine anchors per
 * cell. The levels P3 to P5 are made top-down, each followed by a 3x3 convolution. P6 is a 3x3
 * convolution with stride 2 of the last block's output, P7 one of relu(P6).
 *
 * Options give the variant that TensorFlow's fork has: learned upsampling, a head for each level, a
 * class for the background.
 *
 * The stride of a block is in its last unit as in TF-Slim's ResNet, so its checkpoints start a
 * run. In keras-retinanet it is in the first one. There the gammas and betas of ResNet are
 * constant, too; here optim.freeze can do that. */
#include "nets/ssd.h"

enum { NEAREST, TRANSPOSED };
enum { DEPTH = 256, LEVELS = 5 };

/* ---- the pyramid ---------------------------------------------------------------------------- */

static struct pm_node *conv(const struct pm_ssd *s, const char *name, int kernel, int stride,
                            struct pm_node *x)
{
    const struct pm_unit u = {
        .name = pm_arena_printf(s->net->arena, "%sfpn/%s", s->scope, name), .filters = DEPTH,
        .kernel = kernel, .stride = stride, .plain = true,
    };

    return pm_unit_build(s, &s->hyperparams, &u, x);
}

/* Enlarges x by a learned 4x4 convolution to the size of `fine`, which is twice x's or one less. */
static struct pm_node *transposed(const struct pm_ssd *s, const char *name, struct pm_node *x,
                                  const struct pm_node *fine)
{
    const int *dim = fine->out_shape.dim;

    x = pm_net_add(s->net, name, x, "conv2d_transpose filters=%d kernel=4 stride=2 padding=same "
                   "weights_init=%s", DEPTH, s->hyperparams.initializer);
    if (x->out_shape.dim[1] == dim[1] && x->out_shape.dim[2] == dim[2])
        return x;
    return pm_net_add(s->net, pm_arena_printf(s->net->arena, "%s/cropped", name), x,
                      "slice begin=[0,0,0,0] size=[-1,%d,%d,-1]", dim[1], dim[2]);
}

static struct pm_node *join(const struct pm_ssd *s, int level, struct pm_node *coarse,
                            struct pm_node *fine)
{
    struct pm_arena *a = s->net->arena;
    const char *name = pm_arena_printf(a, "%sfpn/P%d_upsampled", s->scope, level + 1);

    if (s->o->upsampling == NEAREST)
        return pm_pyramid_join(s, name, coarse, fine);
    coarse = transposed(s, name, coarse, fine);
    return pm_net_add_many(s->net, pm_arena_printf(a, "%s/sum", name),
                           (struct pm_node *[]){ coarse, fine }, 2, "add");
}

void pm_pyramid_retinanet(struct pm_ssd *s)
{
    const struct pm_extractor *e = s->form->extractor;
    struct pm_arena *a = s->net->arena;
    struct pm_node *x = NULL;

    for (int level = 5; level >= 3; level--) {
        struct pm_node *c = conv(s, pm_arena_printf(a, "C%d_reduced", level), 1, 1,
                                 pm_pyramid_map(s, &e->levels[level - 2]));

        x = x ? join(s, level, x, c) : c;
        s->maps[level - 3] = conv(s, pm_arena_printf(a, "P%d", level), 3, 1, x);
    }
    s->maps[3] = conv(s, "P6", 3, 2, pm_pyramid_map(s, &e->levels[3]));
    x = pm_net_add(s->net, pm_arena_printf(a, "%sfpn/P6_relu", s->scope), s->maps[3], "relu");
    s->maps[4] = conv(s, "P7", 3, 2, x);
    s->count = LEVELS;
}

/* ---- the nets ------------------------------------------------------------------------------- */

/* The sizes of a level's anchors, for each of three ratios: 2^(0, 1/3, 2/3) times its least. */
#define SIZES(a, b, c) #a ", " #b ", " #c ", " #a ", " #b ", " #c ", " #a ", " #b ", " #c
/* The ratios are width over height: keras-retinanet's 0.5, 1, 2 are height over width. */
#define RATIOS "2, 2, 2, 1, 1, 1, 0.5, 0.5, 0.5"
#define ANCHORS                                                                                    \
    "{\"type\": \"flexible_grid\", \"base_sizes\": ["                                              \
    SIZES(32, 40.31747, 50.79683) ", " SIZES(64, 80.63495, 101.5937) ", "                          \
    SIZES(128, 161.2699, 203.1873) ", " SIZES(256, 322.5398, 406.3747) ", "                        \
    SIZES(512, 645.0796, 812.7493) "], \"aspect_ratios\": ["                                       \
    RATIOS ", " RATIOS ", " RATIOS ", " RATIOS ", " RATIOS "],"                                    \
    " \"height_stride\": [8, 16, 32, 64, 128], \"width_stride\": [8, 16, 32, 64, 128],"            \
    " \"height_offset\": [4, 8, 16, 32, 64], \"width_offset\": [4, 8, 16, 32, 64]}"
/* The biases make each class's first score 0.01: -ln(99). */
#define PREDICTOR                                                                                  \
    "{\"type\": \"weight_shared\", \"class_prediction_bias_init\": -4.59512,"                      \
    " \"hyperparams\": {\"initializer\": \"normal(0.01)\"}}"

static const struct pm_opt opts[] = {
    PM_NETS_DEPTH(1, 8),
    PM_DOUBLE(pm_nets_options, batch_norm_decay, 0.997, 0, 1,
              "decay of batch norm's moving averages; use a lower value for short runs"),
    /* The fused kernel never uses a smaller epsilon; the original asks for 1e-5. */
    PM_FLOAT(pm_nets_options, batch_norm_epsilon, 1.001e-5, 0, 1,
             "added to batch norm's variance; TensorFlow adds at least 1.001e-5"),
    PM_ENUM(pm_nets_options, moving_variance, 0, "unbiased|biased",
            "variance in batch norm's moving average: divided by n - 1 (unbiased) or by n"),
    PM_BOOL(pm_nets_options, batch_norm_train, false,
            "normalise with the statistics of the batch; false: with the moving averages, which "
            "then do not change: start from a pretrained checkpoint"),
    PM_JSON(pm_ssd_options, anchors, PM_SSD_HELP_ANCHORS),
    PM_JSON(pm_ssd_options, box_predictor, PM_SSD_HELP_PREDICTOR),
    PM_JSON(pm_ssd_options, hyperparams, PM_SSD_HELP_HYPERPARAMS),
    PM_BOOL(pm_ssd_options, background_class, false,
            "predict the background as a class of its own, column 0 of the logits"),
    PM_ENUM(pm_ssd_options, upsampling, NEAREST, "nearest|transposed",
            "how the pyramid enlarges maps: repeated pixels, or a learned 4x4 convolution"),
    PM_BOOL(pm_ssd_options, separate_heads, false, "each level has a predictor of its own"),
    { 0 },
};

/* The recipe of keras-retinanet 1.0. Its smooth L1 with sigma 3 is 9 times the loss with delta
 * 1/9. */
static const struct pm_object_default objects[] = {
    { "model.box_coder", "type=corners" },
    { "model.matcher", "matched_threshold=0.5 unmatched_threshold=0.4 ignore_outside=true" },
    { "model.post_processing", "score_threshold=0.05 iou_threshold=0.5 "
                               "max_detections_per_class=300 max_total_detections=300" },
    { "loss.localization", "type=weighted_smooth_l1 delta=0.1111111 weight=9" },
    { 0 },
};

#define RETINANET(depth)                                                                           \
    static void build_##depth(struct pm_net *net, struct pm_node *images, int num_classes,         \
                              const void *options, struct pm_heads *heads)                         \
    {                                                                                              \
        static const struct pm_ssd_form form = {                                                   \
            .name = "retinanet_" #depth, .extractor = &pm_extractor_resnet_v1_##depth,             \
            .pyramid = PM_SSD_RETINANET, .anchors = ANCHORS, .box_predictor = PREDICTOR,           \
            .hyperparams = "{\"initializer\": \"xavier\", \"batch_norm\": false}",                 \
            .tower_activation = "relu",                                                            \
        };                                                                                         \
                                                                                                   \
        pm_ssd_build(&form, net, images, num_classes, options, heads);                             \
    }                                                                                              \
    const struct pm_net_row pm_net_row_retinanet_##depth = {                                       \
        .name = "retinanet_" #depth, .help = "RetinaNet: ResNet " #depth " and a feature pyramid", \
        .task = "detection", .opts = opts, .cfg_size = sizeof(struct pm_ssd_options),              \
        .default_size = 800, .default_channels = 3, .preprocessing = "ssd_means",                  \
        .objects = objects, .build = build_##depth,                                                \
    }

RETINANET(50);
RETINANET(101);
