/* The converters of pictures with label maps: the splits and records of a folder, the meaning of
 * a map, and mistakes. */
#include "pairs_common.h"

/* Number of lines of the log that contain these words. */
static int times_in(FILE *log, const char *words)
{
    char line[1024];
    int count = 0;

    rewind(log);
    while (fgets(line, sizeof line, log))
        count += strstr(line, words) != NULL;
    return count;
}

static const uint8_t map0[] = { 0, 1, 20, 255, 7, 0 };
static const uint16_t want0[] = { 0, 1, 20, 255, 7, 0 };
static const uint8_t map1[] = { 5, 5, 5, 5, 5, 5 };
static const uint16_t want1[] = { 5, 5, 5, 5, 5, 5 };

static void voc(void **state)
{
    /* The palette's colours of 1, 2, 15, 20 and 255. */
    static const uint8_t rgb[] = { 128, 0,  0,   0,   128, 0,   192, 128, 128,
                                   0,   64, 128, 224, 224, 192, 0,   0,   0 };
    static const uint16_t of_rgb[] = { 1, 2, 15, 20, 255, 0 };
    static const uint8_t wrong[] = { 0, 0, 0, 0, 21, 0 };

    (void)state;
    scratch_make();
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "voc/JPEGImages/2007_%d.jpg", i);
        put_picture(name, 50 * i);
    }
    put_map("voc/SegmentationClass/2007_0.png", 8, 3, map0);
    put_map("voc/SegmentationClass/2007_1.png", 8, 0, map1);
    put_map("voc/SegmentationClass/2007_2.png", 8, 2, rgb);
    assert_int_equal(pm_make_folders(in_scratch("voc/ImageSets/Segmentation")), PM_OK);
    put_text("voc/ImageSets/Segmentation/train.txt", "2007_2\n2007_0\n\n2007_1\n");
    put_text("voc/ImageSets/Segmentation/train_aug.txt", "2007_1\n");
    put_text("voc/ImageSets/Segmentation/test.txt", "2007_3\n");
    put_text("voc/ImageSets/Segmentation/val.txt", "");
    convert_ok("voc_segmentation", "voc", "d", NULL);
    assert_int_equal(access(in_scratch("d/train-00003-of-00004.tfrecord"), R_OK), 0);
    assert_record("d", "train", 3, 0, "2007_2", of_rgb);
    assert_record("d", "train", 3, 1, "2007_0", want0);
    assert_record("d", "train", 3, 2, "2007_1", want1);
    assert_record("d", "train_aug", 1, 0, "2007_1", want1);
    assert_record("d", "test", 1, 0, "2007_3", NULL);
    assert_info("d", "train", 3, 21, 255, "pascal", 20, "tv");
    char *text = NULL;
    assert_int_equal(pm_file_read(in_scratch("d/dataset.json"), &text, NULL), PM_OK);
    assert_non_null(
        strstr(text, "\"train\": [3, 2, 1, 0, 0, 6, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 2]"));
    pm_free(text);
    /* A map is missing; then one has another size; then one has an invalid label. */
    put_text("voc/ImageSets/Segmentation/val.txt", "2007_3\n2007_1\n");
    assert_fails(run_on("voc_segmentation", "voc", "e", NULL), PM_EDATA, "2007_3.png");
    const struct png small = png_of(1, 4, 8, 0, map0);
    assert_int_equal(
        pm_file_write(in_scratch("voc/SegmentationClass/2007_3.png"), small.bytes, small.size),
        PM_OK);
    assert_fails(run_on("voc_segmentation", "voc", "e", NULL), PM_EDATA, "2007_3.png", "1 x 4",
                 "2 x 3");
    put_map("voc/SegmentationClass/2007_3.png", 8, 0, wrong);
    assert_fails(run_on("voc_segmentation", "voc", "e", NULL), PM_EDATA, "2007_3.png", "label 21",
                 "row 1, column 1", "0..20");
    put_text("voc/ImageSets/Segmentation/test.txt", "2007_0\n");
    convert_ok("voc_segmentation", "voc", "e", "bad=skip");
    assert_record("e", "val", 1, 0, "2007_1", want1);
    /* Existing grey maps have priority and are stored unchanged. */
    put_map("voc/SegmentationClassRaw/2007_1.png", 8, 0, map0);
    put_text("voc/ImageSets/Segmentation/test.txt", "");
    put_text("voc/ImageSets/Segmentation/train.txt", "2007_1\n");
    convert_ok("voc_segmentation", "voc", "f", "bad=skip");
    assert_record("f", "train_aug", 1, 0, "2007_1", want0);
    put_text("voc/ImageSets/Segmentation/val.txt", "../2007_3\n");
    assert_fails(run_on("voc_segmentation", "voc", "g", NULL), PM_EDATA, "val.txt:1");
    assert_fails(run_on("voc_segmentation", "voc/ImageSets", "g", NULL), PM_EDATA,
                 "SegmentationClass");
    assert_only(4);
    scratch_remove();
}

