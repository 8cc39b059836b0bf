/* inception_resnet_v2: Inception blocks as residuals. The branches of a block are joined. A 1x1
 * convolution with bias and without batch norm brings them to the input's width. The result is
 * scaled down and added. Biases have weight decay too. An auxiliary head uses the last 17x17 map.
 * Both heads end in fully connected layers.
 *
 * A detector pads SAME, so maps have the sizes of the image divided by their strides. Its first
 * stage ends before Mixed_7a; with a stride of 8 Mixed_6a has no stride and block17 is dilated. */
#include "nets/extractors.h"

#include <string.h>

static const struct pm_opt opts[] = {
    PM_NETS_KEEP_PROB(0.8), PM_NETS_BATCH_NORM(0.9997, 0.001), PM_NETS_AUX_HEAD,
    PM_NETS_INIT, { 0 },
};

/* A residual block's branches and the number of repeats. `names` contains %d if it is repeated. */
struct residual {
    const char *names, *branches[4];
    int times;
    float scale;
};
static const char *const mixed_5b[] = {
    "Conv2d_1x1 96", "Conv2d_0a_1x1 48, Conv2d_0b_5x5 64",
    "Conv2d_0a_1x1 64, Conv2d_0b_3x3 96, Conv2d_0c_3x3 96", "avg, Conv2d_0b_1x1 64", NULL,
};
static const struct residual block35 = {
    "Repeat/block35_%d",
    { "Conv2d_1x1 32", "Conv2d_0a_1x1 32, Conv2d_0b_3x3 32",
      "Conv2d_0a_1x1 32, Conv2d_0b_3x3 48, Conv2d_0c_3x3 64" },
    10, 0.17f,
};
static const char *const mixed_6a[] = {
    "Conv2d_1a_3x3/2v 384", "Conv2d_0a_1x1 256, Conv2d_0b_3x3 256, Conv2d_1a_3x3/2v 384", "max/2v",
    NULL,
};
static const struct residual block17 = {
    "Repeat_1/block17_%d",
    { "Conv2d_1x1 192", "Conv2d_0a_1x1 128, Conv2d_0b_1x7 160, Conv2d_0c_7x1 192" }, 20, 0.10f,
};
static const char *const mixed_7a[] = {
    "Conv2d_0a_1x1 256, Conv2d_1a_3x3/2v 384", "Conv2d_0a_1x1 256, Conv2d_1a_3x3/2v 288",
    "Conv2d_0a_1x1 256, Conv2d_0b_3x3 288, Conv2d_1a_3x3/2v 320", "max/2v", NULL,
};
#define BLOCK8 { "Conv2d_1x1 192", "Conv2d_0a_1x1 192, Conv2d_0b_1x3 224, Conv2d_0c_3x1 256" }
static const struct residual block8 = { "Repeat_2/block8_%d", BLOCK8, 9, 0.20f };
/* The name in the second stage of a detector. */
static const struct residual second_block8 = { "Repeat/block8_%d", BLOCK8, 9, 0.20f };
static const struct residual last_block8 = { "Block8", BLOCK8, 1, 1 };

static struct pm_node *repeat(const struct pm_branches *b, const struct residual *r,
                              struct pm_node *x)
{
    struct pm_arena *a = b->net->arena;

    for (int i = 1; i <= r->times; i++) {
        /* Builds the scope's name, with the round's number for %d. */
        const char *mark = strstr(r->names, "%d");
        const char *name = mark ? pm_arena_printf(a, "%.*s%d", (int)(mark - r->names), r->names, i)
                                : r->names;
        struct pm_node *up = pm_branches_block(b, name, x, r->branches);

        name = pm_arena_printf(a, "%s/%s", b->scope, name);
        up = pm_net_add(b->net, pm_arena_printf(a, "%s/Conv2d_1x1", name), up,
                        "conv2d filters=%d kernel=1 bias=true weights_init=%s "
                        "regularize_bias=true", x->out_shape.dim[3],
                        pm_nets_init(b->net, b->options, "xavier"));
        x = pm_net_add_many(b->net, pm_arena_printf(a, "%s/sum", name),
                            (struct pm_node *[]){ x, up }, 2, "add scale=%.9g activation=%s",
                            (double)r->scale, r == &last_block8 ? "none" : "relu");
    }
    return x;
}

