/* segmentation_instances: the fields of a batch for a net with heads of instances. They come from
 * the record's map
 *
 *   image/segmentation/instance/encoded   PNG of the picture's size, grey, up to 16 bits: for a
 *                                         thing class * divisor + the instance's number from 1;
 *                                         for a crowd class * divisor; less than divisor if it is
 *                                         not a thing
 *   image/segmentation/instance/divisor   1000 if absent
 *
 * and from the label map, which gives each pixel's class. Both are framed alike. Training's targets
 * are computed from them (data/instance_targets.h); evaluation uses the map itself. Records without
 * such a map may be the fork's (segmentation_seed4.c). */
#include "tasks/record.h"
#include "tasks/segmentation/segmentation.h"

#include "data/instance_targets.h"

enum { DIVISOR = 1000, MOST_DIVISOR = 1 << 15, PADDING = -1 };

void pm_segmentation_instance_fields(const struct pm_task *s, bool train, struct pm_frame frame,
                                     struct pm_field_list *out)
{
    const int h = frame.height, w = frame.width, far = h > w ? h : w;
    const int last = s->facts.num_classes * s->pixels.instance.label_divisor - 1;
    const struct pm_values unit = { .high = 1 }, lengths = { .low = -far, .high = far };

    if (!s->pixels.instance.on)
        return;
    if (!train) {
        pm_field_add(out, (struct pm_field){ "instances", PM_I32, PM_SHAPE2(h, w), 0,
                                             { .high = last } });
        return;
    }
    pm_field_add(out, (struct pm_field){ "center", PM_F32, PM_SHAPE3(h, w, 1), 0, unit });
    pm_field_add(out, (struct pm_field){ "center_weight", PM_F32, PM_SHAPE3(h, w, 1), 0, unit });
    pm_field_add(out, (struct pm_field){ "offset", PM_F32, PM_SHAPE3(h, w, 2), 0, lengths });
    pm_field_add(out, (struct pm_field){ "offset_weight", PM_F32, PM_SHAPE3(h, w, 2), 0, unit });
    pm_field_add(out, (struct pm_field){ "semantic_weight", PM_F32, PM_SHAPE2(h, w), 0, unit });
}

/* ---- the record's map -------------------------------------------------------------------- */

static int no_map(const char *where, const char *key)
{
    return pm_fail(
        PM_EDATA,
        "%s: the record has no %s, which a net with instances needs for training: remove the data "
        "folder and convert the data again with instance maps, or set model.instance to false",
        where, key);
}

static int read_divisor(const struct pm_example *e, const char *where, int *out)
{
    static const char key[] = "image/segmentation/instance/divisor";
    int64_t v = DIVISOR;
    const int found = pm_example_int(e, key, &v);

    if (found < 0)
        return found;
    if (v < 2 || v > MOST_DIVISOR)
        return pm_fail(PM_EDATA, "%s: %s: %lld is outside 2..%d", where, key, (long long)v,
                       MOST_DIVISOR);
    *out = (int)v;
    return PM_OK;
}

/* Checks that every instance has the class of its pixels. */
static int check_classes(const struct pm_recorded_instances *m, const struct pm_label *label,
                         const struct pm_task *s, const char *where)
{
    const size_t count = (size_t)label->height * (size_t)label->width;

    for (size_t i = 0; i < count; i++) {
        const int v = m->map.values[i], class = label->values[i];

        if (v >= m->divisor && v % m->divisor >= DIVISOR)
            return pm_fail(
                PM_EDATA,
                "%s: image/segmentation/instance/encoded: %d at row %zu, column %zu is instance %d "
                "of its class (the number is divided by %d): number the instances 1..%d",
                where, v, i / (size_t)label->width, i % (size_t)label->width, v % m->divisor,
                m->divisor, DIVISOR - 1);

        if (v >= m->divisor && v / m->divisor != class && class != s->pixels.ignore_label)
            return pm_fail(
                PM_EDATA,
                "%s: image/segmentation/instance/encoded: %d at row %zu, column %zu is of class %d "
                "(the number is divided by %d), but the pixel's label is class %d",
                where, v, i / (size_t)label->width, i % (size_t)label->width, v / m->divisor,
                m->divisor, class);
    }
    return PM_OK;
}

