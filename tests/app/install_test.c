/* cmake --install: the installed program works with its configs, manual pages and completion
 * scripts. */
#include "base/shell.h"

static char *folder;

static int make(void **state)
{
    (void)state;
    folder = make_folder();
    pm_free(shell_text("'%s' --install '%s' --component program --prefix %s/usr",
                       getenv("CMAKE_COMMAND"), getenv("PUMICE_BUILD"), folder));
    return 0;
}

static int drop(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

static void files_are_there(void **state)
{
    static const char *const files[] = {
        "bin/pumice",
        "share/man/man1/pumice.1",
        "share/man/man1/pumice-train.1",
        "share/bash-completion/completions/pumice",
        "share/zsh/site-functions/_pumice",
        "share/fish/vendor_completions.d/pumice.fish",
        "share/pumice/configs/shapes_classification.json",
        "share/doc/pumice/README.md",
        "share/doc/pumice/LICENSE",
    };
    char path[512];

    (void)state;
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/usr/%s", folder, files[i]);
        if (!pm_file_exists(path))
            fail_msg("%s is not installed", files[i]);
    }
    snprintf(path, sizeof path, "%s/usr/include", folder);
    assert_false(pm_file_exists(path)); /* belongs to the other component */
}

/* Every installed config finds its base files, from any working directory. */
static void configs_find_their_bases(void **state)
{
    (void)state;
    char *text =
        shell_text("cd / && for c in $(cd %s/usr/share/pumice && grep -rl '\"base\"' configs "
                   "--include=*.json | grep -v schema | head -n 6); do\n"
                   "    %s/usr/bin/pumice config show %s/usr/share/pumice/$c >/dev/null || exit\n"
                   "    echo $c\n"
                   "done",
                   folder, folder, folder);
    assert_true(count_text(text, ".json") >= 4);
    pm_free(text);
}

/* A run and its data are written to the working directory, not beside the installed config. */
static void an_installed_config_trains(void **state)
{
    (void)state;
    pm_free(shell_text(
        "mkdir %s/project && cd %s/project && ../usr/bin/pumice dataset make shapes data/shapes "
        "size=64 train=40 validation=8 test=8 &&\n"
        "../usr/bin/pumice train ../usr/share/pumice/configs/shapes_classification.json "
        "run.steps=2 devices=cpu run.batch_size=8 eval.every_steps=0",
        folder, folder));
    pm_free(shell_text("test -f %s/project/runs/shapes_classification/latest", folder));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_there),
        cmocka_unit_test(configs_find_their_bases),
        cmocka_unit_test(an_installed_config_trains),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
