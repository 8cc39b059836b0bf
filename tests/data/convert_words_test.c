/* The converter words: lists, JSON and LMDB, splits, lexicons, and mistakes. */
#include "base/shared_data.h"
#include "formats/lmdb_made.h"
#include "rotated_common.h"

/* Words of a split, in the order of the records. */
static void assert_words(const char *folder, const char *split, const char *const (*want)[2],
                         size_t count)
{
    struct pm_dataset *d = opened(in_scratch(folder), split, count);

    for (size_t i = 0; i < count; i++) {
        struct pm_example *e = example(d, i);
        struct pm_image8 im = image(e, "image/encoded", 0);

        assert_text(e, "image/filename", want[i][0]);
        assert_text(e, "image/transcript", want[i][1]);
        assert_int_equal(integer(e, "image/height"), im.height);
        assert_int_equal(integer(e, "image/width"), im.width);
        pm_image_free(&im);
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
}

static const char *const all_words[][2] = {
    { "a.png", "word" }, { "b.png", "two words" }, { "a.png", "Stra\xc3\x9f" "e" },
};
/* The same words in every form of list. */
static const struct {
    const char *name, *text;
} lists[] = {
    { "gt.txt", "a.png word\r\n\nb.png  two words\n./a.png Stra\xc3\x9f" "e\n" },
    { "gt.tsv", "\xef\xbb\xbf" "a.png\tword\nb.png\ttwo words\na.png\tStra\xc3\x9f" "e\n" },
    { "gt.csv", "a.png, \"word\"\nb.png, \"two words\"\na.png, \"Stra\xc3\x9f" "e\"\n" },
    { "gt.jsonl", "{\"filename\": \"a.png\", \"text\": \"word\", \"x\": [{}]}\n"
                  "{\"text\": \"two words\", \"filename\": \"b.png\"}\n"
                  "{\"filename\": \"a.png\", \"text\": \"Stra\\u00dfe\"}\n" },
    { "gt.json", "[{\"path\": \"a.png\", \"transcript\": \"word\"},\n"
                 "{\"path\": \"b.png\", \"label\": \"two words\"},"
                 "{\"path\": \"a.png\", \"label\": \"Stra\xc3\x9f" "e\"}]" },
    { "gt.json", "{\"metainfo\": {\"task\": 1}, \"data_list\": [\n"
                 "{\"img_path\": \"a.png\", \"instances\": [{\"text\": \"word\"}]},\n"
                 "{\"instances\": [{\"x\": 2, \"text\": \"two words\"}], \"img_path\": \"b.png\"},"
                 "{\"img_path\": \"a.png\", \"text\": \"Stra\xc3\x9f" "e\"}]}" },
};

static void forms(void **state)
{
    (void)state;
    scratch_make();
    put_blank("s/imgs/a.png", 20, 40);
    put_blank("s/imgs/b.png", 10, 30);
    for (size_t i = 0; i < PM_COUNT(lists); i++) {
        const char *name = lists[i].name;
        char file[64];

        snprintf(file, sizeof file, "s/%s", name);
        put_file(file, lists[i].text);
        convert_ok("words", "s", "d", "validation=0 force=true");
        assert_words("d", "train", all_words, 3);
        assert_int_equal(remove(in_scratch(file)), 0);
    }
    scratch_remove();
}

/* Escapes beyond the first plane are two of \u. */
static void surrogates(void **state)
{
    static const char *const want[][2] = { { "a.png", "\xf0\x9f\x98\x80" } };

    (void)state;
    scratch_make();
    put_blank("s/a.png", 20, 40);
    put_file("s/gt.json", "[{\"path\": \"a.png\", \"text\": \"\\ud83d\\ude00\"}]");
    convert_ok("words", "s", "d", "validation=0");
    assert_words("d", "train", want, 1);
    put_file("s/gt.json", "[{\"path\": \"a.png\", \"text\": \"\\ud83d\"}]");
    assert_fails(run_on("words", "s", "e", NULL), PM_EDATA, "gt.json:1");
    scratch_remove();
}

static void splits(void **state)
{
    char name[64];
    size_t groups = 0;

    (void)state;
    scratch_make();
    put_blank("s/train/a.png", 20, 40);
    put_file("s/train/labels.txt", "a.png one\n");
    put_blank("s/b.png", 20, 40);
    put_file("s/val.txt", "b.png two\n");
    put_file("s/test.jsonl", "");
    assert_int_equal(warned("words", "s", NULL, "test: no words; the split is skipped"), 1);
    convert_ok("words", "s", "d", NULL);
    assert_words("d", "train", (const char *const[][2]){ { "a.png", "one" } }, 1);
    assert_words("d", "validation", (const char *const[][2]){ { "b.png", "two" } }, 1);
    struct pm_str text = { 0 };
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "t/p/%d.png", i);
        put_blank(name, 10, 10 + i);
        pm_str_add(&text, "%d.png %d\n", i, i);
    }
    put_file("t/all.list", text.text);
    pm_str_free(&text);
    convert_ok("words", "t", "e", "images=p labels=all.list validation=0.25 seed=3");
    struct pm_dataset *d = opened(in_scratch("e"), "validation", 5);
    for (size_t i = 0; i < 5; i++) {
        struct pm_example *e = example(d, i);
        groups += (size_t)integer(e, "image/width");
        pm_example_destroy(&e);
    }
    assert_true(groups != 10 + 11 + 12 + 13 + 14); /* not simply the first ones */
    pm_dataset_close(&d);
    d = opened(in_scratch("e"), "train", 15);
    pm_dataset_close(&d);
    scratch_remove();
}

