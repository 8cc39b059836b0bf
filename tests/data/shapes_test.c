/* The built-in shapes: pictures agree with their boxes and maps. Also the commands that make and
 * show data sets, on these shapes. */
#include "convert_common.h"

static struct pm_label map_of(const struct pm_example *e, const char *key)
{
    struct pm_label map;
    const uint8_t *data = NULL;
    size_t size = 0;

    assert_int_equal(pm_example_bytes(e, key, &data, &size), 1);
    assert_int_equal(pm_label_decode(data, size, 0, key, &map), PM_OK);
    return map;
}

/* ---- shapes --------------------------------------------------------------------------------- */

static void check_shape(struct pm_dataset *d, size_t i, int *labels)
{
    struct pm_example *e = example(d, i);
    struct pm_image8 im = image(e, "image/encoded", 0);
    struct pm_image8 mask = image(e, "image/segmentation/class/encoded", 0);
    const int64_t label = integer(e, "image/class/label"), *ids = NULL;
    const float *box[4];
    size_t n = 0, inside = 0;
    static const char *const keys[4] = { "image/object/bbox/ymin", "image/object/bbox/xmin",
                                         "image/object/bbox/ymax", "image/object/bbox/xmax" };

    assert_int_equal(im.height * 10000 + im.width * 10 + im.channels, 320323);
    assert_int_equal(mask.channels, 1);
    assert_true(label >= 0 && label < 4);
    labels[label]++;
    assert_int_equal(pm_example_ints(e, "image/object/class/label", &ids, &n), 1);
    assert_true(n >= 1 && n <= 3);
    for (int k = 0; k < 4; k++) {
        size_t count = 0;
        assert_int_equal(pm_example_floats(e, keys[k], &box[k], &count), 1);
        assert_int_equal(count, n);
    }
    struct pm_label instances = map_of(e, "image/segmentation/instance/encoded");
    for (int p = 0; p < 32 * 32; p++)
        assert_true(mask.pixels[p] == 0 || mask.pixels[p] == label + 1);
    /* The boxes contain the whole mask, and each object's own mask touches the four sides of its
     * box. */
    for (size_t k = 0; k < n; k++) {
        const uint8_t *data = NULL;
        size_t size = 0;
        struct pm_image8 one;
        int y0 = 32, x0 = 32, y1 = 0, x1 = 0;
        assert_int_equal(ids[k], label + 1);
        assert_int_equal(pm_example_bytes_at(e, "image/object/mask", k, &data, &size), 1);
        assert_int_equal(pm_image_decode(data, size, 1, 0, "mask", &one), PM_OK);
        for (int y = 0; y < 32; y++)
            for (int x = 0; x < 32; x++)
                if (one.pixels[y * 32 + x]) {
                    inside++;
                    assert_int_equal(instances.values[y * 32 + x], 1000 * (label + 1) + (int)k + 1);
                    assert_int_equal(mask.pixels[y * 32 + x], label + 1);
                    y0 = y < y0 ? y : y0, x0 = x < x0 ? x : x0;
                    y1 = y + 1 > y1 ? y + 1 : y1, x1 = x + 1 > x1 ? x + 1 : x1;
                }
        assert_true(box[0][k] == y0 / 32.0f && box[1][k] == x0 / 32.0f);
        assert_true(box[2][k] == y1 / 32.0f && box[3][k] == x1 / 32.0f);
        assert_true(y1 - y0 >= 4 && x1 - x0 >= 4);
        pm_image_free(&one);
    }
    for (int p = 0; p < 32 * 32; p++) {
        inside -= mask.pixels[p] != 0;
        assert_int_equal(instances.values[p] != 0, mask.pixels[p] != 0);
    }
    assert_int_equal(inside, 0);
    pm_label_free(&instances);
    pm_image_free(&im);
    pm_image_free(&mask);
    pm_example_destroy(&e);
}

