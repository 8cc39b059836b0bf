/* Distances of words, against the definition: the shortest way of single changes, by trying all. */
#include "base/unit.h"

#include <pumice/rng.h>

#include "tasks/recognition/word_distance.h"

static struct pm_letters letters_of(const char *text)
{
    struct pm_letters l = { 0 };

    assert_int_equal(pm_letters_read(text, strlen(text), false, "test", &l), PM_OK);
    return l;
}

static int distance(const char *a, const char *b)
{
    struct pm_letters x = letters_of(a), y = letters_of(b);
    const int d = pm_edit_distance(&x, &y);

    assert_int_equal(pm_edit_distance(&y, &x), d);
    pm_letters_free(&x);
    pm_letters_free(&y);
    return d;
}

/* The definition. Equal first letters cost nothing. Else one letter is inserted, removed or
 * replaced, which costs 1. */
static int by_definition(const char *a, const char *b)
{
    int best, other;

    if (!*a || !*b)
        return (int)(strlen(a) + strlen(b));
    if (*a == *b)
        return by_definition(a + 1, b + 1);
    best = by_definition(a + 1, b);
    other = by_definition(a, b + 1);
    best = other < best ? other : best;
    other = by_definition(a + 1, b + 1);
    return 1 + (other < best ? other : best);
}

static void known_distances(void **state)
{
    (void)state;
    assert_int_equal(distance("", ""), 0);
    assert_int_equal(distance("", "word"), 4);
    assert_int_equal(distance("word", "word"), 0);
    assert_int_equal(distance("kitten", "sitting"), 3);
    assert_int_equal(distance("aaaa", "aaa"), 1);
    assert_int_equal(distance("abcd", "dcba"), 4);
    /* One letter is one change, whatever its number of bytes. */
    assert_int_equal(distance("na\xc3\xafve", "naive"), 1);
}

static void random_distances(void **state)
{
    struct pm_rng r = pm_rng_make(1, pm_hash("words"), 0, 0);

    (void)state;
    for (int i = 0; i < 2000; i++) {
        char word[2][7] = { { 0 } };

        for (int k = 0; k < 2; k++)
            for (int64_t n = pm_rng_int(&r, 0, 6); n > 0; n--)
                word[k][n - 1] = (char)('a' + pm_rng_int(&r, 0, 2));
        assert_int_equal(distance(word[0], word[1]), by_definition(word[0], word[1]));
    }
}

static void stripped_words(void **state)
{
    static const char *const cases[][2] = {
        { "Hello, World!", "helloworld" }, { "--", "" }, { "A1b2", "a1b2" },
        { "na\xc3\xafve", "nave" }, /* only ASCII is left, as in the original */
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_letters l = letters_of(cases[i][0]), expected = letters_of(cases[i][1]);

        pm_letters_strip(&l);
        assert_true(pm_letters_equal(&l, &expected));
        pm_letters_free(&l);
        pm_letters_free(&expected);
    }
}

static void nearest_words(void **state)
{
    struct pm_letters lexicon[] = { letters_of("house"), letters_of("mouse"), letters_of("moose"),
                                    letters_of("") };
    static const struct {
        const char *word;
        int nearest;
    } cases[] = {
        { "mouse", 1 }, { "moos", 2 }, { "ouse", 0 /* as near as mouse, and before it */ },
        { "", 3 }, { "qq", 3 },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_letters word = letters_of(cases[i].word);

        assert_int_equal(pm_nearest_word(&word, lexicon, PM_COUNT(lexicon)), cases[i].nearest);
        pm_letters_free(&word);
    }
    for (size_t i = 0; i < PM_COUNT(lexicon); i++)
        pm_letters_free(&lexicon[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_distances), cmocka_unit_test(random_distances),
        cmocka_unit_test(stripped_words), cmocka_unit_test(nearest_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
