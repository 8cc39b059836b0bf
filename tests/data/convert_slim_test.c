/* The converters of TF-Slim's data sets: the file of each record, and its contents. */
#include "convert_common.h"
#include "data/convert/convert.h"

/* The same order as in Python 3.11: random.seed(S); x = list(range(N)); random.shuffle(x). */
static void python_shuffle(void **state)
{
    static const struct {
        uint64_t seed;
        int count;
        uint32_t want[20];
    } cases[] = {
        { 0, 20, { 10, 18, 16, 14, 0, 17, 11, 2, 3, 9, 5, 7, 4, 19, 6, 15, 8, 1, 13, 12 } },
        { 12345, 20, { 16, 18, 3, 8, 19, 10, 7, 14, 12, 1, 5, 2, 15, 17, 4, 6, 11, 9, 0, 13 } },
        { ((uint64_t)1 << 40) + 7, 12, { 0, 5, 2, 3, 6, 1, 8, 4, 7, 11, 10, 9 } },
    };
    uint32_t order[3670];

    (void)state;
    for (size_t k = 0; k < PM_COUNT(cases); k++) {
        pm_python_shuffle(cases[k].seed, (size_t)cases[k].count, order);
        for (int i = 0; i < cases[k].count; i++)
            assert_int_equal(order[i], cases[k].want[i]);
    }
    /* As many numbers as flowers has pictures: the generator is refilled. Python computed the
     * sums. */
    uint64_t sum = 0;
    pm_python_shuffle(0, 3670, order);
    for (uint64_t i = 0; i < 3670; i++)
        sum += i * order[i];
    assert_int_equal(order[0], 1843);
    assert_int_equal(order[3669], 3458);
    assert_int_equal(sum % 1000003, 431892);
    pm_python_shuffle(0, 0, order);
    pm_python_shuffle(0, 1, order);
    assert_int_equal(order[0], 0);
}

/* Makes 11 pictures of two classes, with the values 0, 20, ... in the order of the sorted list. */
static void make_flowers(const char *root)
{
    char name[400];

    for (int i = 0; i < 11; i++) {
        snprintf(name, sizeof name, "%s/%s", root, i < 6 ? "daisy" : "tu lip [x]");
        assert_int_equal(pm_make_folders(in_scratch(name)), PM_OK);
        snprintf(name, sizeof name, "%s/%s/p %02d (x).jpg", root, i < 6 ? "daisy" : "tu lip [x]",
                 i);
        put_jpeg(in_scratch(name), 20 * i);
    }
}

