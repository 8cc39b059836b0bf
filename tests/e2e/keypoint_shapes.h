/* keypoint_shapes: gives the drawn shapes of FOLDER/data four keypoints: the middle of the pixels
 * in the shape's first row (0 top), first column (1 left), last column (2 right) and last row (3
 * bottom). In every third object the last one is not labelled. */
#ifndef KEYPOINT_SHAPES_H
#define KEYPOINT_SHAPES_H

#include "e2e/program.h"

#include <pumice/formats.h>
#include <pumice/objects.h>

enum { SHAPE_POINTS = 4 };

/* The members of a config's data, eval and augmentation that belong to these keypoints. */
#define SHAPE_SIGMAS "[0.1, 0.1, 0.1, 0.1]"
#define SHAPE_FLIP "{ \"name\": \"random_flip\", \"keypoint_flip_permutation\": [0, 2, 1, 3] }"

/* Sets the keypoints from a mask of `side` x `side` pixels. */
static inline void shape_points(const uint8_t *mask, int side, struct pm_keypoint *out)
{
    for (int k = 0; k < SHAPE_POINTS; k++) {
        const bool row = k == 0 || k == 3, last = k >= 2; /* of the line of pixels */
        int sum = 0, count = 0, line = 0;

        for (int i = 0; i < side && count == 0; i++) {
            line = last ? side - 1 - i : i;
            for (int j = 0; j < side; j++)
                if (mask[row ? line * side + j : j * side + line])
                    sum += j, count++;
        }
        const float at = (float)(line + last) / (float)side;
        const float middle = ((float)sum / (float)count + 0.5f) / (float)side;

        out[k] = (struct pm_keypoint){ row ? at : middle, row ? middle : at, 2, 0, 0 };
    }
}

/* Writes a record of objects with keypoints. labelled false: no keypoint is. */
static inline void write_shape(const struct pm_example *e, bool labelled,
                               struct pm_tfrecord_writer *out)
{
    struct pm_example_builder *b = pm_example_builder_create();
    struct pm_objects o = { 0 };
    const uint8_t *png;
    uint8_t *data = NULL;
    size_t bytes, size;
    int64_t side;

    assert_int_equal(pm_objects_parse(e, true, "shape", &o), PM_OK);
    side = o.height;
    assert_int_equal(pm_example_bytes(e, "image/encoded", &png, &bytes), 1);
    pm_example_add_bytes(b, "image/encoded", png, bytes);
    pm_example_add_bytes(b, "image/format", "png", 3);
    pm_example_add_ints(b, "image/height", &side, 1);
    pm_example_add_ints(b, "image/width", &side, 1);
    uint8_t *mask = pm_malloc((size_t)(side * side));

    o.points = SHAPE_POINTS;
    for (size_t i = 0; i < o.count; i++) {
        assert_int_equal(pm_objects_mask(&o, i, "shape", mask), PM_OK);
        o.item[i].keypoints = pm_objects_points(&o);
        shape_points(mask, (int)side, o.item[i].keypoints);
        for (int k = 0; k < SHAPE_POINTS; k++)
            if (!labelled || (k == 3 && i % 3 == 2))
                o.item[i].keypoints[k] = (struct pm_keypoint){ 0 };
    }
    pm_free(mask);
    o.has |= PM_HAS_KEYPOINTS;
    pm_objects_write(&o, b);
    pm_example_serialise(b, &data, &size);
    assert_int_equal(pm_tfrecord_write(out, data, size), PM_OK);
    pm_free(data);
    pm_example_builder_destroy(&b);
    pm_objects_free(&o);
}

/* Rewrites a split of FOLDER/data, which has one file. */
static inline void give_keypoints(const char *split, bool labelled)
{
    char path[512];
    struct pm_tfrecord_writer *w = NULL;
    struct pm_dataset *d = NULL;
    uint8_t *data = NULL;
    size_t capacity = 0, size;

    snprintf(path, sizeof path, "%s", in("data/shapes_%s_00000-of-00001.tfrecord", split));
    assert_int_equal(pm_dataset_open(in("data"), split, &d), PM_OK);
    assert_int_equal(pm_tfrecord_create(in("keypoints"), &w), PM_OK);
    for (size_t i = 0; i < (size_t)pm_dataset_get_info(d)->count; i++) {
        struct pm_example *e = NULL;

        assert_int_equal(pm_dataset_read(d, i, &data, &capacity, &size), PM_OK);
        assert_int_equal(pm_example_parse(data, size, "shape", &e), PM_OK);
        write_shape(e, labelled, w);
        pm_example_destroy(&e);
    }
    assert_int_equal(pm_tfrecord_finish(w), PM_OK);
    pm_tfrecord_destroy(&w);
    pm_dataset_close(&d);
    pm_free(data);
    assert_int_equal(rename(in("keypoints"), path), 0);
}

#endif