static void shapes(void **state)
{
    char dst[300], again[300], other[300], *a = NULL, *b = NULL;
    int labels[4] = { 0 };
    size_t size_a = 0, size_b = 0;

    (void)state;
    scratch_make();
    snprintf(dst, sizeof dst, "%s/shapes", scratch);
    snprintf(again, sizeof again, "%s/again", scratch);
    snprintf(other, sizeof other, "%s/other", scratch);
    assert_int_equal(pm_shapes_make(dst, 32, 400, 20, 0, 1), PM_OK);
    struct pm_dataset *d = opened(dst, "train", 400);
    assert_string_equal(pm_dataset_get_info(d)->labels[3], "ring");
    assert_int_equal(pm_dataset_get_info(d)->thing_classes.count, 4);
    assert_int_equal(pm_dataset_get_info(d)->thing_classes.v[3], 4);
    for (size_t i = 0; i < 400; i++)
        check_shape(d, i, labels);
    /* 400 fair draws: each class within six standard deviations of 100. */
    for (int k = 0; k < 4; k++)
        assert_true(abs(labels[k] - 100) < 6 * 8.7);
    pm_dataset_close(&d);
    d = opened(dst, "validation", 20);
    pm_dataset_close(&d);
    /* The same seed draws the same bytes; another seed or split draws others. */
    assert_int_equal(pm_shapes_make(again, 32, 400, 0, 0, 1), PM_OK);
    assert_int_equal(pm_shapes_make(other, 32, 400, 0, 0, 2), PM_OK);
    for (int k = 0; k < 2; k++) {
        char path[400];
        snprintf(path, sizeof path, "%s/shapes_train_00000-of-00001.tfrecord", dst);
        assert_int_equal(pm_file_read(path, &a, &size_a), PM_OK);
        snprintf(path, sizeof path, "%s/shapes_train_00000-of-00001.tfrecord", k ? other : again);
        assert_int_equal(pm_file_read(path, &b, &size_b), PM_OK);
        assert_int_equal(size_a == size_b && !memcmp(a, b, size_a), k == 0);
        pm_free(a);
        pm_free(b);
    }
    assert_fails(pm_shapes_make(in_scratch("x"), 8, 1, 1, 1, 1), PM_ECONFIG, "size 8", "16..1024");
    assert_fails(pm_shapes_make(dst, 32, 1, 1, 1, 1), PM_EFAIL, "exists already");
    assert_only(3);
    scratch_remove();
}

/* ---- the command ---------------------------------------------------------------------------- */

static int fill_wrong_map(void *ctx, size_t i, struct pm_example_builder *b)
{
    uint16_t values[30] = { 0 };
    const struct pm_label map = { 5, 6, values };
    const int64_t height = 4, width = 6;
    uint8_t *png = NULL;
    size_t size = 0;

    (void)ctx, (void)i;
    assert_int_equal(pm_label_encode(&map, "map", &png, &size), PM_OK);
    pm_example_add_bytes(b, "image/encoded", "\x89PNG\r\n\x1a\n and no more", 20);
    pm_example_add_bytes(b, "image/segmentation/class/encoded", png, size);
    pm_example_add_ints(b, "image/height", &height, 1);
    pm_example_add_ints(b, "image/width", &width, 1);
    pm_free(png);
    return 1;
}

static void make_wrong_map(const char *dst)
{
    struct pm_making *m = NULL;

    assert_int_equal(pm_making_create(dst, NULL, false, &m), PM_OK);
    assert_int_equal(pm_making_split(m, "train", 1, NULL, fill_wrong_map, NULL), PM_OK);
    assert_int_equal(pm_making_finish(m), PM_OK);
    pm_making_destroy(&m);
}

