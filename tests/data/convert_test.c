/* Converters and the built-in shapes: from raw bytes to what a reader finds. */
#include <zlib.h>

#include "convert_common.h"

/* ---- mnist ---------------------------------------------------------------------------------- */

static uint8_t digit(int i, int k)
{
    return (uint8_t)(i * 31 + k * 7);
}

static void put_idx(const char *path, bool gz, uint32_t magic, uint32_t count, int cut)
{
    uint8_t head[16] = { 0,
                         0,
                         (uint8_t)(magic >> 8),
                         (uint8_t)magic,
                         0,
                         0,
                         (uint8_t)(count >> 8),
                         (uint8_t)count,
                         0,
                         0,
                         0,
                         5,
                         0,
                         0,
                         0,
                         4 };
    struct pm_str s = { 0 };
    const int each = magic == 2051 ? 20 : 1;

    pm_str_bytes(&s, head, magic == 2051 ? 16 : 8);
    for (int i = 0; i < (int)count; i++)
        for (int k = 0; k < each; k++) {
            const uint8_t v = magic == 2051 ? digit(i, k) : (uint8_t)(i % 10);
            pm_str_bytes(&s, &v, 1);
        }
    s.length -= (size_t)cut;
    if (gz) {
        gzFile f = gzopen(path, "wb");
        assert_int_equal(gzwrite(f, s.text, (unsigned)s.length), s.length);
        gzclose(f);
    } else {
        assert_int_equal(pm_file_write(path, s.text, s.length), PM_OK);
    }
    pm_str_free(&s);
}

static void mnist(void **state)
{
    char src[300], dst[300];

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    assert_int_equal(pm_make_folders(src), PM_OK);
    assert_fails(pm_dataset_convert("mnist", src, dst, NULL), PM_EDATA, "train-images-idx3");
    put_idx(in_scratch("raw/train-images-idx3-ubyte.gz"), true, 2051, 600, 0);
    put_idx(in_scratch("raw/train-labels-idx1-ubyte"), false, 2049, 600, 0);
    put_idx(in_scratch("raw/t10k-images.idx3-ubyte"), false, 2051, 30, 0);
    put_idx(in_scratch("raw/t10k-labels-idx1-ubyte.gz"), true, 2049, 30, 0);
    assert_int_equal(pm_dataset_convert("mnist", src, dst, NULL), PM_OK);
    static const struct {
        const char *split;
        size_t count;
        int first;
    } splits[] = { { "train", 550, 0 }, { "validation", 50, 550 }, { "test", 30, 0 } };
    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        struct pm_dataset *d = opened(dst, splits[k].split, splits[k].count);
        const struct pm_dataset_info *info = pm_dataset_get_info(d);
        assert_string_equal(info->name, "mnist");
        assert_int_equal(info->num_classes, 10);
        assert_string_equal(info->labels[6], "six");
        assert_int_equal(info->height * 100 + info->width * 10 + info->channels, 541);
        for (size_t i = 0; i < info->count; i += 7) {
            struct pm_example *e = example(d, i);
            const int n = splits[k].first + (int)i;
            struct pm_image8 im = image(e, "image/encoded", 0);
            assert_int_equal(integer(e, "image/class/label"), n % 10);
            assert_int_equal(integer(e, "image/height"), 5);
            assert_int_equal(integer(e, "image/width"), 4);
            assert_text(e, "image/format", "png");
            assert_int_equal(im.channels, 1);
            for (int p = 0; p < 20; p++)
                assert_int_equal(im.pixels[p], digit(n, p));
            pm_image_free(&im);
            pm_example_destroy(&e);
        }
        pm_dataset_close(&d);
    }
    /* A finished folder is left as it is; another format's, or one that is no data folder, is in the
     * way. */
    assert_int_equal(pm_file_write(in_scratch("out/mine"), "x", 1), PM_OK);
    assert_int_equal(pm_dataset_convert("mnist", src, dst, NULL), PM_OK);
    assert_true(pm_file_exists(in_scratch("out/mine")));
    assert_fails(pm_dataset_convert("cifar10", src, dst, NULL), PM_EFAIL, dst, "exists already");
    assert_int_equal(pm_dataset_convert("mnist", src, dst, "validation=0 force=true"), PM_OK);
    assert_false(pm_file_exists(in_scratch("out/mine")));
    assert_only(2);
    pm_remove_tree(dst);
    assert_int_equal(pm_make_folders(dst), PM_OK);
    assert_int_equal(pm_file_write(in_scratch("out/mine"), "x", 1), PM_OK);
    assert_fails(pm_dataset_convert("mnist", src, dst, "force=true"), PM_EFAIL, "exists already");
    pm_remove_tree(dst);
    assert_fails(pm_dataset_convert("mnist", src, dst, "validation=600"), PM_ECONFIG,
                 "validation=600");
    assert_fails(pm_dataset_convert("mnist", src, dst, "valdation=6"), PM_ECONFIG, "valdation",
                 "validation");
    assert_fails(pm_dataset_convert("mnits", src, dst, NULL), PM_ECONFIG, "mnits",
                 "did you mean mnist");
    /* Files that are cut, of the wrong kind, or unequal. */
    put_idx(in_scratch("raw/train-labels-idx1-ubyte"), false, 2049, 600, 1);
    assert_fails(pm_dataset_convert("mnist", src, dst, NULL), PM_EDATA, "train-labels", "short");
    put_idx(in_scratch("raw/train-labels-idx1-ubyte"), false, 2051, 600, 0);
    assert_fails(pm_dataset_convert("mnist", src, dst, NULL), PM_EDATA, "2051", "2049");
    put_idx(in_scratch("raw/train-labels-idx1-ubyte"), false, 2049, 599, 0);
    assert_fails(pm_dataset_convert("mnist", src, dst, NULL), PM_EDATA, "600 images", "599 labels");
    assert_only(1);
    scratch_remove();
}

