/* The converters of instance maps: Cityscapes' instanceIds, folders of pairs, and panoptic maps
 * with their JSON in COCO's and in Cityscapes' layout. Also the inspection of such maps. */
#include "pairs_common.h"

/* Record i must have this instance map of 16 bits; divisor 0: none is stored. */
static void assert_instances(const char *folder, const char *split, size_t count, size_t i,
                             const uint16_t *want, int divisor)
{
    struct pm_dataset *d = opened(in_scratch(folder), split, count);
    struct pm_example *e = example(d, i);
    struct pm_label l = { 0 };
    const uint8_t *data = NULL;
    size_t size = 0;
    int64_t read = 0;

    assert_int_equal(pm_example_bytes(e, "image/segmentation/instance/encoded", &data, &size),
                     want != NULL);
    if (want) {
        assert_text(e, "image/segmentation/instance/format", "png");
        assert_int_equal(data[24], 16);
        assert_int_equal(pm_label_decode(data, size, 0, split, &l), PM_OK);
        assert_true(l.height == H && l.width == W);
        for (int k = 0; k < H * W; k++)
            if (l.values[k] != want[k])
                fail_msg("%s %zu, pixel %d: %d, not %d", split, i, k, l.values[k], want[k]);
        pm_label_free(&l);
    }
    assert_int_equal(pm_example_int(e, "image/segmentation/instance/divisor", &read), divisor > 0);
    assert_int_equal(read, divisor);
    pm_example_destroy(&e);
    pm_dataset_close(&d);
}

static void assert_things(const char *folder, const char *split, size_t count, const int *want,
                          int things)
{
    struct pm_dataset *d = opened(in_scratch(folder), split, count);
    const struct pm_ints got = pm_dataset_get_info(d)->thing_classes;

    assert_int_equal(got.count, things);
    for (int i = 0; i < things; i++)
        assert_int_equal(got.v[i], want[i]);
    pm_dataset_close(&d);
}

/* ---- Cityscapes ---------------------------------------------------------------------------- */

static void put_numbers(const char *name, const uint16_t *numbers)
{
    uint8_t rows[2 * H * W];

    for (int i = 0; i < H * W; i++)
        rows[2 * i] = (uint8_t)(numbers[i] >> 8), rows[2 * i + 1] = (uint8_t)numbers[i];
    put_map(name, 16, 0, rows);
}

