/* shared_data: real data sets and files of other programs, where they are installed. */
#ifndef SHARED_DATA_H
#define SHARED_DATA_H

#include "base/unit.h"

/* The file or folder `name` of PUMICE_DATA (default ../shared/data beside the sources), in static
 * storage. Without it the running test is skipped with a line. */
static inline const char *shared_data(const char *name)
{
    static char text[8][1024];
    static int next;
    const char *data = getenv("PUMICE_DATA"), *source = getenv("PUMICE_SOURCE");
    next = (next + 1) % 8;
    if (data)
        snprintf(text[next], sizeof text[next], "%s/%s", data, name);
    else
        snprintf(text[next], sizeof text[next], "%s/../shared/data/%s", source ? source : ".",
                 name);
    if (access(text[next], R_OK) != 0) {
        print_message("skipped: %s is not there (set PUMICE_DATA)\n", text[next]);
        skip();
    }
    return text[next];
}

#endif
