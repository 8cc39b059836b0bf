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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(words), cmocka_unit_test(refused),
                                        cmocka_unit_test(folders),
                                        cmocka_unit_test(shared_scenes) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