static int read_map(const struct pm_example *e, const struct pm_task *s,
                    const struct pm_label *label, const char *where, const uint8_t *data,
                    size_t size, struct pm_recorded_instances *out)
{
    int err = PM_OK;

    PM_TRY(read_divisor(e, where, &out->divisor));
    PM_TRY(pm_record_damage(pm_label_decode(data, size, 0, where, &out->map)));
    if (out->map.height != label->height || out->map.width != label->width)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: the label map is %d x %d and the instance map %d x %d: both must have "
                       "the same size",
                       where, label->height, label->width, out->map.height, out->map.width));
    PM_TRY(check_classes(out, label, s, where));
out:
    return err;
}

int pm_segmentation_instances(const struct pm_example *e, const struct pm_task *s,
                              const struct pm_label *label, const char *where,
                              struct pm_recorded_instances *out)
{
    static const char key[] = "image/segmentation/instance/encoded";
    const uint8_t *data;
    size_t size;
    const int found = pm_example_bytes(e, key, &data, &size);
    int err = PM_OK;

    *out = (struct pm_recorded_instances){ .divisor = DIVISOR };
    PM_TRY(found);
    if (found == 1 && size > 0)
        PM_TRY(read_map(e, s, label, where, data, size, out));
    else if (pm_seed4_has(e))
        PM_TRY(pm_seed4_read(e, s, label, where, out));
    else
        PM_TRY(no_map(where, key));
    err = PM_OK;
out:
    if (err < 0)
        pm_recorded_instances_free(out);
    return err;
}

void pm_recorded_instances_free(struct pm_recorded_instances *r)
{
    pm_label_free(&r->map);
    for (int k = 0; k < PM_SEED4_PICTURES; k++)
        pm_image_free(&r->seed4[k]);
}

/* ---- fields ------------------------------------------------------------------------------ */

/* Frames the map like the picture, in multiples of the task's divisor; fill: value outside the
 * picture. */
static int frame(const struct pm_sampler *sampler, const struct pm_recorded_instances *m,
                 const struct pm_placed *placed, int32_t fill, int32_t *out)
{
    const int height = placed->target.height, width = placed->target.width;
    const int divisor = sampler->task->pixels.instance.label_divisor;
    const int err = pm_placed_map(placed, &m->map, fill, out);

    if (err < 0 || m->divisor == divisor)
        return err;
    for (size_t i = 0; i < (size_t)height * (size_t)width; i++)
        out[i] = out[i] / m->divisor * divisor + out[i] % m->divisor;
    return PM_OK;
}

int pm_segmentation_make_instances(const struct pm_sampler *sampler,
                                   const struct pm_recorded_instances *m,
                                   const struct pm_placed *placed, const char *where,
                                   const int32_t *labels, void *const *out)
{
    const struct pm_task *s = sampler->task;
    const struct pm_instances *i = &s->pixels.instance;
    int32_t *framed = NULL;
    int err = PM_OK;

    if (!m->map.values && (!sampler->train || !m->seed4[0].pixels))
        return no_map(where, "image/instance_ids_data/class/encoded");
    if (!sampler->train)
        return frame(sampler, m, placed, PADDING, out[0]);
    const struct pm_instance_target to = { out[0], out[1], out[2], out[3], out[4] };
    if (m->seed4[0].pixels) {
        pm_seed4_targets(m, placed, &to);
        return PM_OK;
    }
    const struct pm_instance_options o = {
        .mode = i->mode, .sigma = i->center_sigma, .small_area = i->small_area,
        .small_weight = i->small_weight, .num_classes = s->facts.num_classes,
        .ignore_label = s->pixels.ignore_label, .divisor = i->label_divisor, .things = i->things,
    };
    const int height = placed->target.height, width = placed->target.width;
    framed = pm_malloc((size_t)height * (size_t)width * sizeof *framed);
    PM_TRY(frame(sampler, m, placed, 0, framed));
    pm_instance_targets(&o, labels, framed, height, width, &to);
out:
    pm_free(framed);
    return err;
}
