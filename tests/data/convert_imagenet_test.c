/* The Inception trainer's two builders: ImageNet, and any folders of classes. */
#include "convert_common.h"
#include "data/convert/convert.h"

static void make_imagenet(void)
{
    char name[100];
    static const char *const synsets[] = { "n02", "n01" };

    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "raw/%s/%s", i < 6 ? "train" : "val", synsets[i % 2]);
        assert_int_equal(pm_make_folders(in_scratch(name)), PM_OK);
        snprintf(name, sizeof name, "raw/%s/%s/%s_%d.JPEG", i < 6 ? "train" : "val", synsets[i % 2],
                 synsets[i % 2], i);
        if (i == 3) /* a PNG with the name of a JPEG */
            put_png(in_scratch(name), 20 * i, 8);
        else
            put_jpeg(in_scratch(name), 20 * i);
    }
    put_text("raw/imagenet_lsvrc_2015_synsets.txt", "n01\nn02\n");
    put_text("raw/imagenet_metadata.txt", "n00\tnothing\nn02\ta cat, a tom\nn01\tdog\n");
    put_text("raw/imagenet_2012_bounding_boxes.csv",
             "n02_0.JPEG,0.25,0.5,0.75,1.5\nn01_1.JPEG,0.1,0.2,0.3,0.4\n"
             "n02_0.JPEG,-0.5,0,1,0.125\n");
}

