/* JPEG pixels equal TensorFlow's in tests/golden/jpeg.json (jpeg.py writes it); a build without
 * libjpeg-turbo comes close to them. Then files that libjpeg accepts and Pumice refuses. */
#include "exif_common.h"
#include "picture_common.h"
#include "preprocessing_common.h"

#include "data/picture.h"

static char *golden_jpeg(const char *name, size_t *size)
{
    const char *source = getenv("PUMICE_SOURCE");
    char path[1024], *data = NULL;

    snprintf(path, sizeof path, "%s/tests/golden/jpeg/%s.jpg", source ? source : ".", name);
    if (pm_file_read(path, &data, size) < 0)
        fail_msg("%s", pm_error_text());
    return data;
}

static void check(const char *name, const char *data, size_t size, int channels, const char *wanted)
{
    struct pm_image8 im;
    struct pm_sha256 s;
    char hex[65];

    assert_int_equal(pm_image_decode(data, size, channels, 0, name, &im), PM_OK);
    pm_sha256_start(&s);
    pm_sha256_add(&s, im.pixels, (size_t)im.height * (size_t)im.width * (size_t)im.channels);
    pm_sha256_end(&s, hex);
    if (strcmp(hex, wanted))
        fail_msg("%s: pixels of %d channels differ from TensorFlow's", name, channels);
    pm_image_free(&im);
}

static void tensorflow(void **state)
{
    cJSON *all = golden_file("jpeg.json");
    int checked = 0;

    (void)state;
#ifndef PUMICE_TURBO
    print_message("skipped: this build decodes JPEG by stb_image, whose pixels differ slightly\n");
    cJSON_Delete(all);
    skip();
#endif
    for (const cJSON *p = cJSON_GetObjectItem(all, "pictures")->child; p; p = p->next) {
        size_t size;
        char *data = golden_jpeg(p->string, &size);
        for (int channels = 1; channels <= 3; channels += 2) {
            const cJSON *sha = cJSON_GetObjectItem(p, channels == 1 ? "1" : "3");
            if (cJSON_IsString(sha))
                check(p->string, data, size, channels, sha->valuestring), checked++;
        }
        pm_free(data);
    }
    assert_int_equal(checked, 21);
    cJSON_Delete(all);
}

/* The fallback, stb_image, enlarges chroma by another method. */
static void fallback(void **state)
{
    static const char *const names[] = { "444", "422", "420", "420_restarts", "progressive_420",
                                         "progressive_444", "gray", "gray_progressive" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        size_t size, count;
        char *data = golden_jpeg(names[i], &size);
        struct pm_picture_file f = { .data = (uint8_t *)data, .size = size, .max_pixels = 1 << 20,
                                     .where = names[i], .kind = "JPEG" };
        struct pm_image8 a, b;
        double difference = 0;

        assert_int_equal(pm_picture_jpeg(&f, &a), PM_OK);
        assert_int_equal(pm_picture_jpeg_stb(&f, &b), PM_OK);
        assert_int_equal(a.channels, b.channels);
        count = (size_t)a.height * (size_t)a.width * (size_t)a.channels;
        for (size_t k = 0; k < count; k++)
            difference += abs(a.pixels[k] - b.pixels[k]);
        if (difference / (double)count >= 1)
            fail_msg("%s: %.3f grey levels apart", names[i], difference / (double)count);
        pm_image_free(&a);
        pm_image_free(&b);
        pm_free(data);
    }
}

static size_t find(const char *data, size_t size, size_t from, uint8_t marker)
{
    for (size_t i = from; i + 1 < size; i++)
        if ((uint8_t)data[i] == 0xff && (uint8_t)data[i + 1] == marker)
            return i;
    fail_msg("no marker %02x", marker);
    return 0;
}

/* The first scan repeated many times: each repetition costs a pass over all pixels. */
static void many_scans(void **state)
{
    size_t size;
    char *data = golden_jpeg("gray_progressive", &size);
    const size_t from = find(data, size, 2, 0xda), to = find(data, size, from + 2, 0xc4);
    struct pm_str long_file = { 0 };

    (void)state;
    pm_str_bytes(&long_file, data, from);
    for (int i = 0; i < 2000; i++)
        pm_str_bytes(&long_file, data + from, to - from);
    pm_str_bytes(&long_file, data + from, size - from);
    const int err = decoded(long_file.text, long_file.length, 0, "bomb.jpg");
#ifdef PUMICE_TURBO
    assert_int_equal(err, PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "bomb.jpg: the JPEG has more than 100 scans"));
