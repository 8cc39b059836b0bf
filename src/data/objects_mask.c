/* objects_mask: decodes the masks of a record's objects: picture files, numbers, or run lengths. */
#include <pumice/objects.h>

#include <string.h>

#include "data/coco_mask.h"

static int damage(int err)
{
    return err == PM_EDATA ? PM_ECORRUPT : err;
}

static int read_file(const struct pm_objects *o, size_t i, const char *where, uint8_t *out)
{
    const size_t pixels = (size_t)o->height * (size_t)o->width;
    const struct pm_object *one = &o->item[i];
    struct pm_image8 im = { 0 };
    int height = 0, width = 0, err = PM_OK;

    PM_TRY(damage(pm_image_measure(one->mask, one->mask_size, 0, where, &height, &width)));
    if (height != o->height || width != o->width)
        PM_TRY(pm_fail(PM_ECORRUPT,
                       "%s: object %zu: its mask has %d x %d pixels, the picture "
                       "%d x %d: convert the data again",
                       where, i + 1, height, width, o->height, o->width));
    PM_TRY(damage(pm_image_decode(one->mask, one->mask_size, 1, pixels + 1, where, &im)));
    for (size_t k = 0; k < pixels; k++)
        out[k] = im.pixels[k] > 0;
out:
    pm_image_free(&im);
    return err;
}

/* Reads a text of run lengths; it has no zero at its end. */
static int read_runs(const struct pm_objects *o, size_t i, const char *where, struct pm_runs *out)
{
    const struct pm_object *one = &o->item[i];
    char *text = pm_malloc(one->mask_size + 1), place[600];
    int err = PM_OK;

    memcpy(text, one->mask, one->mask_size);
    text[one->mask_size] = '\0';
    snprintf(place, sizeof place, "%s: object %zu", where, i + 1);
    if (strlen(text) < one->mask_size)
        PM_TRY(pm_fail(PM_ECORRUPT, "%s: the mask's text has an unknown character at character "
                       "%zu: it is damaged", place, strlen(text) + 1));
    PM_TRY(damage(pm_runs_text(text, o->height, o->width, place, out)));
out:
    pm_free(text);
    return err;
}

bool pm_object_has_mask(const struct pm_object *o)
{
    return o->mask_values || o->mask_size > 0;
}

static int check_present(const struct pm_objects *o, size_t i, const char *where)
{
    if (pm_object_has_mask(&o->item[i]))
        return PM_OK;
    return pm_fail(PM_ECORRUPT, "%s: object %zu has no mask: convert the data with masks", where,
                   i + 1);
}

int pm_objects_mask(const struct pm_objects *o, size_t i, const char *where, uint8_t *out)
{
    const size_t pixels = (size_t)o->height * (size_t)o->width;
    const struct pm_object *one = &o->item[i];
    struct pm_runs runs = { 0 };
    int err = PM_OK;

    PM_TRY(check_present(o, i, where));
    if (one->mask_values) {
        for (size_t k = 0; k < pixels; k++)
            out[k] = one->mask_values[k] > 0;
    } else if (o->has & PM_HAS_RLE) {
        PM_TRY(read_runs(o, i, where, &runs));
        pm_runs_decode(&runs, out);
    } else {
        PM_TRY(read_file(o, i, where, out));
    }
out:
    pm_runs_free(&runs);
    return err;
}

int pm_objects_runs(const struct pm_objects *o, size_t i, const char *where, struct pm_runs *out)
{
    uint8_t *mask = NULL;
    int err = PM_OK;

    *out = (struct pm_runs){ 0 };
    PM_TRY(check_present(o, i, where));
    if (o->has & PM_HAS_RLE && !o->item[i].mask_values)
        return read_runs(o, i, where, out);
    mask = pm_malloc((size_t)o->height * (size_t)o->width);
    PM_TRY(pm_objects_mask(o, i, where, mask));
    pm_runs_encode(mask, o->height, o->width, out);
out:
    pm_free(mask);
    return err;
}