static void cityscapes(void **state)
{
    static const uint8_t ids[] = { 7, 33, 4, 0, 26, 255 };
    static const uint16_t of_ids[] = { 0, 18, 255, 255, 13, 255 };
    /* The instance numbers 24001, 7, 1024, 33999, 3, 26000. */
    static const uint8_t instances[] = { 0x5d, 0xc1, 0, 7, 4, 0, 0x84, 0xcf, 0, 3, 0x65, 0x90 };
    static const uint16_t of_instances[] = { 11, 0, 255, 18, 255, 13 };
    static const uint8_t trains[] = { 0, 18, 255, 11, 13, 1 };
    static const uint16_t of_trains[] = { 0, 18, 255, 11, 13, 1 };

    (void)state;
    scratch_make();
    put_picture("c/leftImg8bit/train/b/b_1_leftImg8bit.png", 9);
    put_picture("c/leftImg8bit/train/a/a_2_leftImg8bit.png", 9);
    put_picture("c/leftImg8bit/train/a/a_1_leftImg8bit.png", 9);
    put_picture("c/leftImg8bit/val/v/v_1_leftImg8bit.png", 9);
    put_picture("c/leftImg8bit/test/t/t_1_leftImg8bit.png", 9);
    put_map("c/gtFine/train/b/b_1_gtFine_labelIds.png", 8, 0, ids);
    put_map("c/gtFine/train/a/a_1_gtFine_labelIds.png", 8, 0, ids);
    put_map("c/gtFine/train/a/a_1_gtFine_instanceIds.png", 16, 0, instances);
    assert_fails(run_on("cityscapes_segmentation", "c", "d", NULL), PM_EDATA, "a_2_leftImg8bit.png",
                 "a_2_gtFine_labelTrainIds.png");
    put_map("c/gtFine/train/a/a_2_gtFine_instanceIds.png", 16, 0, instances);
    assert_fails(run_on("cityscapes_segmentation", "c", "d", NULL), PM_EDATA,
                 "a_2_gtFine_instanceIds.png", "labelIds");
    put_map("c/gtFine/train/a/a_2_gtFine_labelIds.png", 8, 0, ids);
    put_map("c/gtFine/val/v/v_1_gtFine_instanceIds.png", 16, 0, instances);
    convert_ok("cityscapes_segmentation", "c", "d", NULL);
    assert_int_equal(access(in_scratch("d/train_fine-00009-of-00010.tfrecord"), R_OK), 0);
    assert_record("d", "train_fine", 3, 0, "a_1", of_ids);
    assert_record("d", "train_fine", 3, 1, "a_2", of_ids);
    assert_record("d", "train_fine", 3, 2, "b_1", of_ids);
    assert_record("d", "val_fine", 1, 0, "v_1", of_instances);
    assert_record("d", "test_fine", 1, 0, "t_1", NULL);
    assert_info("d", "val_fine", 1, 19, 255, "cityscapes", 18, "bicycle");
    put_map("c/gtFine/val/v/v_1_gtFine_labelTrainIds.png", 8, 0, trains);
    convert_ok("cityscapes_segmentation", "c", "e", NULL);
    assert_record("e", "val_fine", 1, 0, "v_1", of_trains);
    /* Coarse maps, with the additional pictures of the training set. */
    put_picture("c/leftImg8bit/train_extra/x/x_1_leftImg8bit.png", 9);
    put_map("c/gtCoarse/train_extra/x/x_1_gtCoarse_labelIds.png", 8, 0, ids);
    convert_ok("cityscapes_segmentation", "c", "f", "annotations=gtCoarse bad=skip");
    assert_record("f", "train_coarse", 1, 0, "x_1", of_ids);
    assert_fails(run_on("cityscapes_segmentation", "c/gtFine", "g", NULL), PM_EDATA, "leftImg8bit");
    assert_only(4);
    scratch_remove();
}

