/* Converters of classification data: from raw bytes to the records that a reader finds. */
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
    assert_int_equal(pm_dataset_convert("mnist", src, dst, "validation=50"), PM_OK);
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
    /* A complete folder is kept. A folder of another format, or one that is not a data folder,
     * is an error. */
    assert_int_equal(pm_file_write(in_scratch("out/mine"), "x", 1), PM_OK);
    assert_int_equal(pm_dataset_convert("mnist", src, dst, NULL), PM_OK);
    assert_true(pm_file_exists(in_scratch("out/mine")));
    assert_fails(pm_dataset_convert("cifar10", src, dst, NULL), PM_EFAIL, dst, "exists already");
    /* All pictures are for training, as with TF-Slim, since there is a test set. */
    assert_int_equal(pm_dataset_convert("mnist", src, dst, "force=true"), PM_OK);
    assert_false(pm_file_exists(in_scratch("out/mine")));
    assert_only(2);
    struct pm_dataset *whole = opened(dst, "train", 600);
    pm_dataset_close(&whole);
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
    /* Files that are cut, of the wrong kind, or of different lengths. */
    put_idx(in_scratch("raw/train-labels-idx1-ubyte"), false, 2049, 600, 1);
    assert_fails(pm_dataset_convert("mnist", src, dst, NULL), PM_EDATA, "train-labels",
                 "1 more are needed");
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
    /* 61 names; a fifth of them is 12. The damaged picture may be in either split. */
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

/* ---- files of the real data sets ------------------------------------------------------------ */

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
    assert_int_equal(labels, 5041921314); /* the known first labels of the set */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mnist),        cmocka_unit_test(cifar10),
        cmocka_unit_test(folder_split), cmocka_unit_test(folder_given),
        cmocka_unit_test(real_mnist),   cmocka_unit_test(real_photos),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
