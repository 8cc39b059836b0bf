/* objects: reads the objects of a record, which stores each property as one list with
 * one value per object. All lists must have as many values as there are boxes: a shorter list
 * would give values to the wrong objects. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/object_keys.h"
#include "data/rotated_box.h"

/* Coordinates are 0..1, and slightly beyond for objects at the border. Larger ones are pixels. */
static const float most_coordinate = 10;

/* ---- the list ------------------------------------------------------------------------------- */

void pm_objects_start(struct pm_objects *o, int height, int width)
{
    *o = (struct pm_objects){ .height = height, .width = width, .arena = pm_arena_create() };
}

void pm_objects_free(struct pm_objects *o)
{
    pm_free(o->item);
    pm_arena_destroy(&o->arena);
    *o = (struct pm_objects){ 0 };
}

struct pm_object *pm_objects_add(struct pm_objects *o)
{
    PM_GROW(o->item, o->count, o->capacity);
    o->item[o->count] = (struct pm_object){ .weight = 1, .mask_weight = 1 };
    return &o->item[o->count++];
}

struct pm_keypoint *pm_objects_points(struct pm_objects *o)
{
    return pm_arena_alloc(o->arena, (size_t)o->points * sizeof(struct pm_keypoint));
}

/* ---- reading: lists ------------------------------------------------------------------------- */

struct reading {
    const struct pm_example *e;
    const char *where;
    struct pm_objects *o;
};

static int damage(int err)
{
    return err == PM_EDATA ? PM_ECORRUPT : err;
}

/* Checks that a list has `per` values for each object. */
static int check_count(const struct reading *r, const char *key, size_t count, size_t per)
{
    const size_t objects = r->o->count;

    if (count / per == objects && count % per == 0)
        return PM_OK;
    return pm_fail(PM_ECORRUPT,
                   "%s: %s has %zu values for %zu boxes, %zu are needed: convert the data again",
                   r->where, key, count, objects, objects * per);
}

/* Reads a list of floats with `per` values for each object, all finite. Returns 1, or 0 if the list
 * is absent or empty. */
static int float_list(const struct reading *r, const char *key, size_t per, const float **out)
{
    size_t count = 0;
    int err = PM_OK;

    PM_TRY(damage(pm_example_floats(r->e, key, out, &count)));
    if (count == 0)
        return 0;
    PM_TRY(check_count(r, key, count, per));
    for (size_t i = 0; i < count; i++)
        if (!isfinite((*out)[i]))
            PM_TRY(pm_fail(PM_ECORRUPT,
                           "%s: object %zu: %s is %g, a finite number is needed: "
                           "convert the data again",
                           r->where, i / per + 1, key, (double)(*out)[i]));
    return 1;
out:
    return err;
}

/* Reads a list of integers in 0..most. Returns 1, or 0 if the list is absent or empty. */
static int int_list(const struct reading *r, const char *key, size_t per, int64_t most,
                    const int64_t **out)
{
    size_t count = 0;
    int err = PM_OK;

    PM_TRY(damage(pm_example_ints(r->e, key, out, &count)));
    if (count == 0)
        return 0;
    PM_TRY(check_count(r, key, count, per));
    for (size_t i = 0; i < count; i++)
        if ((*out)[i] < 0 || (*out)[i] > most)
            PM_TRY(pm_fail(PM_ECORRUPT,
                           "%s: object %zu: %s is %" PRId64 ", outside 0..%" PRId64
                           ": convert the data again",
                           r->where, i / per + 1, key, (*out)[i], most));
    return 1;
out:
    return err;
}

/* Counts the values of a key whatever their kind. *floats: whether they are floats. */
static size_t value_count(const struct pm_example *e, const char *key, bool *floats)
{
    const char *kind = NULL;
    size_t count = 0;

    for (size_t i = pm_example_count(e); i-- > 0;)
        if (!strcmp(pm_example_key(e, i, &kind, &count), key)) {
            *floats = !strcmp(kind, "floats");
            return count;
        }
    *floats = false;
    return 0;
}

