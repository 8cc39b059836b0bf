/* The inside of verify, shared by its files. */
#ifndef PM_VERIFY_PRIVATE_H
#define PM_VERIFY_PRIVATE_H

#include <pumice/verify.h>

/* ---- one_call.c: one call on one device, with guards around its buffers ------------------ */

/* How a call is run. */
struct pm_way {
    int level;      /* of pick() to begin with */
    int accumulate; /* 0, 1: the params' flag; -1: as it stands there */
    int inplace;    /* 0: outputs have buffers of their own; n: the row's n-th "y=x" is in force */
};
struct pm_one_call;
int pm_one_call_create(struct pm_device *d, const struct pm_verify_call *call, struct pm_way way,
                       struct pm_one_call **out);
void pm_one_call_destroy(struct pm_one_call **o);
/* Runs it from these contents (NULL: the call's own); outputs and scratch start as NaN. After it
 * *fault says what was written outside of its buffers or into inputs; empty: nothing. */
int pm_one_call_run(struct pm_one_call *o, const void *const contents[PM_MAX_BUFS],
                    char *fault, size_t size);
/* Contents of buffer b after the run. */
const void *pm_one_call_result(const struct pm_one_call *o, int b);
const char *pm_one_call_variant(const struct pm_one_call *o);
/* Whether the row's n-th in-place pair can be had with this call's buffers; *more: there is an n-th. */
bool pm_one_call_inplace(const struct pm_verify_call *call, int n, bool *more);

/* ---- bound.c: what the CPU says, and how far a device may be from it ---------------------- */

struct pm_expected;
int pm_expected_create(struct pm_device *cpu, const struct pm_verify_call *call, int accumulate,
                       struct pm_expected **out);
void pm_expected_destroy(struct pm_expected **e);
/* Contents that runs on the device begin from. */
const void *const *pm_expected_contents(const struct pm_expected *e);
/* Compares a finished run with what is expected and adds to *r: values, worst, and where something
 * is wrong verdict and why. */
int pm_expected_compare(struct pm_expected *e, const struct pm_one_call *run,
                        struct pm_verified *r);

/* ---- verify.c ---------------------------------------------------------------------------- */

struct pm_verify {
    struct pm_device *device; /* borrowed */
    struct pm_device *cpu;    /* owned */
    struct pm_verified *found;
    size_t count, capacity;
    bool only;                /* just what is in `wanted` */
    struct pm_wanted {
        char kernel[48], variant[48];
    } *wanted;
    size_t wanted_count, wanted_capacity;
    uint64_t *seen;           /* hashes of the calls that were run, when nothing is named */
    size_t seen_count, seen_capacity;
};
/* True the first time for this number. */
bool pm_verify_first(struct pm_verify *v, uint64_t call);
/* Whether this variant is to be run (and, of what was named, has not been yet). */
bool pm_verify_wants(const struct pm_verify *v, const char *kernel, const char *variant);
/* The levels of pick() whose variants are wanted, as bits. */
uint32_t pm_verify_mask(const struct pm_verify *v, const struct pm_kernel *k, const void *params,
                        size_t count);
/* Runs a call at these levels. */
int pm_verify_levels(struct pm_verify *v, const struct pm_verify_call *call, uint32_t levels);

#endif