/* ---- cifar10 -------------------------------------------------------------------------------- */

static void cifar10(void **state)
{
    char src[300], dst[300];
    uint8_t *records = pm_malloc(20 * 3073);

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    assert_int_equal(pm_make_folders(in_scratch("raw/cifar-10-batches-bin")), PM_OK);
    assert_fails(pm_dataset_convert("cifar10", src, dst, NULL), PM_EDATA, "*.bin");
    for (int i = 0; i < 20 * 3073; i++)
        records[i] = (uint8_t)(i % 3073 == 0 ? i / 3073 % 10 : i * 13 + i / 3073);
    assert_int_equal(
        pm_file_write(in_scratch("raw/cifar-10-batches-bin/data_batch_1.bin"), records, 12 * 3073),
        PM_OK);
    assert_int_equal(pm_file_write(in_scratch("raw/cifar-10-batches-bin/data_batch_2.bin"),
                                   records + 12 * 3073, 5 * 3073),
                     PM_OK);
    assert_int_equal(pm_file_write(in_scratch("raw/cifar-10-batches-bin/test_batch.bin"),
                                   records + 17 * 3073, 3 * 3073),
                     PM_OK);
    assert_int_equal(pm_dataset_convert("cifar10", src, dst, "validation=4"), PM_OK);
    static const struct {
        const char *split;
        size_t count;
        int first;
    } splits[] = { { "train", 13, 0 }, { "validation", 4, 13 }, { "test", 3, 17 } };
    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        struct pm_dataset *d = opened(dst, splits[k].split, splits[k].count);
        assert_string_equal(pm_dataset_get_info(d)->labels[9], "truck");
        for (size_t i = 0; i < splits[k].count; i++) {
            struct pm_example *e = example(d, i);
            const int n = splits[k].first + (int)i;
            struct pm_image8 im = image(e, "image/encoded", 0);
            assert_int_equal(integer(e, "image/class/label"), n % 10);
            for (int p = 0; p < 1024; p++)
                for (int c = 0; c < 3; c++)
                    assert_int_equal(im.pixels[3 * p + c], records[n * 3073 + 1 + c * 1024 + p]);
            pm_image_free(&im);
            pm_example_destroy(&e);
        }
        pm_dataset_close(&d);
    }
    pm_remove_tree(dst);
    records[3073] = 10;
    assert_int_equal(pm_file_write(in_scratch("one.bin"), records, 2 * 3073), PM_OK);
    assert_fails(pm_dataset_convert("cifar10", in_scratch("one.bin"), dst, NULL), PM_EDATA,
                 "one.bin: record 1", "label 10");
    assert_int_equal(pm_file_write(in_scratch("one.bin"), records, 2 * 3073 - 1), PM_OK);
    assert_fails(pm_dataset_convert("cifar10", in_scratch("one.bin"), dst, NULL), PM_EDATA,
                 "one.bin", "6145 bytes");
    assert_only(2);
    pm_free(records);
    scratch_remove();
}

/* ---- folder --------------------------------------------------------------------------------- */