static void ade20k(void **state)
{
    static const uint8_t ids[] = { 0, 1, 150, 2, 2, 2 };
    static const uint16_t want[] = { 0, 1, 150, 2, 2, 2 };
    struct pm_str info = { 0 };

    (void)state;
    scratch_make();
    pm_str_add(&info, "Idx\tRatio\tTrain\tVal\tName\n");
    for (int i = 1; i <= 150; i++)
        pm_str_add(&info, "%d\t0.1\t%d\t3\tthing %d, something \n", i, i, i);
    for (int i = 0; i < 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "a/images/%s/p%d.jpg", i == 4 ? "validation" : "training", i);
        put_picture(name, 30 * i);
        snprintf(name, sizeof name, "a/annotations/%s/p%d.png", i == 4 ? "validation" : "training",
                 i);
        put_map(name, 8, 0, ids);
    }
    assert_int_equal(pm_file_write(in_scratch("a/objectInfo150.txt"), info.text, info.length),
                     PM_OK);
    convert_ok("ade20k", "a", "d", NULL);
    /* Python's random.seed(0) and random.shuffle of 0..3 give 2, 0, 1, 3. */
    assert_record("d", "train", 4, 0, "images/training/p2.jpg", want);
    assert_record("d", "train", 4, 1, "images/training/p0.jpg", want);
    assert_record("d", "train", 4, 3, "images/training/p3.jpg", want);
    assert_record("d", "val", 1, 0, "images/validation/p4.jpg", want);
    assert_info("d", "train", 4, 151, 0, "ade20k", 150, "thing 150, something");
    assert_info("d", "train", 4, 151, 0, "ade20k", 0, "other");
    put_text("a/objectInfo150.txt", "Idx\n1\twall\n");
    assert_fails(run_on("ade20k", "a", "e", NULL), PM_EDATA, "objectInfo150.txt", "2 lines");
    assert_fails(run_on("ade20k", "a/images", "e", NULL), PM_EDATA, "full ADE20K");
    pm_str_free(&info);
    scratch_remove();
}

