/* Reads a command's usage and help texts as lists of words, for manual and completion. */
#ifndef USAGE_H
#define USAGE_H

#include "app/app.h"

struct app_flag {
    const char *name;  /* "--out" */
    const char *value; /* its value, "FOLDER"; NULL: none */
};

struct app_usage {
    const struct app_flag *flags; /* each once, in the order of the texts */
    size_t flags_count;
    const char *const *parts; /* first words, such as "inspect" of checkpoint; may be none */
    size_t parts_count;
    int config; /* number of the word that may be a config file: 1, 2 after a part, 0 none */
};

/* Reads the flags from usage and details, and the parts from usage alone. Lists and texts are in
 * the arena. */
struct app_usage app_usage_read(const struct pm_command *c, struct pm_arena *a);

#endif