static void lexicons(void **state)
{
    char options[600];

    (void)state;
    scratch_make();
    put_blank("s/a.png", 20, 40);
    put_file("s/gt.jsonl", "{\"filename\": \"a.png\", \"text\": \"x\", \"lexicon\": [\"x\", 12]}\n"
                           "{\"filename\": \"a.png\", \"text\": \"\"}\n");
    put_text("words.txt", "\xef\xbb\xbf" "one\ntwo three\n"); /* the mark is no letter */
    snprintf(options, sizeof options, "validation=0 lexicon=%s", in_scratch("words.txt"));
    convert_ok("words", "s", "d", options);
    struct pm_dataset *d = opened(in_scratch("d"), "train", 2);
    struct pm_example *e = example(d, 0);
    assert_text(e, "image/lexicon", "x\t12");
    pm_example_destroy(&e);
    e = example(d, 1);
    assert_text(e, "image/lexicon", "one\ttwo three");
    assert_text(e, "image/transcript", "");
    pm_example_destroy(&e);
    pm_dataset_close(&d);
    put_text("words.txt", "\n\n");
    assert_fails(run_on("words", "s", "e", options), PM_EDATA, "words.txt: the lexicon has no "
                 "word");
    put_text("words.txt", "a\nb\tc\n");
    assert_fails(run_on("words", "s", "e", options), PM_EDATA, "words.txt:2: the text \"b",
                 "control character");
    scratch_remove();
}