static void camvid(void **state)
{
    static const uint8_t ids[] = { 0, 1, 2, 2, 1, 0 };
    static const uint16_t want[] = { 0, 1, 2, 2, 1, 0 };
    static const uint8_t rgb[] = { 64,  128, 64, 0, 0,   0,   64,  192, 0,
                                   192, 192, 0,  0, 128, 192, 128, 64,  128 };
    static const uint16_t of_rgb[] = { 0, 255, 30, 29, 2, 17 };

    (void)state;
    scratch_make();
    put_picture("c/train/a.png", 9);
    put_picture("c/val/b c.png", 9);
    put_map("c/trainannot/a.png", 8, 0, ids);
    put_text("c/classes.txt", "0 Sky\n1 Old Building\n2 Void\n");
    put_text("c/train.txt", "train/a.png trainannot/a.png\n");
    convert_ok("camvid", "c", "d", NULL);
    assert_record("d", "train", 1, 0, "a", want);
    assert_info("d", "train", 1, 2, 2, NULL, 1, "Old Building");
    put_text("c/classes.txt", "0 Sky\n2 Void\n");
    assert_fails(run_on("camvid", "c", "e", NULL), PM_EDATA, "classes.txt:2");
    /* Paths of another machine, and colours. */
    put_map("c/trainannot/a.png", 8, 2, rgb);
    put_text("c/train.txt", "/SegNet/CamVid/train/a.png /SegNet/CamVid/trainannot/a.png;\n");
    convert_ok("camvid", "c", "e", NULL);
    assert_record("e", "train", 1, 0, "a", of_rgb);
    assert_info("e", "train", 1, 31, 255, "camvid_full", 17, "Road");
    put_map("c/valannot/b.png", 8, 0, ids);
    put_text("c/val.txt", "val/b.png valannot/b.png\n");
    assert_fails(run_on("camvid", "c", "f", NULL), PM_EDATA, "trainannot/a.png has colours",
                 "valannot/b.png has numbers");
    assert_int_equal(remove(in_scratch("c/val.txt")), 0);
    put_text("c/label_colors.txt", "64 128 64 Animal\n0 0 0\tVoid\n64 192 0 Wall\n");
    assert_fails(run_on("camvid", "c", "f", NULL), PM_EDATA, "trainannot/a.png", "192 192 0");
    put_text("c/train.txt", "train/a.png\n");
    assert_fails(run_on("camvid", "c", "f", NULL), PM_EDATA, "train.txt:1");
    put_text("c/train.txt", "../c/train/a.png trainannot/a.png\n");
    assert_fails(run_on("camvid", "c", "f", NULL), PM_EDATA, "train.txt:1: a path leads out of");
    assert_fails(run_on("camvid", "c/train", "f", NULL), PM_EDATA, "train.txt");
    assert_only(3);
    scratch_remove();
}

static void pairs(void **state)
{
    static const uint8_t deep[] = { 3, 0, 27, 1, 0, 0, 255, 255, 3, 9, 27, 0 };
    static const uint16_t of_deep[] = { 3, 27, 0, 255, 3, 27 };
    static const uint8_t rgb[] = { 9, 9, 9, 0, 0, 0, 1, 2, 3, 1, 2, 3, 9, 9, 9, 0, 0, 0 };
    static const uint16_t of_rgb[] = { 0, 255, 1, 1, 0, 255 };

    (void)state;
    scratch_make();
    /* Folders of splits; palettes; the number of classes is that of the labels seen. */
    put_picture("p/images/train/a.b.jpg", 9);
    put_picture("p/images/val/c.png", 9);
    put_map("p/masks/train/a.b.png", 8, 3, map0);
    put_map("p/masks/val/c.png", 8, 0, map1);
    put_map("p/masks/val/d.png", 8, 0, map1);
    FILE *log = tmpfile();
    pm_log_file(log);
    convert_ok("pairs", "p", "d", NULL);
    pm_log_file(NULL);
    assert_int_equal(times_in(log, "1 of 2 label maps have no picture"), 1);
    fclose(log);
    assert_record("d", "train", 1, 0, "a.b", want0);
    assert_record("d", "val", 1, 0, "c", want1);
    assert_info("d", "val", 1, 21, 255, NULL, 20, "20");
    /* The other order of folders, names, 16 bits, a list of classes. */
    put_picture("q/train/rgb/image_1.jpg", 9);
    put_map("q/train/seg/gt_1_x.png", 16, 0, deep);
    put_text("names.txt", "a\nb c\n");
    assert_fails(run_on("pairs", "q", "e", "images=rgb labels=seg"), PM_EDATA, "image_1.jpg",
                 "image_1.png", "label_prefix");
    static const char usual[] =
        "images=rgb labels=seg image_prefix=image_ label_prefix=gt_ label_suffix=_x";
    char options[512];
    snprintf(options, sizeof options, "%s divide=256 classes=%s", usual, in_scratch("names.txt"));
    assert_fails(run_on("pairs", "q", "e", options), PM_EDATA, "gt_1_x.png", "label 3", "0..1");
    snprintf(options, sizeof options, "%s divide=256 colormap=pascal", usual);
    convert_ok("pairs", "q", "e", options);
    assert_record("e", "train", 1, 0, "image_1", of_deep);
    assert_info("e", "train", 1, 28, 255, "pascal", 27, "27");
    /* Without splits a share becomes validation; colours. */
    for (int i = 0; i < 8; i++) {
        char name[64];
        snprintf(name, sizeof name, "w/images/%d.jpg", i);
        put_picture(name, 9);
        snprintf(name, sizeof name, "w/labels/%d.png", i);
        put_map(name, 8, 2, rgb);
    }
    assert_fails(run_on("pairs", "w", "f", NULL), PM_EDATA,
                 "its label maps have no other label than the ignore label");
    put_text("colours.txt", "9 9 9 dark grey\n0 0 0 nothing\n1 2 3 blue\n");
    snprintf(options, sizeof options, "colours=%s ignore_class=nothing validation=0.25",
             in_scratch("colours.txt"));
    convert_ok("pairs", "w", "f", options);
    struct pm_dataset *d = opened(in_scratch("f"), "val", 2);
    pm_dataset_close(&d);
    d = opened(in_scratch("f"), "train", 6);
    struct pm_example *e = example(d, 0);
    const uint8_t *data = NULL;
    size_t size = 0;
    assert_int_equal(pm_example_bytes(e, "image/filename", &data, &size), 1);
    const char name[2] = { (char)data[0], '\0' };
    pm_example_destroy(&e);
    pm_dataset_close(&d);
    assert_record("f", "train", 6, 0, name, of_rgb);
    assert_info("f", "train", 6, 2, 255, NULL, 1, "blue");
    snprintf(options, sizeof options, "colours=%s ignore_class=nought", in_scratch("colours.txt"));
    assert_fails(run_on("pairs", "w", "g", options), PM_EDATA, "nought");
    assert_fails(run_on("pairs", "w", "g", "ignore_class=nothing"), PM_ECONFIG, "colours=FILE");
    put_text("colours.txt", "9 9 9 dark grey\n0 0 256 nothing\n");
    snprintf(options, sizeof options, "colours=%s", in_scratch("colours.txt"));
    assert_fails(run_on("pairs", "w", "g", options), PM_EDATA, "colours.txt:2");
    assert_fails(run_on("pairs", "w/labels", "g", NULL), PM_EDATA, "images");
    assert_only(8);
    scratch_remove();
}