/* Copies value i of a list of bytes, which must be a text of one line. */
static int text_at(const struct reading *r, const char *key, size_t i, size_t object,
                   const char **out)
{
    const uint8_t *data = NULL;
    size_t size = 0;
    int err = PM_OK;

    *out = NULL;
    PM_TRY(damage(pm_example_bytes_at(r->e, key, i, &data, &size)));
    if (size == 0)
        return PM_OK;
    char *text = pm_arena_alloc(r->o->arena, size + 1);
    memcpy(text, data, size);
    if (memchr(text, 0, size) || !pm_is_line(text))
        PM_TRY(pm_fail(PM_ECORRUPT,
                       "%s: object %zu: %s is \"%.100s\"; a name is one line without "
                       "control characters",
                       r->where, object + 1, key, text));
    *out = text;
out:
    return err;
}

/* ---- reading: properties -------------------------------------------------------------------- */

static int check_box(const struct reading *r, size_t i)
{
    const float *b = r->o->item[i].box;

    for (int k = 0; k < 4; k++)
        if (fabsf(b[k]) > most_coordinate)
            return pm_fail(PM_ECORRUPT,
                           "%s: object %zu: %s is %g; coordinates are shares of the "
                           "picture, 0..1: divide pixels by its size",
                           r->where, i + 1, box_keys[k], (double)b[k]);
    for (int k = 0; k < 2; k++)
        if (b[k] > b[k + 2])
            return pm_fail(PM_ECORRUPT,
                           "%s: object %zu: %s %g is above %s %g: exchange them, or "
                           "convert the data again",
                           r->where, i + 1, box_keys[k] + 18, (double)b[k], box_keys[k + 2] + 18,
                           (double)b[k + 2]);
    return PM_OK;
}

/* The numbers of a rotated box; wraps its angle. */
static int check_rotated(const struct reading *r, size_t i)
{
    static const double full_turn = 6.2831860; /* 2 pi and a rounding of a float */
    float *b = r->o->item[i].rotated;

    for (int k = 0; k < 4; k++)
        if (fabsf(b[k]) > most_coordinate || (k >= 2 && b[k] < 0))
            return pm_fail(PM_ECORRUPT,
                           "%s: object %zu: %s is %g; %s are shares of the picture, 0..1: %s",
                           r->where, i + 1, rotated_keys[k], (double)b[k],
                           k < 2 ? "centres" : "sides",
                           b[k] < 0 && k >= 2 ? "convert the data again"
                                              : "divide pixels by its size");
    if (fabs((double)b[4]) > full_turn)
        return pm_fail(PM_ECORRUPT,
                       "%s: object %zu: %s is %g, beyond a full turn of radians: divide degrees by "
                       "57.29578", r->where, i + 1, rotated_keys[4], (double)b[4]);
    b[4] = (float)pm_angle_wrapped((double)b[4]);
    return PM_OK;
}

/* Sets the upright box of a record that has rotated boxes only. */
static void enclose(struct pm_objects *o, size_t i)
{
    struct pm_rectangle box;
    double around[4];

    pm_rectangle_of_box(o->item[i].rotated, o->height, o->width, &box);
    pm_rectangle_around(&box, around);
    for (int k = 0; k < 4; k++)
        o->item[i].box[k] = (float)(around[k] / (k % 2 ? o->width : o->height));
}

static int read_rotated(const struct reading *r, bool alone)
{
    const float *v[5] = { NULL };
    bool floats;
    int err = PM_OK;

    if (value_count(r->e, rotated_keys[0], &floats) == 0)
        return PM_OK;
    if (!r->o->height || !r->o->width)
        return pm_fail(PM_ECORRUPT,
                       "%s: has rotated boxes, but no image/height and image/width: convert the "
                       "data again", r->where);
    for (int k = 0; k < 5; k++) {
        PM_TRY(float_list(r, rotated_keys[k], 1, &v[k]));
        if (!v[k])
            PM_TRY(check_count(r, rotated_keys[k], 0, 1));
        for (size_t i = 0; i < r->o->count; i++)
            r->o->item[i].rotated[k] = v[k][i];
    }
    for (size_t i = 0; i < r->o->count; i++) {
        PM_TRY(check_rotated(r, i));
        if (!alone)
            continue;
        enclose(r->o, i);
        PM_TRY(check_box(r, i));
    }
    r->o->has |= PM_HAS_ROTATED;
    err = PM_OK;
out:
    return err;
}

