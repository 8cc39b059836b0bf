/* BMP, PNM, TGA, PSD and HDR: a few pixels of each, written by hand. Cut files and other files
 * are refused. */
#include "picture_common.h"

struct file {
    const char *name, *format;
    const char *bytes;
    size_t size;
    int height, width, channels;
    uint8_t pixels[12]; /* the first pixels */
};
#define BYTES(text) text, sizeof(text) - 1

/* The header of a BMP: 1 pixel wide, this height, 24 bits. */
#define BMP(height)                                                                                \
    "BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\1\0\0\0" height "\1\0\x18\0" ZEROS ZEROS ZEROS
#define ZEROS "\0\0\0\0\0\0\0\0"

static const struct file files[] = {
    { "a.pgm",
      "pnm",
      BYTES("P5\n# a comment\n3 2 255\n\1\2\3\4\5\6"),
      2,
      3,
      1,
      { 1, 2, 3, 4, 5, 6 } },
    { "a.ppm", "pnm", BYTES("P6 1 2 255\n\1\2\3\4\5\6"), 2, 1, 3, { 1, 2, 3, 4, 5, 6 } },
    /* Blue, green, red, and padding to four bytes in each row; with the last row first, and with
     * the first row first. */
    { "a.bmp", "bmp", BYTES(BMP("\2\0\0\0") "\6\5\4\0\3\2\1\0"), 2, 1, 3, { 1, 2, 3, 4, 5, 6 } },
    { "down.bmp",
      "bmp",
      BYTES(BMP("\xfe\xff\xff\xff") "\3\2\1\0\6\5\4\0"),
      2,
      1,
      3,
      { 1, 2, 3, 4, 5, 6 } },
    { "a.tga",
      "tga",
      BYTES("\0\0\2\0\0\0\0\0\0\0\0\0\1\0\2\0\x18\0\6\5\4\3\2\1"),
      2,
      1,
      3,
      { 1, 2, 3, 4, 5, 6 } },
    { "grey.tga",
      "tga",
      BYTES("\0\0\3\0\0\0\0\0\0\0\0\0\2\0\1\0\x08\x20\7\x09"),
      1,
      2,
      1,
      { 7, 9 } },
    /* A palette of two colours, and a packet of 3 pixels. */
    { "packed.tga",
      "tga",
      BYTES("\0\1\x09\0\0\2\0\x18\0\0\0\0\3\0\1\0\x08\0\3\2\1\6\5\4\x82\1"),
      1,
      3,
      3,
      { 4, 5, 6, 4, 5, 6, 4, 5, 6 } },
    { "a.psd",
      "psd",
      BYTES("8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\2\0\x08\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
            "\1\2\3\4\5\6"),
      1,
      2,
      4,
      { 1, 3, 5, 255, 2, 4, 6, 255 } },
    /* 128 / 256 * 2^(e - 128): 1, 0.25, 4 and 0; 255 * 0.25^(1 / 2.2) = 135.8. */
    { "a.hdr",
      "hdr",
      BYTES("#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 4\n\x80\x80\x80\x81\x80\x80\x80\x7f"
            "\x80\x80\x80\x83\0\0\0\0"),
      1,
      4,
      3,
      { 255, 255, 255, 136, 136, 136, 255, 255, 255, 0, 0, 0 } },
    /* A row is compressed by channel: a run of 5, then 3 samples. */
    { "packed.hdr",
      "hdr",
      BYTES("#?RGBE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 8\n\2\2\0\x08"
            "\x85\x80\3\0\0\0\x85\0\3\0\0\0\x88\0\x88\x81"),
      1,
      8,
      3,
      { 255, 0, 0, 255, 0, 0, 255, 0, 0, 255, 0, 0 } },
};