static struct pm_branches branches_of(struct pm_net *net, const struct pm_nets_options *o)
{
    return (struct pm_branches){ net, o, "InceptionResnetV2", "xavier", true };
}

/* Builds the layers up to the map at stride 16. output_stride 8: its stride is 8. */
static struct pm_node *lower(struct pm_branches b, struct pm_node *x)
{
    x = pm_branches_stem(&b, x);
    x = pm_branches_block(&b, "Mixed_5b", x, mixed_5b);
    x = repeat(&b, &block35, x);
    b.unstrided = b.options->output_stride == 8;
    x = pm_branches_block(&b, "Mixed_6a", x, mixed_6a);
    b.rate = b.unstrided ? 2 : 1;
    return repeat(&b, &block17, x);
}

/* Builds the layers after that map. repeated: the blocks with a scale. */
static struct pm_node *upper(const struct pm_branches *b, const struct residual *repeated,
                             struct pm_node *x)
{
    x = pm_branches_block(b, "Mixed_7a", x, mixed_7a);
    x = repeat(b, repeated, x);
    x = repeat(b, &last_block8, x);
    return pm_branches_chain(b, "", x, "Conv2d_7b_1x1 1536");
}

static struct pm_node *first(struct pm_net *net, struct pm_node *images,
                             const struct pm_nets_options *o)
{
    struct pm_branches b = branches_of(net, o);

    b.aligned = true;
    return lower(b, images);
}

static struct pm_node *second(struct pm_net *net, struct pm_node *crops,
                              const struct pm_nets_options *o)
{
    const struct pm_branches b = branches_of(net, o);

    return upper(&b, &second_block8, crops);
}

static const struct pm_extractor_map maps[] = {
    { "PreAuxLogits", "InceptionResnetV2/Repeat_1/block17_20/sum" },
};
const struct pm_extractor pm_extractor_inception_resnet_v2 = {
    .scope = "InceptionResnetV2", .least = 33, .build = first,
    .maps = maps, .count = PM_COUNT(maps), .second = second,
};

static void build(struct pm_net *net, struct pm_node *images, int num_classes, const void *options,
                  struct pm_heads *heads)
{
    const struct pm_nets_options *o = options;
    const struct pm_branches b = branches_of(net, o);
    struct pm_node *x;

    if (!pm_nets_fits(net, "inception_resnet_v2", images, 107))
        return;
    x = lower(b, images);
    if (o->aux_head)
        pm_nets_add_auxiliary(net, heads, pm_branches_auxiliary(&b, "AuxLogits/Conv2d_2a_5x5",
                                                                "AuxLogits/Logits", x,
                                                                num_classes));
    x = upper(&b, &block8, x);
    x = pm_net_add(net, "InceptionResnetV2/Logits/AvgPool_1a_8x8", x, "global_pool");
    x = pm_net_add(net, "InceptionResnetV2/Logits/Flatten", x, "flatten");
    x = pm_net_add(net, "InceptionResnetV2/Logits/Dropout", x, "dropout keep=%.9g",
                   (double)o->keep_prob);
    pm_heads_add(net, heads, "logits",
                 pm_net_add(net, "InceptionResnetV2/Logits/Logits", x,
                            "fully_connected units=%d regularize_bias=true weights_init=%s",
                            num_classes, pm_nets_logits_init(net, o, "xavier")));
}

const struct pm_net_row pm_net_row_inception_resnet_v2 = {
    .name = "inception_resnet_v2", .help = "forty residual Inception blocks, for 299x299",
    .task = "classification",
    .opts = opts, .cfg_size = sizeof(struct pm_nets_options),
    .default_size = 299, .default_channels = 3, .preprocessing = "inception",
    .weight_decay = 4e-5f, .build = build,
};
