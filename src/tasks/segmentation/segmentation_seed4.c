/* segmentation_seed4: records of the DeepLab fork for instances. Beside the label map they hold
 * pictures of precomputed targets, all of the image's size,
 *
 *   image/center/class/encoded            grey: heat, 0..255
 *   image/offsetx/class/encoded, offsety  colours: R + 256 G is the distance to the centre
 *   image/instance_ids_data/class/encoded numbers of instances
 *
 * The pictures are framed bilinearly with padding 0. Flips and scales do not change their values;
 * heat is halved. UNVERIFIED: that the numbers of instances are those of Cityscapes' instanceIds,
 * whose last three digits count (the fork only compares them). */
#include "tasks/record.h"
#include "tasks/segmentation/segmentation.h"

#include "data/instance_targets.h"

#include <string.h>

static const char ids_key[] = "image/instance_ids_data/class/encoded";
static const char *const keys[PM_SEED4_PICTURES] = {
    "image/center/class/encoded", "image/offsety/class/encoded", "image/offsetx/class/encoded",
};

bool pm_seed4_has(const struct pm_example *e)
{
    const uint8_t *data;
    size_t size;
    return pm_example_bytes(e, keys[0], &data, &size) == 1 ||
           pm_example_bytes(e, ids_key, &data, &size) == 1;
}

static int check_size(const char *key, int height, int width, const struct pm_label *label,
                      const char *where)
{
    if (height == label->height && width == label->width)
        return PM_OK;
    return pm_fail(PM_EDATA,
                   "%s: %s is %d x %d and the label map %d x %d: both must have the same size",
                   where, key, height, width, label->height, label->width);
}

static bool is_thing(const struct pm_task *s, int class)
{
    for (int i = 0; i < s->pixels.instance.things.count; i++)
        if (s->pixels.instance.things.v[i] == class)
            return class != s->pixels.ignore_label;
    return false;
}

static int read_ids(const struct pm_example *e, const struct pm_task *s,
                    const struct pm_label *label, const char *where,
                    struct pm_recorded_instances *out)
{
    enum { LAST = 65535 / 1000 - 1 };
    const uint8_t *data = NULL;
    size_t size = 0;
    int err = pm_example_bytes(e, ids_key, &data, &size);

    if (err <= 0)
        return err;
    PM_TRY(pm_record_damage(pm_label_decode(data, size, 0, where, &out->map)));
    PM_TRY(check_size(ids_key, out->map.height, out->map.width, label, where));
    out->divisor = 1000;
    for (size_t i = 0; i < (size_t)label->height * (size_t)label->width; i++) {
        const int stored = out->map.values[i], class = label->values[i];
        const int number = stored < 1000 ? 0 : stored % 1000 + 1;

        out->map.values[i] = 0;
        if (!is_thing(s, class))
            continue;
        if (number > 999 || class > LAST)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: %s: %d of class %d at row %zu, column %zu: there are at most 999 "
                           "instances of a class, and classes to %d",
                           where, ids_key, stored, class, i / (size_t)label->width,
                           i % (size_t)label->width, LAST));
        out->map.values[i] = (uint16_t)(class * 1000 + number);
    }
out:
    return err;
}

int pm_seed4_read(const struct pm_example *e, const struct pm_task *s, const struct pm_label *label,
                  const char *where, struct pm_recorded_instances *out)
{
    int err = PM_OK;

    PM_TRY(read_ids(e, s, label, where, out));
    for (int k = 0; k < PM_SEED4_PICTURES && s->pixels.instance.mode == PM_INSTANCE_SEED4; k++) {
        const uint8_t *data = NULL;
        size_t size = 0;
        const int found = pm_example_bytes(e, keys[k], &data, &size);

        PM_TRY(found);
        if (found == 0 && k == 0)
            break; /* then it is computed from the map */
        if (found == 0 || size == 0)
            PM_TRY(
                pm_fail(PM_EDATA, "%s: the record has no %s, but has %s", where, keys[k], keys[0]));
        PM_TRY(pm_record_damage(pm_image_decode(data, size, k ? 3 : 1, 0, where, &out->seed4[k])));
        PM_TRY(check_size(keys[k], out->seed4[k].height, out->seed4[k].width, label, where));
    }
    err = PM_OK;
out:
    return err;
}

/* ---- fields ------------------------------------------------------------------------------- */

static void fill(float *out, size_t count, float value)
{
    for (size_t i = 0; i < count; i++)
        out[i] = value;
}

void pm_seed4_targets(const struct pm_recorded_instances *r, const struct pm_placed *placed,
                      const struct pm_instance_target *out)
{
    const size_t pixels = (size_t)placed->target.height * (size_t)placed->target.width;
    float *framed = pm_malloc(3 * pixels * sizeof *framed);

    for (int k = 0; k < PM_SEED4_PICTURES; k++) {
        pm_placed_numbers(placed, &r->seed4[k], k ? framed : out->center);
        for (size_t i = 0; i < pixels && k == 0; i++)
            out->center[i] /= 2;
        for (size_t i = 0; i < pixels && k > 0; i++)
            out->offset[2 * i + (size_t)k - 1] = framed[3 * i] + 256 * framed[3 * i + 1];
    }
    fill(out->center_weight, pixels, 1);
    fill(out->offset_weight, 2 * pixels, 1);
    fill(out->semantic_weight, pixels, 1);
    pm_free(framed);
}
