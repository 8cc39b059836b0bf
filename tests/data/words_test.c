/* Drawn words: letters as ink, pictures of them, and the records of dataset make words. */
#include "convert_common.h"

#include <strings.h>

#include "data/make/word_picture.h"

static struct pm_font *opened_font(void)
{
    char path[256];
    struct pm_font *font = NULL;

    assert_true(pm_font_installed("DejaVuSans.ttf", path, sizeof path));
    assert_int_equal(pm_font_open(path, "the test", &font), PM_OK);
    return font;
}

/* ---- ink ---------------------------------------------------------------------------------- */

enum { SIZE = 100 };

static struct pm_word_ink ink_of(struct pm_font *font, const char *text)
{
    struct pm_word_ink ink = { 0 };
    uint32_t code[16];
    int count = 0;

    for (; text[count]; count++)
        code[count] = (unsigned char)text[count];
    assert_true(pm_word_ink(font, SIZE, code, count, &ink));
    return ink;
}

/* Whether all pixels of a column or a row are without ink. */
static bool is_empty(const struct pm_word_ink *ink, bool column, int at)
{
    for (int i = 0; i < (column ? ink->height : ink->width); i++)
        if (ink->pixels[column ? i * ink->width + at : at * ink->width + i])
            return false;
    return true;
}

/* The ink touches all four sides of its picture. In DejaVu Sans, capitals are 0.729 em high, and x
 * 0.547. */
static void ink_is_cut(void **state)
{
    struct pm_font *font = opened_font();
    static const struct {
        const char *text;
        double height;
    } cases[] = { { "H", 0.729 }, { "x", 0.547 }, { "Hx", 0.729 } };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_word_ink ink = ink_of(font, cases[i].text);

        assert_true(fabs(ink.height - SIZE * cases[i].height) <= 1);
        assert_false(is_empty(&ink, true, 0) || is_empty(&ink, true, ink.width - 1));
        assert_false(is_empty(&ink, false, 0) || is_empty(&ink, false, ink.height - 1));
        pm_free(ink.pixels);
    }
    pm_font_close(&font);
}

/* A dot keeps its size in the rows of an x; two letters stand beside each other with a gap. */
static void ink_has_places(void **state)
{
    struct pm_font *font = opened_font();
    struct pm_word_ink dot = ink_of(font, "."), two = ink_of(font, "ll");
    int changes = 0;

    (void)state;
    assert_int_equal(dot.height, SIZE / 2);
    assert_true(is_empty(&dot, false, 0) && !is_empty(&dot, false, dot.height - 1));
    for (int x = 1; x < two.width; x++)
        changes += is_empty(&two, true, x) != is_empty(&two, true, x - 1);
    assert_int_equal(changes, 2);
    pm_free(dot.pixels);
    pm_free(two.pixels);
    pm_font_close(&font);
}

static void ink_needs_letters(void **state)
{
    struct pm_font *font = opened_font();
    struct pm_word_ink ink = { 0 };

    (void)state;
    assert_false(pm_word_ink(font, SIZE, (const uint32_t[]){ 'a', 0x1fa83 /* a boomerang */ }, 2,
                             &ink));
    assert_false(pm_word_ink(font, SIZE, (const uint32_t[]){ ' ', ' ' }, 2, &ink));
    assert_null(ink.pixels);
    pm_font_close(&font);
}

/* ---- pictures ----------------------------------------------------------------------------- */

/* Ink that fills its rectangle, over a black photo. Its colour is bright, so every picture is
 * bright in the middle, and darker in the corners. */
