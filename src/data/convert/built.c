/* Writes records like the Inception trainer's two builders, one for ImageNet and one for any
 * folders of classes: JPEGs with colour space, channels and file name; for ImageNet also synset and
 * boxes. */
#include <string.h>

#include "data/convert/convert.h"

static void add_boxes(struct pm_example_builder *b, const struct pm_boxes *boxes, int64_t label)
{
    static const char *const keys[4] = { "image/object/bbox/ymin", "image/object/bbox/xmin",
                                         "image/object/bbox/ymax", "image/object/bbox/xmax" };
    float *v = pm_malloc((boxes->count + 1) * sizeof *v);
    int64_t *labels = pm_malloc((boxes->count + 1) * sizeof *labels);

    for (int k = 0; k < 4; k++) {
        for (size_t i = 0; i < boxes->count; i++)
            v[i] = boxes->v[4 * i + (size_t)k];
        pm_example_add_floats(b, keys[k], v, boxes->count);
    }
    for (size_t i = 0; i < boxes->count; i++)
        labels[i] = label;
    pm_example_add_ints(b, "image/object/bbox/label", labels, boxes->count);
    pm_free(labels);
    pm_free(v);
}

int pm_built_fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct pm_built *s = ctx;
    const struct pm_source *it = &s->sources->item[s->order ? s->order[i] : i];
    const int64_t channels = 3;
    struct pm_picture p = { 0 };
    int err = PM_OK;

    PM_TRY(pm_picture_read(it->path, &p));
    PM_TRY(pm_picture_to_jpeg(&p));
    pm_picture_add(b, &p, "JPEG", it->label);
    pm_add_text(b, "image/colorspace", "RGB");
    pm_example_add_ints(b, "image/channels", &channels, 1);
    pm_add_text(b, "image/filename", it->name);
    if (s->texts)
        pm_add_text(b, "image/class/text", s->texts[it->label] ? s->texts[it->label] : "");
    if (s->synsets) {
        const struct pm_boxes none = { 0 };
        const struct pm_boxes boxes = s->boxes ? s->boxes(s->ctx, it->name) : none;
        pm_add_text(b, "image/class/synset", s->synsets[it->label]);
        add_boxes(b, &boxes, it->label);
    }
    err = 1;
out:
    pm_picture_free(&p);
    return pm_picture_failed(err, s->bad);
}

int pm_built_split(struct pm_making *m, const char *split, struct pm_built *s, uint64_t seed,
                   size_t shards)
{
    uint32_t *order = pm_malloc((s->sources->count + 1) * sizeof *order);
    const struct pm_sharding sharding = { PM_CUT_EVEN, shards, PM_NAMES_PLAIN };

    pm_python_shuffle(seed, s->sources->count, order);
    s->order = order;
    const int err = pm_making_split(m, split, s->sources->count, &sharding, pm_built_fill, s);
    s->order = NULL;
    pm_free(order);
    return err;
}