static void cityscapes(void **state)
{
    /* person 0, road, car 23, a group of cars, a caravan, void. */
    static const uint16_t stored[] = { 24000, 7, 26023, 26, 29001, 3 };
    static const uint8_t ids[] = { 24, 7, 26, 26, 29, 3 };
    static const uint16_t no_person[] = { 7, 7, 26023, 26, 29001, 3 };
    static const uint16_t classes[] = { 11, 0, 13, 13, 255, 255 };
    static const uint16_t instances[] = { 11001, 0, 13024, 13000, 0, 0 };
    static const uint16_t most[] = { 33998, 33997, 7, 7, 7, 7 },
                          over[] = { 33998, 33999, 7, 7, 7, 7 };
    static const uint16_t of_most[] = { 18999, 18998, 0, 0, 0, 0 };
    static const int things[] = { 11, 12, 13, 14, 15, 16, 17, 18 };
    static const uint8_t other[] = { 24, 7, 27, 26, 29, 3 };

    (void)state;
    scratch_make();
    put_picture("c/leftImg8bit/train/a/a_1_leftImg8bit.png", 9);
    put_picture("c/leftImg8bit/train/a/a_2_leftImg8bit.png", 9);
    put_picture("c/leftImg8bit/val/v/v_1_leftImg8bit.png", 9);
    put_picture("c/leftImg8bit/test/t/t_1_leftImg8bit.png", 9);
    put_map("c/gtFine/train/a/a_1_gtFine_labelIds.png", 8, 0, ids);
    put_map("c/gtFine/train/a/a_2_gtFine_labelIds.png", 8, 0, ids);
    put_numbers("c/gtFine/train/a/a_1_gtFine_instanceIds.png", stored);
    put_numbers("c/gtFine/val/v/v_1_gtFine_instanceIds.png", most);
    assert_fails(run_on("cityscapes_segmentation", "c", "d", "instances=true"), PM_EDATA,
                 "a_2_leftImg8bit.png has no instance map", "a_2_gtFine_instanceIds.png");
    convert_ok("cityscapes_segmentation", "c", "d", "instances=true bad=skip");
    assert_record("d", "train_fine", 1, 0, "a_1", classes);
    assert_instances("d", "train_fine", 1, 0, instances, 0);
    assert_instances("d", "val_fine", 1, 0, of_most, 0);
    assert_instances("d", "test_fine", 1, 0, NULL, 0);
    assert_things("d", "train_fine", 1, things, 8);
    convert_ok("cityscapes_segmentation", "c", "e", NULL);
    assert_instances("e", "train_fine", 2, 0, NULL, 0);
    assert_things("e", "train_fine", 2, NULL, 0);
    /* A map with another class, one with too many instances, one of another size. */
    put_map("c/gtFine/train/a/a_2_gtFine_labelIds.png", 8, 0, other);
    put_numbers("c/gtFine/train/a/a_2_gtFine_instanceIds.png", stored);
    assert_fails(run_on("cityscapes_segmentation", "c", "f", "instances=true"), PM_EDATA,
                 "a_2_gtFine_instanceIds.png", "instance 26023 at row 0, column 2", "class 13",
                 "has 14 there");
    put_map("c/gtFine/train/a/a_2_gtFine_labelIds.png", 8, 0, ids);
    const struct png small = png_of(1, 3, 16, 0, (const uint8_t[6]){ 0 });
    assert_int_equal(pm_file_write(in_scratch("c/gtFine/train/a/a_2_gtFine_instanceIds.png"),
                                   small.bytes, small.size),
                     PM_OK);
    assert_fails(run_on("cityscapes_segmentation", "c", "f", "instances=true"), PM_EDATA,
                 "a_2_gtFine_instanceIds.png is 1 x 3", "a_2_gtFine_labelIds.png is 2 x 3");
    put_numbers("c/gtFine/train/a/a_2_gtFine_instanceIds.png", no_person);
    assert_fails(run_on("cityscapes_segmentation", "c", "f", "instances=true"), PM_EDATA,
                 "a_2_gtFine_instanceIds.png", "the number 7 at row 0, column 0 is not an instance",
                 "has class 11 there");
    put_numbers("c/gtFine/train/a/a_2_gtFine_instanceIds.png", stored);
    put_numbers("c/gtFine/val/v/v_1_gtFine_instanceIds.png", over);
    assert_fails(run_on("cityscapes_segmentation", "c", "f", "instances=true"), PM_EDATA,
                 "v_1_gtFine_instanceIds.png", "33999 at row 0, column 1",
                 "limit of 999 instances");
    assert_only(3);
    scratch_remove();
}

/* ---- pairs --------------------------------------------------------------------------------- */

