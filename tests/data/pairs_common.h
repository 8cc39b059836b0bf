/* Shared by the tests of converters of pictures with maps: pictures of H x W, and their records. */
#ifndef PUMICE_TESTS_PAIRS_COMMON_H
#define PUMICE_TESTS_PAIRS_COMMON_H

#include "convert_common.h"
#include "png_common.h"

enum { H = 2, W = 3 };

/* Makes the folder for a file. */
static inline void make_folder_of(const char *name)
{
    char folder[400];

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(name, '/') - name), name);
    assert_int_equal(pm_make_folders(in_scratch(folder)), PM_OK);
}

/* Writes a picture of H x W in one grey and its folders. */
static inline void put_picture(const char *name, int value)
{
    uint8_t pixels[H * W * 3], *png = NULL;
    const struct pm_image8 im = { H, W, 3, pixels };
    size_t size = 0;

    make_folder_of(name);
    memset(pixels, value, sizeof pixels);
    if (strstr(name, ".png"))
        assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    else
        assert_int_equal(pm_image_encode_jpeg(&im, 100, &png, &size), PM_OK);
    assert_int_equal(pm_file_write(in_scratch(name), png, size), PM_OK);
    pm_free(png);
}

static inline void put_map(const char *name, int depth, int color, const uint8_t *rows)
{
    const struct png p = png_of(H, W, depth, color, rows);

    make_folder_of(name);
    assert_int_equal(pm_file_write(in_scratch(name), p.bytes, p.size), PM_OK);
}

/* Record i of the split must be this file with this map in a grey PNG of 8 bits; NULL: without a
 * map. */
static inline void assert_record(const char *folder, const char *split, size_t count, size_t i,
                                 const char *filename, const uint16_t *want)
{
    struct pm_dataset *d = opened(in_scratch(folder), split, count);
    struct pm_example *e = example(d, i);
    struct pm_label l = { 0 };
    const uint8_t *data = NULL;
    size_t size = 0;

    assert_text(e, "image/filename", filename);
    assert_int_equal(integer(e, "image/height"), H);
    assert_int_equal(integer(e, "image/width"), W);
    assert_int_equal(integer(e, "image/channels"), 3);
    assert_int_equal(pm_example_bytes(e, "image/segmentation/class/encoded", &data, &size),
                     want != NULL);
    if (want) {
        assert_text(e, "image/segmentation/class/format", "png");
        assert_int_equal(data[24], 8);
        assert_int_equal(data[25], 0);
        assert_int_equal(pm_label_decode(data, size, 0, filename, &l), PM_OK);
        assert_true(l.height == H && l.width == W);
        assert_memory_equal(l.values, want, sizeof *want * H * W);
        pm_label_free(&l);
    }
    pm_example_destroy(&e);
    pm_dataset_close(&d);
}

static inline void assert_info(const char *folder, const char *split, size_t count, int classes,
                               int ignore, const char *colormap, int which, const char *name)
{
    struct pm_dataset *d = opened(in_scratch(folder), split, count);
    const struct pm_dataset_info *info = pm_dataset_get_info(d);

    assert_int_equal(info->num_classes, classes);
    assert_int_equal(info->map_classes, classes);
    assert_int_equal(info->ignore_label, ignore);
    assert_string_equal(info->labels[which], name);
    assert_string_equal(info->map_labels[which], name);
    if (colormap)
        assert_string_equal(info->colormap, colormap);
    else
        assert_null(info->colormap);
    pm_dataset_close(&d);
}

static inline int run_on(const char *format, const char *src, const char *dst,
                         const char *options)
{
    return pm_dataset_convert(format, in_scratch(src), in_scratch(dst), options);
}

static inline void convert_ok(const char *format, const char *src, const char *dst,
                              const char *options)
{
    if (run_on(format, src, dst, options) < 0)
        fail_msg("%s", pm_error_text());
}

#endif
