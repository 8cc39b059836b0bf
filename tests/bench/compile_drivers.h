/* compile_drivers: finds the drivers of drivers.def and runs programs on them. */
#ifndef PM_COMPILE_DRIVERS_H
#define PM_COMPILE_DRIVERS_H

#include <pumice/kernel.h>

struct driver {
    const char *name;
    enum pm_class class;
    const char *rules, *icd, *stand_in, *variable, *value;
};

/* Driver i of the table; NULL after the last one. */
const struct driver *drivers_at(int i);
const struct driver *drivers_find(const char *name);

/* Where a driver comes from. */
enum driver_origin {
    DRIVER_NULL_DEVICE, /* the machine's Mesa: RADV's null device */
    DRIVER_OWN,         /* the machine's Mesa with a stand-in */
    DRIVER_UNPACKED,    /* the Mesa that third_party/drivers.sh unpacked */
    DRIVER_ORIGINS,
};
/* True if the files are here. */
bool drivers_have(const struct driver *d, enum driver_origin from);
/* Runs a program in a new process with only this driver visible, with a cache folder of its own
 * that is removed afterwards. quiet: without its messages on stderr. Returns its exit code; 1 when
 * a signal ended it. */
int drivers_run(const struct driver *d, enum driver_origin from, bool quiet, char *const argv[]);

#endif
