/* The environment that loads a fault library into the program, for struct how of e2e/program.h. */
#ifndef FAULTS_H
#define FAULTS_H

#include "e2e/program.h"

/* Loads preload.c with these PM_FAULT_... variables, such as "PM_FAULT_AT=3 PM_FAULT_DO=ENOSPC".
 * The result lies in one of four static buffers. */
PM_PRINTF(1, 2) static inline struct how with_faults(const char *format, ...)
{
    static char text[4][4096];
    static int next;
    va_list ap;

    next = (next + 1) % 4;
    int n = snprintf(text[next], sizeof text[next],
                     "LD_PRELOAD='%s' ASAN_OPTIONS=verify_asan_link_order=0 ",
                     getenv("PUMICE_FAULTS"));
    va_start(ap, format);
    vsnprintf(text[next] + n, sizeof text[next] - (size_t)n, format, ap);
    va_end(ap);
    return (struct how){ .environment = text[next] };
}

/* True when the run printed that a call was disturbed. */
static inline bool was_disturbed(const struct result *r)
{
    return strstr(r->err, "fault: call ") != NULL;
}

static inline bool has_lavapipe(void)
{
    const char *drivers = getenv("VK_DRIVER_FILES");

    return drivers && strstr(drivers, "lvp_icd");
}

#endif