/* Data sets of other projects, where they are installed. The expected numbers of pixels for each
 * class were counted with TensorFlow's decoder. */
static void real_camvid(void **state)
{
    const char *src = shared_data("camvid");
    static const char *const want[] = {
        "[3595077, 4994893, 212933, 6718735, 949677, 2036169, 246424, 238186, 1239547, 145683, "
        "55861]",
        "[807432, 2281516, 48949, 2548202, 773901, 1441472, 77767, 272211, 154358, 56663, 194717]",
    };
    char *text = NULL;

    (void)state;
    scratch_make();
    if (pm_dataset_convert("camvid", src, in_scratch("d"), NULL) < 0)
        fail_msg("%s", pm_error_text());
    struct pm_dataset *d = opened(in_scratch("d"), "train", 123);
    const struct pm_dataset_info *info = pm_dataset_get_info(d);
    assert_int_equal(info->num_classes, 11);
    assert_int_equal(info->ignore_label, 11);
    assert_string_equal(info->labels[10], "Bicyclist");
    assert_non_null(info->colormap);
    assert_string_equal(info->colormap, "camvid");
    struct pm_example *e = example(d, 0);
    assert_text(e, "image/filename", "0001TP_006690");
    pm_example_destroy(&e);
    pm_dataset_close(&d);
    assert_int_equal(pm_file_read(in_scratch("d/dataset.json"), &text, NULL), PM_OK);
    for (size_t i = 0; i < PM_COUNT(want); i++)
        assert_non_null(strstr(text, want[i]));
    pm_free(text);
    scratch_remove();
}

