/* segmentation_inspect: how `pumice dataset inspect` shows, checks and saves maps of classes and of
 * instances. */
#include "tasks/segmentation/segmentation.h"

#include <pumice/draw.h>

#include <inttypes.h>
#include <string.h>

/* ---- as text ------------------------------------------------------------------------------ */

static const char map_key[] = "image/segmentation/class/encoded";
static const char instance_key[] = "image/segmentation/instance/encoded";

static bool is_map(const char *key)
{
    return !strcmp(key, map_key) || !strcmp(key, instance_key);
}

/* "png 366 x 500, labels 0 1 15 255" */
static bool value(const char *key, const uint8_t *data, size_t size, struct pm_str *s, bool *own)
{
    struct pm_label map;
    uint8_t *seen = NULL;
    int shown = 0;

    *own = is_map(key);
    if (!*own)
        return false;
    if (pm_label_decode(data, size, 0, key, &map) < 0) {
        PM_WARN("data", "%s", pm_error_text());
        return false;
    }
    seen = pm_calloc(65536, 1);
    for (size_t i = 0; i < (size_t)map.height * (size_t)map.width; i++)
        seen[map.values[i]] = 1;
    pm_str_add(s, "png %d x %d, %s", map.height, map.width,
               !strcmp(key, map_key) ? "labels" : "instances");
    for (int v = 0; v < 65536 && shown <= 20; v++)
        if (seen[v] && shown++ < 20)
            pm_str_add(s, " %d", v);
    pm_str_add(s, "%s, %zu bytes", shown > 20 ? " ..." : "", size);
    pm_free(seen);
    pm_label_free(&map);
    return true;
}

/* ---- checked ------------------------------------------------------------------------------ */

static int check_instances(const struct pm_example *e, const struct pm_label *map,
                           const struct pm_dataset_info *info, const char *where)
{
    const struct pm_task task = { /* as in training */
        .pixels.ignore_label = info->ignore_label >= 0 ? info->ignore_label : 255 };
    struct pm_recorded_instances instances;
    const uint8_t *data = NULL;
    size_t size = 0;
    int err = pm_example_bytes(e, instance_key, &data, &size);

    if (err == 1 && (err = pm_segmentation_instances(e, &task, map, where, &instances)) == PM_OK)
        pm_recorded_instances_free(&instances);
    return err;
}

/* Counts the pixels of the record's map by label. If the record has image/height and image/width,
 * the map must have that size. A map of instances must fit it. */
static int check(const struct pm_example *e, const struct pm_dataset_info *info, const char *where,
                 uint64_t *counts, size_t counted, uint64_t *more)
{
    int err = PM_OK, found;
    const uint8_t *data = NULL;
    size_t size = 0;
    struct pm_label map = { 0 };

    PM_TRY(found = pm_example_bytes(e, map_key, &data, &size));
    if (!found)
        return 0;
    PM_TRY(pm_label_decode(data, size, 0, where, &map));
    int64_t height = map.height, width = map.width;
    PM_TRY(pm_example_int(e, "image/height", &height));
    PM_TRY(pm_example_int(e, "image/width", &width));
    if (height != map.height || width != map.width)
        PM_TRY(
            pm_fail(PM_EDATA,
                    "%s: the label map is %d x %d, but image/height and image/width give %" PRId64
                    " x %" PRId64,
                    where, map.height, map.width, height, width));
    PM_TRY(check_instances(e, &map, info, where));
    for (size_t i = 0; i < (size_t)map.height * (size_t)map.width; i++)
        (*(map.values[i] < counted ? &counts[map.values[i]] : more))++;
    err = 1;
out:
    pm_label_free(&map);
    return err;
}

int pm_segmentation_record_classes(const struct pm_task *t, const struct pm_example *e,
                                   const char *where, uint64_t *has, size_t count, bool *other)
{
    uint64_t more = 0;
    const int found = check(e, t->facts.data, where, has, count, &more);

    (void)other; /* other labels are not learned */
    return found < 0 ? found : PM_OK;
}

/* ---- as pictures -------------------------------------------------------------------------- */

/* Draws each instance in its own colour, at most a hundred different ones; crowds are grey, the
 * rest black. */
static struct pm_image8 instance_colours(const struct pm_label *map, int divisor, bool of_class_0)
{
    const size_t count = (size_t)map->height * (size_t)map->width;
    struct pm_image8 im = { map->height, map->width, 3, pm_malloc(count * 3) };
    struct pm_color *color = pm_calloc(65536, sizeof *color);
    uint8_t *seen = pm_calloc(65536, 1);
    size_t n = 0;

    for (size_t i = 0; i < count; i++)
        seen[map->values[i]] = 1;
    for (int v = 1; v < 65536; v++) {
        if (!seen[v] || (v < divisor && !of_class_0))
            continue;
        const struct pm_color c = pm_draw_color(n);
        const int part = 100 - 18 * (int)(n / 20 % 5);
        color[v] = v % divisor == 0 ? (struct pm_color){ 128, 128, 128 }
                                    : (struct pm_color){ (uint8_t)(c.r * part / 100),
                                                         (uint8_t)(c.g * part / 100),
                                                         (uint8_t)(c.b * part / 100) };
        n += v % divisor != 0;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(im.pixels + 3 * i, &color[map->values[i]], 3);
    pm_free(color);
    pm_free(seen);
    return im;
}

/* Saves the map of classes unchanged as STEM.png, and the map of instances, if there is one, in
 * colours as STEM_instances.png. */
static int save(const struct pm_example *e, const struct pm_dataset_info *info, const char *stem)
{
    int err = PM_OK;
    int64_t divisor = 1000;
    const uint8_t *data = NULL;
    uint8_t *png = NULL;
    size_t size = 0;
    struct pm_label map = { 0 };
    struct pm_image8 im = { 0 };
    struct pm_str path = { 0 };
    bool of_class_0 = false;

    PM_TRY(pm_record_save(e, map_key, stem));
    PM_TRY(pm_example_bytes(e, instance_key, &data, &size));
    if (!data)
        goto out;
    PM_TRY(pm_example_int(e, "image/segmentation/instance/divisor", &divisor));
    PM_TRY(pm_label_decode(data, size, 0, instance_key, &map));
    for (int k = 0; k < info->thing_classes.count; k++)
        of_class_0 |= info->thing_classes.v[k] == 0;
    im = instance_colours(&map, divisor > 1 && divisor < 65536 ? (int)divisor : 1000, of_class_0);
    PM_TRY(pm_image_encode_png(&im, &png, &size));
    pm_str_add(&path, "%s_instances.png", stem);
    PM_TRY(pm_file_write(path.text, png, size));
out:
    pm_label_free(&map);
    pm_image_free(&im);
    pm_free(png);
    pm_str_free(&path);
    return err < 0 ? err : PM_OK;
}

const struct pm_task_inspect pm_segmentation_inspect = {
    .parts = "maps", .counts = "map_pixels", .heading = "every map is whole; pixels of labels",
    .value = value, .check = check, .save = save,
};
