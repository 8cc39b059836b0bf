/* verify_private: declarations shared by the files of src/verify. */
#ifndef PM_VERIFY_PRIVATE_H
#define PM_VERIFY_PRIVATE_H

#include <pumice/verify.h>

/* ---- one_call.c: one call on one device, with guards around its buffers ------------------ */

/* How a call is run. */
struct pm_way {
    int level;      /* first pick() level to try */
    int accumulate; /* 0, 1: the params' flag; -1: leave the flag unchanged */
    int inplace;    /* 0: outputs have their own buffers; n: the row's n-th "y=x" is used */
};
struct pm_one_call;
int pm_one_call_create(struct pm_device *d, const struct pm_verify_call *call, struct pm_way way,
                       struct pm_one_call **out);
void pm_one_call_destroy(struct pm_one_call **o);
/* Runs the call from these contents (NULL: the call's own). Outputs and scratch start as NaN.
 * Afterwards *fault describes writes outside the call's buffers or into inputs; empty: none. */
int pm_one_call_run(struct pm_one_call *o, const void *const contents[PM_MAX_BUFS],
                    char *fault, size_t size);
/* Returns the contents of buffer b after the run. */
const void *pm_one_call_result(const struct pm_one_call *o, int b);
const char *pm_one_call_variant(const struct pm_one_call *o);
/* Whether the row's n-th in-place pair is possible with this call's buffers. *more: there is an
 * n-th pair. */
bool pm_one_call_inplace(const struct pm_verify_call *call, int n, bool *more);

/* ---- bound.c: the CPU's results, and the allowed error of a device ----------------------- */

struct pm_expected;
int pm_expected_create(struct pm_device *cpu, const struct pm_verify_call *call, int accumulate,
                       struct pm_expected **out);
void pm_expected_destroy(struct pm_expected **e);
/* Returns the contents that runs on the device start from. */
const void *const *pm_expected_contents(const struct pm_expected *e);
/* Compares a finished run with the expected results and adds to *r: values, worst, and, if a value
 * is wrong, verdict and why. */
int pm_expected_compare(struct pm_expected *e, const struct pm_one_call *run,
                        struct pm_verified *r);

/* ---- verify.c ---------------------------------------------------------------------------- */

/* Replaces what verification does with the calls of sources. Only tests set it. */
struct pm_verify_hooks {
    /* Returns the pick() levels to run, as bits. Called once for each distinct call, in the order
     * of the sources. */
    uint32_t (*levels)(void *ctx, const struct pm_kernel *k, const void *params, size_t count);
    /* Runs a call at these levels. */
    int (*run)(void *ctx, const struct pm_verify_call *call, uint32_t levels);
    void *ctx;
};
struct pm_verify {
    struct pm_device *device; /* borrowed */
    struct pm_device *cpu;    /* owned */
    struct pm_verified *found;
    size_t count, capacity;
    bool only;                /* run only the variants in `wanted` */
    struct pm_wanted {
        char kernel[48], variant[48];
    } *wanted;
    size_t wanted_count, wanted_capacity;
    uint64_t *seen;           /* hashes of the calls that were run, if `wanted` names none */
    size_t seen_count, seen_capacity;
    double end;               /* pm_seconds() after which no call is run; 0: no limit */
    bool cut;                 /* the limit has kept a call from running */
    const struct pm_verify_hooks *hooks; /* borrowed; NULL: compare with the CPU */
};
/* Whether the time limit is reached. Notes that a call was left out. */
bool pm_verify_is_late(struct pm_verify *v);
/* Whether this number is seen for the first time. */
bool pm_verify_first(struct pm_verify *v, uint64_t call);
/* Whether this variant must be run. A variant in `wanted` is run once. */
bool pm_verify_wants(const struct pm_verify *v, const char *kernel, const char *variant);
/* Returns the pick() levels whose variants are wanted, as bits. */
uint32_t pm_verify_mask(const struct pm_verify *v, const struct pm_kernel *k, const void *params,
                        size_t count);
/* Runs a call at these levels. */
int pm_verify_levels(struct pm_verify *v, const struct pm_verify_call *call, uint32_t levels);

#endif
