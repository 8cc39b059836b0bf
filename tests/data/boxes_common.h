/* Shared by the tests of converters of detection data: pictures, and the objects of records. */
#ifndef PUMICE_TESTS_BOXES_COMMON_H
#define PUMICE_TESTS_BOXES_COMMON_H

#include <math.h>

#include <pumice/objects.h>

#include "exif_common.h"
#include "pairs_common.h"

/* Writes a text file and its folders. */
static inline void put_file(const char *name, const char *text)
{
    make_folder_of(name);
    put_text(name, text);
}

enum { BRIGHT_Y = 4, BRIGHT_X = 10, BRIGHT_H = 4, BRIGHT_W = 7 };
enum { STORED_H = 20, STORED_W = 30 };

/* Writes a PNG of STORED_H x STORED_W pixels, dark except for a bright rectangle, with an EXIF
 * orientation; 0: without EXIF data. */
static inline void put_bright(const char *name, int orientation)
{
    struct pm_image8 im = { STORED_H, STORED_W, 3, pm_calloc(STORED_H * STORED_W, 3) };
    uint8_t body[EXIF_SIZE], *png = NULL;
    size_t size = 0;

    for (int y = BRIGHT_Y; y < BRIGHT_Y + BRIGHT_H; y++)
        memset(im.pixels + 3 * (y * STORED_W + BRIGHT_X), 255, 3 * BRIGHT_W);
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    if (orientation) {
        exif_body(true, orientation, body);
        uint8_t *more = exif_png(png, size, body, EXIF_SIZE);
        pm_free(png);
        png = more;
        size += EXIF_PNG_MORE;
    }
    make_folder_of(name);
    assert_int_equal(pm_file_write(in_scratch(name), png, size), PM_OK);
    pm_free(png);
    pm_image_free(&im);
}

/* The record's picture must be bright inside the box of its only object, and dark outside. */
static inline void assert_bright(const struct pm_example *e, const struct pm_objects *o)
{
    struct pm_image8 im = image(e, "image/encoded", 3);

    assert_int_equal(o->count, 1);
    assert_int_equal(o->height, im.height);
    assert_int_equal(o->width, im.width);
    const float *box = o->item[0].box;
    for (int y = 0; y < im.height; y++)
        for (int x = 0; x < im.width; x++) {
            const bool inside = y + 0.5 > box[0] * im.height && y + 0.5 < box[2] * im.height &&
                                x + 0.5 > box[1] * im.width && x + 0.5 < box[3] * im.width;
            assert_int_equal(im.pixels[3 * (y * im.width + x)], inside ? 255 : 0);
        }
    pm_image_free(&im);
}

/* Record i of a split with its objects; record_close frees it. */
struct record {
    struct pm_dataset *d;
    struct pm_example *e;
    struct pm_objects o;
};
static inline struct record record_open(const char *folder, const char *split, size_t count,
                                        size_t i)
{
    struct record r = { .d = opened(in_scratch(folder), split, count) };

    r.e = example(r.d, i);
    if (pm_objects_parse(r.e, true, "record", &r.o) < 0)
        fail_msg("%s", pm_error_text());
    return r;
}

static inline void record_close(struct record *r)
{
    pm_objects_free(&r->o);
    pm_example_destroy(&r->e);
    pm_dataset_close(&r->d);
}

/* Object i must have this class and this box, in pixels. */
static inline void assert_object(const struct pm_objects *o, size_t i, const char *text,
                                 int64_t label, double ymin, double xmin, double ymax, double xmax)
{
    const double want[4] = { ymin / o->height, xmin / o->width, ymax / o->height, xmax / o->width };

    assert_true(i < o->count);
    assert_string_equal(o->item[i].text, text);
    assert_int_equal(o->item[i].label, label);
    for (int k = 0; k < 4; k++)
        if (fabs(o->item[i].box[k] - want[k]) > 1e-6)
            fail_msg("object %zu: coordinate %d is %g, not %g", i, k, o->item[i].box[k], want[k]);
}

/* Number of boxes of a split; also counts its pictures. */
static inline size_t boxes_of(const char *folder, const char *split, size_t pictures)
{
    struct pm_dataset *d = opened(folder, split, pictures);
    size_t count = 0;

    for (size_t i = 0; i < pictures; i++) {
        struct pm_example *e = example(d, i);
        struct pm_objects o;

        assert_int_equal(pm_objects_parse(e, true, "record", &o), PM_OK);
        count += o.count;
        pm_objects_free(&o);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    return count;
}

/* Number of lines of the log that contain these words. */
static inline int lines_with(FILE *log, const char *words)
{
    char line[1024];
    int count = 0;

    rewind(log);
    while (fgets(line, sizeof line, log))
        count += strstr(line, words) != NULL;
    return count;
}

#endif