/* The map of record 1 and its picture belong together: there are as many colours as instances. */
static void check_colours(const char *folder, const char *path)
{
    struct pm_dataset *d = opened(folder, "train", 5);
    struct pm_example *e = example(d, 1);
    struct pm_label map = map_of(e, "image/segmentation/instance/encoded");
    struct pm_image8 im;
    char *data = NULL;
    size_t size = 0;

    assert_int_equal(pm_file_read(path, &data, &size), PM_OK);
    assert_int_equal(pm_image_decode(data, size, 3, 0, path, &im), PM_OK);
    assert_true(im.height == map.height && im.width == map.width);
    for (int i = 0; i < im.height * im.width; i++) {
        assert_int_equal(map.values[i] == 0, !memcmp(im.pixels + 3 * i, "\0\0\0", 3));
        for (int k = 0; k < i; k++)
            assert_int_equal(map.values[i] == map.values[k],
                             !memcmp(im.pixels + 3 * i, im.pixels + 3 * k, 3));
    }
    pm_free(data);
    pm_image_free(&im);
    pm_label_free(&map);
    pm_example_destroy(&e);
    pm_dataset_close(&d);
}

static void command(void **state)
{
    const char *text;

    (void)state;
    need_program();
    scratch_make();
    text = output_of("dataset make shapes s size=16 train=5 validation=0 test=0 --json", 0);
    assert_says(text, "\"train\": 5");
    text = output_of("dataset inspect s --check", 0);
    assert_says(text, "4 classes (disc, box, triangle, ring), in maps 5 (ground, disc, box, "
                      "triangle, ring), 255 is "
                      "ignored, instances of 1 2 3 4, 16 x 16 x 3");
    assert_says(text, "png 16 x 16, labels 0 ");
    assert_says(text, "every map is whole; pixels of labels: 0 x ");
    assert_says(text, "shapes_train: 5 records in 1 file");
    assert_says(text, "every record is whole");
    output_of("dataset inspect s --pictures out --maps maps --records 2", 0);
    assert_true(pm_file_exists(in_scratch("out/shapes_train_00001.png")));
    assert_false(pm_file_exists(in_scratch("out/shapes_train_00002.png")));
    assert_true(pm_file_exists(in_scratch("maps/shapes_train_00001.png")));
    check_colours(in_scratch("s"), in_scratch("maps/shapes_train_00001_instances.png"));
    /* A map whose size differs from its record's. */
    make_wrong_map(in_scratch("w"));
    text = output_of("dataset inspect w --check", 3);
    assert_says(text, "record 0");
    assert_says(text, "image/encoded: ");
    assert_says(text, "the label map is 5 x 6, but image/height and image/width give 4 x 6");
    output_of("dataset inspect none", 3);
    output_of("dataset make shapes t sise=16", 2);
    scratch_remove();
}

/* Every call that can fail is made to fail once: the exit code reports it, and no file is left. */
static void every_failure(void **state)
{
    const char *program = need_program();
    char line[700];
    int n = 1;

    (void)state;
    scratch_make();
    snprintf(line, sizeof line,
             "'%s' dataset make shapes '%s/s' size=16 train=3 validation=1 "
             "test=0 2>/dev/null",
             program, scratch);
    for (; n < 200; n++) {
        char number[16];
        snprintf(number, sizeof number, "%d", n);
        setenv("PM_FAIL_AT", number, 1);
        const int status = system(line);
        unsetenv("PM_FAIL_AT");
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 0)
            break;
        /* 2 when reading an option's JSON failed, because the option then counts as text. */
        assert_in_range(WEXITSTATUS(status), 1, 2);
        /* A failure after the renaming leaves the complete folder. */
        const bool made = pm_is_folder(in_scratch("s"));
        assert_only(made);
        if (!made)
            continue;
        struct pm_dataset *d = opened(in_scratch("s"), "train", 3);
        pm_dataset_close(&d);
        assert_int_equal(pm_remove_tree(in_scratch("s")), PM_OK);
    }
    assert_true(n > 10 && n < 200);
    assert_only(1);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(command),
        cmocka_unit_test(every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
