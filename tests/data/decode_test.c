/* Decoding: PngSuite and other difficult files compared with libpng and libjpeg-turbo (through
 * Pillow), malformed files, limits, and written pictures. */
#include <cjson/cJSON.h>
#include <math.h>
#include <zlib.h>

#include "picture_common.h"
#include "png_common.h"

/* Files for which Pumice and Pillow differ, with the reason. */
static const struct {
    const char *file, *why;
} differences[] = {
    /* Refused by Pumice; libjpeg warns and invents the missing pixels. */
    { "jpeg-crash/5482a54657765056f1a94116a8dbffe7.jpg", "bad Huffman code" },
    { "jpeg-crash/8a9cc8eeed66aeb423a91c44111d9450.jpg", "no end marker" },
    { "jpeg-crash/8e5e74dbf9b68a322fbb9512db837329.jpg", "ends in a scan" },
    { "jpeg-crash/dc-predictor-overflow.jpg", "ends in a scan" },
    { "jpeg-crash/subtract-with-overflow.jpg", "bad Huffman code" },
    { "jpeg-reftest/partial_progressive.jpg", "ends in a scan" },
    /* Refused by Pumice and by TensorFlow. */
    { "png-bugfixes/x_interlaced_chck.png", "wrong IDAT checksum, Pillow reads on" },
    { "pngsuite/xcsn0g01.png", "wrong IDAT checksum, Pillow reads on" },
    /* Accepted by Pumice and by TensorFlow. */
    { "pillow/png_decompression_dos.png", "the bomb is in a text chunk nobody unpacks" },
    { "png-bugfixes/cicp_pq.png", "a chunk Pillow dislikes; colours are taken as they are" },
    { "png-bugfixes/issue_430.png", "a chunk Pillow dislikes; pixels are whole" },
};

/* Pillow compares a grey tRNS sample below 8 bits unscaled, so its alpha is wrong. The colours
 * agree. */
static const char *const alpha_differs[] = { "pillow/1_trns.png", "pngsuite/tbbn0g04.png" };

/* stb_image, which decodes JPEG in a build without libjpeg-turbo, accepts and refuses other
 * files. */
#ifdef PUMICE_TURBO
static const bool turbo = true;
#else
static const bool turbo = false;
#endif

static bool differs(const char *file)
{
    for (size_t i = 0; i < PM_COUNT(differences); i++)
        if (!strcmp(differences[i].file, file))
            return true;
    return false;
}

static void rgba_sha(const struct pm_image8 *im, char hex[65])
{
    struct pm_sha256 s;

    pm_sha256_start(&s);
    for (size_t k = 0; k < (size_t)im->height * (size_t)im->width; k++) {
        const uint8_t *p = im->pixels + k * (size_t)im->channels;
        const int colours = im->channels >= 3 ? 3 : 1;
        const uint8_t q[4] = { p[0], p[colours / 2], p[colours - 1],
                               im->channels % 2 ? 255 : p[im->channels - 1] };
        pm_sha256_add(&s, q, 4);
    }
    pm_sha256_end(&s, hex);
}

static void check_pixels(const char *file, const cJSON *pil, const struct pm_image8 *im)
{
    const cJSON *sha = cJSON_GetObjectItem(pil, "rgba8_sha256");
    const cJSON *size = cJSON_GetObjectItem(pil, "size");
    char hex[65];

    const cJSON *tag = cJSON_GetObjectItem(pil, "exif_orientation");
    const int orientation = tag ? tag->valueint : 1;

    assert_int_equal(im->width, cJSON_GetArrayItem(size, orientation >= 5)->valueint);
    assert_int_equal(im->height, cJSON_GetArrayItem(size, orientation < 5)->valueint);
    if (!sha || orientation != 1) /* Pillow's pixels are not rotated */
        return;
    for (size_t i = 0; i < PM_COUNT(alpha_differs); i++)
        if (!strcmp(alpha_differs[i], file))
            return;
    rgba_sha(im, hex);
    if (strcmp(hex, sha->valuestring))
        fail_msg("%s: pixels differ from libpng's", file);
}

/* Two integer IDCTs and two methods of enlarging chroma differ by 1 to 3 for each pixel in
 * either direction; the mean of a channel differs by far less than half of 1. Of 16-bit samples
 * the upper 8 bits are used: the mean lies between mean / 256 - 1 and mean / 256. CMYK is
 * multiplied and truncated as in TensorFlow; Pillow rounds, up to 1 more. */
