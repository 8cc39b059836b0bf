/* What ./dev prints about packages when it cannot install them: on other distributions, and for
 * users without root. The test simulates such a machine by a folder of programs that is the
 * whole PATH. */
#include "base/shell.h"

static char *folder;

static int make(void **state)
{
    (void)state;
    folder = make_folder();
    pm_free(shell_text(
        "mkdir %s/bin && cd %s/bin && for t in sh awk sed dirname env echo id xargs grep nproc "
        "head tr sort ls; do ln -s $(find /usr/bin/$t /bin/$t 2>/dev/null | head -n 1) $t || exit; "
        "done\n"
        "ln -s /bin/true sudo",
        folder, folder));
    return 0;
}

static int drop(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

/* Runs ./dev COMMAND on a simulated machine with this os-release. *code gets the exit code. */
static char *dev(const char *command, const char *release, int *code)
{
    return shell_output(code,
                        "cd \"$PUMICE_SOURCE\" && echo '%s' >%s/os-release &&\n"
                        "PUMICE_OS_RELEASE=%s/os-release PATH=%s/bin ./dev %s",
                        release, folder, folder, folder, command);
}

static void other_distributions_get_their_names(void **state)
{
    static const struct {
        const char *release, *command, *package, *not_its;
    } machines[] = {
        { "ID=fedora", "dnf install ", " protobuf-c-compiler ", "pacman" },
        { "ID=rocky\nID_LIKE=\"rhel centos fedora\"", "dnf install ", " cjson-devel ", "zypper" },
        { "ID=arch", "pacman -S --needed ", " cmocka ", "dnf" },
        { "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"", "zypper install ", " cJSON-devel ",
          "dnf" },
    };
    int code;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(machines); i++) {
        char *text = dev("setup", machines[i].release, &code);
        assert_int_equal(code, 1);
        assert_contains(text, machines[i].command);
        assert_contains(text, machines[i].package);
        assert_contains(text, "install the required packages (type the line above as root)");
        assert_null(strstr(text, machines[i].not_its));
        assert_null(strstr(text, " - "));
        pm_free(text);
    }
}

static void an_unknown_distribution_gets_all_names(void **state)
{
    int code;
    char *text = dev("setup", "ID=void", &code);

    (void)state;
    assert_int_equal(code, 1);
    assert_contains(text, "dnf install ");
    assert_contains(text, "pacman -S --needed ");
    assert_contains(text, "zypper install ");
    pm_free(text);
}

/* On other distributions ./dev package names the other way to install, and installs nothing. */
static void packages_are_made_on_debian(void **state)
{
    int code;
    char *text = dev("package", "ID=fedora", &code);

    (void)state;
    assert_int_equal(code, 1);
    assert_contains(text, "cmake --install build/release --prefix ~/.local");
    assert_null(strstr(text, "dnf"));
    pm_free(text);
}

/* Programs, pkg-config packages and headers that exist are not listed as missing. */
static void only_what_is_missing_is_named(void **state)
{
    int code;
    char *text;

    (void)state;
    pm_free(shell_text(
        "cd %s/bin && for t in cc c++ cmake ninja pkg-config glslangValidator protoc-c python3; do "
        "ln -sf /bin/true $t; done",
        folder));
    text = dev("setup", "ID=fedora", &code);
    pm_free(shell_text(
        "cd %s/bin && rm cc c++ cmake ninja pkg-config glslangValidator protoc-c python3", folder));
    if (code != 0)
        fail_msg("exit code %d: %s", code, text);
    assert_null(strstr(text, "cmocka"));
    pm_free(text);
}

/* Debian without root and sudo: ./dev prints the command to type; the demo needs no test
 * packages. */
static void without_root_it_says_what_to_type(void **state)
{
    int code;
    char *demo, *setup;

    (void)state;
    pm_free(shell_text("cd %s/bin && rm sudo id && printf '#!/bin/sh\\necho 1000\\n' >id &&\n"
                       "printf '#!/bin/sh\\nexit 1\\n' >dpkg-query && ln -s dpkg-query apt-get &&\n"
                       "chmod +x id dpkg-query",
                       folder));
    demo = dev("demo", "ID=debian", &code);
    assert_int_equal(code, 1);
    setup = dev("setup", "ID=debian", &code);
    assert_int_equal(code, 1);
    assert_contains(demo, "    apt-get update\n");
    assert_contains(demo, "apt-get install --no-install-recommends gcc ");
    assert_contains(demo, "missing optional packages: libdnnl-dev");
    assert_null(strstr(demo, "cmocka"));
    assert_contains(setup, " libcmocka-dev ");
    pm_free(demo);
    pm_free(setup);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_distributions_get_their_names),
        cmocka_unit_test(an_unknown_distribution_gets_all_names),
        cmocka_unit_test(packages_are_made_on_debian),
        cmocka_unit_test(only_what_is_missing_is_named),
        cmocka_unit_test(without_root_it_says_what_to_type),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