static int read_boxes(const struct reading *r)
{
    const float *v[4] = { NULL };
    bool floats;
    int err = PM_OK;
    const size_t upright = value_count(r->e, box_keys[0], &floats);
    const size_t count = upright ? upright : value_count(r->e, rotated_keys[0], &floats);

    for (size_t i = 0; i < count; i++)
        pm_objects_add(r->o);
    for (int k = 0; k < 4; k++) {
        PM_TRY(float_list(r, box_keys[k], 1, &v[k]));
        if (upright && !v[k])
            PM_TRY(check_count(r, box_keys[k], 0, 1));
        for (size_t i = 0; v[k] && i < count; i++)
            r->o->item[i].box[k] = v[k][i];
    }
    for (size_t i = 0; i < upright; i++)
        PM_TRY(check_box(r, i));
    PM_TRY(read_rotated(r, !upright));
out:
    return err;
}

static int read_texts(const struct reading *r, const struct property *p)
{
    bool floats;
    const size_t count = value_count(r->e, p->key, &floats);
    int err = PM_OK;

    if (count == 0)
        return PM_OK;
    PM_TRY(check_count(r, p->key, count, 1));
    for (size_t i = 0; i < count; i++)
        PM_TRY(text_at(r, p->key, i, i, field(&r->o->item[i], p)));
    r->o->has |= p->bit;
out:
    return err < 0 ? err : PM_OK;
}

static int read_numbers(const struct reading *r, const struct property *p)
{
    const float *v = NULL;
    int err = PM_OK;

    PM_TRY(float_list(r, p->key, 1, &v));
    for (size_t i = 0; err == 1 && i < r->o->count; i++) {
        if (v[i] < 0)
            return pm_fail(PM_ECORRUPT,
                           "%s: object %zu: %s is %g; 0 is the smallest value: "
                           "convert the data again",
                           r->where, i + 1, p->key, (double)v[i]);
        *(float *)field(&r->o->item[i], p) = v[i];
    }
    r->o->has |= err == 1 ? p->bit : 0;
    err = PM_OK;
out:
    return err;
}

static int read_flags(const struct reading *r, const struct property *p)
{
    const int64_t *v = NULL;
    int err = PM_OK;

    PM_TRY(int_list(r, p->key, 1, 1, &v));
    for (size_t i = 0; err == 1 && i < r->o->count; i++)
        *(bool *)field(&r->o->item[i], p) = v[i] != 0;
    r->o->has |= err == 1 ? p->bit : 0;
    err = PM_OK;
out:
    return err;
}

static int read_classes(const struct reading *r)
{
    struct pm_objects *o = r->o;
    const int64_t *labels = NULL, *tracks = NULL;
    const float *scores = NULL;
    bool floats;
    int err = PM_OK;

    PM_TRY(int_list(r, label_key, 1, PM_MOST_LABEL_ID, &labels));
    if (err == 0 && !(o->has & PM_HAS_TEXT))
        PM_TRY(int_list(r, inception_label_key, 1, PM_MOST_LABEL_ID, &labels));
    for (size_t i = 0; labels && err == 1 && i < o->count; i++)
        o->item[i].label = labels[i];
    o->has |= err == 1 ? PM_HAS_LABEL : 0;
    PM_TRY(int_list(r, track_key, 1, INT64_MAX, &tracks));
    for (size_t i = 0; tracks && err == 1 && i < o->count; i++)
        o->item[i].track = tracks[i];
    o->has |= err == 1 ? PM_HAS_TRACK : 0;
    const size_t all = value_count(r->e, scores_key, &floats), per = o->count ? all / o->count : 0;
    if (all == 0)
        return PM_OK;
    PM_TRY(float_list(r, scores_key, per ? per : 1, &scores));
    for (size_t i = 0; i < o->count; i++)
        o->item[i].scores = scores + i * per;
    o->score_count = (int)per;
    o->has |= PM_HAS_SCORES;
    err = PM_OK;
out:
    return err;
}

/* ---- reading: masks and keypoints ----------------------------------------------------------- */

