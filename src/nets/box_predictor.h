/* box_predictor: the last layers of a one-stage detector. A predictor reads each map and adds the
 * nodes boxes_k and classes_k, whose shapes ssd.h states. A new kind is a file with a row, named in
 * the table of ssd_build.c. */
#ifndef PM_BOX_PREDICTOR_H
#define PM_BOX_PREDICTOR_H

#include "nets/ssd.h"

/* Options of all kinds; the table of a kind lists its own. */
struct pm_predictor {
    int min_depth, max_depth, depth;
    int num_layers_before_predictor, kernel_size;
    bool use_dropout, use_depthwise, share_prediction_tower;
    float dropout_keep_probability, class_prediction_bias_init;
    struct pm_floats box_encodings_clip_range;
    const struct cJSON *hyperparams;
    struct pm_hyperparams h;
};
/* The options that all kinds have. kernel: default of kernel_size. */
#define PM_PREDICTOR_OPTIONS(layers, kernel, bias)                                                 \
    PM_INT(pm_predictor, num_layers_before_predictor, layers, 0, 64,                               \
           "convolutions before the predicting ones"),                                             \
    PM_INT(pm_predictor, kernel_size, kernel, 1, 31, "window of the predicting convolutions"),     \
    PM_BOOL(pm_predictor, use_depthwise, false, "depthwise separable convolutions"),               \
    PM_BOOL(pm_predictor, use_dropout, false, "dropout before the classes"),                       \
    PM_FLOAT(pm_predictor, dropout_keep_probability, 0.8, 0.01, 1,                                 \
             "probability that this dropout keeps a value"),                                       \
    PM_FLOAT(pm_predictor, class_prediction_bias_init, bias, -100, 100,                            \
             "initial biases of the classes"),                                                     \
    PM_FLOATS(pm_predictor, box_encodings_clip_range, "[]", -1e6, 1e6,                             \
              "[least, greatest] value of a box code; empty: unlimited"),                          \
    PM_JSON(pm_predictor, hyperparams, "see model.hyperparams")

/* A kind of predictor. */
struct pm_predictor_row {
    const char *type; /* "type" in model.box_predictor */
    const struct pm_opt *opts;
    /* Adds the nodes of all maps; sets the net's error if the options do not fit. */
    void (*build)(struct pm_ssd *s, const struct pm_predictor *p);
};
extern const struct pm_predictor_row pm_predictor_convolutional, pm_predictor_shared;

/* ---- what all kinds have (box_predictor.c) ------------------------------------------------- */

/* Build the convolution u as the node boxes_k or classes_k of level k. With a clip range, boxes_k
 * limits the convolution's values. */
void pm_predictor_boxes(struct pm_ssd *s, const struct pm_predictor *p, int k, struct pm_unit u,
                        struct pm_node *x);
void pm_predictor_classes(struct pm_ssd *s, const struct pm_predictor *p, int k, struct pm_unit u,
                          struct pm_node *x);
/* Returns x, or dropout NAME of x. */
struct pm_node *pm_predictor_dropout(struct pm_ssd *s, const struct pm_predictor *p,
                                     const char *name, struct pm_node *x);

#endif