/* Key points of JSON; a list of a wrong form skips its picture, or ends the conversion. */
static void keypoints(void **state)
{
    static const float want[] = { 1, 2, 38.5f, 1, 0, 19, 40, 18 };
    static const char *const others[] = { "{\"x\": 1}", "null", "7", "\"1, 2\"", "[\"1\"]",
                                          "[[1, 2], [3, 4]]", "[1, null]" };
    float got[8];

    (void)state;
    scratch_make();
    put_blank("s/a.png", 20, 40);
    put_file("s/gt.jsonl", "{\"filename\": \"a.png\", \"keypoints\": [1,2,38.5,1, 0,19,40,18], "
                           "\"text\": \"x\"}\n{\"filename\": \"a.png\", \"text\": \"y\"}\n"
                           "{\"filename\": \"a.png\", \"text\": \"z\", \"keypoints\": []}\n");
    convert_ok("words", "s", "d", "validation=0");
    struct pm_dataset *d = opened(in_scratch("d"), "train", 3);
    for (size_t i = 0; i < 3; i++) {
        struct pm_example *e = example(d, i);
        const float *v = NULL;
        size_t n = 0;

        if (i == 0) {
            assert_int_equal(values(e, "image/keypoints", got, 8), 8);
            assert_memory_equal(got, want, sizeof want);
        } else {
            assert_int_equal(pm_example_floats(e, "image/keypoints", &v, &n), 0);
        }
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
    put_file("s/gt.jsonl", "{\"filename\": \"a.png\", \"text\": \"x\"}\n{\"filename\": \"a.png\", "
                           "\"text\": \"y\", \"keypoints\": [1, 2, 90, 1, 0, 19, 40, 18]}\n");
    assert_fails(run_on("words", "s", "e", "bad=error validation=0"), PM_EDATA,
                 "gt.jsonl:2: image/keypoints: point 2, x 90, y 1, is outside -40..80, -20..40");
    put_file("s/gt.jsonl", "{\"filename\": \"a.png\", \"text\": \"y\", \"keypoints\": [1, 2, 3]}");
    assert_fails(run_on("words", "s", "e", "bad=error validation=0"), PM_EDATA,
                 "gt.jsonl:1: image/keypoints: 3 numbers");
    assert_fails(run_on("words", "s", "e", "validation=0"), PM_EDATA, "none of the 1 examples of "
                 "split train could be written; the warnings above state why");
    for (size_t i = 0; i < PM_COUNT(others); i++) {
        char text[200];

        snprintf(text, sizeof text, "{\"filename\": \"a.png\", \"text\": \"y\",\n"
                 "\"keypoints\": %s}", others[i]);
        put_file("s/gt.jsonl", text);
        assert_fails(run_on("words", "s", "e", "validation=0"), PM_EDATA, "gt.jsonl:2: expected "
                     "a list of numbers, [x, y, ...], as \"keypoints\"");
    }
    scratch_remove();
}

static void refused(void **state)
{
    static const struct {
        const char *file, *text, *message[3];
    } cases[] = {
        { "gt.txt", "a.png x\na.png\n", { "gt.txt:2: \"a.png\" is not a picture and its text" } },
        { "gt.txt", "a.png x\na.png \xff\n", { "gt.txt:2: the text", "not UTF-8 at its byte 0",
                                                "save the file as UTF-8" } },
        { "gt.txt", "a.png a\x01\n", { "gt.txt:1:", "control character at its byte 1" } },
        { "gt.txt", "c.png x\n", { "gt.txt:1: the picture c.png does not exist in ",
                                   "set images to its folder" } },
        { "gt.txt", "../a.png x\n", { "gt.txt:1: the picture \"../a.png\" is not below" } },
        { "gt.txt", "", { "s: there is no word to write", "add words" } },
        { "gt.jsonl", "{\"filename\": \"a.png\", \"text\": \"x\"}\n{\"filename\": \"a.png\"}\n",
          { "gt.jsonl:2: the object has no text" } },
        { "gt.jsonl", "{\"text\": \"a.png\"}", { "gt.jsonl:1: the object has no filename" } },
        { "gt.jsonl", "{\"filename\": \"a.png\", \"text\": \"\xe4\"}",
          { "gt.jsonl:1: ", "UTF-8" } },
        { "gt.jsonl", "{\"filename\": \"a.png\", \"text\": \"x\", \"lexicon\": []}",
          { "gt.jsonl:1: the lexicon has no word" } },
        { "gt.jsonl", "{\"filename\": \"a.png\", \"text\": \"x\", \"lexicon\": \"x\"}",
          { "gt.jsonl:1: expected a list of words, [\"one\", ...], as \"lexicon\"" } },
        { "gt.jsonl", "{\"filename\": \"a.png\", \"text\": \"x\", \"lexicon\": [null]}",
          { "gt.jsonl:1: expected a list of words, [\"one\", ...], as \"lexicon\"" } },
        { "gt.jsonl", "{\"filename\": \"a.png\", \"text\": ",
          { "gt.jsonl:1: the file ends here" } },
        { "gt.json", "{\"data_list\": [{\"data_list\": []}]}", { "gt.json:1: the object has no" } },
        { "gt.json", "{\"data_list\": [{\"instances\": [{\"text\": \"x\"}, {}]}]}",
          { "gt.json:1: expected one instance" } },
        { "gt.json", "7", { "gt.json:1: expected the file's end" } },
        { "data.mdb", "nothing", { "data.mdb: not an LMDB file" } },
    };

    (void)state;
    scratch_make();
    put_blank("s/a.png", 20, 40);
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        char file[64];

        snprintf(file, sizeof file, "s/%s", cases[i].file);
        put_file(file, cases[i].text);
        for (size_t k = 0; k < 3 && cases[i].message[k]; k++)
            assert_fails(run_on("words", "s", "e", NULL), PM_EDATA, cases[i].message[k]);
        assert_null(strchr(pm_error_text(), '\n'));
        assert_int_equal(remove(in_scratch(file)), 0);
    }
    assert_fails(run_on("words", "s", "e", NULL), PM_EDATA, "has no list of words",
                 "set labels to it");
    assert_fails(run_on("words", "s", "e", "labels=x.txt"), PM_EDATA, "x.txt");
    put_file("s/gt.txt", "a.png x\na.png y\n");
    put_file("s/a.png", "no picture");
    assert_fails(run_on("words", "s", "e", "bad=error validation=0"), PM_EDATA, "a.png");
    scratch_remove();
}

/* ---- LMDB --------------------------------------------------------------------------------- */

static void put_lmdb(const char *name, const struct made_entry *entries, size_t count)
{
    static struct made_lmdb made;

    made_lmdb(&made, entries, count);
    make_folder_of(name);
    assert_int_equal(pm_file_write(in_scratch(name), made.bytes, MADE_PAGE * made.pages), PM_OK);
}