#else
    assert_true(err == PM_OK || err == PM_EDATA);
#endif
    pm_str_free(&long_file);
    pm_free(data);
}

static void sizes(void **state)
{
    size_t size;
    char *data = golden_jpeg("420", &size);
    const size_t at = find(data, size, 2, 0xc0);

    (void)state;
    memset(data + at + 5, 0, 2);
    assert_fails(decoded(data, size, 3, "null_height.jpg"), PM_EDATA, "null_height.jpg: ", "JPEG");
#ifdef PUMICE_TURBO
    assert_fails(decoded(data, size, 3, "null_height.jpg"), PM_EDATA, "83 x 0 pixels");
#endif
    data[at + 5] = 0x75, data[at + 6] = 0x30;
    memcpy(data + at + 7, data + at + 5, 2);
    assert_fails(decoded(data, size, 3, "large.jpg"), PM_EDATA, "30000 x 30000 pixels",
                 "1..268435456 pixels", "Scale it down");
#ifdef PUMICE_TURBO
    memcpy(data + at + 5, "\0\10\xff\xff", 4);
    assert_fails(decoded(data, size, 3, "wide.jpg"), PM_EDATA, "wide.jpg: this kind of JPEG",
                 "65500 pixels");
    data[at + 9] = 0;
    memcpy(data + at + 5, "\0\10\0\10", 4);
    assert_fails(decoded(data, size, 3, "no_components.jpg"), PM_EDATA,
                 "no_components.jpg: the JPEG is");
#endif
    pm_free(data);
}

/* Unusual harmless headers: meaningless EXIF data, a short Adobe segment, bytes between
 * segments, a zero for a marker (which stb_image refuses). */
static void odd_segments(void **state)
{
    static const uint8_t exif[] = "\xff\xe1\0\x0c" "Exif\0\0MM\xff\xff";
    static const uint8_t adobe[] = "\xff\xee\0\4xx", padding[] = "\0\0\0\0";
#ifdef PUMICE_TURBO
    static const uint8_t zero[] = "\xff\0\0\2";
#endif
    size_t size;
    char *data = golden_jpeg("420", &size);
    const struct { const uint8_t *bytes; size_t size; } odd[] = {
        { exif, sizeof exif - 1 }, { adobe, sizeof adobe - 1 }, { padding, sizeof padding - 1 },
#ifdef PUMICE_TURBO
        { zero, sizeof zero - 1 },
#endif
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(odd); i++) {
        const size_t at = find(data, size, 2, 0xdb);
        uint8_t *longer = with_bytes((uint8_t *)data, size, at, odd[i].bytes, odd[i].size);
        if (decoded(longer, size + odd[i].size, 3, "odd.jpg") != PM_OK)
            fail_msg("%zu: %s", i, pm_error_text());
        pm_free(longer);
    }
    pm_free(data);
}

/* A progressive file without its first scan, which holds the DC coefficients, and without that
 * scan's table: libjpeg uses zeros. */
static void missing_dc(void **state)
{
    size_t size;
    char *data = golden_jpeg("gray_progressive", &size);
    const size_t from = find(data, size, 2, 0xc4);
    const size_t to = find(data, size, find(data, size, from, 0xda), 0xc4);

    (void)state;
    memmove(data + from, data + to, size - to);
    const int err = decoded(data, size - (to - from), 3, "missing_dc.jpg");
#ifdef PUMICE_TURBO
    assert_int_equal(err, PM_OK);
#else
    assert_true(err == PM_OK || err == PM_EDATA);
#endif
    pm_free(data);
}

/* A file cut at any place is refused; the last two bytes are the end marker. */
static void cut_short(void **state)
{
    static const char *const names[] = { "420", "gray_progressive", "420_restarts", "cmyk" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        size_t size;
        char *data = golden_jpeg(names[i], &size);
        for (size_t n = 0; n < size; n += n + 40 < size ? 13 : 1)
            if (decoded(data, n, 3, "cut.jpg") != PM_EDATA)
                fail_msg("%s: %zu of %zu bytes are accepted", names[i], n, size);
        pm_free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensorflow), cmocka_unit_test(fallback),     cmocka_unit_test(many_scans),
        cmocka_unit_test(sizes),      cmocka_unit_test(odd_segments), cmocka_unit_test(cut_short),
        cmocka_unit_test(missing_dc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
