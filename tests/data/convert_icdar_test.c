/* The converter icdar: lines of words, folders, and mistakes. */
#include "base/shared_data.h"
#include "rotated_common.h"

static void put_words(const char *text)
{
    put_file("s/train/gt_a.txt", text);
}

static void words(void **state)
{
    (void)state;
    scratch_make();
    put_blank("s/train/images/a.png", 100, 140);
    put_words("\xef\xbb\xbf"
              "10,20,40,20,40,30,10,30,Caf\xc3\xa9, 12\r\n" /* commas in the transcript */
              "10,20,40,20,40,30,10,30,###\n"
              "\n"
              "20 10 60 30 \"two words\"\n"
              "20, 10, 60, 30, \"###\"\n"
              "60,10,60,50,50,50,50,10,62-03\n"
              "10,20,40,20,40,30,10,30,1,000\n"
              "10,20,40,20,40,30,10,30,\n");
    convert_ok("icdar", "s", "d", NULL);
    struct record r = record_open("d", "train", 1, 0);
    assert_int_equal(r.o.count, 7);
    assert_rotated(&r.o, 0, 25, 25, 10, 30, 0);
    assert_rotated(&r.o, 2, 20, 40, 20, 40, 0);
    assert_rotated(&r.o, 4, 30, 55, 10, 40, 90);
    for (size_t i = 0; i < 7; i++) {
        assert_string_equal(r.o.item[i].text, "text");
        assert_int_equal(r.o.item[i].difficult, i == 1 || i == 3);
    }
    record_close(&r);
    convert_ok("icdar", "s", "e", "illegible=skip");
    assert_int_equal(boxes_of(in_scratch("e"), "train", 1), 5);
    scratch_remove();
}

static void refused(void **state)
{
    static const struct {
        const char *text, *first, *second;
    } cases[] = {
        { "10,20,40,20,40,30,word\n", "s/train/gt_a.txt:1: begins with 6 numbers", "transcript" },
        { "10 20 40 20 40 30\n", "gt_a.txt:1: begins with 6 numbers", "" },
        { "10,20,40,30,20,\n", "gt_a.txt:1: begins with 5 numbers", "" },
        { "10,20,40,30\n", "gt_a.txt:1: begins with 4 numbers", "" },
        { "word\n", "gt_a.txt:1: begins with 0 numbers", "x1,y1" },
        { "1 2 3 4 5 6 7 8 9 10\n1,2,x\n", "gt_a.txt:2: begins with 2 numbers", "" },
        { "10,20,4x,20,40,30,10,30,word\n", "gt_a.txt:1: begins with 2 numbers", "" },
        { "10,20,1e9,20,40,30,10,30,word\n", "gt_a.txt:1: begins with 2 numbers", "" },
        { "60 30 20 10 \"word\"\n", "gt_a.txt:1: x0 60, y0 30 are right of or below", "exchange" },
        { "910,920,940,920,940,930,910,930,word\n", "1 of 1 boxes are outside of",
          "use the picture that was labelled" },
    };

    (void)state;
    scratch_make();
    put_blank("s/train/images/a.png", 100, 140);
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        put_words(cases[i].text);
        assert_fails(run_on("icdar", "s", "e", NULL), PM_EDATA, cases[i].first, cases[i].second);
    }
    scratch_remove();
}