static void check_means(const char *file, const cJSON *pil, const struct pm_image8 *im)
{
    const cJSON *mean = cJSON_GetObjectItem(pil, "rgb_mean");
    const size_t count = (size_t)im->height * (size_t)im->width;
    const int n = cJSON_GetArraySize(mean);
    const char *mode = cJSON_GetObjectItem(pil, "mode")->valuestring;
    const bool deep = !strcmp(mode, "I"), four = !strcmp(mode, "CMYK");

    for (int c = 0; c < n; c++) {
        const double wanted = cJSON_GetArrayItem(mean, c)->valuedouble;
        double sum = 0;
        for (size_t k = 0; k < count; k++)
            sum += im->pixels[k * 3 + (size_t)c];
        sum /= (double)count;
        const bool good = deep && n == 1 && wanted > 255
                              ? sum <= wanted / 256 + 0.01 && sum >= wanted / 256 - 1
                              : sum - wanted < 0.25 && wanted - sum < (four ? 1 : 0.25);
        if (!good && strcmp(file, "pillow/i_trns.png"))
            fail_msg("%s: mean of channel %d is %.3f, Pillow's is %.3f", file, c, sum, wanted);
    }
}

/* For a picture that can be decoded, the size read from the header equals the decoded size. */
static void check_measure(const char *data, size_t size, const struct pm_image8 *im)
{
    int height = 0, width = 0;

    assert_int_equal(pm_image_measure(data, size, 0, "measured", &height, &width), PM_OK);
    assert_int_equal(height, im->height);
    assert_int_equal(width, im->width);
}

static void corner_files(void **state)
{
    const char *folder = shared_data("images-corner");
    struct pm_arena *a = pm_arena_create();
    char *text = NULL;
    int files = 0, good = 0;

    (void)state;
    assert_int_equal(pm_file_read(pm_arena_printf(a, "%s/expected.json", folder), &text, NULL),
                     PM_OK);
    cJSON *all = cJSON_Parse(text);
    assert_non_null(all);
    for (const cJSON *f = all->child; f; f = f->next) {
        const cJSON *pil = cJSON_GetObjectItem(f, "pil");
        struct pm_image8 im, rgb;
        char *data = NULL;
        size_t size = 0;
        if (pm_file_read(pm_arena_printf(a, "%s/%s", folder, f->string), &data, &size) < 0)
            continue;
        files++;
        const int err = pm_image_decode(data, size, 0, 0, f->string, &im);
        if (err == PM_OK)
            check_measure(data, size, &im);
        const bool pillow = cJSON_IsTrue(cJSON_GetObjectItem(pil, "ok"));
        const bool judged = turbo || !strstr(f->string, ".jp");
        if (err < 0) {
            assert_int_equal(err, PM_EDATA);
            assert_non_null(strstr(pm_error_text(), f->string));
            assert_null(im.pixels);
        }
        if (judged && (err == PM_OK) != (pillow != differs(f->string)))
            fail_msg("%s: %s by us", f->string, err < 0 ? pm_error_text() : "accepted");
        if (judged && err == PM_OK && pillow) {
            good++;
            check_pixels(f->string, pil, &im);
            assert_int_equal(pm_image_decode(data, size, 3, 0, "rgb", &rgb), PM_OK);
            assert_int_equal(rgb.channels, 3);
            if (cJSON_GetObjectItem(pil, "rgb_mean") && strncmp(f->string, "jpeg-crash/", 11))
                check_means(f->string, pil, &rgb);
            pm_image_free(&rgb);
        }
        pm_image_free(&im);
        pm_free(data);
    }
    assert_true(files > 200 && good > (turbo ? 150 : 100));
    print_message("%d files, %d decoded as by Pillow\n", files, good);
    cJSON_Delete(all);
    pm_free(text);
    pm_arena_destroy(&a);
}

