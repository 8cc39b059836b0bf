/* What the tests of segmentation share: a setup, as config and data come to, without instances and
 * edges. */
#ifndef PUMICE_TESTS_SEGMENTATION_SETUP_H
#define PUMICE_TESTS_SEGMENTATION_SETUP_H

#include <pumice/task.h>

#include <math.h>

/* Square pictures in colour, for the preprocessing "deeplab", whose defaults are in the arena. */
static inline struct pm_setup segmentation_setup(struct pm_arena *a, int size, int classes)
{
    const struct pm_preprocessing *p = pm_preprocessing_find("deeplab");
    void *cfg = pm_arena_alloc(a, p->cfg_size + 1);

    pm_opts_defaults(p->opts, cfg, a);
    return (struct pm_setup){
        .height = size, .width = size, .eval_height = size, .eval_width = size, .channels = 3,
        .num_classes = classes, .preprocessing = p, .preprocessing_cfg = cfg, .aux_weight = NAN,
        .pixels = { .ignore_label = 255, .label_height = size, .label_width = size,
                    .upsample_logits = true, .predict_upsampled = true },
    };
}

#endif
