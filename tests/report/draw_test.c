/* Drawing: letters exist and differ, drawing stays inside the picture, and bars have the right
 * lengths. */
#include <math.h>
#include <pumice/draw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct pm_color white = { 255, 255, 255 }, red = { 200, 10, 20 };

static struct pm_image8 blank(int height, int width, int channels)
{
    return (struct pm_image8){ height, width, channels,
                               pm_calloc(1, (size_t)height * (size_t)width * (size_t)channels) };
}

static int count(const struct pm_image8 *im, uint8_t value)
{
    int n = 0;

    for (int i = 0; i < im->height * im->width * im->channels; i += im->channels)
        n += im->pixels[i] == value;
    return n;
}

static void letters_differ(void **state)
{
    uint8_t seen[95][9 * 6];

    (void)state;
    for (int c = 0; c < 95; c++) {
        struct pm_image8 im = blank(9, 6, 1);
        pm_draw_text(&im, 0, 0, 1, white, (char[]){ (char)(c + 32), 0 });
        assert_int_equal(count(&im, 255) == 0, c == 0);
        for (int i = 5; i < 54; i += 6)
            assert_int_equal(im.pixels[i], 0); /* the gap between two letters */
        memcpy(seen[c], im.pixels, sizeof seen[c]);
        for (int other = 0; other < c; other++)
            if (memcmp(seen[c], seen[other], sizeof seen[c]) == 0)
                fail_msg("'%c' looks like '%c'", c + 32, other + 32);
        pm_image_free(&im);
    }
}

static void size_and_scale(void **state)
{
    struct pm_image8 one = blank(30, 200, 1), three = blank(30, 200, 1);

    (void)state;
    pm_draw_text(&one, 1, 2, 1, white, "Ag|");
    pm_draw_text(&three, 1, 2, 3, white, "Ag|");
    assert_int_equal(9 * count(&one, 255), count(&three, 255));
    assert_int_equal(pm_draw_text_width("Ag|", 3), 3 * 17);
    assert_int_equal(pm_draw_text_width("", 3), 0);
    assert_int_equal(pm_draw_text_width("\xc3\xa9\xe2\x82\xac!", 1), 17); /* two letters beyond
                                                                           * ASCII */
    assert_int_equal(pm_draw_text_width("\xff\x80\xc3", 1), 11);          /* invalid UTF-8 */
    pm_image_free(&one);
    pm_image_free(&three);
}

/* Draws everything at odd places. The sanitizer watches the ends of the allocation, this test
 * the colours. */
static void clips(void **state)
{
    static const int places[] = { -2000000000, -100, -7, -1, 0, 5, 19, 20, 1000, 2000000000 };
    const size_t n = PM_COUNT(places);

    (void)state;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            struct pm_image8 im = blank(20, 20, k % 2 ? 3 : 1);
            if (places[i] > -200 && places[i] < 2000 && places[k] > -200 && places[k] < 2000) {
                pm_draw_text(&im, places[i], places[k], 2, white, "text");
                pm_draw_label(&im, places[i], places[k], 1, red, "text");
                pm_draw_box(&im, places[i], 0, places[k], 15, 2, red);
                pm_draw_box(&im, 3, places[i], 8, places[k], 50, red);
            }
            pm_draw_area(&im, places[i], places[k], 100, 100, white, 0.5);
            pm_image_free(&im);
        }
    struct pm_image8 im = blank(20, 20, 1);
    pm_draw_area(&im, -5, 18, 10, 10, white, 1);
    assert_int_equal(count(&im, 255), 5 * 2);
    pm_draw_area(&im, 10, 0, -3, 5, white, 1);
    assert_int_equal(count(&im, 255), 5 * 2);
    pm_image_free(&im);
}

static void label_is_readable(void **state)
{
    static const struct pm_color yellow = { 250, 220, 60 }, navy = { 10, 20, 90 };
    struct pm_image8 im = blank(20, 60, 3);

    (void)state;
    pm_draw_label(&im, 0, 0, 1, yellow, "x");
    assert_int_equal(im.pixels[0], 250);
    assert_int_equal(count(&im, 255), 0);
    pm_draw_label(&im, 0, 0, 1, navy, "x");
    assert_true(count(&im, 255) > 5);
    pm_image_free(&im);
}

static void box_leaves_the_inside(void **state)
{
    struct pm_image8 im = blank(40, 40, 3);

    (void)state;
    pm_draw_box(&im, 10, 10, 30, 26, 2, red);
    assert_int_equal(count(&im, 200), 20 * 16 - 16 * 12);
    assert_int_equal(im.pixels[(20 * 40 + 18) * 3], 0);
    pm_image_free(&im);
}

static void bars_have_their_shares(void **state)
{
    static const struct pm_bar bars[] = {
        { "a", 1, { 1, 200, 2 } }, { "b", 0.25, { 2, 200, 2 } }, { "c", 0, { 3, 200, 2 } },
        { "much longer than there is room for", 7, { 4, 200, 2 } },
    };
    struct pm_image8 im = blank(pm_draw_bars_height(4, 1), 300, 3);

    (void)state;
    pm_draw_bars(&im, 0, 0, 300, 1, bars, 4);
    int whole = count(&im, 1);
    assert_true(whole > 300);
    assert_in_range(count(&im, 2) * 4, whole - 4 * 7, whole + 4 * 7); /* to a column's rounding */
    assert_int_equal(count(&im, 3), 0);
    assert_int_equal(count(&im, 4), whole);
    pm_image_free(&im);
}