/* Corrects the checksums of a PNG's chunks, so that changes reach the decoder. */
static void mend_checksums(uint8_t *p, size_t size)
{
    for (size_t at = 8; size > 20 && !memcmp(p, "\x89PNG", 4) && at + 12 <= size;) {
        const size_t length =
            (size_t)p[at] << 24 | (size_t)p[at + 1] << 16 | (size_t)p[at + 2] << 8 | p[at + 3];
        if (length > size - at - 12)
            return;
        const uint32_t crc = (uint32_t)crc32(0, p + at + 4, (uInt)length + 4);
        for (int i = 0; i < 4; i++)
            p[at + 8 + length + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += 12 + length;
    }
}

/* Difficult files with a few changed bytes give an image or an error, no crash and no read
 * beyond the end (the block has the exact size, which the address sanitizer checks). */
static void mutated_files(void **state)
{
    const char *folder = shared_data("images-corner");
    struct pm_arena *a = pm_arena_create();
    struct pm_rng r = pm_rng_make(1, pm_hash("mutate"), 0, 0);
    char **paths = NULL;
    size_t count = 0, good = 0, tried = 0;

    (void)state;
    assert_int_equal(pm_glob(a, pm_arena_printf(a, "%s/*/*.*g", folder), &paths, &count), PM_OK);
    assert_true(count > 200);
    for (size_t i = 0; i < count; i++) {
        char *data = NULL;
        size_t size = 0;
        assert_int_equal(pm_file_read(paths[i], &data, &size), PM_OK);
        for (int k = 0; k < 8 && size > 40 && size < 6000; k++, tried++) {
            const size_t cut =
                k % 4 == 3 ? size - (size_t)pm_rng_int(&r, 0, (int64_t)size / 2) : size;
            uint8_t *copy = pm_malloc(cut);
            struct pm_image8 im;
            memcpy(copy, data, cut);
            for (int n = 0; n < 1 + k; n++)
                copy[pm_rng_int(&r, 2, (int64_t)cut - 1)] ^= (uint8_t)(1u << pm_rng_int(&r, 0, 7));
            mend_checksums(copy, cut);
            const int err = pm_image_decode(copy, cut, k % 2 ? 3 : 0, 1 << 20, "mutated", &im);
            assert_true(err == PM_OK || err == PM_EDATA);
            assert_int_equal(err == PM_OK, im.pixels != NULL);
            if (err == PM_OK)
                read_pixels(&im), good++;
            pm_image_free(&im);
            pm_free(copy);
        }
        pm_free(data);
    }
    print_message("%zu of %zu mutated files decode\n", good, tried);
    assert_true(tried > 500);
    pm_arena_destroy(&a);
}

/* A small picture in which every channel differs. */
static struct pm_image8 picture(int height, int width, int channels)
{
    struct pm_image8 im = { height, width, channels,
                            pm_malloc((size_t)(height * width * channels)) };
    for (int i = 0; i < height * width * channels; i++)
        im.pixels[i] = (uint8_t)(i * 7 + i / 5);
    return im;
}

static void png_round_trip(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 4; channels++) {
        struct pm_image8 im = picture(13, 17, channels), back;
        uint8_t *png = NULL;
        size_t size = 0;
        assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
        assert_int_equal(pm_image_decode(png, size, 0, 0, "back", &back), PM_OK);
        assert_int_equal(back.height, 13);
        assert_int_equal(back.width, 17);
        assert_int_equal(back.channels, channels);
        assert_memory_equal(back.pixels, im.pixels, (size_t)(13 * 17 * channels));
        pm_image_free(&back);
        /* Converted to grey and to colour; alpha is dropped. */
        assert_int_equal(pm_image_decode(png, size, 1, 0, "grey", &back), PM_OK);
        for (int i = 0; i < 13 * 17; i++) {
            const uint8_t *p = im.pixels + i * channels;
            const double grey = channels < 3 ? p[0] : 0.2989 * p[0] + 0.5870 * p[1] + 0.1140 * p[2];
            assert_true(fabs(back.pixels[i] - grey) <= 0.5 + 255 * 0.0002);
        }
        pm_image_free(&back);
        assert_int_equal(pm_image_decode(png, size, 3, 0, "colour", &back), PM_OK);
        for (int i = 0; i < 13 * 17; i++)
            for (int c = 0; c < 3; c++)
                assert_int_equal(back.pixels[3 * i + c],
                                 im.pixels[i * channels + (channels < 3 ? 0 : c)]);
        pm_image_free(&back);
        /* A file cut at any length is refused. */
        for (size_t n = 0; n < size; n++) {
            assert_int_equal(pm_image_decode(png, n, 0, 0, "cut", &back), PM_EDATA);
            assert_null(back.pixels);
        }
        pm_free(png);
        pm_image_free(&im);
    }
}

static void jpeg_round_trip(void **state)
{
    struct pm_image8 im = picture(40, 24, 3), back;
    uint8_t *jpeg = NULL;
    size_t size = 0;
    double difference = 0;

    (void)state;
    for (int y = 0; y < 40; y++)
        for (int x = 0; x < 24; x++)
            for (int c = 0; c < 3; c++)
                im.pixels[(y * 24 + x) * 3 + c] = (uint8_t)(4 * y + 2 * x + 20 * c);
    assert_int_equal(pm_image_encode_jpeg(&im, 95, &jpeg, &size), PM_OK);
    assert_int_equal(pm_image_decode(jpeg, size, 3, 0, "jpeg", &back), PM_OK);
    assert_int_equal(back.height, 40);
    for (int i = 0; i < 40 * 24 * 3; i++)
        difference += abs(back.pixels[i] - im.pixels[i]);
    assert_true(difference / (40 * 24 * 3) < 2);
    pm_image_free(&back);
    assert_int_equal(pm_image_decode(jpeg, size, 1, 0, "jpeg", &back), PM_OK);
    assert_int_equal(back.channels, 1);
    pm_image_free(&back);
    assert_fails(pm_image_decode(jpeg, size - 2, 3, 0, "cut.jpg", &back), PM_EDATA, "cut.jpg",
                 "end marker");
    assert_fails(pm_image_decode(jpeg, size, 3, 40 * 24 - 1, "big.jpg", &back), PM_EDATA, "24 x 40",
                 "1..959");
    pm_free(jpeg);
    pm_image_free(&im);
}

