/* Converting pictures that EXIF rotates, or in formats that other readers of records lack.
 * Records hold them upright, without EXIF data, in a common format. Other files are stored
 * unchanged. */
#include "convert_common.h"
#include "exif_common.h"

enum { HEIGHT = 16, WIDTH = 24 }; /* as stored */

/* A picture whose left third is bright. */
static struct pm_image8 picture(void)
{
    struct pm_image8 im = { HEIGHT, WIDTH, 3, pm_malloc(HEIGHT * WIDTH * 3) };

    for (int i = 0; i < HEIGHT * WIDTH * 3; i++)
        im.pixels[i] = i / 3 % WIDTH < 8 ? 200 : 40;
    return im;
}

/* Writes the picture as a file; orientation 0: without EXIF data. */
static void put(const char *name, bool jpeg, int orientation)
{
    struct pm_image8 im = picture();
    uint8_t body[EXIF_SIZE], *data = NULL;
    size_t size = 0;

    if (jpeg)
        assert_int_equal(pm_image_encode_jpeg(&im, 95, &data, &size), PM_OK);
    else
        assert_int_equal(pm_image_encode_png(&im, &data, &size), PM_OK);
    if (orientation) {
        exif_body(true, orientation, body);
        uint8_t *more = jpeg ? exif_jpeg(data, size, body, EXIF_SIZE) :
                               exif_png(data, size, body, EXIF_SIZE);
        pm_free(data);
        data = more;
        size += jpeg ? EXIF_JPEG_MORE : EXIF_PNG_MORE;
    }
    assert_int_equal(pm_file_write(in_scratch(name), data, size), PM_OK);
    pm_free(data);
    pm_image_free(&im);
}

/* The record of a file; the caller destroys it. */
static struct pm_example *record_of(struct pm_dataset *d, const char *name)
{
    for (size_t i = 0; i < pm_dataset_get_info(d)->count; i++) {
        struct pm_example *e = example(d, i);
        const uint8_t *text = NULL;
        size_t size = 0;
        assert_int_equal(pm_example_bytes(e, "image/filename", &text, &size), 1);
        if (size >= strlen(name) && !memcmp(text, name, strlen(name)))
            return e;
        pm_example_destroy(&e);
    }
    fail_msg("no record of %s", name);
    return NULL;
}

/* The record's picture must have this format and size, no EXIF data, and its bright third on
 * that side. */
static void expect(struct pm_dataset *d, const char *name, const char *format, bool turned,
                   char side)
{
    struct pm_example *e = record_of(d, name);
    struct pm_image8 im = image(e, "image/encoded", 3);
    const uint8_t *data = NULL;
    size_t size = 0;
    const int height = turned ? WIDTH : HEIGHT, width = turned ? HEIGHT : WIDTH;

    assert_int_equal(pm_example_bytes(e, "image/encoded", &data, &size), 1);
    assert_int_equal(pm_image_orientation(data, size), 1);
    assert_string_equal(pm_image_format(data, size), format);
    assert_text(e, "image/format", format);
    assert_int_equal(integer(e, "image/height"), height);
    assert_int_equal(integer(e, "image/width"), width);
    assert_int_equal(im.height, height);
    assert_int_equal(im.width, width);
    const int y = side == 't' ? 3 : side == 'b' ? height - 4 : height / 2;
    const int x = side == 'l' ? 3 : side == 'r' ? width - 4 : width / 2;
    const uint8_t *bright = im.pixels + (y * width + x) * 3;
    const uint8_t *dark = im.pixels + ((height - 1 - y) * width + width - 1 - x) * 3;
    assert_true(bright[1] > 190 && dark[1] < 50);
    pm_image_free(&im);
    pm_example_destroy(&e);
}

static void folder(void **state)
{
    static const char tga[] = "\0\0\3\0\0\0\0\0\0\0\0\0\2\0\1\0\x08\x20\7\x09";
    struct pm_dataset *d = NULL;

    (void)state;
    assert_int_equal(pm_make_folders(in_scratch("raw/train/a")), PM_OK);
    assert_int_equal(pm_make_folders(in_scratch("raw/validation/a")), PM_OK);
    put("raw/validation/a/1.jpg", true, 0);
    put("raw/train/a/1.jpg", true, 1);
    put("raw/train/a/2.jpg", true, 6);
    put("raw/train/a/3.jpg", true, 8);
    put("raw/train/a/4.png", false, 2);
    put("raw/train/a/5.png", false, 5);
    assert_int_equal(pm_file_write(in_scratch("raw/train/a/6.tga"), tga, sizeof tga - 1), PM_OK);
    assert_int_equal(pm_dataset_convert("folder", in_scratch("raw"), in_scratch("data"), NULL),
                     PM_OK);
    d = opened(in_scratch("data"), "train", 6);
    expect(d, "1.jpg", "jpeg", false, 'l');
    expect(d, "2.jpg", "jpeg", true, 't');
    expect(d, "3.jpg", "jpeg", true, 'b');
    expect(d, "4.png", "png", false, 'r');
    expect(d, "5.png", "png", true, 't');
    struct pm_example *e = record_of(d, "6.tga");
    struct pm_image8 im = image(e, "image/encoded", 1);
    assert_text(e, "image/format", "png");
    assert_true(im.height == 1 && im.width == 2 && im.pixels[0] == 7 && im.pixels[1] == 9);
    pm_image_free(&im);
    pm_example_destroy(&e);
    pm_dataset_close(&d);
}

/* A label map belongs to the upright picture. */
static void maps(void **state)
{
    struct pm_image8 map = { WIDTH, HEIGHT, 1, pm_calloc(HEIGHT * WIDTH, 1) };
    struct pm_dataset *d = NULL;
    uint8_t *png = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(pm_make_folders(in_scratch("pairs/images/train")), PM_OK);
    assert_int_equal(pm_make_folders(in_scratch("pairs/labels/train")), PM_OK);
    put("pairs/images/train/a.jpg", true, 6);
    map.pixels[0] = 1;
    assert_int_equal(pm_image_encode_png(&map, &png, &size), PM_OK);
    assert_int_equal(pm_file_write(in_scratch("pairs/labels/train/a.png"), png, size), PM_OK);
    pm_free(png);
    if (pm_dataset_convert("pairs", in_scratch("pairs"), in_scratch("maps"), "bad=error") < 0)
        fail_msg("%s", pm_error_text());
    d = opened(in_scratch("maps"), "train", 1);
    expect(d, "a", "jpeg", true, 't');
    pm_dataset_close(&d);
    /* A map with the size of the stored picture has the wrong size. */
    map.height = HEIGHT, map.width = WIDTH;
    assert_int_equal(pm_image_encode_png(&map, &png, &size), PM_OK);
    assert_int_equal(pm_file_write(in_scratch("pairs/labels/train/a.png"), png, size), PM_OK);
    pm_free(png);
    assert_fails(pm_dataset_convert("pairs", in_scratch("pairs"), in_scratch("maps2"), "bad=error"),
                 PM_EDATA, "a.png is 16 x 24",
                 "a.jpg is 24 x 16 after the rotation that its EXIF data specifies");
    pm_image_free(&map);
}

static int setup(void **state)
{
    (void)state;
    scratch_make();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder),
        cmocka_unit_test(maps),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
