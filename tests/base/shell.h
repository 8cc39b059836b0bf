/* Runs shell commands and returns their output, for tests of scripts and installed files. */
#ifndef SHELL_H
#define SHELL_H

#include "base/unit.h"

#include <stdio.h>
#include <sys/wait.h>

/* Runs a command and returns its output and errors together. Free with pm_free. *code gets the
 * exit code, -1 when a signal ended the command. */
PM_PRINTF(2, 3) static inline char *shell_output(int *code, const char *format, ...)
{
    struct pm_str command = { 0 }, text = { 0 };
    char piece[4096];
    size_t n;
    va_list ap;

    va_start(ap, format);
    pm_str_add(&command, "{ ");
    pm_str_add_args(&command, format, ap);
    pm_str_add(&command, "\n} 2>&1");
    va_end(ap);
    FILE *f = popen(command.text, "r");
    assert_non_null(f);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        pm_str_bytes(&text, piece, n);
    const int status = pclose(f);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    pm_str_free(&command);
    pm_str_add(&text, "%s", "");
    return text.text;
}

/* Like shell_output, for a command that must succeed. */
PM_PRINTF(1, 2) static inline char *shell_text(const char *format, ...)
{
    struct pm_str command = { 0 };
    int code;
    va_list ap;

    va_start(ap, format);
    pm_str_add_args(&command, format, ap);
    va_end(ap);
    char *text = shell_output(&code, "%s", command.text);
    if (code != 0)
        fail_msg("%s: exit code %d: %s", command.text, code, text);
    pm_str_free(&command);
    return text;
}

#endif