static void pairs(void **state)
{
    static const uint8_t classes[] = { 0, 2, 2, 3, 3, 255 };
    static const uint16_t alone[] = { 9, 4, 300, 7, 0, 5 },
                          of_alone[] = { 0, 2004, 2300, 3007, 3000, 0 };
    static const uint16_t from_0[] = { 0, 2005, 2301, 3008, 3001, 0 };
    static const uint16_t both[] = { 5, 513, 514, 3 * 256, 3 * 256 + 255, 65535 };
    static const uint16_t of_both[] = { 0, 2001, 2002, 3000, 3255, 0 },
                          classes_of_both[] = { 0, 2, 2, 3, 3, 255 };
    static const uint16_t other[] = { 0, 2001, 3002, 3001, 3001, 0 },
                          over[] = { 0, 1000, 1, 1, 1, 0 };
    static const uint16_t groups[] = { 0, 2, 2001, 0, 3, 3 },
                          of_groups[] = { 0, 2000, 2001, 3000, 3000, 0 };
    static const uint16_t strange[] = { 0, 3, 2001, 0, 3, 3 };
    static const uint16_t most[] = { 0, 999, 1, 998, 1, 0 },
                          of_most[] = { 0, 2999, 2001, 3998, 3001, 0 };
    static const int things[] = { 2, 3 };

    (void)state;
    scratch_make();
    put_picture("p/images/train/a.jpg", 9);
    put_picture("p/images/test/b.jpg", 9);
    put_map("p/labels/train/a.png", 8, 0, classes);
    put_numbers("p/masks/train/a.png", alone);
    convert_ok("pairs", "p", "d", "things=[2,3] instances=masks");
    assert_instances("d", "train", 1, 0, of_alone, 0);
    assert_instances("d", "test", 1, 0, NULL, 0);
    assert_things("d", "train", 1, things, 2);
    convert_ok("pairs", "p", "e", "things=[2,3] instances=masks instance_first=0");
    assert_instances("e", "train", 1, 0, from_0, 0);
    /* Numbers that contain the class. */
    put_numbers("p/masks/train/a.png", of_alone);
    convert_ok("pairs", "p", "f", "things=[2,3] instances=masks instance_divide=1000");
    assert_instances("f", "train", 1, 0, of_alone, 0);
    /* A class without a number counts as a group of its things. */
    put_numbers("p/masks/train/a.png", groups);
    convert_ok("pairs", "p", "i", "things=[2,3] instances=masks instance_divide=1000");
    assert_instances("i", "train", 1, 0, of_groups, 0);
    put_numbers("p/masks/train/a.png", strange);
    assert_fails(run_on("pairs", "p", "g", "things=[2,3] instances=masks instance_divide=1000"),
                 PM_EDATA, "masks/train/a.png: the instance 3 at row 0, column 1 has class 3",
                 "has 2 there");
    put_numbers("p/masks/train/a.png", other);
    assert_fails(run_on("pairs", "p", "g", "things=[2,3] instances=masks instance_divide=1000"),
                 PM_EDATA, "masks/train/a.png: the instance 3002 at row 0, column 2 has class 3",
                 "has 2 there");
    put_numbers("p/masks/train/a.png", most);
    convert_ok("pairs", "p", "j", "things=[2,3] instances=masks");
    assert_instances("j", "train", 1, 0, of_most, 0);
    put_numbers("p/masks/train/a.png", over);
    assert_fails(run_on("pairs", "p", "g", "things=[2] instances=masks"), PM_EDATA, "instance 1000",
                 "limit of 999 instances", "bad=skip");
    /* The maps hold both classes and instances. */
    put_picture("k/images/train/a.jpg", 9);
    put_numbers("k/instance/train/a.png", both);
    convert_ok("pairs", "k", "g", "labels=instance divide=256 things=[2,3]");
    assert_record("g", "train", 1, 0, "a", classes_of_both);
    assert_instances("g", "train", 1, 0, of_both, 0);
    assert_fails(run_on("pairs", "k", "h", "labels=instance divide=256 things=[2,4]"), PM_EDATA,
                 "things: 4 is not one of the 4 classes");
    assert_fails(run_on("pairs", "p", "h", "things=[2]"), PM_ECONFIG,
                 "instances=FOLDER, or divide");
    assert_fails(run_on("pairs", "p", "h", "instances=masks"), PM_ECONFIG, "also set things to");
    assert_fails(run_on("pairs", "p", "h", "things=[2] instances=none"), PM_EDATA,
                 "none/train/a.png");
    assert_only(8);
    scratch_remove();
}

/* ---- panoptic ------------------------------------------------------------------------------ */

/* Writes a map of segments with an id for each pixel. */
static void put_segments(const char *name, const uint32_t *ids)
{
    uint8_t rows[3 * H * W];

    for (int i = 0; i < H * W; i++)
        for (int c = 0; c < 3; c++)
            rows[3 * i + c] = (uint8_t)(ids[i] >> 8 * c);
    put_map(name, 8, 2, rows);
}

static const char categories[] =
    "\"categories\": [{\"id\": 3, \"name\": \"person\", \"isthing\": 1, \"supercategory\": \"x\"},"
    " {\"isthing\": 0, \"id\": 90, \"name\": \"grass\"}, {\"id\": 7, \"name\": \"dog\", "
    "\"isthing\": 1}]";