static void folders(void **state)
{
    static const char line[] = "10,20,40,20,40,30,10,30,x\n";

    (void)state;
    scratch_make();
    put_blank("s/ch4_training_images/a.png", 100, 140);
    put_file("s/ch4_training_localization_transcription_gt/gt_a.txt", line);
    put_blank("s/ch4_test_images/b.png", 100, 140);
    put_file("s/Challenge4_Test_Task1_GT/gt_b.txt", line);
    convert_ok("icdar", "s", "d", NULL);
    assert_int_equal(boxes_of(in_scratch("d"), "train", 1), 1);
    assert_int_equal(boxes_of(in_scratch("d"), "test", 1), 1);
    put_blank("t/p/a.png", 100, 140);
    put_file("t/l/a.txt", line); /* without gt_ */
    put_file("t/l/gt_z.txt", line);
    assert_int_equal(warned("icdar", "t", "images=p labels=l validation=0",
                            "gt_z.txt: has no picture in "), 1);
    put_blank("t/p/b.png", 100, 140);
    assert_fails(run_on("icdar", "t", "e", "images=p labels=l"), PM_EDATA,
                 "b.png has no annotations", "gt_b.txt does not exist");
    convert_ok("icdar", "t", "e", "images=p labels=l validation=0 unannotated=empty");
    assert_int_equal(boxes_of(in_scratch("e"), "train", 2), 1);
    assert_fails(run_on("icdar", "t", "f", NULL), PM_EDATA, "has no pictures",
                 "set images and labels");
    scratch_remove();
}

/* Six scenes of ICDAR 2015, and the miniature folder of datumaro's tests. */
static void shared_scenes(void **state)
{
    static const size_t lines[6] = { 7, 2, 13, 3, 2, 20 }; /* of the files */
    const char *scenes = shared_data("text-ocr/det_toy");
    const char *small = shared_data("layouts/icdar_dataset/text_localization");
    size_t difficult = 0;

    (void)state;
    scratch_make();
    assert_int_equal(pm_dataset_convert("icdar", scenes, in_scratch("d"),
                                        "images=imgs/test labels=icdar_gt validation=0"), PM_OK);
    for (size_t i = 0; i < 6; i++) {
        struct record r = record_open("d", "train", 6, i);
        const uint8_t *name = NULL;
        size_t size = 0;

        assert_int_equal(pm_example_bytes(r.e, "image/filename", &name, &size), 1);
        assert_int_equal(r.o.count, lines[name[4] - '1']); /* img_1.jpg */
        for (size_t k = 0; k < r.o.count; k++)
            difficult += r.o.item[k].difficult;
        record_close(&r);
    }
    assert_int_equal(difficult, 37); /* lines with ### */
    assert_int_equal(pm_dataset_convert("icdar", small, in_scratch("e"), NULL), PM_OK);
    assert_int_equal(boxes_of(in_scratch("e"), "train", 2), 3);
    scratch_remove();
}

/* Writes a picture whose pixel at y, x has the values y, x and 50. */
static void put_gradient(const char *name, int height, int width)
{
    struct pm_image8 im = { height, width, 3, pm_malloc((size_t)(3 * height * width)) };
    uint8_t *png = NULL;
    size_t size = 0;

    for (int i = 0; i < height * width; i++) {
        im.pixels[3 * i] = (uint8_t)(i / width);
        im.pixels[3 * i + 1] = (uint8_t)(i % width);
        im.pixels[3 * i + 2] = 50;
    }
    make_folder_of(name);
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    assert_int_equal(pm_file_write(in_scratch(name), png, size), PM_OK);
    pm_free(png);
    pm_image_free(&im);
}

/* Word i of the split train: its text, its size, and its pixels: pixel (y, x) shows the point
 * (first_y + dyy y + dyx x, first_x + dxy y + dxx x) of put_gradient's picture. */
static void assert_cut(struct pm_dataset *d, size_t i, const char *text, int height, int width,
                       const double from[6])
{
    struct pm_example *e = example(d, i);
    struct pm_image8 im = image(e, "image/encoded", 3);

    assert_text(e, "image/transcript", text);
    assert_int_equal(im.height, height);
    assert_int_equal(im.width, width);
    float points[8]; /* the word's corners are those of its picture */
    const float corners[] = { 0, 0, (float)width, 0, 0, (float)height, (float)width,
                              (float)height };
    assert_int_equal(values(e, "image/keypoints", points, 8), 8);
    assert_memory_equal(points, corners, sizeof points);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const uint8_t *p = im.pixels + 3 * (y * width + x);

            /* half a step by rounding, and what float loses */
            assert_true(fabs(p[0] - (from[0] + from[1] * y + from[2] * x)) <= 0.501);
            assert_true(fabs(p[1] - (from[3] + from[4] * y + from[5] * x)) <= 0.501);
            assert_int_equal(p[2], 50);
        }
    pm_image_free(&im);
    pm_example_destroy(&e);
}

