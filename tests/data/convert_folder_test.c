/* dataset convert folder, with photos as people have them: subfolders, other files, classes of few
 * pictures, huge pictures, equal and black ones. */
#include "convert_common.h"

#include <stdlib.h>

/* A JPEG of different pixels; equal seeds give equal files. */
static void put_photo(const char *path, int seed, int height, int width)
{
    struct pm_image8 im = { height, width, 3, pm_malloc((size_t)(height * width * 3)) };
    uint8_t *data = NULL;
    size_t size = 0;

    for (int i = 0; i < height * width * 3; i++)
        im.pixels[i] = (uint8_t)(64 + (i / 3 % width * 2 + seed * 37 + i / 3 / width) % 150);
    assert_int_equal(pm_image_encode_jpeg(&im, 90, &data, &size), PM_OK);
    assert_int_equal(pm_file_write(path, data, size), PM_OK);
    pm_free(data);
    pm_image_free(&im);
}

static void put_photos(const char *folder, int first, int count)
{
    char path[300];

    assert_int_equal(pm_make_folders(in_scratch(folder)), PM_OK);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s/p%02d.jpg", scratch, folder, i);
        put_photo(path, first + i, 20, 30);
    }
}

static const char *convert(const char *options, int code)
{
    char words[700];

    snprintf(words, sizeof words, "dataset convert folder %s/raw %s/out --force %s", scratch,
             scratch, options);
    return output_of(words, code);
}

/* Counts the examples of each label in a split. */
static void count_labels(const char *split, size_t size, int out[3])
{
    char folder[300];

    snprintf(folder, sizeof folder, "%s/out", scratch);
    memset(out, 0, 3 * sizeof *out);
    struct pm_dataset *d = opened(folder, split, size);
    for (size_t i = 0; i < size; i++) {
        struct pm_example *e = example(d, i);
        out[integer(e, "image/class/label")]++;
        pm_example_destroy(&e);
    }
    pm_dataset_close(&d);
}

/* Classes of 40, 2 and 1 pictures: a tenth, one, none are held out. */
static void stratified(void **state)
{
    int train[3], validation[3];

    (void)state;
    scratch_make();
    put_photos("raw/a", 0, 40);
    put_photos("raw/b", 50, 2);
    put_photos("raw/c", 60, 1);
    convert("", 0);
    count_labels("train", 38, train);
    count_labels("validation", 5, validation);
    assert_true(train[0] == 36 && train[1] == 1 && train[2] == 1);
    assert_true(validation[0] == 4 && validation[1] == 1 && validation[2] == 0);
    convert("validation=0", 0);
    count_labels("train", 43, train);
    assert_int_equal(pm_make_folders(in_scratch("raw/d")), PM_OK);
    assert_says(convert("", 3), "raw/d: this class has no pictures: add some");
    scratch_remove();
}

/* Pictures in subfolders are found and keep their path; everything else is named. */
static void left_out(void **state)
{
    char folder[300];

    (void)state;
    scratch_make();
    put_photos("raw/Käfer", 0, 2);
    put_photos("raw/Käfer/2024/june", 2, 1);
    put_text("raw/Käfer/2024/notes.txt", "x");
    put_text("raw/Käfer/.DS_Store", "x");
    put_photo(in_scratch("raw/lost.jpg"), 9, 5, 5);
    assert_int_equal(symlink(".", in_scratch("raw/Käfer/2024/again")), 0);
    assert_int_equal(symlink("..", in_scratch("raw/Käfer/2024/above")), 0);
    const char *said = convert("validation=0", 0);
    assert_says(said, "raw/Käfer/2024/notes.txt: left out: its name does not end like that");
    assert_says(said, "raw/Käfer/2024/again: left out: a link to a folder that contains it");
    assert_says(said, "raw/Käfer/2024/above: left out: a link to a folder that contains it");
    assert_says(said, "raw/lost.jpg: left out: it is not in the folder of a class");
    assert_null(strstr(said, "DS_Store"));
    snprintf(folder, sizeof folder, "%s/out", scratch);
    struct pm_dataset *d = opened(folder, "train", 3);
    int found = 0;
    for (size_t i = 0; i < 3; i++) {
        struct pm_example *e = example(d, i);
        const uint8_t *name = NULL;
        size_t size = 0;
        assert_int_equal(pm_example_bytes(e, "image/filename", &name, &size), 1);
        assert_text(e, "image/class/text", "Käfer");
        found += size == 17 && !memcmp(name, "2024/june/p00.jpg", 17);
        pm_example_destroy(&e);
    }
    assert_int_equal(found, 1);
    pm_dataset_close(&d);
    scratch_remove();
}