/* Writes annotations of one picture with these segments. */
static void put_annotations_of(const char *name, const char *image, const char *map,
                               const char *segments, const char *listed)
{
    struct pm_str s = { 0 };

    make_folder_of(name);
    pm_str_add(
        &s,
        "{\"info\": {\"a\": [1, {}]}, \"annotations\": [{\"segments_info\": [%s], \"image_id\": 12,"
        " \"file_name\": \"%s\"}], %s, \"images\": [{\"file_name\": \"%s\", \"id\": 12}]}",
        segments, map, listed, image);
    put_text(name, s.text);
    pm_str_free(&s);
}

/* The same with the categories above. */
static void put_annotations(const char *name, const char *image, const char *map,
                            const char *segments)
{
    put_annotations_of(name, image, map, segments, categories);
}

static const uint32_t ids[] = { 5, 70000, 70000, 16777215, 0, 300 };
static const char segments[] =
    "{\"id\": 70000, \"category_id\": 3, \"iscrowd\": 0, \"bbox\": [0, 0, 1, 1], \"area\": 2},"
    "{\"id\": 300, \"category_id\": 90}, {\"id\": 5, \"category_id\": 3, \"iscrowd\": 0},"
    "{\"id\": 16777215, \"category_id\": 7, \"iscrowd\": 1}, {\"id\": 77, \"category_id\": 7}";
/* Class 0 is a thing; the numbers of its instances are below the divisor. */
static const uint16_t labels[] = { 0, 0, 0, 2, 255, 1 }, instances[] = { 1, 2, 2, 2000, 0, 0 };

static void coco(void **state)
{
    static const int things[] = { 0, 2 };

    (void)state;
    scratch_make();
    put_picture("c/train2017/a.jpg", 9);
    put_picture("c/images/val2017/b..2.png", 9);
    put_segments("c/annotations/panoptic_train2017/a.png", ids);
    put_segments("c/panoptic_val2017/b.png", ids);
    put_annotations("c/annotations/panoptic_train2017.json", "a.jpg", "a.png", segments);
    put_annotations("c/annotations/panoptic_val2017.json", "b..2.png", "b.png", segments);
    convert_ok("panoptic", "c", "d", "num_shards=2");
    assert_int_equal(access(in_scratch("d/train-00001-of-00002.tfrecord"), R_OK), 0);
    assert_record("d", "train", 1, 0, "a.jpg", labels);
    assert_instances("d", "train", 1, 0, instances, 0);
    assert_instances("d", "val", 1, 0, instances, 0);
    assert_things("d", "val", 1, things, 2);
    assert_info("d", "train", 1, 3, 255, NULL, 2, "dog");
    char *text = NULL;
    assert_int_equal(pm_file_read(in_scratch("d/dataset.json"), &text, NULL), PM_OK);
    assert_non_null(strstr(text, "\"train\": [3, 1, 1]"));
    pm_free(text);
    /* The same folders, each given by an option. */
    convert_ok("panoptic", "c", "e",
               "annotations=annotations/panoptic_val2017.json maps=panoptic_val2017 "
               "images=images/val2017 split=mine");
    assert_instances("e", "mine", 1, 0, instances, 0);
    assert_fails(run_on("panoptic", "c", "f", "annotations=a.json maps=b"), PM_ECONFIG, "images");
    assert_fails(run_on("panoptic", "c/images", "f", NULL), PM_EDATA,
                 "panoptic_{train,val}2017.json");
    assert_only(3);
    scratch_remove();
}

