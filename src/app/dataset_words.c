/* dataset_words: dataset_words.h has the contract. */
#include "app/dataset_words.h"

#include "data/word_points.h"

enum { CANVAS = 600 }; /* pixels of the longer side, at least */

static void draw_edge(const float *xy, int count, const struct pm_image8 *picture,
                      struct pm_color color, struct pm_image8 *out)
{
    const double h = picture->height, w = picture->width;

    for (int i = 0; i + 1 < count; i++)
        pm_draw_line(out, xy[2 * i + 1] / h, xy[2 * i] / w, xy[2 * i + 3] / h, xy[2 * i + 2] / w,
                     color);
    for (int i = 0; i < count; i++)
        pm_draw_point(out, xy[2 * i + 1] / h, xy[2 * i] / w, color, i == 0);
}

int app_draw_word(const struct pm_example *e, const char *where, struct pm_image8 *out)
{
    const uint8_t *data = NULL;
    const float *v = NULL;
    size_t size = 0, count = 0;
    struct pm_image8 im = { 0 };
    struct pm_word_points p;
    int err = PM_OK, found = 0;

    *out = (struct pm_image8){ 0 };
    PM_TRY(found = pm_example_bytes(e, "image/encoded", &data, &size));
    if (found)
        PM_TRY(found = pm_example_floats(e, "image/keypoints", &v, &count));
    if (!found || count == 0)
        return 0;
    PM_TRY(pm_image_decode(data, size, 3, 0, where, &im));
    PM_TRY(pm_word_points_read(e, im.height, im.width, where, &p));
    pm_draw_canvas(&im, CANVAS, out);
    for (int k = 0; k < 2; k++)
        draw_edge(p.xy + 2 * k * p.count, p.count, &im, pm_draw_color((size_t)k), out);
    err = 1;
out:
    pm_image_free(&im);
    return err;
}

/* Returns 1, with the reason as last error, if the record's image/keypoints are wrong. */
static int is_wrong(const struct pm_example *e, const char *where)
{
    const uint8_t *data = NULL;
    const float *v = NULL;
    size_t size = 0, count = 0;
    struct pm_word_points p;
    int err = PM_OK, found = 0, height, width;

    found = pm_example_floats(e, "image/keypoints", &v, &count);
    if (found == PM_EDATA)
        return 1;
    PM_TRY(found);
    if (found)
        PM_TRY(found = pm_example_bytes(e, "image/encoded", &data, &size));
    if (!found || count == 0 || !pm_image_format(data, size))
        return 0;
    PM_TRY(pm_image_measure(data, size, 0, where, &height, &width));
    err = pm_word_points_read(e, height, width, where, &p);
    if (err == PM_EDATA)
        err = 1;
out:
    return err;
}

int app_check_word(struct app_word_check *c, const struct pm_example *e, const char *where)
{
    enum { MOST_WARNED = 10 };
    const int found = is_wrong(e, where);

    if (found <= 0)
        return found;
    if (c->wrong == 0)
        c->first = pm_strdup(pm_error_text());
    if (c->wrong++ < MOST_WARNED)
        PM_WARN("data", "%s", pm_error_text());
    return PM_OK;
}

int app_word_check_result(const struct app_word_check *c, const char *path)
{
    if (c->wrong == 0)
        return PM_OK;
    return pm_fail(PM_EDATA, "%s: %zu %s wrong image/keypoints: correct or remove the key. The "
                   "first: %s", path, c->wrong,
                   pm_plural((double)c->wrong, "record has", "records have"), c->first);
}

void app_word_check_free(struct app_word_check *c)
{
    pm_free(c->first);
    c->first = NULL;
}