static int read_masks(const struct reading *r)
{
    struct pm_objects *o = r->o;
    bool plain_floats, unused;
    const size_t plain = value_count(r->e, mask_key, &plain_floats);
    const size_t runs = value_count(r->e, rle_key, &unused), count = plain ? plain : runs;
    const bool floats = plain && plain_floats; /* an empty list of floats has no masks */
    const char *key = plain ? mask_key : rle_key;
    const size_t pixels = (size_t)o->height * (size_t)o->width;
    const float *v = NULL;
    int err = PM_OK;

    if (count == 0)
        return PM_OK;
    if (plain && runs)
        return pm_fail(PM_ECORRUPT, "%s: has masks in %s and in %s: convert the data again",
                       r->where, mask_key, rle_key);
    if (floats && pixels == 0)
        return pm_fail(PM_ECORRUPT,
                       "%s: has masks as numbers, but no image/height and "
                       "image/width: convert the data again",
                       r->where);
    if (floats)
        PM_TRY(float_list(r, mask_key, pixels, &v));
    else
        PM_TRY(check_count(r, key, count, 1));
    for (size_t i = 0; i < o->count; i++) {
        struct pm_object *one = &o->item[i];
        if (floats)
            one->mask_values = v + i * pixels;
        else
            PM_TRY(damage(pm_example_bytes_at(r->e, key, i, &one->mask, &one->mask_size)));
    }
    o->has |= PM_HAS_MASK | (runs ? PM_HAS_RLE : 0u);
    err = PM_OK;
out:
    return err;
}

static int read_point_names(const struct reading *r)
{
    struct pm_objects *o = r->o;
    const size_t per = (size_t)o->points;
    bool floats;
    const size_t count = value_count(r->e, point_text_key, &floats);
    const char **names = pm_arena_alloc(o->arena, per * sizeof *names);
    int err = PM_OK;

    if (count == 0)
        return PM_OK;
    PM_TRY(check_count(r, point_text_key, count, per));
    for (size_t k = 0; k < per; k++)
        PM_TRY(text_at(r, point_text_key, k, 0, &names[k]));
    o->point_names = names;
out:
    return err;
}

/* Depths of keypoints; without weights they weigh 1. */
static int read_depths(const struct reading *r)
{
    struct pm_objects *o = r->o;
    const size_t per = (size_t)o->points;
    const float *z = NULL, *weight = NULL;
    int err = PM_OK;

    PM_TRY(float_list(r, depth_key, per, &z));
    if (err == 0)
        return PM_OK;
    PM_TRY(float_list(r, depth_weight_key, per, &weight));
    const bool given = err == 1;
    for (size_t at = 0; at < o->count * per; at++) {
        o->item[at / per].keypoints[at % per].z = z[at];
        o->item[at / per].keypoints[at % per].z_weight = given ? weight[at] : 1;
    }
    o->has |= PM_HAS_DEPTH;
    err = PM_OK;
out:
    return err;
}

static int read_points(const struct reading *r)
{
    struct pm_objects *o = r->o;
    const float *x = NULL, *y = NULL;
    const int64_t *seen = NULL;
    bool floats;
    const size_t all = value_count(r->e, point_x_key, &floats);
    const size_t per = o->count && all / o->count ? all / o->count : 1;
    int err = PM_OK;

    PM_TRY(float_list(r, point_x_key, per, &x));
    PM_TRY(float_list(r, point_y_key, per, &y));
    if (!x && !y)
        return PM_OK;
    if (!x || !y)
        return check_count(r, x ? point_y_key : point_x_key, 0, per);
    PM_TRY(int_list(r, visibility_key, per, 2, &seen));
    const bool given = err == 1;
    o->points = (int)per;
    for (size_t i = 0; i < o->count; i++) {
        o->item[i].keypoints = pm_objects_points(o);
        for (size_t k = 0; k < per; k++) {
            const size_t at = i * per + k;
            o->item[i].keypoints[k] =
                (struct pm_keypoint){ y[at], x[at], given ? (int)seen[at] : 2 };
        }
    }
    o->has |= PM_HAS_KEYPOINTS;
    PM_TRY(read_point_names(r));
    PM_TRY(read_depths(r));
out:
    return err;
}

/* ---- reading: the picture ------------------------------------------------------------------- */

static int read_side(const struct reading *r, const char *key, int *out)
{
    int64_t v = 0;
    int err = PM_OK;

    PM_TRY(damage(pm_example_int(r->e, key, &v)));
    if (v < 0 || v > 1 << 20)
        PM_TRY(pm_fail(PM_ECORRUPT, "%s: %s is %" PRId64 ", outside 0..%d: convert the data again",
                       r->where, key, v, 1 << 20));
    *out = (int)v;
    err = PM_OK;
out:
    return err;
}

