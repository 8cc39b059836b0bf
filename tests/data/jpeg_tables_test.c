/* JPEG tables that claim more codes than a byte can number, or that a scan uses without a
 * definition, in the header and between scans. stb_image trusts them and would write beyond its
 * tables, so Pumice checks them first. libjpeg checks its tables and has defaults for missing
 * ones. */
#include "picture_common.h"

#include "data/picture.h"

static uint8_t *jpeg;
static size_t size;

static int setup(void **state)
{
    struct pm_image8 im = { 7, 9, 3, pm_calloc(1, 7 * 9 * 3) };

    (void)state;
    for (int i = 0; i < 7 * 9 * 3; i++)
        im.pixels[i] = (uint8_t)(i * 37);
    int err = pm_image_encode_jpeg(&im, 80, &jpeg, &size);
    pm_image_free(&im);
    return err;
}

static int teardown(void **state)
{
    (void)state;
    pm_free(jpeg);
    return 0;
}

static size_t find(uint8_t marker)
{
    for (size_t i = 2; i + 4 < size; i++)
        if (jpeg[i] == 0xff && jpeg[i + 1] == marker)
            return i;
    return 0;
}

/* Decodes with the fallback; libjpeg must also end with a result or an error. */
static int decode(const uint8_t *data, size_t n)
{
    const struct pm_picture_file f = { .data = data, .size = n, .max_pixels = 1 << 20,
                                       .where = "x.jpg", .kind = "JPEG" };
    struct pm_image8 im = { 0 };
    const int other = decoded(data, n, 0, "x.jpg"), err = pm_picture_jpeg_stb(&f, &im);

    assert_true(other == PM_OK || other == PM_EDATA);
    if (err == PM_OK)
        read_pixels(&im);
    pm_image_free(&im);
    return err;
}

static void in_the_header(void **state)
{
    size_t at = find(0xc4);

    (void)state;
    assert_true(at > 0);
    assert_int_equal(decode(jpeg, size), 0);
    uint8_t former[16];
    memcpy(former, jpeg + at + 5, 16);
    memset(jpeg + at + 5, 0, 16);
    jpeg[at + 5 + 8] = 255, jpeg[at + 5 + 9] = 2; /* 257 codes */
    assert_int_equal(decode(jpeg, size), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "257 codes"));
    memcpy(jpeg + at + 5, former, 16);
}

static void between_scans(void **state)
{
    static const uint8_t table[21] = { 0xff, 0xc4, 0, 19, 0, 0, 0, 0, 0, 0, 0, 0, 200, 200 };
    uint8_t *longer = pm_malloc(size + sizeof table);

    (void)state;
    memcpy(longer, jpeg, size - 2);
    memcpy(longer + size - 2, table, sizeof table);
    memcpy(longer + size - 2 + sizeof table, jpeg + size - 2, 2); /* the end marker */
    assert_int_equal(decode(longer, size + sizeof table), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "400 codes"));
    pm_free(longer);
}

/* Each table in turn becomes a segment without meaning. */
static void not_defined(void **state)
{
    int tables = 0;

    (void)state;
    for (size_t i = 2; i + 4 < size; i++) {
        if (jpeg[i] != 0xff || jpeg[i + 1] != 0xc4)
            continue;
        jpeg[i + 1] = 0xef;
        assert_int_equal(decode(jpeg, size), PM_EDATA);
        assert_non_null(strstr(pm_error_text(), "does not define"));
        jpeg[i + 1] = 0xc4;
        tables++;
    }
    assert_true(tables >= 1);
    assert_int_equal(decode(jpeg, size), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_the_header),
        cmocka_unit_test(between_scans),
        cmocka_unit_test(not_defined),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
