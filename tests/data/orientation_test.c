/* EXIF orientation: pictures are decoded upright for all eight values, from JPEG and PNG, in
 * both byte orders. Damaged EXIF data counts as upright. */
#include "exif_common.h"
#include "picture_common.h"

enum { HEIGHT = 37, WIDTH = 70, TIFF = EXIF_SIZE }; /* upright size; wider than the blocks of
                                                     * the rotation */

/* The place where the pixel of an upright picture is stored, from EXIF's table: "the 0th row at
 * the visual top, the 0th column at the visual right" and so on. */
static void stored_at(int orientation, int y, int x, int *row, int *column)
{
    const int bottom = HEIGHT - 1 - y, right = WIDTH - 1 - x;
    const int rows[9] = { 0, y, y, bottom, bottom, x, right, right, x };
    const int columns[9] = { 0, x, right, right, x, y, y, bottom, bottom };

    *row = rows[orientation], *column = columns[orientation];
}

static struct pm_image8 upright(int channels)
{
    struct pm_image8 im = { HEIGHT, WIDTH, channels,
                            pm_malloc((size_t)(HEIGHT * WIDTH * channels)) };

    for (int i = 0; i < HEIGHT * WIDTH * channels; i++)
        im.pixels[i] = (uint8_t)(i * 7 + i / 11);
    return im;
}

static struct pm_image8 stored(const struct pm_image8 *im, int orientation)
{
    struct pm_image8 out = { orientation < 5 ? HEIGHT : WIDTH, orientation < 5 ? WIDTH : HEIGHT,
                             im->channels, pm_malloc((size_t)(HEIGHT * WIDTH * im->channels)) };

    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            int row, column;
            stored_at(orientation, y, x, &row, &column);
            memcpy(out.pixels + (row * out.width + column) * im->channels,
                   im->pixels + (y * WIDTH + x) * im->channels, (size_t)im->channels);
        }
    return out;
}

static void expect(const uint8_t *data, size_t size, const struct pm_image8 *want)
{
    struct pm_image8 got;

    assert_int_equal(pm_image_decode(data, size, 0, 0, "turned", &got), PM_OK);
    assert_int_equal(got.height, want->height);
    assert_int_equal(got.width, want->width);
    assert_int_equal(got.channels, want->channels);
    assert_memory_equal(got.pixels, want->pixels,
                        (size_t)want->height * (size_t)want->width * (size_t)want->channels);
    pm_image_free(&got);
}

static void png(void **state)
{
    (void)state;
    for (int k = 0; k < 4 * 8 * 2; k++) {
        const int orientation = 1 + k % 8;
        struct pm_image8 want = upright(1 + k / 8 % 4), im = stored(&want, orientation);
        uint8_t body[TIFF], *plain = NULL;
        size_t size = 0;

        exif_body(k / 32, orientation, body);
        assert_int_equal(pm_image_encode_png(&im, &plain, &size), PM_OK);
        uint8_t *data = exif_png(plain, size, body, TIFF);
        assert_int_equal(pm_image_orientation(data, size + EXIF_PNG_MORE), orientation);
        expect(data, size + EXIF_PNG_MORE, &want);
        pm_free(data);
        pm_free(plain);
        pm_image_free(&im);
        pm_image_free(&want);
    }
}

/* A JPEG's pixels are rotated after decoding. */
static void jpeg(void **state)
{
    struct pm_image8 im = upright(3), plain_pixels;
    uint8_t body[TIFF], *plain = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(pm_image_encode_jpeg(&im, 90, &plain, &size), PM_OK);
    assert_int_equal(pm_image_decode(plain, size, 0, 0, "plain", &plain_pixels), PM_OK);
    for (int k = 0; k < 16; k++) {
        const int orientation = 1 + k % 8;
        struct pm_image8 got, back;

        exif_body(k / 8, orientation, body);
        uint8_t *data = exif_jpeg(plain, size, body, TIFF);
        assert_int_equal(pm_image_decode(data, size + EXIF_JPEG_MORE, 0, 0, "turned", &got), PM_OK);
        assert_int_equal(got.height, orientation < 5 ? HEIGHT : WIDTH);
        /* Rotates the stored picture back, which gives the upright one. */
        if (orientation < 5) {
            back = stored(&got, orientation);
            assert_memory_equal(back.pixels, plain_pixels.pixels, HEIGHT * WIDTH * 3);
            pm_image_free(&back);
        } else {
            for (int y = 0; y < WIDTH; y++)
                for (int x = 0; x < HEIGHT; x++) {
                    const int row = orientation == 5 || orientation == 8 ? x : HEIGHT - 1 - x;
                    const int column = orientation < 7 ? y : WIDTH - 1 - y;
                    assert_memory_equal(got.pixels + (y * HEIGHT + x) * 3,
                                        plain_pixels.pixels + (row * WIDTH + column) * 3, 3);
                }
        }
        pm_image_free(&got);
        pm_free(data);
    }
    pm_image_free(&plain_pixels);
    pm_free(plain);
    pm_image_free(&im);
}

static void expect_upright(const uint8_t *jpeg, size_t size, const uint8_t *body, size_t length,
                           const char *why)
{
    uint8_t *data = exif_jpeg(jpeg, size, body, length);

    if (pm_image_orientation(data, size + 10 + length) != 1)
        fail_msg("%s: it is turned", why);
    assert_int_equal(decoded(data, size + 10 + length, 0, why), PM_OK);
    pm_free(data);
}

static void damaged(void **state)
{
    struct pm_image8 im = upright(3);
    uint8_t good[TIFF], body[TIFF], *plain = NULL, *data;
    size_t size = 0;

    (void)state;
    assert_int_equal(pm_image_encode_jpeg(&im, 90, &plain, &size), PM_OK);
    exif_body(false, 6, good);
    const struct { const char *why; int at; uint8_t value; } wrong[] = {
        { "value 0", 18, 0 },           { "value 9", 18, 9 },      { "value 262", 19, 1 },
        { "type 4", 12, 4 },            { "count 2", 14, 2 },      { "another tag", 10, 0x13 },
        { "no entries", 8, 0 },         { "byte order", 0, 'X' },  { "not TIFF", 2, 43 },
        { "directory far away", 6, 9 }, { "directory at its end", 4, TIFF - 1 },
        { "directory huge", 7, 0xff },
    };
    for (size_t i = 0; i < PM_COUNT(wrong); i++) {
        memcpy(body, good, TIFF);
        body[wrong[i].at] = wrong[i].value;
        expect_upright(plain, size, body, TIFF, wrong[i].why);
    }
    for (size_t n = 0; n < 20; n++) /* the entry ends at 22, its value lies at 18 */
        expect_upright(plain, size, good, n, "cut short");
    /* Only the first EXIF segment counts, and none after the start of the pixels. */
    data = exif_jpeg(plain, size, good, TIFF);
    body[0] = 0;
    uint8_t *twice = exif_jpeg(data, size + EXIF_JPEG_MORE, body, TIFF);
    assert_int_equal(pm_image_orientation(twice, size + 2 * EXIF_JPEG_MORE), 1);
    pm_free(twice);
    /* A length that reaches beyond the file. */
    data[4] = 0xff;
    assert_int_equal(pm_image_orientation(data, size + EXIF_JPEG_MORE), 1);
    pm_free(data);
    pm_free(plain);
    pm_image_free(&im);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(png),
        cmocka_unit_test(jpeg),
        cmocka_unit_test(damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