static void ink_is_inside(void **state)
{
    enum { HEIGHT = 32 };
    uint8_t full[64 * 128], black[64 * 64 * 3] = { 0 };
    const struct pm_word_ink ink = { 64, 128, full };
    const struct pm_image8 photo = { 64, 64, 3, black };

    (void)state;
    memset(full, 255, sizeof full);
    for (uint32_t i = 0; i < 200; i++) {
        struct pm_rng r = pm_rng_make(3, pm_hash("ink"), 0, i);
        struct pm_image8 im = { 0 };
        long sum = 0, middle = 0, corner = 0;

        pm_word_draw(&r, &ink, HEIGHT, &photo, &im, NULL);
        assert_int_equal(im.height, HEIGHT);
        assert_true(im.width >= HEIGHT && im.width <= 3 * HEIGHT);
        for (int c = 0; c < 3; c++) {
            middle += im.pixels[3 * (HEIGHT / 2 * im.width + im.width / 2) + c];
            corner += im.pixels[c] + im.pixels[3 * (im.width - 1) + c];
            for (int k = 0; k < im.height * im.width; k++)
                sum += im.pixels[3 * k + c];
        }
        /* The sum of the ink's channels is at least its luma, which is above 0.3; its share is at
         * least 0.75, and the grain takes at most 0.04 from each channel. */
        assert_true((double)middle > 255 * (0.3 * 0.75 - 3 * 0.04));
        assert_true(corner / 2 < middle);
        /* Margins and slant make 128 x 64 pixels of ink at most 204 x 96: 0.42 is ink. The half of
         * it leaves room for grain in the middle pixel. */
        assert_true(sum > middle * im.height * im.width / 5);
        pm_image_free(&im);
    }
}

/* On which side of the line through two points a place is, in pixels: positive is at the right of
 * the way from a to b on the screen. */
static double beside(const float *a, const float *b, double x, double y)
{
    const double dx = (double)b[0] - a[0], dy = (double)b[1] - a[1];

    return (dx * (y - a[1]) - dy * (x - a[0])) / hypot(dx, dy);
}

/* How far a place is inside of the quadrangle of key points; negative: outside. */
static double depth(const float p[PM_WORD_CORNERS], double x, double y)
{
    const double sides[] = { beside(p, p + 2, x, y), beside(p + 2, p + 6, x, y),
                             beside(p + 6, p + 4, x, y), beside(p + 4, p, x, y) };
    double least = sides[0];

    for (int i = 1; i < 4; i++)
        least = fmin(least, sides[i]);
    return least;
}

/* Ink that fills its rectangle, over a grey photo: pixels inside of the key points have the ink's
 * colour, those outside are grey. A pixel's centre is at most 0.71 from its corners, and a blur
 * mixes colours of two pixels to each side. Grain is at most 0.04, so a colour of the photo is
 * within 11 of it; the ink's luma differs by at least 0.3 x 0.75 of white, so a channel does by 57,
 * less the grain. A shadow lies up to 1 + 128 / 32 = 5 pixels to each side. A quarter of the
 * pictures has one: at least half of them are grey as close as the blur allows. */
static void points_are_corners(void **state)
{
    enum { HEIGHT = 128, PICTURES = 40, GREY = 128 };
    uint8_t full[64 * 128], grey[64 * 64 * 3];
    const struct pm_word_ink ink = { 64, 128, full };
    const struct pm_image8 photo = { 64, 64, 3, grey };
    const double close = 0.71 + 2 * 1.42, shadow = close + 5 * 1.42;
    int sharp = 0;

    (void)state;
    memset(full, 255, sizeof full);
    memset(grey, GREY, sizeof grey);
    for (uint32_t i = 0; i < PICTURES; i++) {
        struct pm_rng r = pm_rng_make(3, pm_hash("corners"), 0, i);
        struct pm_image8 im = { 0 };
        float p[PM_WORD_CORNERS];
        bool clean = true;
        int inside = 0, outside = 0;

        pm_word_draw(&r, &ink, HEIGHT, &photo, &im, p);
        for (int k = 0; k < im.height * im.width; k++) {
            const double at = depth(p, k % im.width + 0.5, k / im.width + 0.5);
            int most = 0;

            for (int c = 0; c < 3; c++)
                most = abs(im.pixels[3 * k + c] - GREY) > most ? abs(im.pixels[3 * k + c] - GREY)
                                                               : most;
            if (at >= close)
                assert_true(most > 57 - 11), inside++;
            else if (at <= -shadow)
                assert_true(most <= 11), outside++;
            clean &= at > -close || most <= 11;
        }
        assert_true(inside > im.height * im.width / 5 && outside > 0);
        sharp += clean;
        pm_image_free(&im);
    }
    assert_true(sharp >= PICTURES / 2);
}

