/* spatial_transformer: see spatial_transformer.h. The localization net is the original's
 * stn_convnet: six 3x3 convolutions of 32 to 256 channels with five pools between them, and two
 * fully connected layers. The second one reads a tenth of the first. Its weights begin with 0, and
 * its biases with the control points of a pattern. So all pictures are treated alike at first. */
#include "nets/spatial_transformer.h"

#include <math.h>

#include "base/angles.h"
#include "layers/thin_plate.h"
#include "nets/nets.h"

const struct pm_opt pm_spatial_transformer_opts[] = {
    PM_INT(pm_spatial_transformer, localization_h, 32, 16, 1024,
           "height in pixels to which pictures are resized for the localization net"),
    PM_INT(pm_spatial_transformer, localization_w, 64, 16, 1024,
           "width in pixels to which pictures are resized for the localization net"),
    PM_DOUBLE(pm_spatial_transformer, localization_depth, 1, 0.01, 4,
              "factor for the width of the localization net's layers"),
    PM_INT(pm_spatial_transformer, output_h, 32, 2, 1024,
           "height in pixels of the straightened picture, which the net reads"),
    PM_INT(pm_spatial_transformer, output_w, 100, 2, 4096,
           "width in pixels of the straightened picture"),
    PM_DOUBLE(pm_spatial_transformer, margin_x, 0, 0, PM_THIN_PLATE_MARGIN,
              "distance of the outer control points from the sides of the straightened picture, in "
              "widths"),
    PM_DOUBLE(pm_spatial_transformer, margin_y, 0, 0, PM_THIN_PLATE_MARGIN,
              "distance of the control points from the borders of the straightened picture, in "
              "heights"),
    PM_INT(pm_spatial_transformer, num_control_points, 20, PM_THIN_PLATE_LEAST, PM_THIN_PLATE_MOST,
           "control points, an even number: half of them above the text, half of them below it"),
    PM_ENUM(pm_spatial_transformer, init_bias_pattern, PM_TRANSFORMER_IDENTITY,
            "identity|slope|sine", "where the control points are at the start"),
    PM_ENUM(pm_spatial_transformer, activation, 0, "none|sigmoid",
            "applied to the control points; sigmoid keeps them inside the picture"),
    PM_DOUBLE(pm_spatial_transformer, batch_norm_decay, 0.99, 0, 1,
              "decay of the moving averages of the localization net's batch norm; use a lower "
              "value for short runs"),
    { 0 },
};

int pm_spatial_transformer_check(const struct pm_spatial_transformer *t, const char *where)
{
    if (t->num_control_points % 2 != 0)
        return pm_fail(PM_ECONFIG, "%s.num_control_points: %d is odd, but half of the points are "
                       "above the text and half below it: set an even number from %d to %d", where,
                       t->num_control_points, PM_THIN_PLATE_LEAST, PM_THIN_PLATE_MOST);
    return PM_OK;
}

void pm_spatial_transformer_start(const struct pm_spatial_transformer *t, double *out)
{
    const int half = t->num_control_points / 2;

    pm_thin_plate_points(t->num_control_points, t->margin_x, t->margin_y, out);
    for (int k = 0; k < t->num_control_points; k++) {
        const double part = (double)(k % half) / (half - 1), x = out[2 * k];
        double *y = &out[2 * k + 1];

        if (t->init_bias_pattern == PM_TRANSFORMER_SLOPE)
            *y = (k < half ? 0 : 0.7) + 0.3 * part;
        else if (t->init_bias_pattern == PM_TRANSFORMER_SINE)
            *y = (k < half ? 0.25 : 0.75) + 0.2 * sin(2 * PM_PI * x);
    }
}

/* Returns the text of the initial biases. A sigmoid never gives 0 or 1: with it, points are limited
 * to 0.01..0.99. */
static const char *biases(struct pm_arena *a, const struct pm_spatial_transformer *t)
{
    double at[2 * PM_THIN_PLATE_MOST];
    const char *text = "values(";

    pm_spatial_transformer_start(t, at);
    for (int i = 0; i < 2 * t->num_control_points; i++) {
        const double v = fmin(fmax(at[i], 0.01), 0.99);

        text = pm_arena_printf(a, "%s%s%.9g", text, i ? "," : "",
                               t->activation ? log(v / (1 - v)) : at[i]);
    }
    return pm_arena_printf(a, "%s)", text);
}

static struct pm_node *convnet(struct pm_net *net, const struct pm_nets_options *o,
                               struct pm_node *x)
{
    static const int filters[] = { 32, 64, 128, 256, 256, 256 };

    for (int i = 0; i < (int)PM_COUNT(filters); i++) {
        const char *scope = "LocalizationNet/Convnet";

        if (i > 0)
            x = pm_net_add(net, pm_arena_printf(net->arena, "%s/pool%d", scope, i), x,
                           "max_pool kernel=2 stride=2 padding=same");
        x = pm_nets_conv_bn(net, o, pm_arena_printf(net->arena, "%s/conv%d", scope, i + 1), x,
                            "activation=relu",
                            "conv2d filters=%d kernel=3 padding=same weights_init="
                            "variance_scaling(2)", pm_nets_depth(o, filters[i]));
    }
    return x;
}

struct pm_node *pm_spatial_transformer_build(struct pm_net *net, struct pm_node *images,
                                             const struct pm_spatial_transformer *t)
{
    const struct pm_nets_options o = {
        .batch_norm_decay = t->batch_norm_decay, .batch_norm_epsilon = 0.001f,
        .batch_norm_train = true, .depth_multiplier = t->localization_depth, .min_depth = 1,
        .divisible_by = 8,
    };
    const int *dim = images->out_shape.dim;
    struct pm_node *x = images, *in[2] = { images };

    if (dim[1] != t->localization_h || dim[2] != t->localization_w)
        x = pm_net_add(net, "LocalizationNet/resize", x, "resize size=[%d,%d] method=bilinear "
                       "coordinates=asymmetric", t->localization_h, t->localization_w);
    x = convnet(net, &o, x);
    x = pm_net_add(net, "LocalizationNet/fc1", x, "fully_connected units=%d bias=false "
                   "weights_init=variance_scaling(2)", pm_nets_depth(&o, 512));
    x = pm_nets_batch_norm(net, &o, "LocalizationNet/fc1/BatchNorm", x, NULL, "activation=relu");
    x = pm_net_add(net, "LocalizationNet/tenth", x, "affine scale=0.1");
    in[1] = pm_net_add(net, PM_SPATIAL_TRANSFORMER_POINTS, x, "fully_connected units=%d bias=true "
                       "activation=%s weights_init=constant(0) bias_init=%s",
                       2 * t->num_control_points, t->activation ? "sigmoid" : "none",
                       biases(net->arena, t));
    return pm_net_add_many(net, "LocalizationNet/sampler", in, 2, "thin_plate_sampler "
                           "size=[%d,%d] margin_x=%.17g margin_y=%.17g", t->output_h, t->output_w,
                           t->margin_x, t->margin_y);
}
