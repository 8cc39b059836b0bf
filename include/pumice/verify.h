/* verify: kernel calls on a device, in every variant, against the CPU side of their rows.
 *
 * Some drivers compile shaders wrongly, which only shows in the results. Each call here runs on the
 * device and on the CPU with the same inputs. Outputs start as NaN. Accumulated buffers start from
 * equal random numbers (and from NaN if the call overwrites them). 4 KiB of guard words surround
 * every buffer, including scratch, and inputs must stay unchanged. If the row allows outputs in
 * place of inputs, that is run, too. Integers must be equal. Floats may differ by
 *
 *     allowed = 16 (n + 2) (S + u |y|) + 16 u max|y| + 2^-120,    u = 2^-24
 *
 * where y is the CPU's value, n the number of roundings in one value, S the change of y when each
 * input is rounded again, and max|y| the maximum over the buffer. Why this bound holds, and why it
 * is small:
 *
 *   - A value is a sum of terms t_k, each a smooth function of inputs. Inputs times 1 + e s_k with
 *     random signs s_k change it by e sum s_k t_k, which is about e sqrt(sum t_k^2) = e |t|_2: that
 *     is measured on the CPU side itself, with e = 2^-14, as the largest of 4 draws, and scaled by
 *     u / e to S = u |t|_2. So S is the condition of this very call with these very inputs, and no
 *     layer has to say anything: cancellation enlarges it, a copy has |t|_2 = |y|.
 *   - Adding n terms in any order rounds n times, each by at most u times a partial sum, and a
 *     partial sum is at most |t|_1 <= sqrt(n) |t|_2. Roundings are as good as independent, so their
 *     sum exceeds L sqrt(n) u sqrt(n) |t|_2 = L n S with probability 2 exp(-L^2 / 2) (Higham and
 *     Mary 2019). L = 8 gives 3e-14; two sides round, hence 16. n comes from the row: its flops, or
 *     the inputs' values, per value of output, whichever is more.
 *   - u |y| is the rounding of the result; with n + 2 >= 3 it also holds what Vulkan and OpenCL
 *     allow exp, log, division and roots beside exact rounding (some units in the last place).
 *   - 16 u max|y| covers constants inside a function (p - 1, 1 + e), which moving inputs do not
 *     show.
 *   - 2^-120: numbers below the normal range may be flushed to zero.
 *
 * A value outside this bound is checked again: 32 more draws improve the estimate of S, and draws
 * with e = 2^-20 give the range of y if a comparison inside the kernel is within a few roundings of
 * its threshold (relu6 at 6). Only a value outside of both counts as wrong. In a convolution of
 * 3x3x64 a missing term exceeds the bound 40 times, a wrong sign 80 times; with n = 25,000 terms, 4
 * missing terms are detected.
 *
 * Inputs are those of a training step: the calls of a plan run in order on the CPU, starting from
 * random pictures and labels and from initial variables, none of them constant. */
#ifndef PUMICE_VERIFY_H
#define PUMICE_VERIFY_H

#include <pumice/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- verdicts --------------------------------------------------------------------------- */

enum pm_verdict {
    PM_VERDICT_OK,
    PM_VERDICT_WRONG,
    PM_VERDICT_CANNOT, /* its pipeline does not compile here; another variant runs instead */
};
/* The result for one variant of one kernel on one device. */
struct pm_verified {
    char kernel[48], variant[48];
    enum pm_verdict verdict;
    int calls;       /* number of different calls that ran */
    uint64_t values; /* number of compared values */
    double worst;    /* largest error, relative to the allowed error */
    char why[240];   /* WRONG: the first wrong value */
};

struct pm_verify;
/* Opens a CPU device to compare d with. Does not change which variants d uses. */
int pm_verify_open(struct pm_device *d, struct pm_verify **out);
void pm_verify_close(struct pm_verify **v);
/* Restricts verification to the variants named by such calls. Each runs once, on the largest call
 * of a source that takes little time. Without such a call, everything that differs is run. */
void pm_verify_want(struct pm_verify *v, const char *kernel, const char *variant);
/* Runs no further call when this many seconds have passed from now. The results so far stay. */
void pm_verify_limit(struct pm_verify *v, double seconds);
/* Whether the limit has kept at least one call from running. */
bool pm_verify_is_cut(const struct pm_verify *v);
/* Number of named variants that no call has reached yet. */
size_t pm_verify_lacks(const struct pm_verify *v);
/* The results so far, kernels in the order of their first runs. */
const struct pm_verified *pm_verify_results(const struct pm_verify *v, size_t *count);

/* ---- calls ------------------------------------------------------------------------------ */

struct pm_verify_buffer {
    enum pm_type type;
    size_t bytes;     /* 0: absent, or scratch */
    const void *data; /* contents before the call; ignored for w: */
};
struct pm_verify_call {
    const struct pm_kernel *kernel;
    const char *label;
    size_t count;
    const void *params;
    struct pm_verify_buffer buf[PM_MAX_BUFS]; /* in row order */
};
/* Runs one call in every selected variant. Fails only for errors of device or host; a wrong result
 * is not an error. */
int pm_verify_call(struct pm_verify *v, const struct pm_verify_call *call);

/* ---- plans ------------------------------------------------------------------------------ */

/* A source of calls: a net and the options of its plan. */
struct pm_verify_source {
    const char *name; /* for messages */
    /* Builds the net for this number of examples of height x width pixels. */
    int (*build)(void *ctx, int batch, int height, int width, struct pm_net **out);
    void *ctx;
    int batch, height, width; /* 0 x 0: a source of one size, whose build ignores it */
    struct pm_plan_options options;   /* micro_batches and bucket_bytes are not used */
    const char *const *slots;         /* the optimizer's, NULL-terminated, or NULL */
};
int pm_verify_source(struct pm_verify *v, const struct pm_verify_source *s);
/* Selects the variants that the plan would run and that have no verdict yet, neither in v nor in
 * `known` (may be NULL). Returns their number. */
struct pm_verdicts;
size_t pm_verify_want_plan(struct pm_verify *v, const struct pm_plan *p,
                           const struct pm_verdicts *known);

/* Small nets that reach every variant of every layer's kernels: case i, or false at the end. */
bool pm_verify_case(size_t i, struct pm_verify_source *out);

/* ---- memory of verdicts ----------------------------------------------------------------- */

/* The verdicts of earlier runs with this device, driver and build of the program, stored in
 * ~/.cache/pumice/verified-*.txt (XDG_CACHE_HOME). A damaged file is ignored. */
struct pm_verdicts *pm_verdicts_load(const struct pm_device *d);
void pm_verdicts_free(struct pm_verdicts **k);
/* Returns NULL if there is no verdict. */
const struct pm_verified *pm_verdicts_find(const struct pm_verdicts *k, const char *kernel,
                                           const char *variant);
const struct pm_verified *pm_verdicts_list(const struct pm_verdicts *k, size_t *count);
/* Merges v's results with the current content of the file (another process may have written it) and
 * writes it. A failure is only logged: the next start verifies again. */
void pm_verdicts_save(struct pm_verdicts *k, const struct pm_verify *v);

#ifdef __cplusplus
}
#endif

#endif
