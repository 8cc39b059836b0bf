/* Shell completion. bash runs the installed function and must offer the right words; zsh and
 * fish must read their scripts without an error. */
#include "base/shell.h"

static char *folder;

static int make(void **state)
{
    (void)state;
    folder = make_folder();
    pm_free(
        shell_text("cd %s && for s in bash zsh fish; do\n"
                   "    \"$PUMICE_PROGRAM\" help --completion $s >c.$s || exit\n"
                   "done; mkdir -p configs/base pictures; touch configs/photos.json configs/readme",
                   folder));
    return 0;
}

static int drop(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

/* The words that bash offers at the end of the line, sorted, with a blank around each. */
static char *offered(const char *line)
{
    return shell_text(
        "cd %s && bash --norc -c '. ./c.bash\n"
        "compopt() { :; }\n" /* compopt fails outside of a completion */
        "COMP_LINE=$1 COMP_POINT=${#1}\n"
        "_pumice\n"
        "echo \" $(printf \"%%s\\\\n\" \"${COMPREPLY[@]}\" | LC_ALL=C sort | xargs) \"' bash '%s'",
        folder, line);
}

static void check_offered(const char *line, const char *wanted)
{
    char *text = offered(line);

    assert_string_equal(text, wanted);
    pm_free(text);
}

static void check_among(const char *line, const char *word)
{
    char part[128], *text = offered(line);

    snprintf(part, sizeof part, " %s ", word);
    assert_contains(text, part);
    pm_free(text);
}

/* Returns a command's name as users type it: lr-find for lr_find. Valid until the next call. */
static const char *typed(const char *name)
{
    static char text[32];

    snprintf(text, sizeof text, "%s", name);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return text;
}

static void commands_and_their_parts(void **state)
{
    static const char *const names[] = {
#define PM_COMMAND(name) #name,
#include "app/commands.def"
#undef PM_COMMAND
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        check_among("pumice ", typed(names[i]));
        check_among("pumice help ", typed(names[i]));
    }
    check_offered("pumice tr", " train \n");
    check_offered("pumice -v tr", " train \n");
    check_offered("pumice checkpoint ", " convert diff download inspect \n");
    check_offered("pumice config sh", " show \n");
    check_offered("pumice dataset convert fl", " flowers \n");
}

static void flags(void **state)
{
    (void)state;
    check_offered("pumice eval a.json --w", " --watch \n");
    check_offered("pumice predict a.json --o", " --out \n");
    check_offered("pumice predict a.json --out p", " pictures \n");
    check_offered("pumice bench a.json --steps ", "  \n"); /* an option that takes a number */
}

static void files(void **state)
{
    (void)state;
    check_offered("pumice train configs/", " configs/base configs/photos.json \n");
    check_offered("pumice config show configs/p", " configs/photos.json \n");
    check_offered("pumice dataset inspect p", " pictures \n");
    check_offered("pumice train a.json init.checkpoint=conf", " configs \n");
}

static void keys_and_values(void **state)
{
    (void)state;
    check_among("pumice train a.json run.", "run.steps=");
    check_among("pumice eval a.json eval.c", "eval.checkpoint=");
    check_offered("pumice train a.json optim.name=ada", " adadelta adagrad adam adamw \n");
    check_offered("pumice train a.json task=s", " segmentation \n");
    check_offered("pumice train a.json schedule.policy=exp", " exponential \n");
    check_offered("pumice train a.json eval.flip=t", " true \n");
    check_offered("pumice dataset convert flowers a b bad=", " error skip \n");
    check_among("pumice dataset convert flowers a b ba", "background=");
}

static void other_shells_read_their_scripts(void **state)
{
    (void)state;
    char *text = shell_text("cd %s && for s in bash zsh fish; do\n"
                            "    if command -v $s >/dev/null; then $s -n c.$s; fi\n"
                            "done",
                            folder);
    assert_string_equal(text, "");
    pm_free(text);
    text = shell_text("cd %s && if command -v fish >/dev/null; then\n"
                      "    fish --no-config -c 'source c.fish; complete -C \"pumice tra\"'\n"
                      "else echo train; fi",
                      folder);
    assert_contains(text, "train");
    pm_free(text);
}

static void an_unknown_shell_is_refused(void **state)
{
    int code;
    char *text = shell_output(&code, "\"$PUMICE_PROGRAM\" help --completion tcsh");

    (void)state;
    assert_int_equal(code, 2);
    assert_contains(text, "--completion 'tcsh': allowed are bash, zsh and fish");
    pm_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commands_and_their_parts),
        cmocka_unit_test(flags),
        cmocka_unit_test(files),
        cmocka_unit_test(keys_and_values),
        cmocka_unit_test(other_shells_read_their_scripts),
        cmocka_unit_test(an_unknown_shell_is_refused),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
