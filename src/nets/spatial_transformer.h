/* spatial_transformer: the layers that straighten a picture of a word before a net reads it. A
 * small net, the localization net, places control points; the layer thin_plate_sampler moves them
 * to the borders of its output. Source: spatial_transformer of the text recognition fork of
 * TensorFlow's Object Detection API (Shi et al., "ASTER", 2018). */
#ifndef PM_SPATIAL_TRANSFORMER_H
#define PM_SPATIAL_TRANSFORMER_H

#include <pumice/net.h>

/* Options. The names are those of the original. */
enum pm_transformer_pattern {
    PM_TRANSFORMER_IDENTITY, /* the borders, at margin_y */
    PM_TRANSFORMER_SLOPE,    /* y from 0 to 0.3 above and from 0.7 to 1 below */
    PM_TRANSFORMER_SINE,     /* y = 0.25 and 0.75, both + 0.2 sin(2 pi x) */
};
struct pm_spatial_transformer {
    int localization_h, localization_w; /* pixels that the localization net reads */
    double localization_depth;          /* factor for the width of its layers */
    int output_h, output_w;
    double margin_x, margin_y;
    int num_control_points;
    int init_bias_pattern; /* enum pm_transformer_pattern */
    int activation;        /* 0 none, 1 sigmoid */
    double batch_norm_decay;
};
extern const struct pm_opt pm_spatial_transformer_opts[];

/* Checks that the number of control points is even. where: the place in messages. Returns
 * PM_ECONFIG with one line. */
int pm_spatial_transformer_check(const struct pm_spatial_transformer *t, const char *where);

/* Fills out[2 num_control_points] with x, y of the points that an untrained net gives. */
void pm_spatial_transformer_start(const struct pm_spatial_transformer *t, double *out);

/* Name of the node that gives the control points [n, 2 num_control_points]: x, y of each, as shares
 * of the width and height of the pictures. The first half are those along the upper edge, from left
 * to right, the second half those along the lower edge. */
#define PM_SPATIAL_TRANSFORMER_POINTS "LocalizationNet/fc2"
/* Appends the layers to pictures [n,h,w,c]. Returns the straightened pictures [n,output_h,output_w,
 * c]. Errors are in net->error. */
struct pm_node *pm_spatial_transformer_build(struct pm_net *net, struct pm_node *images,
                                             const struct pm_spatial_transformer *t);

#endif
