/* objects_write: writes objects as the lists of a record, one value per object. */
#include <string.h>

#include "data/object_keys.h"

static void write_floats(const struct pm_objects *o, struct pm_example_builder *b, const char *key,
                         size_t at)
{
    float *v = pm_malloc((o->count + 1) * sizeof *v);

    for (size_t i = 0; i < o->count; i++)
        memcpy(&v[i], (const char *)&o->item[i] + at, sizeof *v);
    pm_example_add_floats(b, key, v, o->count);
    pm_free(v);
}

static void write_ints(const struct pm_objects *o, struct pm_example_builder *b)
{
    int64_t *v = pm_malloc((o->count + 1) * sizeof *v);

    for (size_t i = 0; i < o->count; i++)
        v[i] = o->item[i].label;
    if (o->has & PM_HAS_LABEL)
        pm_example_add_ints(b, label_key, v, o->count);
    for (size_t i = 0; i < o->count; i++)
        v[i] = o->item[i].track;
    if (o->has & PM_HAS_TRACK)
        pm_example_add_ints(b, track_key, v, o->count);
    for (size_t k = 0; k < PM_COUNT(flags); k++) {
        for (size_t i = 0; i < o->count; i++)
            v[i] = *(bool *)field(&o->item[i], &flags[k]);
        if (o->has & flags[k].bit)
            pm_example_add_ints(b, flags[k].key, v, o->count);
    }
    pm_free(v);
}

static void write_text(struct pm_example_builder *b, const char *key, const char *text)
{
    pm_example_add_bytes(b, key, text ? text : "", text ? strlen(text) : 0);
}

/* Adds one number of each keypoint; `at` is its place in struct pm_keypoint. */
static void write_coordinate(const struct pm_objects *o, struct pm_example_builder *b,
                             const char *key, size_t at)
{
    const size_t per = (size_t)o->points, all = o->count * per;
    float *v = pm_calloc(all + 1, sizeof *v);

    for (size_t i = 0; i < all; i++)
        if (o->item[i / per].keypoints)
            memcpy(&v[i], (const char *)&o->item[i / per].keypoints[i % per] + at, sizeof *v);
    pm_example_add_floats(b, key, v, all);
    pm_free(v);
}

static void write_points(const struct pm_objects *o, struct pm_example_builder *b)
{
    const size_t per = (size_t)o->points, all = o->count * per;
    int64_t *seen = pm_calloc(all + 1, sizeof *seen),
            *labelled = pm_calloc(o->count + 1, sizeof *labelled);

    for (size_t at = 0; at < all; at++) {
        const struct pm_keypoint *from = o->item[at / per].keypoints;
        seen[at] = from ? from[at % per].visibility : 0;
        labelled[at / per] += seen[at] > 0;
    }
    write_coordinate(o, b, point_x_key, offsetof(struct pm_keypoint, x));
    write_coordinate(o, b, point_y_key, offsetof(struct pm_keypoint, y));
    if (o->has & PM_HAS_DEPTH) {
        write_coordinate(o, b, depth_key, offsetof(struct pm_keypoint, z));
        write_coordinate(o, b, depth_weight_key, offsetof(struct pm_keypoint, z_weight));
    }
    pm_example_add_ints(b, visibility_key, seen, all);
    pm_example_add_ints(b, point_count_key, labelled, o->count);
    for (size_t at = 0; o->point_names && at < all; at++)
        write_text(b, point_text_key, o->point_names[at % per]);
    pm_free(labelled);
    pm_free(seen);
}

/* The soft labels of all objects, one after the other. */
static void write_scores(const struct pm_objects *o, struct pm_example_builder *b)
{
    const size_t per = (size_t)o->score_count;
    float *v = pm_calloc(o->count * per + 1, sizeof *v);

    for (size_t i = 0; i < o->count; i++)
        if (o->item[i].scores)
            memcpy(v + i * per, o->item[i].scores, per * sizeof *v);
    pm_example_add_floats(b, scores_key, v, o->count * per);
    pm_free(v);
}

static void write_masks(const struct pm_objects *o, struct pm_example_builder *b)
{
    const size_t pixels = (size_t)o->height * (size_t)o->width;

    if (o->count == 0 || !o->item[0].mask_values) {
        for (size_t i = 0; i < o->count; i++)
            pm_example_add_bytes(b, o->has & PM_HAS_RLE ? rle_key : mask_key, o->item[i].mask,
                                 o->item[i].mask_size);
        return;
    }
    float *v = pm_calloc(o->count * pixels + 1, sizeof *v);
    for (size_t i = 0; i < o->count; i++)
        if (o->item[i].mask_values)
            memcpy(v + i * pixels, o->item[i].mask_values, pixels * sizeof *v);
    pm_example_add_floats(b, mask_key, v, o->count * pixels);
    pm_free(v);
}

void pm_objects_write(const struct pm_objects *o, struct pm_example_builder *b)
{
    for (size_t k = 0; k < 4; k++)
        write_floats(o, b, box_keys[k], offsetof(struct pm_object, box) + k * sizeof(float));
    for (size_t k = 0; o->has & PM_HAS_ROTATED && k < 5; k++)
        write_floats(o, b, rotated_keys[k],
                     offsetof(struct pm_object, rotated) + k * sizeof(float));
    for (size_t k = 0; k < PM_COUNT(texts); k++)
        for (size_t i = 0; o->has & texts[k].bit && i < o->count; i++)
            write_text(b, texts[k].key, *(const char **)field(&o->item[i], &texts[k]));
    for (size_t k = 0; k < PM_COUNT(numbers); k++)
        if (o->has & numbers[k].bit)
            write_floats(o, b, numbers[k].key, numbers[k].at);
    write_ints(o, b);
    if (o->has & PM_HAS_SCORES)
        write_scores(o, b);
    if (o->has & PM_HAS_KEYPOINTS)
        write_points(o, b);
    if (o->has & PM_HAS_MASK)
        write_masks(o, b);
    if (o->sensor)
        write_text(b, sensor_key, o->sensor);
    if (o->gsd > 0)
        pm_example_add_floats(b, gsd_key, &o->gsd, 1);
    if (o->absent_count)
        pm_example_add_ints(b, "image/neg_category_ids", o->absent, o->absent_count);
    if (o->incomplete_count)
        pm_example_add_ints(b, "image/not_exhaustive_category_ids", o->incomplete,
                            o->incomplete_count);
}
