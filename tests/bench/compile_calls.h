/* compile_calls: the kernel calls that compile.c compiles: those of training steps of some nets,
 * of an evaluation and of the layers' test cases, each at every level that its row offers. */
#ifndef PM_COMPILE_CALLS_H
#define PM_COMPILE_CALLS_H

#include "layers/check_run.h"

enum { COMPILE_NETS = 12 };

/* The calls of a device. All zero before calls_add. */
struct calls {
    struct pm_device *device; /* borrowed */
    /* The levels of a call follow one another, from 0 on. */
    struct pm_bound_call *list;
    int *levels;
    size_t count, capacity, level_capacity;
    /* Calls of nets come first: the index after each net's last one. */
    size_t net_end[COMPILE_NETS];
    /* Owners of the calls' parameters. */
    struct subject **subjects;
    size_t subject_count, subject_capacity;
    struct pm_net *net[COMPILE_NETS];
    struct pm_variables *variables[COMPILE_NETS];
    struct pm_plan *plan[COMPILE_NETS];
};

/* Adds all calls. After an error, calls_free frees what was made. */
int calls_add(struct calls *c, struct pm_device *device);
void calls_free(struct calls *c);
/* The net of call i; NULL if it is a test case. */
const char *calls_net(const struct calls *c, size_t i);

#endif
