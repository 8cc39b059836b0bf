/* What `compile` and third_party/drivers.sh say when drivers are absent. */
#include "base/shell.h"

static char *folder;

static int make(void **state)
{
    (void)state;
    folder = make_folder();
    return getenv("PUMICE_COMPILE") ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

/* Runs compile where drivers.sh has unpacked nothing. */
static char *compile(int *code, const char *environment, const char *arguments)
{
    return shell_output(code, "PUMICE_DRIVERS=%s/nothing %s \"$PUMICE_COMPILE\" %s", folder,
                        environment, arguments);
}

static int lines(const char *text)
{
    int n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void an_absent_driver_is_skipped_by_one_line(void **state)
{
    int code;
    char *text = compile(&code, "", "m1");

    (void)state;
    assert_int_equal(code, 77);
    assert_contains(text, "skipped m1: ");
    assert_contains(text, "third_party/drivers.sh");
    assert_int_equal(lines(text), 1);
    pm_free(text);
    text = compile(&code, "", "--run lavapipe26 false");
    assert_int_equal(code, 77);
    pm_free(text);
}

static void no_driver_at_all_is_a_failure(void **state)
{
    int code;
    char *text = compile(&code, "PUMICE_NO_COMPILERS=", "--unpacked");

    (void)state;
    assert_int_equal(code, 1);
    assert_contains(text, "FAIL: no driver is here, so nothing was compiled");
    pm_free(text);
    text = compile(&code, "PUMICE_NO_COMPILERS=1", "--unpacked");
    assert_int_equal(code, 77);
    pm_free(text);
}

static void an_unpacked_driver_must_show_a_gpu(void **state)
{
    int code;
    char *text;

    (void)state;
    pm_free(shell_text("mkdir -p %s/broken/mesa/usr/share/vulkan/icd.d %s/broken/libraries\n"
                       "cd %s/broken && ln -s /bin/false loader &&\n"
                       "touch mesa/usr/share/vulkan/icd.d/asahi_icd.json "
                       "libraries/libasahi_noop_drm_shim.so", folder, folder, folder));
    text = shell_output(&code, "PUMICE_DRIVERS=%s/broken \"$PUMICE_COMPILE\" m1", folder);
    assert_int_equal(code, 1);
    assert_contains(text, "FAIL m1: the unpacked driver shows no GPU");
    pm_free(text);
}

static void bad_arguments_are_refused(void **state)
{
    static const char *const bad[] = { "navi99", "lavapipe26", "--csv", "--what",
                                       "--run navi99 true", "--list more" };
    int code;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        pm_free(compile(&code, "", bad[i]));
        assert_int_equal(code, 2);
    }
}

/* The line names the packages. */
static void packages_that_cannot_be_had_are_named(void **state)
{
    static const char *const why[] = { "PATH=$PWD/bin", /* no apt-get */
                                       "http_proxy=http://127.0.0.1:1 "
                                       "https_proxy=http://127.0.0.1:1" };
    int code;

    (void)state;
    pm_free(shell_text("mkdir %s/bin && cd %s/bin && for t in sh awk cat mkdir dirname cksum; do "
                       "ln -s $(find /usr/bin/$t /bin/$t 2>/dev/null | head -n 1) $t || exit; "
                       "done", folder, folder));
    for (size_t i = 0; i < PM_COUNT(why); i++) {
        char *text = shell_output(&code, "cd %s && %s \"$PUMICE_SOURCE/third_party/drivers.sh\" "
                                  "drivers", folder, why[i]);

        assert_int_equal(code, 77);
        assert_contains(text, "drivers: skipped, because ");
        assert_contains(text, "mesa-vulkan-drivers/");
        assert_contains(text, "mesa-drm-shim/");
        pm_free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absent_driver_is_skipped_by_one_line),
        cmocka_unit_test(no_driver_at_all_is_a_failure),
        cmocka_unit_test(an_unpacked_driver_must_show_a_gpu),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(packages_that_cannot_be_had_are_named),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