static void lmdb(void **state)
{
    char *png = NULL;
    size_t size = 0;

    (void)state;
    scratch_make();
    put_blank("s/a.png", 20, 40);
    assert_int_equal(pm_file_read(in_scratch("s/a.png"), &png, &size), PM_OK);
    struct made_entry e[] = {
        { "image-000000001", png, size },       { "image-000000002", png, size },
        { "label-000000001", "word", 4 },       { "label-000000002", "Stra\xc3\x9f" "e", 7 },
        { "num-samples", "2", 1 },
    };
    put_lmdb("l/train.lmdb/data.mdb", e, PM_COUNT(e));
    put_lmdb("l/test/data.mdb", e, PM_COUNT(e));
    convert_ok("words", "l", "d", NULL);
    const char *const want[][2] = { { "image-000000001", "word" },
                                    { "image-000000002", "Stra\xc3\x9f" "e" } };
    assert_words("d", "train", want, 2);
    assert_words("d", "test", want, 2);
    static const struct {
        size_t entry;
        const char *key, *value, *message;
    } cases[] = {
        { 4, "num-samplez", "2", "data.mdb: has no key num-samples" },
        { 4, "num-samples", "3", "label-000000003 is missing" },
        { 4, "num-samples", "0", "num-samples: \"0\" is outside" },
        { 4, "num-samples", "2x", "num-samples: \"2x\" is outside" },
        { 3, "label-000000002", "\xff", "label-000000002: the text" },
        { 1, "image-000000003", "x", "image-000000002 is missing, the picture of" },
        { 3, "label-000000002", "{\"filename\": 1}", "image-000000002" },
    };
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct made_entry other[PM_COUNT(e)];

        memcpy(other, e, sizeof e);
        other[cases[i].entry] = (struct made_entry){ cases[i].key, cases[i].value,
                                                     strlen(cases[i].value) };
        put_lmdb("m/data.mdb", other, PM_COUNT(e));
        if (i + 1 == PM_COUNT(cases)) { /* with its picture, a label is any text */
            convert_ok("words", "m", "n", "validation=0");
            break;
        }
        assert_fails(run_on("words", "m", "f", NULL), PM_EDATA, cases[i].message);
        assert_null(strchr(pm_error_text(), '\n'));
    }
    struct made_entry json[] = { { "label-000000001", "{\"filename\": \"a.png\", \"text\": \"z\"}",
                                   35 }, { "num-samples", "1", 1 } };
    json[0].size = strlen(json[0].value);
    put_lmdb("s/gt.lmdb", json, 2);
    convert_ok("words", "s", "j", "validation=0");
    assert_words("j", "train", (const char *const[][2]){ { "a.png", "z" } }, 1);
    json[0] = (struct made_entry){ "label-000000001", "{\"text\": \"z\"}", 13 };
    put_lmdb("s/gt.lmdb", json, 2);
    assert_fails(run_on("words", "s", "k", NULL), PM_EDATA, "label-000000001: has no filename");
    pm_free(png);
    scratch_remove();
}

/* Ten real words, as JSON, lines and LMDB: all forms give the same words. */
static void shared_words(void **state)
{
    static const char *const labels[] = { "labels.json", "old_label.jsonl", "old_label.txt",
                                          "label.lmdb", "imgs.lmdb" };
    static const char *const words[][2] = {
        { "1223731.jpg", "GRAND" },   { "1223733.jpg", "HOTEL" },      { "1223732.jpg", "HOTEL" },
        { "1223729.jpg", "PACIFIC" }, { "1036169.jpg", "03/09/2009" }, { "1190237.jpg", "ANING" },
        { "1058891.jpg", "Virgin" },  { "1058892.jpg", "america" },    { "1240078.jpg", "ATTACK" },
        { "1210236.jpg", "DAVIDSON" },
    };
    const char *src = shared_data("text-ocr/rec_toy");
    char options[200];

    (void)state;
    scratch_make();
    for (size_t i = 0; i < PM_COUNT(labels); i++) {
        snprintf(options, sizeof options, "labels=%s validation=0 bad=error force=true",
                 labels[i]);
        assert_int_equal(pm_dataset_convert("words", src, in_scratch("d"), options), PM_OK);
        if (i + 1 < PM_COUNT(labels)) {
            assert_words("d", "train", words, 10);
            continue;
        }
        struct pm_dataset *d = opened(in_scratch("d"), "train", 10);
        for (size_t k = 0; k < 10; k++) {
            struct pm_example *e = example(d, k);

            assert_text(e, "image/transcript", words[k][1]);
            pm_example_destroy(&e);
        }
        pm_dataset_close(&d);
    }
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forms), cmocka_unit_test(surrogates), cmocka_unit_test(splits),
        cmocka_unit_test(lexicons), cmocka_unit_test(keypoints), cmocka_unit_test(refused),
        cmocka_unit_test(lmdb),
        cmocka_unit_test(shared_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