static int read_classes_of_picture(const struct reading *r, const char *key, const int64_t **out,
                                   size_t *count)
{
    const int64_t *v = NULL;
    int err = PM_OK;

    PM_TRY(damage(pm_example_ints(r->e, key, &v, count)));
    for (size_t i = 0; i < *count; i++)
        if (v[i] < 0 || v[i] > PM_MOST_LABEL_ID)
            PM_TRY(pm_fail(PM_ECORRUPT,
                           "%s: %s: value %zu is %" PRId64 ", outside 0..%d: convert "
                           "the data again",
                           r->where, key, i + 1, v[i], PM_MOST_LABEL_ID));
    if (*count)
        *out = pm_arena_copy(r->o->arena, v, *count * sizeof *v);
    err = PM_OK;
out:
    return err;
}

/* The sensor and the size of its pixels on the ground. */
static int read_sensor(const struct reading *r)
{
    const float *gsd = NULL;
    size_t count = 0;
    int err = PM_OK;

    PM_TRY(damage(pm_example_floats(r->e, gsd_key, &gsd, &count)));
    if (count && !(gsd[0] >= 0 && isfinite(gsd[0])))
        PM_TRY(pm_fail(PM_ECORRUPT, "%s: %s is %g; metres per pixel are above 0: convert the data "
                       "again", r->where, gsd_key, (double)gsd[0]));
    r->o->gsd = count ? gsd[0] : 0;
    bool floats;
    if (value_count(r->e, sensor_key, &floats))
        PM_TRY(text_at(r, sensor_key, 0, 0, &r->o->sensor));
out:
    return err;
}

int pm_objects_parse(const struct pm_example *e, bool masks, const char *where,
                     struct pm_objects *o)
{
    const struct reading r = { e, where, o };
    int err = PM_OK;

    pm_objects_start(o, 0, 0);
    PM_TRY(read_side(&r, "image/height", &o->height));
    PM_TRY(read_side(&r, "image/width", &o->width));
    PM_TRY(read_boxes(&r));
    for (size_t k = 0; k < PM_COUNT(texts); k++)
        PM_TRY(read_texts(&r, &texts[k]));
    for (size_t k = 0; k < PM_COUNT(numbers); k++)
        PM_TRY(read_numbers(&r, &numbers[k]));
    for (size_t k = 0; k < PM_COUNT(flags); k++)
        PM_TRY(read_flags(&r, &flags[k]));
    PM_TRY(read_classes(&r));
    PM_TRY(read_points(&r));
    PM_TRY(read_sensor(&r));
    if (masks)
        PM_TRY(read_masks(&r));
    PM_TRY(read_classes_of_picture(&r, "image/neg_category_ids", &o->absent, &o->absent_count));
    PM_TRY(read_classes_of_picture(&r, "image/not_exhaustive_category_ids", &o->incomplete,
                                   &o->incomplete_count));
out:
    return err;
}

/* ---- classes -------------------------------------------------------------------------------- */

int pm_objects_resolve(struct pm_objects *o, const struct pm_label_map *map, const char *where)
{
    size_t kept = 0;

    for (size_t i = 0; i < o->count; i++) {
        struct pm_object *one = &o->item[i];

        if (!one->text && one->label == 0)
            continue;
        const int id = one->text ? pm_label_map_find(map, one->text) : (int)one->label;

        if (one->text && id < 0) {
            const char *near = pm_label_map_nearest(map, one->text);
            return pm_fail(PM_ECORRUPT,
                           "%s: object %zu: the class \"%s\" is not among the %d of "
                           "the label map%s%s%s: add it to the map, or rename it",
                           where, i + 1, one->text, map->count, near ? " (did you mean \"" : "",
                           near ? near : "", near ? "\"?)" : "");
        }
        if (id < 1 || !pm_label_map_item(map, id))
            return pm_fail(PM_ECORRUPT,
                           "%s: object %zu: the class number %d is not one of the %d "
                           "classes of the label map; numbers begin at 1, 0 is the background",
                           where, i + 1, id, map->count);
        one->label = id;
        o->item[kept++] = *one;
    }
    o->count = kept;
    return PM_OK;
}
