/* Objects of a record: reads the objects of a tf.Example with their masks, filters and writes
 * them. The new record must have the same number of objects. */
#include <pumice/objects.h>

#include <string.h>

#include "data/coco_mask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const struct pm_objects *o)
{
    struct pm_example_builder *b = pm_example_builder_create();
    struct pm_example *e = NULL;
    struct pm_objects again;
    const int64_t size[2] = { o->height, o->width };
    uint8_t *data = NULL;
    size_t bytes = 0;

    pm_example_add_ints(b, "image/height", size, 1);
    pm_example_add_ints(b, "image/width", size + 1, 1);
    pm_objects_write(o, b);
    pm_example_serialise(b, &data, &bytes);
    if (pm_example_parse(data, bytes, "own", &e) < 0 ||
        pm_objects_parse(e, true, "own", &again) < 0 || again.count != o->count)
        __builtin_trap();
    pm_objects_free(&again);
    pm_example_destroy(&e);
    pm_free(data);
    pm_example_builder_destroy(&b);
}

/* Both forms of a mask have the same area. */
static void check_mask(const struct pm_objects *o, size_t i, uint8_t *mask)
{
    const size_t pixels = (size_t)o->height * (size_t)o->width;
    struct pm_runs runs;
    uint64_t area = 0;
    const int err = pm_objects_mask(o, i, "fuzz", mask);

    if (pm_objects_runs(o, i, "fuzz", &runs) != err)
        __builtin_trap();
    for (size_t k = 0; err == PM_OK && k < pixels; k++)
        area += mask[k];
    if (err == PM_OK && area != pm_runs_area(&runs))
        __builtin_trap();
    pm_runs_free(&runs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct pm_object_filter filter = { .min_side = 1 };
    struct pm_object_counts counts = { 0 };
    struct pm_example *e = NULL;
    struct pm_objects o;

    if (pm_example_parse(data, size, "fuzz", &e) < 0)
        return 0;
    if (pm_objects_parse(e, true, "fuzz", &o) == PM_OK) {
        const size_t pixels = (size_t)o.height * (size_t)o.width;
        uint8_t *mask = pixels <= 1 << 16 ? pm_malloc(pixels + 1) : NULL;

        write_again(&o);
        for (size_t i = 0; mask && i < o.count && i < 16; i++)
            check_mask(&o, i, mask);
        pm_free(mask);
        if (o.height && o.width)
            pm_objects_filter(&o, &filter, "fuzz", &counts);
        if (counts.boxes != (o.height && o.width ? o.count : 0))
            __builtin_trap();
    }
    pm_objects_free(&o);
    pm_example_destroy(&e);
    return 0;
}