static void real_layouts(void **state)
{
    static const struct {
        const char *format, *src, *options, *split;
        size_t count;
        const char *error;
    } cases[] = {
        { "camvid", "layouts/camvid_dataset", "", "test", 2, NULL },
        { "voc_segmentation", "layouts/voc_dataset/voc_dataset1", "", "train", 1, NULL },
        { "voc_segmentation", "layouts/voc_dataset/voc_dataset3", "", "", 0, "SegmentationClass" },
        { "cityscapes_segmentation", "layouts/cityscapes_dataset/dataset", "", "test_fine", 2,
          NULL },
        { "cityscapes_segmentation", "layouts/cityscapes_dataset/train_dataset", "", "", 0,
          "label 19" },
        { "cityscapes_segmentation", "seg-samples/cityscapes-panoptic-deeplab2", "", "", 0,
          "leftImg8bit" },
        { "ade20k", "seg-samples/ade20k", "", "val", 2, NULL },
        { "ade20k", "layouts/ade20k2017_dataset/dataset", "", "", 0, "ADEChallengeData2016" },
        { "ade20k", "layouts/ade20k2020_dataset/dataset", "", "", 0, "ADEChallengeData2016" },
        { "pairs", "layouts/kitti_dataset/kitti_segmentation/training",
          "images=image_2 labels=instance divide=256 validation=0.5", "val", 1, NULL },
        { "pairs", "layouts/mapillary_vistas_dataset/v1.2", "labels=v1.2/labels", "train", 2,
          NULL },
        { "pairs", "layouts/mapillary_vistas_dataset/v2.0", "labels=v2.0/labels", "val", 2, NULL },
        { "pairs", "layouts/common_semantic_segmentation_dataset/dataset", "", "", 0,
          "its label maps have no other label than the ignore label" },
    };

    (void)state;
    scratch_make();
    for (size_t k = 0; k < PM_COUNT(cases); k++) {
        const char *dst = in_scratch("d");
        const int err =
            pm_dataset_convert(cases[k].format, shared_data(cases[k].src), dst, cases[k].options);
        if (cases[k].error) {
            assert_fails(err, PM_EDATA, cases[k].error);
            continue;
        }
        if (err < 0)
            fail_msg("%s", pm_error_text());
        struct pm_dataset *d = opened(dst, cases[k].split, cases[k].count);
        pm_dataset_close(&d);
        pm_remove_tree(dst);
    }
    scratch_remove();
}

/* A file written by DeepLab's own builder: 3 pictures of VOC 2012 (its maps are noise of
 * 0..254). It is opened by a pattern beside other sets, and by its split when it is alone. */
static void real_record(void **state)
{
    static const char file[] = "deeplab-pascal_voc_seg-val-00000-of-00001.tfrecord";
    static const int sizes[][2] = { { 366, 500 }, { 335, 500 }, { 333, 500 } };
    const char *folder = shared_data("tfrecord");
    char path[1200];

    (void)state;
    scratch_make();
    snprintf(path, sizeof path, "%s/%s", folder, file);
    char *whole = realpath(path, NULL);
    assert_non_null(whole);
    assert_int_equal(symlink(whole, in_scratch(file)), 0);
    free(whole);
    for (int k = 0; k < 2; k++) {
        struct pm_dataset *d = opened(k ? scratch : folder, k ? "val" : "deeplab-*-val-*", 3);
        for (size_t i = 0; i < 3; i++) {
            struct pm_example *e = example(d, i);
            struct pm_label l = { 0 };
            const uint8_t *data = NULL;
            size_t size = 0;
            struct pm_image8 im = image(e, "image/encoded", 3);
            assert_int_equal(pm_example_bytes(e, "image/segmentation/class/encoded", &data, &size),
                             1);
            assert_int_equal(pm_label_decode(data, size, 0, "record", &l), PM_OK);
            assert_true(l.height == sizes[i][0] && l.width == sizes[i][1]);
            assert_true(l.height == im.height && l.width == im.width);
            assert_int_equal(l.height, integer(e, "image/height"));
            for (int p = 0; p < l.height * l.width; p++)
                assert_true(l.values[p] <= 254);
            pm_label_free(&l);
            pm_image_free(&im);
            pm_example_destroy(&e);
        }
        pm_dataset_close(&d);
    }
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(voc),
        cmocka_unit_test(cityscapes),
        cmocka_unit_test(ade20k),
        cmocka_unit_test(camvid),
        cmocka_unit_test(pairs),
        cmocka_unit_test(real_camvid),
        cmocka_unit_test(real_layouts),
        cmocka_unit_test(real_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
