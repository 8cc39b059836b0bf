/* Pictures that take long to decode: each is named once, the first few by name, then their sum. */
#include "tasks/slow_pictures.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool add(struct pm_slow_pictures *s, const char *name, double seconds, struct pm_str *text)
{
    pm_str_free(text);
    return pm_slow_pictures_add(s, &(struct pm_slow_picture){ name, 3000, 4000, seconds }, text);
}

static void named(void **state)
{
    struct pm_slow_pictures *s = pm_calloc(1, sizeof *s);
    struct pm_str text = { 0 };

    (void)state;
    assert_false(add(s, "quick.png", 1.0, &text));
    assert_true(add(s, "\xc3\x84pfel/slow.png", 2.34, &text));
    assert_ptr_equal(strstr(text.text, "\xc3\x84pfel/slow.png: 4000 x 3000 pixels take 2.3 s"),
                     text.text);
    assert_non_null(strstr(text.text, "max_side=1024"));
    assert_false(add(s, "\xc3\x84pfel/slow.png", 9, &text)); /* the next epoch */
    assert_false(add(s, "quick.png", 0.5, &text));
    assert_int_equal(s->count, 1);
    pm_str_free(&text);
    pm_free(s);
}

static void sums(void **state)
{
    struct pm_slow_pictures *s = pm_calloc(1, sizeof *s);
    struct pm_str text = { 0 };
    char name[32];
    int lines = 0;

    (void)state;
    for (int i = 1; i <= 1000; i++) {
        snprintf(name, sizeof name, "%d.png", i);
        lines += add(s, name, 2, &text);
        if (i == 10)
            assert_ptr_equal(strstr(text.text, "10 pictures take more than 1 s to decode, 20 s "
                                    "together: "), text.text);
        if (i == 11)
            assert_null(text.text);
    }
    assert_int_equal(lines, PM_SLOW_NAMED + 3); /* and at 10, 100 and 1,000 */
    assert_int_equal(s->count, 1000);
    pm_str_free(&text);
    pm_free(s);
}

/* A full table keeps counting and does not hang. */
static void full(void **state)
{
    struct pm_slow_pictures *s = pm_calloc(1, sizeof *s);
    struct pm_str text = { 0 };
    char name[32];

    (void)state;
    for (int i = 1; i <= PM_SLOW_KNOWN + 10; i++) {
        snprintf(name, sizeof name, "%d", i);
        add(s, name, 2, &text);
    }
    assert_int_equal(s->count, PM_SLOW_KNOWN + 10);
    pm_str_free(&text);
    pm_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(named),
        cmocka_unit_test(sums),
        cmocka_unit_test(full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