static void shrunk(void **state)
{
    static const int sizes[3][4] = { /* stored, then expected, height and width */
        { 300, 100, 64, 21 }, { 64, 64, 64, 64 }, { 90, 500, 12, 64 },
    };
    char folder[300];

    (void)state;
    scratch_make();
    put_photos("raw/a", 0, 1);
    for (int k = 0; k < 3; k++) {
        snprintf(folder, sizeof folder, "%s/raw/a/size%d.jpg", scratch, k);
        put_photo(folder, 10 + k, sizes[k][0], sizes[k][1]);
    }
    convert("validation=0 max_side=64", 0);
    snprintf(folder, sizeof folder, "%s/out", scratch);
    struct pm_dataset *d = opened(folder, "train", 4);
    int found = 0;
    for (size_t i = 0; i < 4; i++) {
        struct pm_example *e = example(d, i);
        struct pm_image8 im = image(e, "image/encoded", 3);
        assert_int_equal(integer(e, "image/height"), im.height);
        assert_int_equal(integer(e, "image/width"), im.width);
        for (int k = 0; k < 3; k++)
            found += im.height == sizes[k][2] && im.width == sizes[k][3];
        pm_image_free(&im);
        pm_example_destroy(&e);
    }
    assert_int_equal(found, 3);
    pm_dataset_close(&d);
    scratch_remove();
}

static void suspicious(void **state)
{
    char path[300];

    (void)state;
    scratch_make();
    put_photos("raw/train/a", 0, 3);
    put_photos("raw/val/a", 2, 2); /* its first is the third of training */
    snprintf(path, sizeof path, "%s/raw/train/a/night.png", scratch);
    put_png(path, 1, 8);
    const char *said = convert("", 0);
    assert_says(said, "raw/train/a/p02.jpg (train) and ");
    assert_says(said, "raw/val/a/p00.jpg (validation) are the same picture");
    assert_says(said, "night.png: is nearly black: its mean is 1.0 of 255");
    assert_null(strstr(said, "p01.jpg"));
    assert_null(strstr(said, "classes differ"));
    assert_null(strstr(said, "too small"));
    scratch_remove();
}

/* Equal pictures of two classes are a wrong label. A picture of one pixel is not called black. */
static void wrong_class_and_tiny(void **state)
{
    char path[300];

    (void)state;
    scratch_make();
    put_photos("raw/train/a", 0, 2);
    put_photos("raw/train/b", 4, 2);
    put_photos("raw/val/a", 10, 1);
    put_photos("raw/val/b", 1, 1); /* the second of training's a */
    snprintf(path, sizeof path, "%s/raw/train/a/dot.png", scratch);
    put_png(path, 0, 1);
    const char *said = convert("", 0);
    assert_says(said, "raw/val/b/p00.jpg (validation) are the same picture, but their classes "
                      "differ: remove one of them");
    assert_says(said, "dot.png: is too small: 6x1 pixels");
    assert_null(strstr(said, "nearly black"));
    scratch_remove();
}

/* Twenty are named. A picture counts once, however many equal ones the other split has. */
static void many_equal(void **state)
{
    char path[300];

    (void)state;
    scratch_make();
    put_photos("raw/train/a", 0, 1);
    put_photos("raw/val/a", 1, 1);
    for (int k = 0; k < 46; k++) {
        snprintf(path, sizeof path, "%s/raw/%s/a/equal%02d.jpg", scratch, k % 2 ? "val" : "train",
                 k);
        put_photo(path, 7, 20, 20);
    }
    const char *said = convert("", 0);
    assert_says(said, "equal00.jpg (train) and ");
    assert_says(said, "equal01.jpg (validation) are the same picture");
    assert_null(strstr(said, "equal40.jpg"));
    assert_says(said, "3 more pictures are in two splits");
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stratified),
        cmocka_unit_test(left_out),
        cmocka_unit_test(shrunk),
        cmocka_unit_test(suspicious),
        cmocka_unit_test(wrong_class_and_tiny),
        cmocka_unit_test(many_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
