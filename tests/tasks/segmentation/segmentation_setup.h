/* Shared by the tests of segmentation: the task, opened without instances and edges, pictures in
 * the form of records, and checks of refused setups. */
#ifndef PUMICE_TESTS_SEGMENTATION_SETUP_H
#define PUMICE_TESTS_SEGMENTATION_SETUP_H

#include "base/unit.h"
#include "tasks/planned.h"
#include "tasks/segmentation/segmentation.h"
#include "tasks/task_fields.h"

#include <pumice/plan.h>
#include <pumice/task.h>

static inline const struct pm_task_row *task(void)
{
    return pm_task_find("segmentation");
}

/* A task for colour pictures with the preprocessing "deeplab" and its defaults; the arena holds
 * them. */
static inline struct pm_task segmentation_setup(struct pm_arena *a, int height, int width,
                                                int classes)
{
    const struct pm_preprocessing *p = pm_preprocessing_find("deeplab");
    void *cfg = pm_arena_alloc(a, p->cfg_size + 1);

    pm_opts_defaults(p->opts, cfg, a);
    return (struct pm_task){
        .facts = { .height = height,
                   .width = width,
                   .eval_height = height,
                   .eval_width = width,
                   .channels = 3,
                   .num_classes = classes,
                   .preprocessing = p,
                   .preprocessing_cfg = cfg },
        .pixels = { .ignore_label = 255,
                    .label_height = height,
                    .label_width = width,
                    .upsample_logits = true,
                    .predict_upsampled = true },
    };
}

/* The setup must be refused for training with this reason. */
static inline void refused(struct pm_task s, const char *why)
{
    assert_int_equal(pm_segmentation_check(&s), PM_ECONFIG);
    assert_contains(pm_error_text(), why);
}

/* Settles the task with the heads that the maker returns for one picture. */
static inline void settle_by(struct pm_task *s, const struct pm_net_maker *maker)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(
        net, "images", PM_SHAPE4(1, s->facts.height, s->facts.width, s->facts.channels), PM_F32);
    struct pm_heads heads = { 0 };

    assert_int_equal(maker->heads(maker->ctx, net, images, &heads), PM_OK);
    assert_int_equal(task()->settle(s, frame_of(&s->facts, true), &heads, maker), PM_OK);
    pm_net_destroy(&net);
}

/* Stores the names of the net's metrics. Returns their number. */
static inline int metric_names(const struct pm_task *s, const char *names[64])
{
    struct pm_metric_list list = { 0 };
    int count = 0;

    task()->metrics(s, &list);
    assert_in_range(list.count, 1, 64);
    for (; count < (int)list.count; count++)
        names[count] = list.list[count]->name;
    pm_free(list.list);
    return count;
}

/* Adds the picture as a PNG. */
static inline void add_picture(struct pm_example_builder *b, const char *key, int height, int width,
                               int channels, const uint8_t *pixels)
{
    const struct pm_image8 im = { height, width, channels, (uint8_t *)pixels };
    uint8_t *png = NULL;
    size_t size = 0;

    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    pm_example_add_bytes(b, key, png, size);
    pm_free(png);
}

/* Adds the numbers as a grey PNG of 8 or 16 bits. */
static inline void add_map(struct pm_example_builder *b, const char *key, int height, int width,
                           int bits, const uint16_t *values)
{
    const struct pm_label map = { height, width, (uint16_t *)values };
    uint8_t *png = NULL;
    size_t size = 0;

    assert_int_equal((bits == 16 ? pm_label_encode_deep : pm_label_encode)(&map, key, &png, &size),
                     PM_OK);
    pm_example_add_bytes(b, key, png, size);
    pm_free(png);
}

#endif