/* Ids of pictures are strings, and pictures lie in the folder of their city. */
static void cityscapes_panoptic(void **state)
{
    static const char json[] = "{\"images\": [{\"id\": \"a_1_2\", \"file_name\": "
                               "\"a_1_2_gtFine_leftImg8bit.png\"}], %s, \"annotations\":"
                               " [{\"image_id\": \"a_1_2\", \"file_name\": "
                               "\"a_1_2_gtFine_panoptic.png\", \"segments_info\": [%s]}]}";
    struct pm_str s = { 0 };

    (void)state;
    scratch_make();
    put_picture("c/leftImg8bit/val/a/a_1_2_leftImg8bit.png", 9);
    put_segments("c/gtFine/cityscapes_panoptic_val/a_1_2_gtFine_panoptic.png", ids);
    pm_str_add(&s, json, categories, segments);
    put_text("c/gtFine/cityscapes_panoptic_val.json", s.text);
    pm_str_free(&s);
    convert_ok("panoptic", "c", "d", NULL);
    assert_record("d", "val_fine", 1, 0, "a_1_2_leftImg8bit.png", labels);
    assert_instances("d", "val_fine", 1, 0, instances, 0);
    assert_info("d", "val_fine", 1, 3, 255, "cityscapes", 0, "person");
    scratch_remove();
}

/* When a thing's class times 1000 exceeds 16 bits, things are numbered in multiples of 256. */
static void many_classes(void **state)
{
    struct pm_str s = { 0 };
    static const uint16_t want[] = { 64 * 256 + 1, 65 * 256 + 1, 65 * 256 + 1, 65 * 256, 0, 0 };
    static const uint16_t wide[] = { 0, 64001, 64001, 0, 0, 0 };
    static const uint32_t two[] = { 1, 2, 2, 1, 1, 0 };
    static const char listed[] = "{\"id\": 5, \"category_id\": 64}, {\"id\": 70000, "
                                 "\"category_id\": 65}, {\"id\": 300, \"category_id\": 0},"
                                 "{\"id\": 16777215, \"category_id\": 65, \"iscrowd\": 1}";

    (void)state;
    scratch_make();
    put_picture("c/train2017/a.jpg", 9);
    for (int last = 65; last >= 64; last--) {
        pm_str_add(&s,
                   "{\"images\": [{\"id\": 1, \"file_name\": \"a.jpg\"}], \"annotations\": "
                   "[{\"image_id\": 1, "
                   "\"file_name\": \"a.png\", \"segments_info\": [%s]}], \"categories\": [",
                   last == 65
                       ? listed
                       : "{\"id\": 1, \"category_id\": 63}, {\"id\": 2, \"category_id\": 64}");
        for (int i = 0; i <= last; i++)
            pm_str_add(&s, "%s{\"id\": %d, \"name\": \"c%d\", \"isthing\": %d}", i ? ", " : "", i,
                       i, i >= 64);
        pm_str_add(&s, "]}");
        put_segments("c/annotations/panoptic_train2017/a.png", last == 65 ? ids : two);
        put_text("c/annotations/panoptic_train2017.json", s.text);
        pm_str_free(&s);
        convert_ok("panoptic", "c", last == 65 ? "d" : "e", NULL);
    }
    assert_instances("d", "train", 1, 0, want, 256);
    assert_instances("e", "train", 1, 0, wide, 0);
    scratch_remove();
}

static void fails_with(const char *listed, const char *text)
{
    put_annotations("c/annotations/panoptic_train2017.json", "a.jpg", "a.png", listed);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, text);
}

