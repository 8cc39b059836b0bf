/* Shared by the tests of converters of rotated boxes. */
#ifndef PUMICE_TESTS_ROTATED_COMMON_H
#define PUMICE_TESTS_ROTATED_COMMON_H

#include "boxes_common.h"

#include "data/rotated_box.h"

static inline struct pm_rectangle rectangle(const struct pm_objects *o, size_t i)
{
    struct pm_rectangle r;

    assert_true(i < o->count);
    assert_true(o->has & PM_HAS_ROTATED);
    pm_rectangle_of_box(o->item[i].rotated, o->height, o->width, &r);
    return r;
}

/* Object i must have this rotated box, in pixels; the angle is in degrees, up to half turns. Shares
 * are rounded to float32: 6e-8 of a picture's side. */
static inline void assert_rotated(const struct pm_objects *o, size_t i, double cy, double cx,
                                  double h, double w, double degrees)
{
    const struct pm_rectangle r = rectangle(o, i);
    const double close_to = 1.2e-7 * (fmax(o->height, o->width) + fmax(fabs(cy), fabs(cx)));
    const double angle = degrees * 3.14159265358979323846 / 180;

    if (!(fabs(r.cy - cy) <= close_to && fabs(r.cx - cx) <= close_to &&
          fabs(r.h - h) <= close_to && fabs(r.w - w) <= close_to &&
          fabs(remainder(r.angle - angle, 3.14159265358979323846)) <= 2e-7))
        fail_msg("object %zu: %.9g %.9g %.9g %.9g %.9g, expected %.9g %.9g %.9g %.9g %.9g", i, r.cy,
                 r.cx, r.h, r.w, r.angle, cy, cx, h, w, angle);
}

/* Writes a grey PNG of that size. */
static inline void put_blank(const char *name, int height, int width)
{
    struct pm_image8 im = { height, width, 1, pm_calloc((size_t)height, (size_t)width) };
    uint8_t *png = NULL;
    size_t size = 0;

    make_folder_of(name);
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    assert_int_equal(pm_file_write(in_scratch(name), png, size), PM_OK);
    pm_free(png);
    pm_image_free(&im);
}

/* Runs a conversion and counts the lines of its log that contain the words. */
static inline int warned(const char *format, const char *src, const char *options,
                         const char *words)
{
    FILE *log = tmpfile();

    pm_log_file(log);
    convert_ok(format, src, "w", options);
    pm_log_file(NULL);
    const int count = lines_with(log, words);

    fclose(log);
    pm_remove_tree(in_scratch("w"));
    return count;
}

#endif
