/* A temporary folder for one test program. Pass scratch_set_up and scratch_tear_down to
 * cmocka_run_group_tests. */
#ifndef SCRATCH_H
#define SCRATCH_H

#include "base/unit.h"

static char *folder;

/* Formats the path "FOLDER/..." into one of eight static buffers. */
PM_PRINTF(1, 2) static inline const char *in(const char *format, ...)
{
    static char text[8][512];
    static int next;
    va_list ap;

    next = (next + 1) % 8;
    const int n = snprintf(text[next], sizeof text[next], "%s/", folder);
    va_start(ap, format);
    vsnprintf(text[next] + n, sizeof text[next] - (size_t)n, format, ap);
    va_end(ap);
    return text[next];
}

static inline int scratch_set_up(void **state)
{
    (void)state;
    folder = make_folder();
    return 0;
}

static inline int scratch_tear_down(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

#endif
