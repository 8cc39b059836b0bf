/* TIFF: grey, colours, palettes, strips and tiles, compressions, both byte orders, orientations. */
#include "picture_made.h"

#include <tiffio.h>

/* ---- writing into memory --------------------------------------------------------------------- */

struct memory {
    struct made file;
    uint64_t at;
};

static tmsize_t take(thandle_t user, void *to, tmsize_t size)
{
    struct memory *m = user;
    const size_t left = m->at < m->file.size ? m->file.size - (size_t)m->at : 0;
    const size_t n = (size_t)size < left ? (size_t)size : left;

    memcpy(to, m->file.data + m->at, n);
    m->at += n;
    return (tmsize_t)n;
}

static tmsize_t put(thandle_t user, void *from, tmsize_t size)
{
    struct memory *m = user;
    const size_t end = (size_t)m->at + (size_t)size;

    if (end > m->file.size) {
        m->file.data = pm_realloc(m->file.data, end);
        memset(m->file.data + m->file.size, 0, end - m->file.size);
        m->file.size = end;
    }
    memcpy(m->file.data + m->at, from, (size_t)size);
    m->at = end;
    return size;
}

static toff_t seek(thandle_t user, toff_t to, int whence)
{
    struct memory *m = user;

    return m->at = to + (whence == SEEK_CUR ? m->at : whence == SEEK_END ? m->file.size : 0);
}

static int leave(thandle_t user)
{
    (void)user;
    return 0;
}

static toff_t size_of(thandle_t user)
{
    return ((struct memory *)user)->file.size;
}

struct kind {
    const char *mode; /* "w", "wb" (big-endian), "w8" (BigTIFF) ... */
    int channels, bits, photometric, compression, orientation, tile;
};

/* Writes rows of `bits` per sample. */
static struct made written(const struct kind *k, const uint8_t *rows, int height, int width)
{
    struct memory m = { 0 };
    const size_t row = ((size_t)width * (size_t)k->channels * (size_t)k->bits + 7) / 8;
    TIFF *t = TIFFClientOpen("memory", k->mode, &m, take, put, seek, leave, size_of, NULL, NULL);

    assert_non_null(t);
    TIFFSetField(t, TIFFTAG_IMAGEWIDTH, width);
    TIFFSetField(t, TIFFTAG_IMAGELENGTH, height);
    TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, k->channels);
    TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, k->bits);
    TIFFSetField(t, TIFFTAG_PHOTOMETRIC, k->photometric);
    TIFFSetField(t, TIFFTAG_COMPRESSION, k->compression);
    TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(t, TIFFTAG_ORIENTATION, k->orientation);
    if (k->photometric == PHOTOMETRIC_PALETTE) {
        uint16_t map[3][256];
        for (int i = 0; i < 256; i++) /* colour i is (i, 255 - i, i ^ 85) */
            map[0][i] = (uint16_t)(i * 257), map[1][i] = (uint16_t)((255 - i) * 257),
            map[2][i] = (uint16_t)((i ^ 85) * 257);
        TIFFSetField(t, TIFFTAG_COLORMAP, map[0], map[1], map[2]);
    }
    if (k->tile) {
        uint8_t tile[16 * 16 * 3];
        TIFFSetField(t, TIFFTAG_TILEWIDTH, 16);
        TIFFSetField(t, TIFFTAG_TILELENGTH, 16);
        for (int y = 0; y < height; y += 16)
            for (int x = 0; x < width; x += 16) {
                memset(tile, 0, sizeof tile);
                for (int i = 0; i < 16 && y + i < height; i++)
                    memcpy(tile + 16 * 3 * i, rows + (size_t)(y + i) * row + 3 * x,
                           3 * (size_t)(width - x < 16 ? width - x : 16));
                assert_true(TIFFWriteTile(t, tile, (uint32_t)x, (uint32_t)y, 0, 0) > 0);
            }
    } else {
        TIFFSetField(t, TIFFTAG_ROWSPERSTRIP, 5);
        for (int y = 0; y < height; y++)
            assert_int_equal(TIFFWriteScanline(t, (void *)(uintptr_t)(rows + (size_t)y * row),
                                               (uint32_t)y, 0), 1);
    }
    TIFFClose(t);
    return m.file;
}

/* ---- reading --------------------------------------------------------------------------------- */

enum { MINISBLACK = PHOTOMETRIC_MINISBLACK, RGB = PHOTOMETRIC_RGB, NONE = COMPRESSION_NONE };

static void colors(void **state)
{
    static const struct kind kinds[] = {
        { "w", 3, 8, RGB, NONE, 1, 0 },
        { "wb", 3, 8, RGB, COMPRESSION_LZW, 1, 0 },
        { "w8", 3, 8, RGB, COMPRESSION_ADOBE_DEFLATE, 1, 0 },
        { "w", 3, 8, RGB, COMPRESSION_PACKBITS, 1, 1 },
        { "w", 1, 8, MINISBLACK, NONE, 1, 0 },
    };
    struct pm_image8 im = made_image(21, 37, 3);

    (void)state;
    for (size_t i = 0; i < PM_COUNT(kinds); i++) {
        const struct pm_image8 want = { 21, 37, kinds[i].channels, im.pixels };
        struct made m = written(&kinds[i], im.pixels, 21, 37);

        made_expect(&m, "tiff", &want);
        made_cut(&m);
        made_damage(&m);
        made_limit(&m);
        pm_free(m.data);
    }
    pm_image_free(&im);
    assert_true(pm_image_named("a.tif") && pm_image_named("a.TIFF"));
}

