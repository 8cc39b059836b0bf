/* Text on pictures with the letters of DejaVu Sans: letters beyond ASCII exist, differ and stand on
 * the base line; text is cut at whole characters. Without the font, or with PM_FONT=none, the
 * built-in letters are drawn, and a warning gives the reason. */
#include <pumice/draw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "report/font_file.h"

enum { SIDE = 64, BASE = 30, SCALE = 2 };
static const struct pm_color white = { 255, 255, 255 };

struct drawn {
    uint8_t pixels[SIDE * SIDE];
    int top, bottom, left, right; /* of the pixels that are not black; top > bottom: none */
};

static void draw(const char *text, struct drawn *d)
{
    *d = (struct drawn){ .top = SIDE, .bottom = -1, .left = SIDE, .right = -1 };
    pm_draw_text(&(struct pm_image8){ SIDE, SIDE, 1, d->pixels }, BASE - 7 * SCALE, 8, SCALE, white,
                 text);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            if (d->pixels[y * SIDE + x] > 96) {
                d->top = y < d->top ? y : d->top;
                d->bottom = y > d->bottom ? y : d->bottom;
                d->left = x < d->left ? x : d->left;
                d->right = x > d->right ? x : d->right;
            }
}

/* Umlauts, accents, Polish, Turkish, Greek, Cyrillic: each looks different from all others, and
 * none is the replacement for a missing letter. */
static void letters_differ(void **state)
{
    static const char *const letters[] = { "a", "\xc3\xa4", "\xc3\xa1", "\xc3\xa5", "o",
        "\xc3\xb6", "\xc3\xb8", "u", "\xc3\xbc", "\xc3\x9f", "\xc3\x84", "\xc3\x89", "\xc3\xa7",
        "\xc3\xb1", "\xc5\x82", "\xc4\x85", "\xc5\x9f", "\xc4\xb1", "\xce\xb2", "\xce\xbb",
        "\xce\xa9", "\xd0\xb6", "\xd0\xb4", "\xd0\xaf", "\xd1\x8a", "?", "\xef\xbf\xbd",
        "\xf0\x9f\xaa\x83" /* a boomerang: not in the font */ };
    static struct drawn seen[PM_COUNT(letters)];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(letters); i++) {
        draw(letters[i], &seen[i]);
        assert_true(seen[i].top <= seen[i].bottom);
        for (size_t k = 0; k < i; k++)
            if (memcmp(seen[i].pixels, seen[k].pixels, sizeof seen[i].pixels) == 0)
                fail_msg("%s looks like %s", letters[i], letters[k]);
    }
}

static void letters_stand_on_the_base_line(void **state)
{
    struct drawn capital, umlaut, small, below;

    (void)state;
    draw("H", &capital);
    draw("\xc3\x84", &umlaut);
    draw("x", &small);
    draw("g", &below);
    assert_int_equal(capital.bottom, BASE - 1);
    assert_int_equal(capital.top, BASE - 7 * SCALE);
    assert_int_equal(umlaut.bottom, BASE - 1);
    assert_in_range(umlaut.top, BASE - 9 * SCALE, BASE - 7 * SCALE - 1);
    assert_true(small.bottom == BASE - 1 && small.top > capital.top);
    assert_in_range(below.bottom, BASE, BASE + 2 * SCALE);
}

/* macOS writes file names with the letter and its mark as two characters. */
static void marks_lie_on_their_letter(void **state)
{
    struct drawn one, two;

    (void)state;
    draw("\xc3\xbc", &one);
    draw("u\xcc\x88", &two);
    assert_int_equal(pm_draw_text_width("u\xcc\x88", SCALE), pm_draw_text_width("u", SCALE));
    assert_in_range(two.left, one.left - 1, one.left + 1);
    assert_in_range(two.right, one.right - 1, one.right + 1);
    assert_in_range(two.top, one.top - 1, one.top + 1);
}

