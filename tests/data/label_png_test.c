/* Label maps: every kind of PNG gives the numbers that it stores; other files are refused. */
#include "png_common.h"

static void kinds(void **state)
{
    static const uint8_t bytes[] = { 0, 1, 20, 255, 7, 128 };
    static const uint8_t deep[] = { 0, 3, 0x69, 0x7b, 0xff, 0xff, 1, 0 }; /* 3, 27003, 65535, 256 */
    static const uint8_t bits[] = { 0xa0, 0x40 }, quads[] = { 0x1b, 0xe4 },
                         fours[] = { 0x1f, 0xa0 };
    static const uint8_t alpha[] = { 9, 0, 200, 255 };
    static const uint8_t equal[] = { 4, 4, 4, 250, 250, 250 };
    const struct {
        const char *name;
        int height, width, depth, color;
        const uint8_t *rows;
        uint16_t want[6];
    } cases[] = {
        { "grey", 2, 3, 8, 0, bytes, { 0, 1, 20, 255, 7, 128 } },
        { "palette", 2, 3, 8, 3, bytes, { 0, 1, 20, 255, 7, 128 } },
        { "palette of 4 bits", 2, 2, 4, 3, fours, { 1, 15, 10, 0 } },
        { "palette of 2 bits", 1, 4, 2, 3, quads, { 0, 1, 2, 3 } },
        { "16 bits", 2, 2, 16, 0, deep, { 3, 27003, 65535, 256 } },
        { "1 bit", 2, 3, 1, 0, bits, { 1, 0, 1, 0, 1, 0 } },
        { "2 bits", 1, 4, 2, 0, quads, { 0, 1, 2, 3 } },
        { "grey and alpha", 1, 2, 8, 4, alpha, { 9, 200 } },
        { "three equal channels", 1, 2, 8, 2, equal, { 4, 250 } },
    };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(cases); k++) {
        const struct png p = png_of(cases[k].height, cases[k].width, cases[k].depth, cases[k].color,
                                    cases[k].rows);
        struct pm_label l;
        if (pm_label_decode(p.bytes, p.size, 0, cases[k].name, &l) < 0)
            fail_msg("%s", pm_error_text());
        assert_int_equal(l.height, cases[k].height);
        assert_int_equal(l.width, cases[k].width);
        for (int i = 0; i < l.height * l.width; i++)
            if (l.values[i] != cases[k].want[i])
                fail_msg("%s, %d: %d, not %d", cases[k].name, i, l.values[i], cases[k].want[i]);
        pm_label_free(&l);
        assert_null(l.values);
    }
}

static void refused(void **state)
{
    static const uint8_t colours[] = { 4, 4, 4, 128, 0, 0 };
    static const uint8_t grey[] = { 1, 2, 3, 4, 5, 6 };
    struct png p = png_of(1, 2, 8, 2, colours);
    struct pm_label l;

    (void)state;
    assert_fails(pm_label_decode(p.bytes, p.size, 0, "a.png", &l), PM_EDATA, "a.png", "128, 0, 0",
                 "row 0, column 1", "colours=FILE");
    assert_null(l.values);
    p = png_of(2, 3, 8, 0, grey);
    assert_fails(pm_label_decode(p.bytes, p.size, 5, "a.png", &l), PM_EDATA, "3 x 2", "1..5");
    for (size_t cut = 0; cut < p.size; cut++)
        assert_int_equal(pm_label_decode(p.bytes, cut, 0, "a.png", &l), PM_EDATA);
    assert_fails(pm_label_decode("\xff\xd8\xff\xe0 JPEG", 9, 0, "a.jpg", &l), PM_EDATA, "a.jpg",
                 "is not a PNG");
    p.bytes[p.size - 12 - 1] ^= 1; /* IDAT's checksum */
    assert_fails(pm_label_decode(p.bytes, p.size, 0, "a.png", &l), PM_EDATA, "a.png", "CRC");
}