/* 16 bits are rounded; one bit is black or white; a palette becomes colours. */
static void depths(void **state)
{
    const uint16_t deep[4] = { 0, 0x1234, 0x80ff, 0xffff };
    const uint8_t bit[1] = { 0xa0 }, index[3] = { 0, 7, 255 };
    uint8_t grey16[4] = { 0, 0, 0, 255 }, grey1[4] = { 255, 0, 255, 0 };
    uint8_t palette[9] = { 0, 255, 85, 7, 248, 7 ^ 85, 255, 0, 255 ^ 85 };
    struct made m;

    (void)state;
    for (int i = 1; i < 3; i++)
        grey16[i] = (uint8_t)((deep[i] + 128) / 257);
    m = written(&(struct kind){ "w", 1, 16, MINISBLACK, NONE, 1, 0 }, (const uint8_t *)deep, 1, 4);
    made_expect(&m, "tiff", &(struct pm_image8){ 1, 4, 1, grey16 });
    pm_free(m.data);
    m = written(&(struct kind){ "w", 1, 1, MINISBLACK, NONE, 1, 0 }, bit, 1, 4);
    made_expect(&m, "tiff", &(struct pm_image8){ 1, 4, 1, grey1 });
    pm_free(m.data);
    m = written(&(struct kind){ "w", 1, 8, PHOTOMETRIC_PALETTE, NONE, 1, 0 }, index, 1, 3);
    made_expect(&m, "tiff", &(struct pm_image8){ 1, 3, 3, palette });
    pm_free(m.data);
}

/* Decodes a row of four grey samples and returns what is said of it. */
static const char *said_of(int bits, const void *samples)
{
    static char text[1024];
    struct made m = written(&(struct kind){ "w", 1, bits, MINISBLACK, NONE, 1, 0 }, samples, 1, 4);
    FILE *log = tmpfile();

    pm_log_file(log);
    assert_int_equal(decoded(m.data, m.size, 0, "sensor.tif"), PM_OK);
    pm_log_file(NULL);
    rewind(log);
    text[fread(text, 1, sizeof text - 1, log)] = '\0';
    fclose(log);
    pm_free(m.data);
    return text;
}

/* The samples of a sensor without a known range are a nearly black picture: that is said, once.
 * Nothing is said of bright, of black, and of 8-bit pictures. */
static void sensors(void **state)
{
    const uint16_t bright[4] = { 0, 7, 700, 8400 }, black[4] = { 0 };
    const uint16_t sensor[4] = { 695, 1159, 1469, 6524 }; /* of 13 bits: 6524 / 257 is 25.4 */
    const uint8_t dark[4] = { 1, 2, 3, 25 };

    (void)state;
    assert_string_equal(said_of(16, bright), "");
    assert_string_equal(said_of(16, black), "");
    assert_string_equal(said_of(8, dark), "");
    const char *text = said_of(16, sensor);

    assert_contains(text, "sensor.tif: samples of 16 bits become 8 bits, and the largest becomes "
                          "25 of 255");
    assert_contains(text, "scale the samples of all such pictures to 0..65535");
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
    assert_string_equal(said_of(16, sensor), "");
}

/* The pixel at the visual top left, and the size, in all orientations. The stored picture has
 * 0 1 2 / 3 4 5. */
static void orientations(void **state)
{
    const struct pm_image8 six = made_image(2, 3, 1);
    static const int first[9] = { 0, 0, 2, 5, 3, 0, 3, 5, 2 };
    static const char *const modes[] = { "w", "wb", "w8", "wb8" };

    (void)state;
    for (uint8_t i = 0; i < 6; i++)
        six.pixels[i] = i;
    for (int o = 1; o <= 8; o++)
        for (size_t k = 0; k < PM_COUNT(modes); k++) {
            struct made m = written(&(struct kind){ modes[k], 1, 8, MINISBLACK, NONE, o, 0 },
                                    six.pixels, 2, 3);
            struct pm_image8 im;

            assert_int_equal(pm_image_decode(m.data, m.size, 0, 0, "turned", &im), PM_OK);
            assert_int_equal(im.height, o < 5 ? 2 : 3);
            assert_int_equal(im.pixels[0], first[o]);
            pm_image_free(&im);
            pm_free(m.data);
        }
    pm_free(six.pixels);
}

static void unsupported(void **state)
{
    const float samples[4] = { 0, 0.5f, 1, 2 };
    struct made m = written(&(struct kind){ "w", 1, 32, MINISBLACK, NONE, 1, 0 },
                            (const uint8_t *)samples, 1, 4);

    (void)state;
    assert_fails(decoded(m.data, m.size, 0, "float.tif"), PM_EDATA, "float.tif: ",
                 "this kind of TIFF is not supported");
    pm_free(m.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colors),
        cmocka_unit_test(depths),
        cmocka_unit_test(sensors),
        cmocka_unit_test(orientations),
        cmocka_unit_test(unsupported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