static void bad_panoptic(void **state)
{
    static const uint8_t grey[] = { 1, 2, 3, 4, 5, 6 };
    struct pm_str many = { 0 };

    (void)state;
    scratch_make();
    put_picture("c/train2017/a.jpg", 9);
    put_segments("c/annotations/panoptic_train2017/a.png", ids);
    fails_with("{\"id\": 5, \"category_id\": 3}, {\"id\": 300, \"category_id\": 3}",
               "a.png: the segment 70000 at row 0, column 1 is not one of the 2");
    fails_with("{\"id\": 5, \"category_id\": 4}", "segment 5 of a.png has category 4");
    fails_with("{\"id\": 5, \"category_id\": 3}, {\"id\": 5, \"category_id\": 7}",
               "two segments of a.png have the id 5");
    fails_with("{\"id\": 16777216, \"category_id\": 3}", "id of 1..16777215");
    fails_with("{\"id\": 0, \"category_id\": 3}", "id of 1..16777215");
    fails_with("{\"id\": 5}", "category_id");
    fails_with("{\"id\": 5, \"category_id\": 3, \"iscrowd\": 2}", "a whole number");
    put_annotations("c/annotations/panoptic_train2017.json", "b.jpg", "a.png", segments);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "b.jpg");
    put_annotations("c/annotations/panoptic_train2017.json", "a.jpg", "b.png", segments);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "b.png");
    /* No name is cut; ignored texts may have any length. */
    pm_str_add(&many, "%04095d", 0);
    put_annotations("c/annotations/panoptic_train2017.json", many.text, "a.png", segments);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "00000000");
    pm_str_add(&many, "0");
    put_annotations("c/annotations/panoptic_train2017.json", many.text, "a.png", segments);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "json:1", "at most 4095 bytes");
    pm_str_free(&many);
    put_annotations("c/annotations/panoptic_train2017.json", "../a.jpg", "a.png", segments);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "within the folder");
    put_annotations("c/annotations/panoptic_train2017.json", "a.jpg", "a/../../a.png", segments);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "within the folder");
    put_annotations("c/annotations/panoptic_train2017.json", "a.jpg", "a.png", segments);
    put_map("c/annotations/panoptic_train2017/a.png", 8, 0, grey);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA,
                 "a.png: panoptic maps are RGB PNGs of 8 bits");
    const struct png small = png_of(1, 1, 8, 2, (const uint8_t[3]){ 5 });
    assert_int_equal(pm_file_write(in_scratch("c/annotations/panoptic_train2017/a.png"),
                                   small.bytes, small.size),
                     PM_OK);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "a.png is 1 x 1", "2 x 3");
    put_text("c/annotations/panoptic_train2017.json", "{\"images\": [], \"annotations\": []}");
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA,
                 "0 categories, 0 images and 0 annotations");
    put_text("c/annotations/panoptic_train2017.json",
             "{\"images\": [{\"id\": 1, \"file_name\": \"a\"}, {\"id\": 1, "
             "\"file_name\": \"b\"}], \"categories\": [{\"id\": 1, \"name\": \"a\", \"isthing\": "
             "0}], \"annotations\": "
             "[{\"image_id\": 1, \"file_name\": \"a\", \"segments_info\": []}]}");
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "two images have the id 1");
    put_text("c/annotations/panoptic_train2017.json",
             "{\"annotations\": [{\"image_id\": 1, \"category_id\": 2}]}");
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "json:1", "panoptic annotations?");
    put_annotations("c/annotations/panoptic_train2017.json", "a.jpg", "a.png", segments);
    assert_int_equal(pm_remove_tree(in_scratch("c/train2017")), PM_OK);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "train2017: no such folder");
    assert_only(1);
    scratch_remove();
}

/* The largest number of instances of a class in a picture is 999. One more is an error, or the
 * record is skipped. */
static void many_instances(void **state)
{
    static const uint32_t some[] = { 1, 2, 3, 999, 0, 998 }, last[] = { 1, 2, 3, 1000, 0, 998 };
    static const uint16_t want[] = { 2001, 2002, 2003, 2999, 0, 2998 };
    struct pm_str listed = { 0 };

    (void)state;
    scratch_make();
    put_picture("c/train2017/a.jpg", 9);
    put_segments("c/annotations/panoptic_train2017/a.png", some);
    for (int i = 1; i <= 999; i++)
        pm_str_add(&listed, "%s{\"id\": %d, \"category_id\": 7}", i > 1 ? "," : "", i);
    /* Crowds and other classes use no number of this class. */
    pm_str_add(
        &listed,
        ",{\"id\": 2000, \"category_id\": 7, \"iscrowd\": 1},{\"id\": 2001, \"category_id\": 3}");
    put_annotations("c/annotations/panoptic_train2017.json", "a.jpg", "a.png", listed.text);
    convert_ok("panoptic", "c", "d", NULL);
    assert_instances("d", "train", 1, 0, want, 0);
    pm_str_add(&listed, ",{\"id\": 1000, \"category_id\": 7}");
    put_segments("c/annotations/panoptic_train2017/a.png", last);
    fails_with(listed.text, "a.png: the picture has more than 999 instances of dog");
    assert_non_null(strstr(pm_error_text(), "bad=skip skips such pictures"));
    pm_str_free(&listed);
    scratch_remove();
}