static void widths_add_up_and_scale(void **state)
{
    const int one = pm_draw_text_width("\xc3\xa4\xd0\xb6", 4);

    (void)state;
    assert_int_equal(pm_draw_text_width("", 1), 0);
    assert_int_equal(one, pm_draw_text_width("\xc3\xa4", 4) + pm_draw_text_width("\xd0\xb6", 4));
    assert_in_range(pm_draw_text_width("\xc3\xa4\xd0\xb6", 40), 9 * one, 11 * one);
    assert_true(pm_draw_text_width("\xff\x80\xc3", 1) > 0); /* invalid UTF-8: replacements */
}

static void text_is_cut_at_characters(void **state)
{
    static const char text[] = "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4"; /* four letters, 8 bytes */
    const int width = pm_draw_text_width(text, 1);

    (void)state;
    assert_int_equal(pm_draw_text_fit(text, 1, width), 8);
    assert_int_equal(pm_draw_text_fit(text, 1, width - 1), 6);
    assert_int_equal(pm_draw_text_fit(text, 1, 0), 0);
    for (int w = 0; w < width; w++)
        assert_int_equal(pm_draw_text_fit(text, 1, w) % 2, 0);
}

/* A large letter at every edge; the sanitizer watches the ends of the allocation. */
static void drawing_is_clipped(void **state)
{
    static const int places[] = { -2000, -17, -1, 0, 15, 19, 20, 2000 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(places); i++)
        for (size_t k = 0; k < PM_COUNT(places); k++) {
            struct pm_image8 im = { 20, 20, k % 2 ? 3 : 1, pm_calloc(1, 20 * 20 * 3) };

            pm_draw_text(&im, places[i], places[k], 3, white, "\xc3\x84g\xcc\x88");
            pm_draw_label(&im, places[i], places[k], 1, white, "\xd0\x96");
            pm_image_free(&im);
        }
}

/* Draws in another process with this PM_FONT; returns whether it drew the built-in frame and wrote
 * the text to its standard error. */
static bool falls_back(const char *font, const char *expected)
{
    char said[4096] = "";
    int out[2], status;

    assert_int_equal(pipe(out), 0);
    const pid_t child = fork();
    if (child == 0) {
        char *arguments[] = { (char[]){ "/proc/self/exe" }, (char[]){ "child" }, NULL };

        dup2(out[1], 2);
        setenv("PM_FONT", font, 1);
        execv(arguments[0], arguments);
        _exit(9);
    }
    close(out[1]);
    for (size_t n = 0, got = 1; got > 0 && n < sizeof said - 1; n += got) {
        const ssize_t k = read(out[0], said + n, sizeof said - 1 - n);
        got = k > 0 ? (size_t)k : 0;
    }
    close(out[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!strstr(said, expected))
        fail_msg("PM_FONT=%s: \"%s\" is not in \"%s\"", font, expected, said);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Returns 0 if the letters of two scripts look the same, as the built-in ones do. */
static int run_child(void)
{
    static struct drawn a, b, ascii;

    draw("\xc3\xa4", &a);
    draw("\xd0\xb6", &b);
    draw("a", &ascii);
    return memcmp(a.pixels, b.pixels, sizeof a.pixels) != 0 ||
           memcmp(a.pixels, ascii.pixels, sizeof a.pixels) == 0 ||
           pm_draw_text_width("ab", 1) != 11;
}

static void built_in_letters_are_the_fallback(void **state)
{
    (void)state;
    assert_true(falls_back("none", "are drawn as frames: PM_FONT is none"));
    assert_true(falls_back("/no/such/font.ttf", "/no/such/font.ttf: there is no such font file"));
    assert_true(falls_back("/proc/self/exe", "PM_FONT: /proc/self/exe: not a font"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_differ),
        cmocka_unit_test(letters_stand_on_the_base_line),
        cmocka_unit_test(marks_lie_on_their_letter),
        cmocka_unit_test(widths_add_up_and_scale),
        cmocka_unit_test(text_is_cut_at_characters),
        cmocka_unit_test(drawing_is_clipped),
        cmocka_unit_test(built_in_letters_are_the_fallback),
    };
    const char *why;

    (void)argv;
    if (argc > 1)
        return run_child();
    unsetenv("PM_FONT");
    if (!pm_font_take(10, &why)) {
        fprintf(stderr, "skipped: %s\n", why);
        return 77;
    }
    pm_font_release();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