/* Corners are between pixels: a pixel's centre is at + 0.5, where the picture has its value. */
static void cut_words(void **state)
{
    (void)state;
    scratch_make();
    put_gradient("s/train/images/a.png", 100, 140);
    put_words("10,20,40,20,40,30,10,30,upright\n"
              "10,20,40,20,40,30,10,30,###\n"
              "60,10,60,50,50,50,50,10,down\n" /* reads downwards */
              "40,30,10,30,10,20,40,20,\"turned\"\n"
              "10,20,40,20,40,30,10,30,\n"
              "20 10 60 30 \"box\"\n"
              "-10,20,10,20,10,30,-10,30,border\n"
              "10,20,90,20,70,60,30,60,wide\n"
              "300,20,340,20,340,30,300,30,outside\n"
              "10,20,40,30,40,20,10,30,crossed\n"
              "10,20,40,20,40,21,10,21,thin\n"
              "10,20,10,30,40,30,40,20,mirrored\n"); /* counter-clockwise */
    assert_int_equal(warned("icdar", "s", "words=true", "10 words of 1 scenes; left out: 1 with "
                            "###, 1 without a transcript"), 1);
    assert_int_equal(warned("icdar", "s", "words=true", "4 of 10 records were skipped"), 1);
    assert_int_equal(warned("icdar", "s", "words=true", "gt_a.txt:9: it is outside of the picture"),
                     1);
    assert_int_equal(warned("icdar", "s", "words=true", ", which is 140 pixels wide and 100 high: "
                            "correct its corners"), 1);
    assert_int_equal(warned("icdar", "s", "words=true", "gt_a.txt:10: its corners are not"), 1);
    assert_int_equal(warned("icdar", "s", "words=true", "gt_a.txt:11: its corners are not"), 1);
    assert_int_equal(warned("icdar", "s", "words=true", "gt_a.txt:12: its corners are not"), 1);
    convert_ok("icdar", "s", "d", "words=true");
    struct pm_dataset *d = opened(in_scratch("d"), "train", 6);
    assert_cut(d, 0, "upright", 10, 30, (double[]){ 20, 1, 0, 10, 0, 1 });
    assert_cut(d, 1, "down", 10, 40, (double[]){ 10, 0, 1, 59, -1, 0 });
    assert_cut(d, 2, "turned", 10, 30, (double[]){ 29, -1, 0, 39, 0, -1 });
    assert_cut(d, 3, "box", 20, 40, (double[]){ 10, 1, 0, 20, 0, 1 });
    struct pm_example *e = example(d, 4); /* columns left of the picture repeat its first one */
    struct pm_image8 im = image(e, "image/encoded", 3);
    for (int x = 0; x < 20; x++)
        assert_int_equal(im.pixels[3 * x + 1], x < 10 ? 0 : x - 10);
    pm_image_free(&im);
    pm_example_destroy(&e);
    e = example(d, 5); /* a trapezium: the middle column stays straight */
    im = image(e, "image/encoded", 3);
    assert_int_equal(im.width, 60);
    assert_int_equal(im.height, 45);
    for (int y = 0; y < im.height; y++)
        assert_true(fabs((im.pixels[3 * (y * 60 + 29) + 1] + im.pixels[3 * (y * 60 + 30) + 1]) /
                         2.0 - 49.5) <= 0.501);
    pm_image_free(&im);
    pm_example_destroy(&e);
    pm_dataset_close(&d);
    put_words("10,20,40,20,40,30,10,30,b\xff\n");
    assert_fails(run_on("icdar", "s", "e", "words=true"), PM_EDATA, "gt_a.txt:1: the text",
                 "not UTF-8 at its byte 1");
    assert_fails(run_on("icdar", "s", "e", "lexicon=x"), PM_ECONFIG, "needs words=true");
    put_words("10,20,40,20,40,30,10,30,###\n");
    assert_fails(run_on("icdar", "s", "e", "words=true"), PM_EDATA, "there is no word");
    scratch_remove();
}