/* The file of a split must hold these pictures of the list, in this order. */
static void assert_file(const char *folder, const char *file, const uint32_t *want, size_t count)
{
    struct pm_dataset *d = NULL;

    if (count == 0) {
        char path[700];
        size_t size = 1;
        char *text = NULL;
        snprintf(path, sizeof path, "%s/%s", folder, file);
        assert_int_equal(pm_file_read(path, &text, &size), PM_OK);
        assert_int_equal(size, 0);
        pm_free(text);
        return;
    }
    d = opened(folder, file, count);
    for (size_t i = 0; i < count; i++) {
        struct pm_example *e = example(d, i);
        assert_in_range(grey_of(e) + 3, 20 * want[i] + 1, 20 * want[i] + 5);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
}

static void flowers(void **state)
{
    char src[300], dst[300];
    uint32_t order[11];

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    make_flowers("raw/flower_photos");
    put_text("raw/flower_photos/LICENSE.txt", "x");
    assert_int_equal(pm_dataset_convert("flowers", src, dst, "validation=4"), PM_OK);
    pm_python_shuffle(0, 11, order);
    /* 7 for training: ceil(7 / 5) = 2 in a file, so 2, 2, 2, 1, 0; 4 for validation: 1 in each
     * file, the last one empty. */
    assert_file(dst, "flowers_train_00000-of-00005.tfrecord", order + 4, 2);
    assert_file(dst, "flowers_train_00001-of-00005.tfrecord", order + 6, 2);
    assert_file(dst, "flowers_train_00002-of-00005.tfrecord", order + 8, 2);
    assert_file(dst, "flowers_train_00003-of-00005.tfrecord", order + 10, 1);
    assert_file(dst, "flowers_train_00004-of-00005.tfrecord", NULL, 0);
    assert_file(dst, "flowers_validation_00003-of-00005.tfrecord", order + 3, 1);
    assert_file(dst, "flowers_validation_00004-of-00005.tfrecord", NULL, 0);
    struct pm_dataset *d = opened(dst, "validation", 4);
    assert_string_equal(pm_dataset_get_info(d)->labels[1], "tu lip [x]");
    for (size_t i = 0; i < 4; i++) {
        struct pm_example *e = example(d, i);
        assert_text(e, "image/format", "jpg");
        assert_int_equal(integer(e, "image/class/label"), order[i] >= 6);
        assert_int_equal(integer(e, "image/height"), 8);
        assert_int_equal(pm_example_count(e), 5); /* only the keys of TF-Slim */
        /* The bytes of the original file. */
        char path[400], *text = NULL;
        size_t size = 0, n = 0;
        const uint8_t *bytes = NULL;
        snprintf(path, sizeof path, "raw/flower_photos/%s/p %02u (x).jpg",
                 order[i] < 6 ? "daisy" : "tu lip [x]", order[i]);
        assert_int_equal(pm_file_read(in_scratch(path), &text, &size), PM_OK);
        assert_int_equal(pm_example_bytes(e, "image/encoded", &bytes, &n), 1);
        assert_int_equal(n, size);
        assert_memory_equal(bytes, text, size);
        pm_free(text);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    pm_remove_tree(dst);
    assert_fails(pm_dataset_convert("flowers", src, dst, NULL), PM_ECONFIG, "350",
                 "none of the 11");
    assert_only(1);
    scratch_remove();
}

/* The Inception trainer's variant: an equal number of each class, labels from 1, its names and
 * keys. */
static void flowers_inception(void **state)
{
    char src[300], dst[300];
    int labels[3] = { 0 };

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    make_flowers("raw");
    assert_int_equal(pm_dataset_convert("flowers", src, dst,
                                        "background=true validation_per_class=2 shards=2"), PM_OK);
    struct pm_dataset *d = opened(dst, "validation", 4);
    assert_int_equal(pm_dataset_get_info(d)->files, 2);
    assert_int_equal(pm_dataset_get_info(d)->num_classes, 3);
    assert_string_equal(pm_dataset_get_info(d)->labels[0], "background");
    for (size_t i = 0; i < 4; i++) {
        struct pm_example *e = example(d, i);
        const int64_t label = integer(e, "image/class/label");
        assert_in_range(label, 1, 2);
        labels[label]++;
        assert_text(e, "image/class/text", label == 1 ? "daisy" : "tu lip [x]");
        assert_text(e, "image/format", "JPEG");
        pm_example_destroy(&e);
    }
    assert_int_equal(labels[1] * 10 + labels[2], 22);
    pm_dataset_close(&d);
    d = opened(dst, "train-00000-of-00002", 4);
    pm_dataset_close(&d);
    scratch_remove();
}

static void cifar10_folders(void **state)
{
    char src[300], dst[300], name[64];
    static const char *const classes[] = { "airplane", "cat", "truck" };
    uint32_t order[6];

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    for (int k = 0; k < 9; k++) {
        struct pm_image8 im = { 32, 32, 3, pm_malloc(3072) };
        uint8_t *jpeg = NULL;
        size_t size = 0;
        snprintf(name, sizeof name, "raw/%s/%s", k < 6 ? "train" : "test", classes[k % 3]);
        assert_int_equal(pm_make_folders(in_scratch(name)), PM_OK);
        snprintf(name, sizeof name, "raw/%s/%s/%d.jpg", k < 6 ? "train" : "test", classes[k % 3],
                 k);
        memset(im.pixels, 20 * k, 3072);
        assert_int_equal(pm_image_encode_jpeg(&im, 90, &jpeg, &size), PM_OK);
        assert_int_equal(pm_file_write(in_scratch(name), jpeg, size), PM_OK);
        pm_free(jpeg);
        pm_image_free(&im);
    }
    for (int png = 0; png < 2; png++) {
        assert_int_equal(pm_dataset_convert("cifar10", src, dst, png ? "png=true" : ""), PM_OK);
        struct pm_dataset *d = opened(dst, "cifar10_train.tfrecord", 6);
        /* Ordered by class and name: 0 and 3 are airplanes, 1 and 4 cats, 2 and 5 trucks. */
        static const int listed[] = { 0, 3, 1, 4, 2, 5 }, label[] = { 0, 3, 9 };
        pm_python_shuffle(0, 6, order);
        assert_string_equal(pm_dataset_get_info(d)->labels[9], "truck");
        for (size_t i = 0; i < 6; i++) {
            struct pm_example *e = example(d, i);
            const int k = listed[order[i]];
            assert_in_range(grey_of(e) + 3, 20 * k + 1, 20 * k + 5);
            assert_int_equal(integer(e, "image/class/label"), label[k % 3]);
            assert_text(e, "image/format", png ? "png" : "jpeg");
            pm_example_destroy(&e);
        }
        pm_dataset_close(&d);
        d = opened(dst, "cifar10_test.tfrecord", 3);
        pm_dataset_close(&d);
        pm_remove_tree(dst);
    }
    put_jpeg(in_scratch("raw/train/cat/small.jpg"), 3);
    assert_fails(pm_dataset_convert("cifar10", src, dst, "bad=error"), PM_EDATA, "small.jpg",
                 "8 x 8", "32 x 32");
    assert_int_equal(pm_make_folders(in_scratch("raw/train/plane")), PM_OK);
    assert_fails(pm_dataset_convert("cifar10", src, dst, NULL), PM_EDATA, "class plane");
    assert_only(1);
    scratch_remove();
}

/* ---- visual wake words ---------------------------------------------------------------------- */

static const char coco[] =
    "{\"info\": {\"x\": [1, {\"y\": \"]}\\\"\"}]},\n \"annotations\": [\n"
    "  {\"id\": 1, \"image_id\": 7, \"category_id\": 3, \"area\": 0.32, \"bbox\": [1, 2, 3, 4]},\n"
    "  {\"id\": 2, \"image_id\": 5, \"category_id\": 3, \"area\": 0.3200001, "
    "\"bbox\": [0, 4, 8, 4],\n"
    "   \"segmentation\": [[1.5, 2, -3e2]], \"iscrowd\": 0},\n"
    "  {\"id\": 3, \"image_id\": 9, \"category_id\": 4, \"area\": 60, \"bbox\": [0, 0, 8, 8]},\n"
    "  {\"id\": 4, \"image_id\": 5, \"category_id\": 3, \"area\": 9, \"bbox\": [2, 0, 4, 2]},\n"
    "  {\"id\": 5, \"image_id\": 999, \"category_id\": 3, \"area\": 60, \"bbox\": [0, 0, 8, 8]}],\n"
    " \"images\": [{\"id\": 9, \"file_name\": \"9.jpg\", \"height\": 8, \"width\": 8, "
    "\"license\": null},\n"
    "  {\"file_name\": \"\\u0035 a.jpg\", \"id\": 5, \"width\": 8, \"height\": 8},\n"
    "  {\"id\": 7, \"file_name\": \"7.jpg\", \"height\": 8, \"width\": 8}],\n"
    " \"categories\": [{\"id\": 4, \"name\": \"cup\"}, {\"id\": 3, \"name\": \"person\"}]}\n";

static void wake_words(void **state)
{
    char src[300], dst[300];
    float v[3];

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(pm_make_folders(in_scratch(k ? "raw/val2014" : "raw/train2014")), PM_OK);
        put_jpeg(in_scratch(k ? "raw/val2014/9.jpg" : "raw/train2014/9.jpg"), 90);
        put_jpeg(in_scratch(k ? "raw/val2014/5 a.jpg" : "raw/train2014/5 a.jpg"), 50);
        put_jpeg(in_scratch(k ? "raw/val2014/7.jpg" : "raw/train2014/7.jpg"), 70);
    }
    assert_int_equal(pm_make_folders(in_scratch("raw/annotations")), PM_OK);
    put_text("raw/annotations/instances_train2014.json", coco);
    assert_fails(pm_dataset_convert("visualwakewords", src, dst, NULL), PM_EDATA, "val2014.json");
    put_text("raw/annotations/instances_val2014.json", coco);
    assert_int_equal(pm_dataset_convert("visualwakewords", src, dst,
                                        "train_shards=2 validation_shards=1"), PM_OK);
    /* The order of the images is 9, 5, 7: the first and the third in file 0, the second in file
     * 1. 0.32 of 64 equals the threshold, which does not count. */
    struct pm_dataset *d = opened(dst, "train.record-00001-of-00002", 1);
    struct pm_example *e = example(d, 0);
    assert_int_equal(integer(e, "image/class/label"), 1);
    assert_text(e, "image/filename", "5 a.jpg");
    assert_text(e, "image/source_id", "5");
    assert_text(e, "image/format", "jpeg");
    assert_int_equal(values(e, "image/object/bbox/ymin", v, 3), 2);
    assert_true(v[0] == 0.5f && v[1] == 0);
    assert_int_equal(values(e, "image/object/bbox/xmax", v, 3), 2);
    assert_true(v[0] == 1 && v[1] == 0.75f);
    assert_int_equal(values(e, "image/object/area", v, 3), 2);
    assert_true(v[1] == 9);
    pm_example_destroy(&e);
    pm_dataset_close(&d);
    d = opened(dst, "train.record-00000-of-00002", 2);
    for (size_t i = 0; i < 2; i++) {
        e = example(d, i);
        assert_text(e, "image/source_id", i ? "7" : "9");
        assert_int_equal(integer(e, "image/class/label"), 0);
        assert_int_equal(values(e, "image/object/bbox/ymin", v, 3), 0);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    d = opened(dst, "val", 3);
    assert_string_equal(pm_dataset_get_info(d)->labels[1], "person");
    pm_dataset_close(&d);
    pm_remove_tree(dst);
    assert_int_equal(pm_dataset_convert("visualwakewords", src, dst,
                                        "foreground_class=cup train_shards=1 validation_shards=1"),
                     PM_OK);
    d = opened(dst, "train", 3);
    e = example(d, 0);
    assert_int_equal(integer(e, "image/class/label"), 1);
    pm_example_destroy(&e);
    pm_dataset_close(&d);
    pm_remove_tree(dst);
    assert_fails(pm_dataset_convert("visualwakewords", src, dst, "foreground_class=cupp"), PM_EDATA,
                 "cupp", "foreground_class");
    put_text("raw/annotations/instances_train2014.json",
             "{\"categories\": [{\"id\": 1, \"name\": \"person\"}], \"images\": ["
             "{\"id\": 5, \"file_name\": \"7.jpg\", \"height\": 8, \"width\": 8},"
             "{\"id\": 5, \"file_name\": \"9.jpg\", \"height\": 8, \"width\": 8}]}");
    assert_fails(pm_dataset_convert("visualwakewords", src, dst, NULL), PM_EDATA, "train2014.json",
                 "two images", "id 5");
    put_text(
        "raw/annotations/instances_train2014.json",
        "{\"images\": [{\"id\": 5, \"file_name\": \"../7.jpg\", \"height\": 8, \"width\": 8}]}");
    assert_fails(pm_dataset_convert("visualwakewords", src, dst, NULL), PM_EDATA,
                 "train2014.json:1", "within the folder");
    put_text("raw/annotations/instances_train2014.json",
             "{\"categories\": [{\"id\": 1, \"name\": \"person\"}], \"images\": ["
             "{\"id\": 5, \"file_name\": \"7.jpg\", \"height\": 8, \"width\": 8}],"
             "\"annotations\": [{\"id\": 3, \"image_id\": 5, \"category_id\": 1,"
             "\"bbox\": [0, 0, 1, 1]}]}");
    assert_fails(pm_dataset_convert("visualwakewords", src, dst, NULL), PM_EDATA,
                 "train2014.json: annotation 3 (place 1 in the list) has no area");
    /* A file cut at any place is refused with its line. */
    for (size_t cut = 0; cut + 2 < sizeof coco; cut += 7) {
        assert_int_equal(pm_file_write(in_scratch("raw/annotations/instances_train2014.json"), coco,
                                       cut), PM_OK);
        assert_fails(pm_dataset_convert("visualwakewords", src, dst, NULL), PM_EDATA,
                     "train2014.json:");
    }
    assert_only(1);
    scratch_remove();
}

/* The counts of COCO's own pictures, computed by a simple Python script. */
static void real_wake_words(void **state)
{
    char dst[300];
    const char *src = shared_data("coco-mini");

    (void)state;
    scratch_make();
    snprintf(dst, sizeof dst, "%s/vww", scratch);
    assert_int_equal(pm_dataset_convert("visualwakewords", src, dst,
                                        "train_shards=3 validation_shards=2"), PM_OK);
    static const size_t want[2][2] = { { 80, 29 }, { 40, 17 } };
    for (int k = 0; k < 2; k++) {
        struct pm_dataset *d = opened(dst, k ? "val" : "train", want[k][0]);
        size_t persons = 0;
        for (size_t i = 0; i < want[k][0]; i++) {
            struct pm_example *e = example(d, i);
            persons += integer(e, "image/class/label") == 1;
            pm_example_destroy(&e);
        }
        assert_int_equal(persons, want[k][1]);
        pm_dataset_close(&d);
    }
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_shuffle),  cmocka_unit_test(flowers),
        cmocka_unit_test(flowers_inception), cmocka_unit_test(cifar10_folders),
        cmocka_unit_test(wake_words),      cmocka_unit_test(real_wake_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