static void pictures_follow_the_seed(void **state)
{
    struct pm_font *font = opened_font();
    struct pm_word_ink ink = ink_of(font, "word");
    struct pm_image8 im[3];

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct pm_rng r = pm_rng_make(3, pm_hash("seed"), 0, i / 2);

        pm_word_draw(&r, &ink, 24, NULL, &im[i], NULL);
    }
    assert_int_equal(im[0].width, im[1].width);
    assert_memory_equal(im[0].pixels, im[1].pixels, (size_t)(3 * 24 * im[0].width));
    assert_true(im[2].width != im[0].width ||
                memcmp(im[0].pixels, im[2].pixels, (size_t)(3 * 24 * im[0].width)) != 0);
    for (int i = 0; i < 3; i++)
        pm_image_free(&im[i]);
    pm_free(ink.pixels);
    pm_font_close(&font);
}

/* ---- records ------------------------------------------------------------------------------ */

static void transcript(struct pm_dataset *d, size_t i, char out[256])
{
    struct pm_example *e = example(d, i);
    struct pm_image8 im = image(e, "image/encoded", 0);
    const uint8_t *text = NULL;
    size_t size = 0;

    assert_int_equal(pm_example_bytes(e, "image/transcript", &text, &size), 1);
    assert_true(size < 256);
    memcpy(out, text, size);
    out[size] = 0;
    assert_int_equal(integer(e, "image/height"), im.height);
    assert_int_equal(integer(e, "image/width"), im.width);
    float points[PM_WORD_CORNERS]; /* inside of the picture, clockwise */
    assert_int_equal(values(e, "image/keypoints", points, PM_WORD_CORNERS), PM_WORD_CORNERS);
    assert_true(depth(points, im.width / 2.0, im.height / 2.0) > im.height / 8.0);
    for (int k = 0; k < PM_WORD_CORNERS; k++)
        assert_true(points[k] > 0 && points[k] < (float)(k % 2 ? im.height : im.width));
    pm_image_free(&im);
    pm_example_destroy(&e);
}

static void random_words(void **state)
{
    int lengths[4] = { 0 };
    char word[256];

    (void)state;
    scratch_make();
    for (int k = 0; k < 2; k++) {
        assert_int_equal(pm_dataset_make("words", in_scratch(k ? "b" : "a"),
                                         "train=120 validation=0 test=3 letters=xyz least=2 "
                                         "most=3 height=16"), PM_OK);
    }
    struct pm_dataset *d = opened(in_scratch("a"), "train", 120);
    for (size_t i = 0; i < 120; i++) {
        transcript(d, i, word);
        assert_true(strlen(word) == 2 || strlen(word) == 3);
        assert_int_equal(strspn(word, "xyz"), strlen(word));
        lengths[strlen(word)]++;
    }
    /* 120 fair draws: within six standard deviations of 60. */
    assert_true(abs(lengths[2] - 60) < 6 * 5.5);
    pm_dataset_close(&d);
    char *one = NULL, *two = NULL;
    size_t size[2];
    static const char file[] = "words_train_00000-of-00001.tfrecord";
    char path[64];
    snprintf(path, sizeof path, "a/%s", file);
    assert_int_equal(pm_file_read(in_scratch(path), &one, &size[0]), PM_OK);
    snprintf(path, sizeof path, "b/%s", file);
    assert_int_equal(pm_file_read(in_scratch(path), &two, &size[1]), PM_OK);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(one, two, size[0]);
    pm_free(one);
    pm_free(two);
    scratch_remove();
}

