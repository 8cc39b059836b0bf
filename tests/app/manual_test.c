/* Manual pages: there is one for each command, it holds everything that --help prints, and it
 * uses macros that man knows. */
#include "base/shell.h"

static char *folder;

static int make(void **state)
{
    (void)state;
    folder = make_folder();
    pm_free(shell_text("\"$PUMICE_PROGRAM\" help --man %s", folder));
    return 0;
}

static int drop(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

static char *page_of(const char *name)
{
    char path[512], *text = NULL;

    snprintf(path, sizeof path, "%s/%s.1", folder, name);
    assert_int_equal(pm_file_read(path, &text, NULL), 0);
    return text;
}

static const char *const names[] = {
#define PM_COMMAND(name) #name,
#include "app/commands.def"
#undef PM_COMMAND
};

/* Returns a command's name as users type it: lr-find for lr_find. Valid until the next call. */
static const char *typed(const char *name)
{
    static char text[32];

    snprintf(text, sizeof text, "%s", name);
    for (char *c = text; *c; c++)
        *c = *c == '_' ? '-' : *c;
    return text;
}

/* The text without roff's additions and without blanks, so that line breaks do not matter. */
static char *letters(const char *text)
{
    struct pm_str s = { 0 };

    for (const char *c = text; *c; c++)
        if (!strncmp(c, "\\(aq", 4) || !strncmp(c, "\\(ga", 4) || !strncmp(c, "\\(ha", 4) ||
            !strncmp(c, "\\(ti", 4)) {
            pm_str_add(&s, "%c", c[2] == 'a' ? '\'' : c[2] == 'g' ? '`' : c[2] == 'h' ? '^' : '~');
            c += 3;
        } else if (!strncmp(c, "\\fB", 3) || !strncmp(c, "\\fR", 3)) {
            c += 2;
        } else if (*c == '\n' && c[1] == '.') {
            c += strcspn(c + 1, "\n"); /* a macro */
        } else if (*c == '\\' && (c[1] == '&' || c[1] == 'e')) {
            pm_str_add(&s, "%s", *++c == 'e' ? "\\" : "");
        } else if (*c != '\\' && !strchr(" \n:", *c)) {
            pm_str_add(&s, "%c", *c);
        }
    pm_str_add(&s, "%s", "");
    return s.text;
}

/* Each paragraph of --help after the usage is in the manual page. */
static void each_command_has_a_page(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        char name[64];
        snprintf(name, sizeof name, "pumice-%s", typed(names[i]));
        char *page = page_of(name), *plain = letters(page);
        char *help = shell_text("\"$PUMICE_PROGRAM\" help %s", typed(names[i]));
        char *usage = strstr(help, "usage:");
        if (!usage)
            fail_msg("pumice help %s has no line 'usage:'", typed(names[i]));
        char *rest = strstr(usage, "\n\n");
        for (char *line = strtok(rest, "\n"); line; line = strtok(NULL, "\n")) {
            char *wanted = letters(line);
            if (!strstr(plain, wanted))
                fail_msg("%s.1 lacks '%s' of --help", name, line);
            pm_free(wanted);
        }
        assert_contains(page, ".SH NAME\n");
        assert_contains(page, ".SH SYNOPSIS\n");
        pm_free(help);
        pm_free(plain);
        pm_free(page);
    }
}

static void overview_names_each_page(void **state)
{
    char *page = page_of("pumice");

    (void)state;
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        char name[64];
        snprintf(name, sizeof name, "pumice\\-%s (1)", typed(names[i]));
        assert_contains(page, name);
    }
    pm_free(page);
}

/* Every line that begins with a dot is a macro of man. A text line must not begin with a dot. */
static void macros_are_known(void **state)
{
    static const char *const known[] = { ".TH", ".SH", ".SS", ".PP", ".TP", ".EX", ".EE",
                                         ".nf", ".fi", ".BR", ".\\\"" };
    char *text = shell_text("cat %s/*.1", folder);

    (void)state;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        bool found = line[0] != '.' && line[0] != '\'';
        for (size_t i = 0; i < PM_COUNT(known); i++)
            found |= strncmp(line, known[i], strlen(known[i])) == 0;
        if (!found)
            fail_msg("unknown macro: %s", line);
    }
    pm_free(text);
}

/* Options of a part of a command, such as convert, are list items with their defaults. */
static void options_are_items(void **state)
{
    char *page = page_of("pumice-checkpoint");

    (void)state;
    assert_contains(page, ".TP\n\\fBkeep=\"all\"\\fR\n");
    pm_free(page);
    page = page_of("pumice-eval");
    assert_contains(page, ".TP\n\\fB\\-\\-watch\\fR\n");
    pm_free(page);
}

/* mandoc and groff report nothing, where they are installed. */
static void tools_find_nothing(void **state)
{
    (void)state;
    char *text = shell_text("if command -v mandoc >/dev/null; then "
                            "mandoc -T lint -W warning %s/*.1; fi\n"
                            "if command -v groff >/dev/null; then\n"
                            "    for page in %s/*.1; do "
                            "groff -man -ww -Tutf8 $page >/dev/null; done\n"
                            "fi",
                            folder, folder);
    assert_string_equal(text, "");
    pm_free(text);
}

static void mistakes_are_refused(void **state)
{
    int code;
    char *text = shell_output(&code, "\"$PUMICE_PROGRAM\" help --man %s/none", folder);

    (void)state;
    assert_int_equal(code, 1);
    assert_contains(text, "none/pumice.1");
    pm_free(text);
    text = shell_output(&code, "\"$PUMICE_PROGRAM\" help --man %s train", folder);
    assert_int_equal(code, 2);
    assert_contains(text, "'train' does not belong after help --man FOLDER");
    pm_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_command_has_a_page), cmocka_unit_test(overview_names_each_page),
        cmocka_unit_test(macros_are_known),        cmocka_unit_test(options_are_items),
        cmocka_unit_test(tools_find_nothing),      cmocka_unit_test(mistakes_are_refused),
    };

    return cmocka_run_group_tests(tests, make, drop);
}