static void imagenet(void **state)
{
    char src[300], dst[300];
    uint32_t order[6];
    /* Ordered by synset of the list and by name: n01_1, n01_3, n01_5, n02_0, n02_2, n02_4. */
    static const int listed[] = { 1, 3, 5, 0, 2, 4 };

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    make_imagenet();
    assert_int_equal(pm_dataset_convert("imagenet", src, dst, "train_shards=4 validation_shards=2"),
                     PM_OK);
    struct pm_dataset *d = opened(dst, "train-*-of-00004", 6);
    assert_int_equal(pm_dataset_get_info(d)->num_classes, 3);
    assert_string_equal(pm_dataset_get_info(d)->labels[2], "a cat, a tom");
    pm_python_shuffle(12345, 6, order);
    for (size_t i = 0; i < 6; i++) {
        struct pm_example *e = example(d, i);
        const int k = listed[order[i]];
        float box[4][3];
        const int64_t *labels = NULL;
        size_t n = 0, count = 0;
        assert_in_range(grey_of(e) + 3, 20 * k + 1, 20 * k + 5);
        assert_int_equal(integer(e, "image/class/label"), k % 2 ? 1 : 2);
        assert_text(e, "image/class/synset", k % 2 ? "n01" : "n02");
        assert_text(e, "image/class/text", k % 2 ? "dog" : "a cat, a tom");
        assert_text(e, "image/format", "JPEG");
        assert_text(e, "image/colorspace", "RGB");
        assert_int_equal(integer(e, "image/channels"), 3);
        const uint8_t *bytes = NULL;
        assert_int_equal(pm_example_bytes(e, "image/encoded", &bytes, &n), 1);
        assert_int_equal(bytes[0], 0xff); /* the PNG was converted, too */
        n = values(e, "image/object/bbox/xmin", box[0], 3);
        assert_int_equal(n, k == 0 ? 2 : k == 1);
        values(e, "image/object/bbox/ymin", box[1], 3);
        values(e, "image/object/bbox/xmax", box[2], 3);
        values(e, "image/object/bbox/ymax", box[3], 3);
        assert_int_equal(pm_example_ints(e, "image/object/bbox/label", &labels, &count), 1);
        assert_int_equal(count, n);
        if (k == 0) { /* both of its lines, in their order, with values clamped */
            assert_true(box[0][0] == 0.25f && box[1][0] == 0.5f && box[2][0] == 0.75f &&
                        box[3][0] == 1);
            assert_true(box[0][1] == 0 && box[1][1] == 0 && box[2][1] == 1 && box[3][1] == 0.125f);
            assert_int_equal(labels[0] * 10 + labels[1], 22);
        }
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    /* 6 records in 4 files: cut at 0, 1, 3, 4. */
    static const size_t counts[] = { 1, 2, 1, 2 };
    for (int k = 0; k < 4; k++) {
        char name[32];
        snprintf(name, sizeof name, "train-%05d-of-00004", k);
        d = opened(dst, name, counts[k]);
        pm_dataset_close(&d);
    }
    d = opened(dst, "validation", 3);
    pm_dataset_close(&d);
    scratch_remove();
}

/* Validation pictures in one folder and their synsets in a file; and mistakes in the files. */
static void imagenet_files(void **state)
{
    char src[300], dst[300];

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    make_imagenet();
    pm_remove_tree(in_scratch("raw/val"));
    assert_int_equal(pm_make_folders(in_scratch("raw/validation")), PM_OK);
    put_jpeg(in_scratch("raw/validation/b.JPEG"), 100);
    put_jpeg(in_scratch("raw/validation/a.JPEG"), 200);
    assert_fails(pm_dataset_convert("imagenet", src, dst, NULL), PM_EDATA, "set validation_labels");
    put_text("raw/imagenet_2012_validation_synset_labels.txt", "n02\nn01\n");
    assert_int_equal(pm_dataset_convert("imagenet", src, dst, "train_shards=1 validation_shards=1"),
                     PM_OK);
    struct pm_dataset *d = opened(dst, "validation", 2);
    for (size_t i = 0; i < 2; i++) {
        struct pm_example *e = example(d, i);
        assert_int_equal(integer(e, "image/class/label"), grey_of(e) > 150 ? 2 : 1);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    pm_remove_tree(dst);
    put_text("raw/imagenet_2012_validation_synset_labels.txt", "n02\nn03\n");
    assert_fails(pm_dataset_convert("imagenet", src, dst, NULL), PM_EDATA, "labels.txt:2", "n03");
    put_text("raw/imagenet_2012_validation_synset_labels.txt", "n02\n");
    assert_fails(pm_dataset_convert("imagenet", src, dst, NULL), PM_EDATA, "2 pictures",
                 "1 synset");
    static const char *const lines[] = { "a.JPEG,0,0,1", "a.JPEG,0,0,1,x", ",0,0,1,1",
                                         "a,0,0,nan,1",  "a,0,0,1,1,1",    "a" };
    for (size_t k = 0; k < PM_COUNT(lines); k++) {
        put_text("raw/imagenet_2012_bounding_boxes.csv", lines[k]);
        assert_fails(pm_dataset_convert("imagenet", src, dst, NULL), PM_EDATA, "boxes.csv:1",
                     "FILE,xmin");
    }
    put_text("raw/imagenet_metadata.txt", "n02\tcat\n");
    assert_fails(pm_dataset_convert("imagenet", src, dst, NULL), PM_EDATA, "metadata", "n01");
    put_text("raw/imagenet_metadata.txt", "n02 cat\n");
    assert_fails(pm_dataset_convert("imagenet", src, dst, NULL), PM_EDATA, "metadata.txt:1", "tab");
    put_text("raw/imagenet_lsvrc_2015_synsets.txt", "../x\n");
    assert_fails(pm_dataset_convert("imagenet", src, dst, NULL), PM_EDATA, "../x");
    put_text("raw/imagenet_lsvrc_2015_synsets.txt", "");
    assert_fails(pm_dataset_convert("imagenet", src, dst, NULL), PM_EDATA, "synsets.txt",
                 "0 class names");
    assert_fails(pm_dataset_convert("imagenet", src, dst, "train_directory=\"/no such\""), PM_EDATA,
                 "/no such");
    assert_only(1);
    scratch_remove();
}

static void build_image_data(void **state)
{
    char src[300], dst[300];

    (void)state;
    scratch_make();
    snprintf(src, sizeof src, "%s/raw", scratch);
    snprintf(dst, sizeof dst, "%s/out", scratch);
    make_class("raw/train/b", 1, 4);
    make_class("raw/train/a", 10, 3);
    make_class("raw/validation/a", 30, 1);
    put_text("raw/labels.txt", "b\na\n");
    put_text("raw/train/a/broken.jpg", "no picture");
    assert_int_equal(pm_dataset_convert("build_image_data", src, dst, NULL), PM_OK);
    struct pm_dataset *d = opened(dst, "train", 7);
    assert_int_equal(pm_dataset_get_info(d)->files, 2);
    assert_string_equal(pm_dataset_get_info(d)->labels[1], "b");
    for (size_t i = 0; i < 7; i++) {
        struct pm_example *e = example(d, i);
        const uint8_t *bytes = NULL;
        size_t n = 0;
        assert_int_equal(pm_example_bytes(e, "image/encoded", &bytes, &n), 1);
        assert_int_equal(bytes[0], 0xff);
        assert_int_equal(integer(e, "image/class/label"), grey_of(e) < 8 ? 1 : 2);
        assert_int_equal(pm_example_int(e, "image/class/synset", &(int64_t){ 0 }), 0);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    pm_remove_tree(dst);
    assert_fails(pm_dataset_convert("build_image_data", src, dst, "bad=error"), PM_EDATA,
                 "broken.jpg");
    put_text("raw/labels.txt", "b\n");
    assert_fails(pm_dataset_convert("build_image_data", src, dst, NULL), PM_EDATA, "class a");
    assert_only(1);
    scratch_remove();
}

/* A JPEG with four channels becomes one with three. */
static void four_colours(void **state)
{
    struct pm_picture p;
    char path[1200];

    (void)state;
    snprintf(path, sizeof path, "%s/pil_sample_cmyk.jpg", shared_data("images-corner/pillow"));
    assert_int_equal(pm_picture_read(path, &p), PM_OK);
    assert_true(p.four);
    assert_int_equal(pm_picture_to_jpeg(&p), PM_OK);
    assert_false(p.four);
    struct pm_image8 im;
    assert_int_equal(pm_image_decode(p.data, p.size, 0, 0, "again", &im), PM_OK);
    assert_int_equal(im.channels, 3);
    assert_int_equal(im.height, p.image.height);
    pm_image_free(&im);
    pm_picture_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(imagenet),
        cmocka_unit_test(imagenet_files),
        cmocka_unit_test(build_image_data),
        cmocka_unit_test(four_colours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
