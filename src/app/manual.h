/* Manual pages and shell completion, made from the tables that --help prints. main.c owns the table
 * of commands. */
#ifndef MANUAL_H
#define MANUAL_H

#include "app/app.h"

struct app_program {
    const struct pm_command *const *commands;
    size_t count;
    const char *help; /* one line: what the program is */
    const char *closing; /* of the overview: flags, key=value, exit codes */
};

/* Writes pumice.1 and pumice-COMMAND.1 into the folder, which must exist. PM_EFAIL: writing
 * failed. */
int app_manual_write(const struct app_program *p, const char *folder);

/* Prints the completion script for bash, zsh or fish. PM_ECONFIG for another shell. */
int app_completion_print(const struct app_program *p, const char *shell);

#endif