static void folder_split(void **state)
{
    char src[300], dst[300];
    int seen[60] = { 0 }, in_order = 0, last = -1;

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/my data", scratch);
    make_class("raw/zebra", 0, 20);
    make_class("raw/ant [x]", 20, 20);
    make_class("raw/bee", 40, 20);
    assert_int_equal(pm_file_write(in_scratch("raw/bee/notes.txt"), "x", 1), PM_OK);
    assert_int_equal(pm_file_write(in_scratch("raw/bee/broken.jpg"), "x", 1), PM_OK);
    assert_int_equal(pm_dataset_convert("folder", src, dst, "validation=0.2 per_shard=10"), PM_OK);
    /* 61 names, a fifth of which is 12; the broken one is in either. */
    struct pm_dataset *d = NULL;
    size_t total = 0;
    for (int k = 0; k < 2; k++) {
        assert_int_equal(pm_dataset_open(dst, k ? "validation" : "train", &d), PM_OK);
        const struct pm_dataset_info *info = pm_dataset_get_info(d);
        assert_string_equal(info->name, "my data");
        assert_int_equal(info->num_classes, 3);
        assert_string_equal(info->labels[0], "ant [x]");
        assert_string_equal(info->labels[2], "zebra");
        assert_int_equal(info->files, k ? 2 : 5);
        assert_int_equal(info->height, 0);
        total += info->count;
        for (size_t i = 0; i < info->count; i++) {
            struct pm_example *e = example(d, i);
            struct pm_image8 im = image(e, "image/encoded", 3);
            const int v = im.pixels[0];
            seen[v]++;
            in_order += v == last + 1;
            last = v;
            assert_int_equal(integer(e, "image/class/label"), v < 20 ? 2 : v < 40 ? 0 : 1);
            assert_text(e, "image/class/text", v < 20 ? "zebra" : v < 40 ? "ant [x]" : "bee");
            assert_text(e, "image/format", "png");
            assert_int_equal(integer(e, "image/height"), im.height);
            assert_int_equal(integer(e, "image/width"), 6);
            pm_image_free(&im);
            pm_example_destroy(&e);
        }
        pm_dataset_close(&d);
    }
    assert_int_equal(total, 60);
    for (int i = 0; i < 60; i++)
        assert_int_equal(seen[i], 1);
    assert_true(in_order < 20); /* shuffled */
    pm_remove_tree(dst);
    assert_fails(pm_dataset_convert("folder", src, dst, "bad=error"), PM_EDATA, "broken.jpg");
    assert_only(1);
    scratch_remove();
}

static void folder_given(void **state)
{
    char src[300], dst[300];
    struct pm_dataset *d = NULL;

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    make_class("raw/train/b", 0, 3);
    make_class("raw/train/a", 10, 4);
    make_class("raw/val/b", 20, 2);
    make_class("raw/test/a", 30, 1);
    assert_int_equal(pm_dataset_convert("folder", src, dst, NULL), PM_OK);
    d = opened(dst, "train", 7);
    pm_dataset_close(&d);
    d = opened(dst, "test", 1);
    pm_dataset_close(&d);
    d = opened(dst, "validation", 2);
    struct pm_example *e = example(d, 0);
    assert_int_equal(integer(e, "image/class/label"), 1);
    pm_example_destroy(&e);
    pm_dataset_close(&d);
    pm_remove_tree(dst);
    make_class("raw/val/c", 40, 1);
    assert_fails(pm_dataset_convert("folder", src, dst, NULL), PM_EDATA, "class c", "training");
    assert_fails(pm_dataset_convert("folder", in_scratch("none"), dst, NULL), PM_EDATA, "none",
                 "no such folder");
    assert_fails(pm_dataset_convert("folder", in_scratch("raw/val/b"), dst, NULL), PM_EDATA,
                 "no class folders");
    assert_only(1);
    scratch_remove();
}

/* ---- real ones ------------------------------------------------------------------------------ */

static void real_mnist(void **state)
{
    char dst[300];
    const char *src = shared_data("mnist");

    (void)state;
    scratch_make();
    snprintf(dst, sizeof dst, "%s/mnist", scratch);
    assert_int_equal(pm_dataset_convert("mnist", src, dst, NULL), PM_OK);
    struct pm_dataset *d = opened(dst, "train", 55000);
    int64_t labels = 0;
    for (size_t i = 0; i < 10; i++) {
        struct pm_example *e = example(d, i);
        labels = labels * 10 + integer(e, "image/class/label");
        pm_example_destroy(&e);
    }
    assert_int_equal(labels, 5041921314); /* the set's well-known beginning */
    pm_dataset_close(&d);
    d = opened(dst, "validation", 5000);
    pm_dataset_close(&d);
    scratch_remove();
}

