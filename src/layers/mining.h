/* mining: chooses which rows of a loss count, and with which weight. Weights depend on the labels'
 * classes, or only the rows with the largest losses count (hard examples). */
#ifndef PUMICE_MINING_H
#define PUMICE_MINING_H

#include <pumice/layer.h>

/* y = weights (PM_NO_TENSOR: 1 each) times table[label]; 0 if the label is `ignore`. Labels that
 * are not a class keep the weight. y is [rows]. */
void pm_label_weights(struct pm_calls *c, struct pm_tensor labels, struct pm_tensor weights,
                      struct pm_floats table, int ignore, struct pm_tensor y);

/* Mines the k of N rows with the largest losses; among equal losses the first rows win. k = percent
 * N, or, with steps, (r percent + 1 - r) N where r = min(1, step / steps). It is computed in
 * float32 as in TensorFlow, rounded down, and at least 1. A NaN counts as larger than any number.
 * mined: the weight (1 without weights) of a mined row whose loss is not 0, else 0. mined_losses:
 * the loss of a mined row, else 0. */
struct pm_mining { float percent; int steps; };
int pm_mining_keep(struct pm_mining m, int rows, int step); /* k of the step, up to m.steps */
void pm_mine(struct pm_calls *c, struct pm_mining m, struct pm_tensor losses,
             struct pm_tensor weights, struct pm_tensor mined, struct pm_tensor mined_losses);

/* The options of mining, for a struct with a member of each name. */
#define PM_MINING_OPTIONS(tag)                                       \
    PM_FLOAT(tag, top_k_percent, 1, 0, 1,                            \
             "part of the rows to keep, those with the largest "     \
             "losses"),                                              \
        PM_INT(tag, mining_steps, 0, 0, 1000000,                     \
               "steps over which top_k_percent falls from 1 to its " \
               "value")

#endif
