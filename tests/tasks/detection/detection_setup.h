/* A small detector on two maps, and records for it. */
#ifndef TESTS_DETECTION_SETUP_H
#define TESTS_DETECTION_SETUP_H

#include "base/unit.h"
#include "experiment/experiment.h"
#include "tasks/detection/detection.h"

#include <pumice/train.h>

enum { SIDE = 32, MOST = 6, CLASSES = 4, ANCHORS = 4 * 4 * 2 + 2 * 2 * 2 };

/* Two maps of 4x4 and 2x2 with two anchors in a cell; the classes are the numbers 1, 2 and 4. */
#define CONFIG(more)                                                                               \
    "{\"task\": \"detection\", \"model\": {\"layers\": [\n"                                        \
    "  {\"name\": \"m1\", \"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 8, \"stride\": 8},\n" \
    "  {\"name\": \"m2\", \"layer\": \"conv2d\", \"filters\": 4, \"kernel\": 2, \"stride\": 2},\n" \
    "  {\"name\": \"anchors\", \"layer\": \"ssd_anchors\", \"aspect_ratios\": [1], "               \
    "\"min_scale\": 0.3, \"reduce_boxes_in_lowest_layer\": false, "                                \
    "\"inputs\": [\"images\", \"m1\", \"m2\"]},\n"                                                 \
    "  {\"name\": \"boxes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m1\"], \"filters\": 8},\n"    \
    "  {\"name\": \"classes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m1\"], \"filters\": 8},\n"  \
    "  {\"name\": \"boxes_2\", \"layer\": \"conv2d\", \"inputs\": [\"m2\"], \"filters\": 8},\n"    \
    "  {\"name\": \"classes_2\", \"layer\": \"conv2d\", \"inputs\": [\"m2\"], \"filters\": 8}]},"  \
    " \"data\": {\"max_boxes\": 6, \"label_map\": \"%s\"},"                                        \
    " \"input\": {\"size\": 32, \"preprocessing\": \"ssd\"" more

struct setup {
    struct pm_arena *arena;
    char *folder;
    struct pm_config *config;
    struct pm_experiment *e;
};

/* The label map of the next setups. */
static const char *setup_map = "item { name: 'cat' id: 1 } item { name: 'dog' id: 2 }\n"
                               "item { name: 'cow' id: 4 display_name: 'a cow' }\n";

/* Opens the experiment of a text whose "%s" becomes the label map's path. data: further keys of the
 * section. Returns the error. */
static inline int open_setup(const char *text, const char *data, struct setup *s)
{
    *s = (struct setup){ .arena = pm_arena_create(), .folder = make_folder() };
    const struct pm_open_sections open = pm_train_choices(s->arena);
    const char *path = pm_arena_printf(s->arena, "%s/map.pbtxt", s->folder);
    struct pm_str whole = { 0 };
    const char *at = strstr(text, "%s\"");
    int err;

    assert_int_equal(pm_file_write(path, setup_map, strlen(setup_map)), PM_OK);
    pm_str_add(&whole, "%.*s%s\"%s%s", (int)(at - text), text, path, data, at + 3);
    err = pm_config_parse("t.json", whole.text, NULL, 0, &open, &s->config);
    if (err == PM_OK)
        err = pm_experiment_open(s->config, 0, &s->e);
    pm_str_free(&whole);
    return err;
}

static inline struct setup set_up_data(const char *text, const char *data)
{
    struct setup s;

    if (open_setup(text, data, &s) < 0)
        fail_msg("%s", pm_error_text());
    return s;
}

static inline struct setup set_up(const char *text)
{
    return set_up_data(text, "");
}

static inline void tear_down(struct setup *s)
{
    pm_experiment_close(&s->e);
    pm_config_destroy(&s->config);
    pm_arena_destroy(&s->arena);
    drop_folder(s->folder);
}

/* The setup's task with a second stage. boxes_each: boxes of a proposal, 1 or CLASSES; proposals:
 * rows of a picture. */
static inline struct pm_task two_stages_of(const struct setup *s, int boxes_each, int proposals)
{
    struct pm_task t = *s->e->task;

    t.stages = 2;
    t.proposals.max_total_detections = proposals;
    t.boxes_each = boxes_each;
    return t;
}

/* ---- records ------------------------------------------------------------------------------ */

/* The pictures of the next records are JPEG files instead of PNG files. */
static bool setup_jpeg;

/* Serialises a picture of height x width whose left half is black and whose right half is white,
 * with these objects. */
static inline void record_of(const struct pm_objects *objects, uint8_t **data, size_t *size)
{
    struct pm_example_builder *b = pm_example_builder_create();
    struct pm_image8 im = { objects->height, objects->width, 3, NULL };
    const size_t bytes = 3 * (size_t)im.height * (size_t)im.width;
    uint8_t *file = NULL;
    size_t length = 0;

    im.pixels = pm_malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        im.pixels[i] = (int)(i / 3) % im.width < im.width / 2 ? 0 : 255;
    assert_int_equal(setup_jpeg ? pm_image_encode_jpeg(&im, 100, &file, &length)
                                : pm_image_encode_png(&im, &file, &length), PM_OK);
    pm_example_add_bytes(b, "image/encoded", file, length);
    pm_example_add_bytes(b, "image/source_id", "17", 2);
    pm_example_add_ints(b, "image/height", &(int64_t){ im.height }, 1);
    pm_example_add_ints(b, "image/width", &(int64_t){ im.width }, 1);
    pm_objects_write(objects, b);
    pm_example_serialise(b, data, size);
    pm_example_builder_destroy(&b);
    pm_image_free(&im);
    pm_free(file);
}

#endif