static void real_photos(void **state)
{
    char dst[300];
    const char *src = shared_data("hymenoptera");
    struct pm_dataset *d = NULL;

    (void)state;
    scratch_make();
    snprintf(dst, sizeof dst, "%s/photos", scratch);
    assert_int_equal(pm_dataset_convert("folder", src, dst, NULL), PM_OK);
    d = opened(dst, "train", 95);
    int ants = 0;
    for (size_t i = 0; i < 95; i++) {
        struct pm_example *e = example(d, i);
        ants += integer(e, "image/class/label") == 0;
        pm_example_destroy(&e);
    }
    assert_int_equal(ants, 55);
    pm_dataset_close(&d);
    d = opened(dst, "validation", 28);
    pm_dataset_close(&d);
    pm_remove_tree(dst);
    assert_int_equal(
        pm_dataset_convert("cifar10", shared_data("cifar10/sample_batch.bin"), dst, NULL), PM_OK);
    d = opened(dst, "train", 500);
    pm_dataset_close(&d);
    scratch_remove();
}

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
    /* The boxes hold all of the mask, and each object's own mask touches its box's four sides. */
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
    /* 400 fair draws: each class within six deviations of 100. */
    for (int k = 0; k < 4; k++)
        assert_true(abs(labels[k] - 100) < 6 * 8.7);
    pm_dataset_close(&d);
    d = opened(dst, "validation", 20);
    pm_dataset_close(&d);
    /* The same seed draws the same bytes, another one others; so does another split. */
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

/* Pixels of the map of record 1 and of its picture go together: as many colours as instances. */
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
    const char *program = getenv("PUMICE_PROGRAM");
    char line[1000], text[4096];

    (void)state;
    if (!program) {
        print_message("skipped: PUMICE_PROGRAM is not set (run by ctest)\n");
        skip();
    }
    scratch_make();
    snprintf(line, sizeof line,
             "'%s' dataset make shapes '%s/s' size=16 train=5 validation=0 "
             "test=0 --json 2>/dev/null",
             program, scratch);
    FILE *f = popen(line, "r");
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    assert_int_equal(pclose(f), 0);
    assert_non_null(strstr(text, "\"train\": 5"));
    snprintf(line, sizeof line, "'%s' dataset inspect '%s/s' --check 2>&1", program, scratch);
    f = popen(line, "r");
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    assert_int_equal(pclose(f), 0);
    assert_non_null(strstr(text, "4 classes (disc, box, triangle, ring), in maps 5 (ground, disc, box, triangle, "
                                 "ring), 255 is ignored, instances of 1 2 3 4, 16 x 16 x 3"));
    assert_non_null(strstr(text, "png 16 x 16, labels 0 "));
    assert_non_null(strstr(text, "every map is whole; pixels of labels: 0 x "));
    assert_non_null(strstr(text, "shapes_train: 5 records in 1 file"));
    assert_non_null(strstr(text, "every record is whole"));
    snprintf(line, sizeof line, "'%s' dataset inspect '%s/s' --pictures '%s/out' --maps '%s/maps' --records 2 >/dev/null",
             program, scratch, scratch, scratch);
    assert_int_equal(system(line), 0);
    assert_true(pm_file_exists(in_scratch("out/shapes_train_00001.png")));
    assert_false(pm_file_exists(in_scratch("out/shapes_train_00002.png")));
    assert_true(pm_file_exists(in_scratch("maps/shapes_train_00001.png")));
    check_colours(in_scratch("s"), in_scratch("maps/shapes_train_00001_instances.png"));
    /* A map that says another size than its record. */
    make_wrong_map(in_scratch("w"));
    snprintf(line, sizeof line, "'%s' dataset inspect '%s/w' --check 2>&1", program, scratch);
    f = popen(line, "r");
    n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    assert_int_equal(WEXITSTATUS(pclose(f)), 3);
    assert_non_null(strstr(text, "record 0"));
    assert_non_null(strstr(text, "image/encoded: "));
    assert_non_null(strstr(text, "the map of labels is 5 x 6, image/height and image/width say 4 x 6"));
    snprintf(line, sizeof line, "'%s' dataset inspect '%s/none' 2>/dev/null", program, scratch);
    assert_int_equal(WEXITSTATUS(system(line)), 3);
    snprintf(line, sizeof line, "'%s' dataset make shapes '%s/t' sise=16 2>/dev/null", program,
             scratch);
    assert_int_equal(WEXITSTATUS(system(line)), 2);
    scratch_remove();
}

/* Every fallible call in turn fails once: the exit code says so, and nothing is left behind. */
static void every_failure(void **state)
{
    const char *program = getenv("PUMICE_PROGRAM");
    char line[700];
    int n = 1;

    (void)state;
    if (!program) {
        print_message("skipped: PUMICE_PROGRAM is not set (run by ctest)\n");
        skip();
    }
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
        /* 2 where reading an option's JSON failed, since it is then taken for a text. */
        assert_in_range(WEXITSTATUS(status), 1, 2);
        /* What failed after the renaming leaves the whole folder. */
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
        cmocka_unit_test(mnist),         cmocka_unit_test(cifar10),
        cmocka_unit_test(folder_split),  cmocka_unit_test(folder_given),
        cmocka_unit_test(real_mnist),    cmocka_unit_test(real_photos),
        cmocka_unit_test(shapes),        cmocka_unit_test(command),
        cmocka_unit_test(every_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