/* A text chunk that claims a gigabyte is an error; a complete one is skipped. */
static void texts(void **state)
{
    static const uint8_t grey[] = { 1, 2, 3, 4, 5, 6 };
    const struct png good = png_of(2, 3, 8, 0, grey);
    struct png p = { .size = 33 }; /* signature and header */
    struct pm_label l;

    (void)state;
    memcpy(p.bytes, good.bytes, p.size);
    chunk(&p, "tEXt", "a\0b", 3);
    be32(p.bytes + 33, 0x40000003);
    assert_fails(pm_label_decode(p.bytes, p.size, 0, "a.png", &l), PM_EDATA, "a.png", "cut short");
    p.size = 33;
    chunk(&p, "tEXt", "a\0b", 3);
    memcpy(p.bytes + p.size, good.bytes + 33, good.size - 33);
    p.size += good.size - 33;
    assert_int_equal(pm_label_decode(p.bytes, p.size, 0, "a.png", &l), PM_OK);
    assert_int_equal(l.values[5], 6);
    pm_label_free(&l);
}

/* The written file must be a grey PNG of this many bits with these 2 x 3 numbers; frees it. */
static void assert_written(uint8_t *png, size_t size, int bits, const uint16_t *values)
{
    struct pm_label back;

    assert_int_equal(png[24], bits);
    assert_int_equal(png[25], 0);
    assert_int_equal(pm_label_decode(png, size, 0, "back", &back), PM_OK);
    assert_true(back.height == 2 && back.width == 3);
    assert_memory_equal(back.values, values, 6 * sizeof *values);
    pm_label_free(&back);
    pm_free(png);
}

static void written(void **state)
{
    uint16_t values[] = { 0, 20, 255, 3, 1, 7 };
    const struct pm_label in = { 2, 3, values };
    uint8_t *png = NULL;
    size_t size = 0;

    (void)state;
    assert_int_equal(pm_label_encode(&in, "m", &png, &size), PM_OK);
    assert_written(png, size, 8, values);
    values[4] = 65535, values[2] = 11001;
    assert_int_equal(pm_label_encode_deep(&in, "m", &png, &size), PM_OK);
    assert_written(png, size, 16, values);
    values[4] = 256, values[2] = 255;
    assert_fails(pm_label_encode(&in, "m", &png, &size), PM_EDATA, "256", "row 1, column 1");
}

/* libpng's own test files, where they are installed: grey and palette files of every depth, also
 * interlaced, have the numbers that pm_image_decode scales or looks up. */
static void corner_files(void **state)
{
    const char *folder = shared_data("images-corner/pngsuite");
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t count = 0;
    int compared = 0;

    (void)state;
    assert_int_equal(pm_list_folder(a, folder, &names, &count), PM_OK);
    for (size_t i = 0; i < count; i++) {
        struct pm_image8 im = { 0 };
        struct pm_label l = { 0 };
        char *data = NULL;
        size_t size = 0;
        if (strncmp(names[i], "bas", 3) || names[i][4] != '0') /* basn0g01.png, basi0g16.png ... */
            continue;
        assert_int_equal(pm_file_read(pm_arena_printf(a, "%s/%s", folder, names[i]), &data, &size),
                         PM_OK);
        assert_int_equal(pm_image_decode(data, size, 1, 0, names[i], &im), PM_OK);
        assert_int_equal(pm_label_decode(data, size, 0, names[i], &l), PM_OK);
        assert_true(im.height == l.height && im.width == l.width);
        const int depth = atoi(names[i] + 6);
        for (int k = 0; k < l.height * l.width; k++)
            assert_int_equal(depth == 16 ? l.values[k] >> 8
                                         : l.values[k] * 255 / ((1 << depth) - 1),
                             im.pixels[k]);
        compared++;
        pm_free(data);
        pm_image_free(&im);
        pm_label_free(&l);
    }
    assert_int_equal(compared, 10);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds),
        cmocka_unit_test(refused),
        cmocka_unit_test(texts),
        cmocka_unit_test(written),
        cmocka_unit_test(corner_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