static void categories_are(const char *listed, const char *text)
{
    put_annotations_of("c/annotations/panoptic_val2017.json", "a.jpg", "a.png",
                       "{\"id\": 5, \"category_id\": 3}", listed);
    assert_fails(run_on("panoptic", "c", "f", NULL), PM_EDATA, "panoptic_val2017.json", text);
}

/* The lists of categories of both splits must be equal, and their names must fit into a line. */
static void bad_categories(void **state)
{
    (void)state;
    scratch_make();
    put_picture("c/train2017/a.jpg", 9);
    put_picture("c/val2017/a.jpg", 9);
    put_segments("c/annotations/panoptic_train2017/a.png", ids);
    put_segments("c/annotations/panoptic_val2017/a.png", ids);
    put_annotations("c/annotations/panoptic_train2017.json", "a.jpg", "a.png", segments);
    categories_are("\"categories\": [{\"id\": 3, \"name\": \"person\", \"isthing\": 1}]",
                   "the number of categories is 1, in ");
    categories_are("\"categories\": [{\"id\": 3, \"name\": \"person\", \"isthing\": 1}, {\"id\": "
                   "90, \"name\": "
                   "\"lawn\", \"isthing\": 0}, {\"id\": 7, \"name\": \"dog\", \"isthing\": 1}]",
                   "category 2 of its list is 90 \"lawn\" (stuff), in ");
    assert_non_null(strstr(pm_error_text(), "panoptic_train2017.json it is 90 \"grass\" (stuff)"));
    categories_are("\"categories\": [{\"id\": 3, \"name\": \"person\", \"isthing\": 1}, {\"id\": "
                   "90, \"name\": "
                   "\"grass\", \"isthing\": 1}, {\"id\": 7, \"name\": \"dog\", \"isthing\": 1}]",
                   "is 90 \"grass\" (things)");
    categories_are(
        "\"categories\": [{\"id\": 3, \"name\": \"person\", \"isthing\": 1}, {\"id\": 7, \"name\": "
        "\"dog\", \"isthing\": 1}, {\"id\": 90, \"name\": \"grass\", \"isthing\": 0}]",
        "category 2 of its list is 7 \"dog\" (things)");
    categories_are("\"categories\": [{\"id\": 3, \"name\": \"per\\nson\", \"isthing\": 1}]",
                   "json:1: expected a name of one line for the category 3");
    categories_are("\"categories\": [{\"id\": 3, \"name\": \"per\\u007fson\", \"isthing\": 1}]",
                   "a name of one line");
    categories_are("\"categories\": [{\"id\": 3, \"name\": \"\\tperson\", \"isthing\": 1}]",
                   "a name of one line");
    categories_are("\"categories\": [{\"id\": 3, \"name\": \"\", \"isthing\": 1}]",
                   "a name of one line");
    categories_are("\"categories\": [{\"id\": 3, \"name\": \"person\"}]", "panoptic annotations?");
    categories_are("\"categories\": [{\"id\": 3, \"name\": \"a\", \"isthing\": 1}, {\"id\": 3, "
                   "\"name\": \"b\", "
                   "\"isthing\": 1}]",
                   "a unique id for the category \"b\": 3 is the id of \"a\"");
    /* Names beyond ASCII are allowed. */
    assert_int_equal(remove(in_scratch("c/annotations/panoptic_val2017.json")), 0);
    put_annotations_of("c/annotations/panoptic_train2017.json", "a.jpg", "a.png",
                       "{\"id\": 5, \"category_id\": 3}",
                       "\"categories\": [{\"id\": 3, \"name\": \"b\\u00e4r\", \"isthing\": 1}]");
    put_segments("c/annotations/panoptic_train2017/a.png",
                 (const uint32_t[H * W]){ 5, 5, 0, 0, 0, 0 });
    convert_ok("panoptic", "c", "d", NULL);
    assert_info("d", "train", 1, 1, 255, NULL, 0, "b\303\244r");
    assert_only(2);
    scratch_remove();
}