/* A transcript may be a number, with quotes or without. */
static void numbers_as_words(void **state)
{
    static const char *const texts[] = { "2012", "2012", "007", "-1.5", "1e3", "12", "30", "5" };

    (void)state;
    scratch_make();
    put_blank("s/train/images/a.png", 100, 140);
    put_words("20 10 60 30 \"2012\"\n"
              "20 10 60 30 2012\n"
              "20,10,60,30,007\n"
              "20, 10, 60, 30, -1.5\r\n"
              "20\t10\t60\t30\t1e3\n"
              "10,20,40,20,40,30,10,30,12\n"
              "10 20 40 20 40 30 10 30 30\n"
              "20 10 60 30 5  \n");
    convert_ok("icdar", "s", "d", "words=true");
    struct pm_dataset *d = opened(in_scratch("d"), "train", PM_COUNT(texts));
    for (size_t i = 0; i < PM_COUNT(texts); i++) {
        struct pm_example *e = example(d, i);

        assert_text(e, "image/transcript", texts[i]);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    scratch_remove();
}

/* Without splits, the words of a scene come into the same part. */
static void words_together(void **state)
{
    enum { SCENES = 8, WORDS = 3 };
    int count[SCENES] = { 0 };

    (void)state;
    scratch_make();
    for (int i = 0; i < SCENES; i++) {
        char name[32], text[200];

        snprintf(name, sizeof name, "s/%d.png", i);
        put_blank(name, 40, 80);
        snprintf(name, sizeof name, "s/gt_%d.txt", i);
        snprintf(text, sizeof text, "0 0 20 10 \"%d\"\n20 0 40 10 \"%d\"\n40 0 60 10 \"%d\"\n",
                 i, i, i);
        put_file(name, text);
    }
    convert_ok("icdar", "s", "d", "words=true validation=0.25 seed=5");
    struct pm_dataset *d = opened(in_scratch("d"), "validation", SCENES / 4 * WORDS);
    for (size_t i = 0; i < SCENES / 4 * WORDS; i++) {
        struct pm_example *e = example(d, i);
        const uint8_t *text = NULL;
        size_t size = 0;

        assert_int_equal(pm_example_bytes(e, "image/transcript", &text, &size), 1);
        assert_int_equal(size, 1);
        count[text[0] - '0']++;
        pm_example_destroy(&e);
    }
    for (int i = 0; i < SCENES; i++)
        assert_true(count[i] == 0 || count[i] == WORDS);
    pm_dataset_close(&d);
    d = opened(in_scratch("d"), "train", SCENES / 4 * 3 * WORDS);
    pm_dataset_close(&d);
    scratch_remove();
}

/* The words of six scenes of ICDAR 2015. */
static void shared_words(void **state)
{
    const char *scenes = shared_data("text-ocr/det_toy");

    (void)state;
    scratch_make();
    assert_int_equal(pm_dataset_convert("icdar", scenes, in_scratch("d"), "images=imgs/test "
                                        "labels=icdar_gt words=true validation=0"), PM_OK);
    struct pm_dataset *d = opened(in_scratch("d"), "train", 47 - 37); /* lines - ### */
    struct pm_example *e = example(d, 0);
    assert_text(e, "image/transcript", "Genaxis Theatre");
    pm_example_destroy(&e);
    pm_dataset_close(&d);
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(words), cmocka_unit_test(refused),
                                        cmocka_unit_test(folders),
                                        cmocka_unit_test(shared_scenes),
                                        cmocka_unit_test(cut_words),
                                        cmocka_unit_test(numbers_as_words),
                                        cmocka_unit_test(words_together),
                                        cmocka_unit_test(shared_words) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