/* The second word of the list has a letter that no font has: it is never drawn. */
static void listed_words(void **state)
{
    bool seen[2] = { false };
    char word[256], options[2048];

    (void)state;
    scratch_make();
    put_text("list.txt", "Stra\xc3\x9f" "e\n\xf0\x9f\xaa\x83\n4 x\n");
    make_class("photos", 200, 3);
    snprintf(options, sizeof options, "train=40 validation=0 test=0 words=%s photos=%s",
             in_scratch("list.txt"), in_scratch("photos"));
    assert_int_equal(pm_dataset_make("words", in_scratch("d"), options), PM_OK);
    struct pm_dataset *d = opened(in_scratch("d"), "train", 40);
    for (size_t i = 0; i < 40; i++) {
        transcript(d, i, word);
        if (strcmp(word, "Stra\xc3\x9f" "e") == 0)
            seen[0] = true;
        else if (strcmp(word, "4 x") == 0)
            seen[1] = true;
        else
            fail_msg("%s", word);
    }
    assert_true(seen[0] && seen[1]);
    pm_dataset_close(&d);
    scratch_remove();
}

static void refused(void **state)
{
    char options[2048];

    (void)state;
    scratch_make();
    put_text("empty.txt", "\n");
    put_text("wrong.txt", "good\nb\xff\n");
    put_text("font.ttf", "no font");
    put_text("turned.txt", "left\nri\xd7\x90ght\n");
    assert_int_equal(pm_make_folders(in_scratch("none")), PM_OK);
#define REFUSED(error, text, ...)                                                                  \
    do {                                                                                           \
        snprintf(options, sizeof options, "train=2 validation=0 test=0 " text);                    \
        assert_fails(pm_dataset_make("words", in_scratch("d"), options), error, __VA_ARGS__);      \
        assert_false(pm_is_folder(in_scratch("d")));                                               \
    } while (0)
    REFUSED(PM_ECONFIG, "least=5 most=4", "least: 5 is more than most, 4");
    REFUSED(PM_ECONFIG, "letters=a\xff", "is not a list of UTF-8 letters");
    REFUSED(PM_ECONFIG, "height=7", "height", "8..256");
    REFUSED(PM_EDATA, "letters=\xf0\x9f\xaa\x83", "the fonts lacked letters", "\xf0\x9f\xaa\x83",
            "give fonts that have them");
    REFUSED(PM_ECONFIG, "letters=ab\xd7\x90", "dataset make words: letters: the letter U+05D0 is "
            "of a script that is written from right to left", "remove it");
#undef REFUSED
    static const struct {
        const char *option, *file, *message;
        int error;
    } cases[] = {
        { "words", "empty.txt", "empty.txt: there is no word in it", PM_EDATA },
        { "words", "wrong.txt", "wrong.txt: word 2, \"b", PM_EDATA },
        { "words", "turned.txt", "turned.txt: word 2: the letter U+05D0 is of a script that is "
          "written from right to left", PM_ECONFIG },
        { "fonts", "font.ttf", "font.ttf: not a font that FreeType can read: give a file .ttf",
          PM_EDATA },
        { "fonts", "nowhere.ttf", "nowhere.ttf: there is no such font file", PM_EDATA },
        { "fonts", "none", "none: there is no font in it, .ttf or .otf", PM_EDATA },
        { "photos", "none", "none: there is no picture in it", PM_EDATA },
    };
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        snprintf(options, sizeof options, "train=2 validation=0 test=0 %s=%s", cases[i].option,
                 in_scratch(cases[i].file));
        assert_fails(pm_dataset_make("words", in_scratch("d"), options), cases[i].error,
                     cases[i].message);
        assert_false(pm_is_folder(in_scratch("d")));
    }
    assert_fails(pm_dataset_make("word", in_scratch("d"), ""), PM_ECONFIG, "unknown kind word",
                 "known kinds: shapes, ", "words");
    scratch_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ink_is_cut), cmocka_unit_test(ink_has_places),
        cmocka_unit_test(ink_needs_letters), cmocka_unit_test(ink_is_inside),
        cmocka_unit_test(points_are_corners), cmocka_unit_test(pictures_follow_the_seed),
        cmocka_unit_test(random_words), cmocka_unit_test(listed_words), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