static void picture_of_small_and_large(void **state)
{
    static const struct pm_bar bar = { "seven", 0.5, { 1, 2, 3 } };
    struct pm_image8 digit = blank(28, 28, 1), photo = blank(500, 800, 3), out;

    (void)state;
    digit.pixels[27] = 255; /* the right end of the first row */
    pm_draw_picture(&digit, "digit.png", &bar, 1, &out);
    assert_int_equal(out.width, 280);
    assert_true(out.height > 280 && out.channels == 3);
    assert_int_equal(out.pixels[279 * 3 + 1], 255);
    assert_int_equal(out.pixels[(9 * 280 + 270) * 3], 255);
    assert_int_equal(out.pixels[(10 * 280 + 270) * 3], 0);
    pm_image_free(&out);
    pm_draw_picture(&photo, NULL, NULL, 0, &out);
    assert_int_equal(out.height, 500);
    assert_int_equal(out.width, 800);
    pm_image_free(&out);
    pm_image_free(&digit);
    pm_image_free(&photo);
}

static void shrinks(void **state)
{
    uint8_t pixels[6 * 4];
    const struct pm_image8 in = { 4, 6, 1, pixels };
    struct pm_image8 out;

    (void)state;
    for (int i = 0; i < 24; i++)
        pixels[i] = (uint8_t)(10 * (i % 6));
    pm_draw_shrink(&in, 3, &out);
    assert_true(out.height == 2 && out.width == 3 && out.channels == 1);
    assert_true(out.pixels[0] == 5 && out.pixels[1] == 25 && out.pixels[5] == 45);
    pm_image_free(&out);
    pm_draw_shrink(&in, 100, &out);
    assert_true(out.height == 4 && out.width == 6);
    assert_memory_equal(out.pixels, pixels, sizeof pixels);
    pm_image_free(&out);
}

/* A narrow picture is enlarged as far as its height allows. */
static void legend_below(void **state)
{
    static const struct { int height, width, factor; } cases[] = {
        { 10, 20, 13 }, { 300, 300, 1 }, { 1000, 20, 4 }, { 30000, 1, 1 },
    };
    static const struct pm_legend_entry red_only = { "red", { 200, 10, 20 } };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_image8 im = blank(cases[i].height, cases[i].width, 3), out;

        pm_draw_legend(&im, &red_only, 1, &out);
        assert_int_equal(out.width, cases[i].factor * im.width);
        assert_true(out.height > cases[i].factor * im.height);
        assert_true(out.height < cases[i].factor * im.height + 100);
        pm_image_free(&out);
        pm_image_free(&im);
    }
}

/* Letters stay in order, in the line and apart, and move as little as that allows. */
static void letters_spread(void **state)
{
    static const struct { double at[5]; int count; double gap, expected[5]; } cases[] = {
        { { 0.3 }, 1, 0.1, { 0.3 } },
        { { 0.2, 0.5, 0.9 }, 3, 0.1, { 0.2, 0.5, 0.9 } },       /* there is room */
        { { 0.5, 0.5, 0.5 }, 3, 0.1, { 0.4, 0.5, 0.6 } },       /* around their mark */
        { { 0.8, 0.2 }, 2, 0.1, { 0.45, 0.55 } },               /* marks that cross: the middle */
        { { 0, 0, 1 }, 3, 0.1, { 0.05, 0.15, 0.95 } },          /* the borders */
        { { 1, 1, 1, 1, 1 }, 5, 0.5, { 0.1, 0.3, 0.5, 0.7, 0.9 } }, /* no room for the gap */
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        double out[5];

        pm_spread_letters(cases[i].at, cases[i].count, cases[i].gap, out);
        for (int k = 0; k < cases[i].count; k++)
            assert_true(fabs(out[k] - cases[i].expected[k]) < 1e-12);
    }
    pm_spread_letters(NULL, 0, 0.1, NULL);
}

/* The line of a letter begins with a tick in the picture, in the column of the mark. */
static void marked_text(void **state)
{
    static const struct { int height, width, count, factor; } cases[] = {
        { 32, 100, 2, 5 }, { 32, 600, 25, 1 }, { 1, 7, 1, 69 }, { 1000, 20, 3, 13 },
        { 8, 40, 100, 28 }, /* 100 letters need 1100 pixels */
    };
    double at[100];
    char text[101] = { 0 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_image8 in = blank(cases[i].height, cases[i].width, 3), out;
        const int count = cases[i].count, picture = cases[i].factor * in.height;

        memset(text, 'i', (size_t)count);
        text[count] = '\0';
        for (int k = 0; k < count; k++)
            at[k] = (k + 0.5) / count;
        pm_draw_marked_text(&in, text, at, count, &out);
        assert_int_equal(out.width, cases[i].factor * in.width);
        assert_in_range(out.height, picture + 40, picture + 400);
        for (int k = 0; k < count; k++) {
            const uint8_t *tick = out.pixels + 3 * ((picture - 1) * out.width +
                                                    (int)floor(at[k] * out.width));

            assert_int_equal(tick[0], k % 2 ? 255 : 92);
        }
        pm_image_free(&out);
        pm_image_free(&in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_differ),        cmocka_unit_test(size_and_scale),
        cmocka_unit_test(clips),                 cmocka_unit_test(label_is_readable),
        cmocka_unit_test(box_leaves_the_inside), cmocka_unit_test(bars_have_their_shares),
        cmocka_unit_test(picture_of_small_and_large), cmocka_unit_test(shrinks),
        cmocka_unit_test(legend_below), cmocka_unit_test(letters_spread),
        cmocka_unit_test(marked_text),
    };

    setenv("PM_FONT", "none", 1); /* draw_font_test tests the letters of a font */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
