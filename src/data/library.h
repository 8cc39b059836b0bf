/* library, internal to src/: libraries that few commands need are loaded when they are needed.
 * Linking them would load dozens of libraries at the start of every command. */
#ifndef PUMICE_DATA_LIBRARY_H
#define PUMICE_DATA_LIBRARY_H

#include <pumice/base.h>

struct pm_library_entry {
    const char *name; /* of the function */
    size_t offset;    /* of its pointer in the struct of functions */
};
/* A library and the functions that are used of it. The file that uses it defines one object. */
struct pm_library {
    const char *const *sonames; /* NULL-terminated; the first library that opens is used */
    const char *package;        /* Debian's, for messages */
    const struct pm_library_entry *entries;
    size_t count;
    void *functions;            /* struct of functions; valid after pm_library_load */
    void (*start)(void);        /* called once after loading; NULL: nothing to do */
    bool loaded;                /* owned by pm_library_load */
};
#define PM_LIBRARY(names, of, table, struct_of_functions)                                          \
    { .sonames = (names), .package = (of), .entries = (table), .count = PM_COUNT(table),           \
      .functions = (struct_of_functions) }
/* Loads the library for the rest of the process, at the first call. PM_EFAIL if none of the names
 * opens or a function is missing; the message begins with user, for example "dataset download", and
 * names the package to install. Any thread may call it. */
int pm_library_load(struct pm_library *library, const char *user);

#endif