static void whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        const struct file *f = &files[i];
        struct pm_image8 im;

        if (pm_image_decode(f->bytes, f->size, 0, 0, f->name, &im) < 0)
            fail_msg("%s", pm_error_text());
        assert_string_equal(pm_image_format(f->bytes, f->size), f->format);
        assert_true(pm_image_named(f->name));
        assert_int_equal(im.height, f->height);
        assert_int_equal(im.width, f->width);
        assert_int_equal(im.channels, f->channels);
        const size_t count = (size_t)(f->height * f->width * f->channels);
        assert_memory_equal(im.pixels, f->pixels,
                            count < sizeof f->pixels ? count : sizeof f->pixels);
        pm_image_free(&im);
        assert_int_equal(decoded(f->bytes, f->size, 1, f->name), PM_OK);
    }
}

/* stb_image fills missing bytes with zeros, and never ends at the missing end of a compressed
 * HDR row. */
static void cut_short(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        const size_t padding = strcmp(files[i].format, "bmp") ? 0 : 1; /* of the last row: no
                                                                        * pixel */
        for (size_t n = 0; n < files[i].size - padding; n++) {
            uint8_t *copy = pm_malloc(n + 1); /* exact size, so that the sanitizer detects a
                                               * read beyond the end */
            memcpy(copy, files[i].bytes, n);
            if (decoded(copy, n, 0, "cut") != PM_EDATA)
                fail_msg("%s of %zu bytes is accepted", files[i].name, n);
            pm_free(copy);
        }
    }
}

static void refused(void **state)
{
    static const struct { const char *bytes; size_t size; const char *says;
    } bad[] = {
        { BYTES("P5 is what this text starts with."), "PNM is damaged" },
        { BYTES("P5\n3 2 15\n\1\2\3\4\5\6"), "0..15" },
        { BYTES("P6\n1 1 65535\n\1\2\3\4\5\6"), "0..65535" },
        { BYTES("P5\n99999999999 2 255\n\1"), "PNM" },
        { BYTES("P5\n0 2 255\n\1"), "0 x 2 pixels" },
        { BYTES("P5\n30000 30000 255\n\1"), "30000 x 30000 pixels" },
        { BYTES("8BPS\0\1 is what this text starts with, in two bytes"), "only 3 (RGB)" },
        { BYTES("8BPS\0\1\0\0\0\0\0\0\0\4\0\0\0\1\0\0\0\2\0\x08\0\3\0\0"), "has 4 channels" },
        { BYTES("8BPS\0\1\0\0\0\0\0\0\0\3\0\0\0\1\0\0\0\2\0\x07\0\3\0\0"), "PSD is damaged" },
        { BYTES("#?RADIANCE\nwhich is what this text starts with"), "HDR" },
        { BYTES("#!/bin/sh\necho this is no picture\n"),
          "not a JPEG, PNG, WebP, TIFF, HEIC, AVIF, GIF, BMP, PNM, PSD, HDR or TGA" },
        { BYTES("\0\0\2\0\0\0\0\0\0\0\0\0\1\0\2\0\x17\0\6\5\4\3\2\1"), "not a JPEG" }, /* 23 bits */
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++)
        assert_fails(decoded(bad[i].bytes, bad[i].size, 3, "bad.x"), PM_EDATA,
                     "bad.x: ", bad[i].says);
}

/* TGA has no signature: random bytes are rarely accepted as TGA. */
static void chance(void **state)
{
    struct pm_rng r = pm_rng_make(1, pm_hash("chance"), 0, 0);
    uint8_t bytes[400];
    int taken = 0;

    (void)state;
    for (int n = 0; n < 200000; n++) {
        for (size_t i = 0; i < 18; i++)
            bytes[i] = (uint8_t)pm_rng_int(&r, 0, 255);
        taken += pm_image_format(bytes, sizeof bytes) != NULL;
    }
    assert_true(taken < 3);
}

static void names(void **state)
{
    (void)state;
    assert_true(pm_image_named("a/b.JPG") && pm_image_named("x.jpeg") && pm_image_named("x.hdr"));
    assert_false(pm_image_named("jpg") || pm_image_named("x.") || pm_image_named("x.jp") ||
                 pm_image_named("x.jpg2") || pm_image_named("x.png .g") || pm_image_named("x.txt"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),  cmocka_unit_test(cut_short), cmocka_unit_test(refused),
        cmocka_unit_test(chance), cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