/* A data set written by another program; the map does not have the size of its picture. */
static void layout(void **state)
{
    const char *src = shared_data("layouts/coco_dataset/coco_panoptic");

    (void)state;
    scratch_make();
    assert_fails(pm_dataset_convert("panoptic", src, in_scratch("d"), NULL), PM_EDATA,
                 "annotations/panoptic_train/a.png is 5 x 5", "images/train/a.jpg is 5 x 10");
    assert_only(0);
    scratch_remove();
}

/* ---- dataset inspect ----------------------------------------------------------------------- */

/* ctx: the instance map; class 0, a thing, on the left, class 1 on the right. */
static int fill_halves(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct pm_label map = { H, W, ctx };
    uint8_t pixels[H * W] = { 0, 0, 1, 0, 0, 1 }, *png = NULL;
    size_t size = 0;

    (void)i;
    if (pm_image_encode_png(&(struct pm_image8){ H, W, 1, pixels }, &png, &size) < 0)
        return PM_EFAIL;
    pm_example_add_bytes(b, "image/segmentation/class/encoded", png, size);
    pm_free(png);
    return pm_making_instances(b, &map, 256, "halves") < 0 ? PM_EFAIL : 1;
}

static void make_halves(const char *name, uint16_t *numbers)
{
    static const int things[] = { 0, 1 };
    struct pm_making *m = NULL;

    assert_int_equal(pm_making_create(in_scratch(name), NULL, false, &m), PM_OK);
    pm_making_labels(m, (const char *[]){ "a", "b" }, 2);
    pm_making_segmentation(m, 255, NULL);
    pm_making_things(m, things, 2);
    assert_int_equal(pm_making_split(m, "train", 1, NULL, fill_halves, numbers), PM_OK);
    assert_int_equal(pm_making_finish(m), PM_OK);
    pm_making_destroy(&m);
}

static void inspect(void **state)
{
    /* Correct: two instances of class 0, a pixel without a number, an instance and a crowd of
     * class 1. */
    uint16_t right[] = { 1, 2, 257, 1, 0, 256 }, wrong[] = { 1, 2, 257, 1, 257, 256 };
    char *data = NULL;
    size_t size = 0;
    struct pm_image8 im;

    (void)state;
    need_program();
    scratch_make();
    make_halves("a", right);
    make_halves("b", wrong);
    assert_says(output_of("dataset inspect a --check --maps maps", 0),
                "png 2 x 3, instances 0 1 2 256 257");
    assert_says(output_of("dataset inspect b --check", 3),
                "257 at row 1, column 1 is of class 1 (the number is divided by 256), but the "
                "pixel's label is class 0");
    assert_int_equal(pm_file_read(in_scratch("maps/a_train_00000_instances.png"), &data, &size),
                     PM_OK);
    assert_int_equal(pm_image_decode(data, size, 3, 0, "maps", &im), PM_OK);
    assert_memory_equal(im.pixels + 12, "\0\0\0", 3);
    assert_memory_equal(im.pixels + 15, "\200\200\200", 3);
    assert_memory_equal(im.pixels, im.pixels + 9, 3);
    for (int i = 0; i < 3; i++)
        for (int k = 3; k < 6; k++)
            assert_int_equal(!memcmp(im.pixels + 3 * i, im.pixels + 3 * k, 3), i == 0 && k == 3);
    assert_int_not_equal(memcmp(im.pixels, im.pixels + 3, 3), 0);
    assert_int_not_equal(memcmp(im.pixels + 3, im.pixels + 6, 3), 0);
    pm_image_free(&im);
    pm_free(data);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cityscapes),
        cmocka_unit_test(pairs),
        cmocka_unit_test(coco),
        cmocka_unit_test(cityscapes_panoptic),
        cmocka_unit_test(many_classes),
        cmocka_unit_test(bad_panoptic),
        cmocka_unit_test(many_instances),
        cmocka_unit_test(bad_categories),
        cmocka_unit_test(layout),
        cmocka_unit_test(inspect),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
