/* Libraries that are loaded when they are needed: what is missing is named with the package. */
#include "data/library.h"
#include "data_common.h"

static struct { size_t (*length)(const char *text); } functions;
static int started;

static void start(void)
{
    started++;
}

static void loads_once(void **state)
{
    static const char *const names[] = { "libpumice-has-no-such-name.so", "libc.so.6", NULL };
    static const struct pm_library_entry entries[] = { { "strlen", 0 } };
    struct pm_library library = PM_LIBRARY(names, "libc6", entries, &functions);

    (void)state;
    library.start = start;
    assert_int_equal(pm_library_load(&library, "a test"), PM_OK);
    assert_int_equal(pm_library_load(&library, "a test"), PM_OK);
    assert_int_equal(started, 1);
    assert_int_equal(functions.length("four"), 4);
}

static void names_the_package(void **state)
{
    static const char *const names[] = { "libpumice-has-no-such-name.so", NULL };
    static const struct pm_library_entry entries[] = { { "strlen", 0 } };
    struct pm_library library = PM_LIBRARY(names, "libabsent7", entries, &functions);

    (void)state;
    assert_fails(pm_library_load(&library, "a.webp"), PM_EFAIL,
                 "a.webp needs libpumice-has-no-such-name.so", "install the package libabsent7");
    assert_false(library.loaded);
}

static void names_the_function(void **state)
{
    static const char *const names[] = { "libc.so.6", NULL };
    static const struct pm_library_entry entries[] = { { "strlen_of_the_future", 0 } };
    struct pm_library library = PM_LIBRARY(names, "libc6", entries, &functions);

    (void)state;
    assert_fails(pm_library_load(&library, "a.webp"), PM_EFAIL, "strlen_of_the_future",
                 "install a newer libc6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_once),
        cmocka_unit_test(names_the_package),
        cmocka_unit_test(names_the_function),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