static void refused(void **state)
{
    struct pm_image8 im;

    (void)state;
    assert_fails(pm_image_decode("", 0, 3, 0, "r", &im), PM_EDATA, "r: ", "the image is empty");
    assert_fails(pm_image_decode("RIFF....WEBP", 12, 3, 0, "r", &im), PM_EDATA, "12 bytes",
                 "not a JPEG");
}

/* A palette index beyond the end once read a pixel from the stack. */
static void beyond_the_palette(void **state)
{
    static const uint8_t rows[6] = { 0, 1, 2, 3, 200, 1 };
    static const uint8_t low[3] = { 0x01, 0x23, 0x40 };

    (void)state;
    for (int channels = 0; channels <= 3; channels += 3) {
        struct png p = png_with(2, 3, 8, 3, 16, rows);
        assert_fails(decoded(p.bytes, p.size, channels, "p.png"), PM_EDATA,
                     "p.png: the PNG is damaged",
                     "row 1, column 1 has colour 200 of a palette of 16");
        p = png_with(2, 3, 8, 3, 201, rows);
        assert_int_equal(decoded(p.bytes, p.size, channels, "p.png"), PM_OK);
    }
    struct png p = png_with(1, 5, 4, 3, 4, low);
    assert_fails(decoded(p.bytes, p.size, 3, "p.png"), PM_EDATA, "colour 4 of a palette of 4");
}

/* Pixels after another chunk were once dropped. */
static void scattered(void **state)
{
    static const uint8_t rows[60 * 30] = { 7 };
    const struct png good = png_of(30, 60, 8, 0, rows);
    const size_t header = 33, body = good.size - header - 12 - 12;
    const uint8_t *data = good.bytes + header + 8;

    (void)state;
    for (int between = 0; between < 3; between++) {
        struct png p = { .size = header };
        memcpy(p.bytes, good.bytes, header);
        chunk(&p, "IDAT", data, 10);
        if (between)
            chunk(&p, "tEXt", "a\0b", 3);
        if (between == 2) /* a chunk without pixels */
            chunk(&p, "IDAT", NULL, 0);
        chunk(&p, "IDAT", data + 10, body - 10);
        chunk(&p, "IEND", NULL, 0);
        assert_int_equal(decoded(p.bytes, p.size, 0, "s.png"), between ? PM_EDATA : PM_OK);
        if (between)
            assert_non_null(strstr(pm_error_text(), "pixels (IDAT) after another chunk"));
    }
}

/* Impossible headers: the message has the numbers, the limit and the remedy. */
static void headers(void **state)
{
    static const struct {
        uint32_t width, height;
        uint8_t depth, color;
        const char *says;
    } bad[] = {
        { 30000, 30000, 8, 2, "30000 x 30000 pixels (width x height) by its header; 1..268435456" },
        { 0, 10, 8, 0, "0 x 10 pixels" },
        { 10, 0, 8, 0, "10 x 0 pixels" },
        { 0x80000000u, 1, 8, 0, "2147483648 x 1 pixels" },
        { 3, 2, 3, 0, "3 bits per sample with colour type 0" },
        { 3, 2, 16, 3, "16 bits per sample with colour type 3" },
        { 3, 2, 8, 5, "8 bits per sample with colour type 5" },
        { 3, 2, 0, 0, "0 bits per sample" },
    };
    static const uint8_t rows[6];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        struct png p = png_of(2, 3, 8, 0, rows);
        be32(p.bytes + 16, bad[i].width);
        be32(p.bytes + 20, bad[i].height);
        p.bytes[24] = bad[i].depth, p.bytes[25] = bad[i].color;
        mend_checksums(p.bytes, p.size);
        assert_fails(decoded(p.bytes, p.size, 3, "h.png"), PM_EDATA, "h.png: the PNG", bad[i].says,
                     "or remove it");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corner_files),   cmocka_unit_test(mutated_files),
        cmocka_unit_test(png_round_trip), cmocka_unit_test(jpeg_round_trip),
        cmocka_unit_test(refused),        cmocka_unit_test(beyond_the_palette),
        cmocka_unit_test(scattered),      cmocka_unit_test(headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
