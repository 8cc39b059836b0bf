/* verify: kernel calls on a device, in every variant, against the CPU side of their rows.
 *
 * Drivers compile our shaders, and some compile them wrongly; nothing of that shows but in the
 * numbers. Each call here runs on the device and on the CPU from the same contents. Outputs start as
 * NaN, what accumulates starts from equal random numbers (and from NaN when it is to be written),
 * 4 KiB of guard words lie on both sides of every buffer, scratch included, and inputs must come
 * back unchanged. Outputs may also take the place of inputs where the row allows it: that is run
 * too. Integers must be equal. Floats may differ by
 *
 *     allowed = 16 (n + 2) (S + u |y|) + 16 u max|y| + 2^-120,    u = 2^-24
 *
 * where y is the CPU's value, n the roundings that make one value, S what y moves when each input is
 * rounded anew, and max|y| is taken over the buffer. Why this holds, and why it is small:
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
 *   - u |y| is the rounding of the result; with n + 2 >= 3 it also holds what Vulkan allows exp, log,
 *     division and roots beside exact rounding (some units in the last place).
 *   - 16 u max|y| covers constants inside a function (p - 1, 1 + e), which moving inputs do not show.
 *   - 2^-120: numbers below the normal range may be flushed to zero.
 *
 * A value outside of it is looked at again: 32 more draws estimate S better, and those with e =
 * 2^-20 span what y may be where a test inside the kernel lies within some roundings of its kink
 * (relu6 at 6). Only a value that is outside of all this counts as wrong. In a convolution of 3x3x64
 * a term left out exceeds the bound 40 times, a wrong sign 80 times; over n = 25,000 terms, 4 missing
 * ones show, and their absence elsewhere.
 *
 * Inputs are those that a training step has: the calls of a plan are walked in order on the CPU, from
 * random pictures and labels and from initial variables of which none is left constant. */
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
    PM_VERDICT_CANNOT, /* its pipeline does not compile here; another variant is run instead */
};
/* What is known of one variant of one kernel on one device. */
struct pm_verified {
    char kernel[48], variant[48];
    enum pm_verdict verdict;
    int calls;       /* different calls that were run */
    uint64_t values; /* compared */
    double worst;    /* largest error over what is allowed */
    char why[240];   /* WRONG: the first wrong value */
};

struct pm_verify;
/* Opens a CPU device beside d. Nothing is avoided on d by itself. */
int pm_verify_open(struct pm_device *d, struct pm_verify **out);
void pm_verify_close(struct pm_verify **v);
/* From now on only variants that are named by such calls are run, each once: on the largest call of
 * a source that takes no time to speak of. Nothing named: everything that differs is run. */
void pm_verify_want(struct pm_verify *v, const char *kernel, const char *variant);
/* How many of the named variants no call has reached yet. */
size_t pm_verify_lacks(const struct pm_verify *v);
/* What has been found so far, kernels in the order of their first runs. */
const struct pm_verified *pm_verify_results(const struct pm_verify *v, size_t *count);

/* ---- calls ------------------------------------------------------------------------------ */

struct pm_verify_buffer {
    enum pm_type type;
    size_t bytes;     /* 0: absent, or scratch */
    const void *data; /* before the call; not looked at for w: */
};
struct pm_verify_call {
    const struct pm_kernel *kernel;
    const char *label;
    size_t count;
    const void *params;
    struct pm_verify_buffer buf[PM_MAX_BUFS]; /* in row order */
};
/* Runs one call in every wanted variant. An error is one of the device or host; a wrong result is
 * not an error. */
int pm_verify_call(struct pm_verify *v, const struct pm_verify_call *call);

/* ---- plans ------------------------------------------------------------------------------ */

/* Where calls come from: a net and what a plan makes of it. */
struct pm_verify_source {
    const char *name; /* for messages */
    int (*build)(void *ctx, int batch, struct pm_net **out);
    void *ctx;
    int batch;
    struct pm_plan_options options;   /* micro_batches and bucket_bytes are not used */
    const char *const *slots;         /* the optimizer's, NULL-terminated, or NULL */
};
int pm_verify_source(struct pm_verify *v, const struct pm_verify_source *s);
/* Adds to v's wishes what the plan would run and nothing is known of: neither by v nor by `known`
 * (may be NULL). Returns how many. */
struct pm_verdicts;
size_t pm_verify_want_plan(struct pm_verify *v, const struct pm_plan *p,
                           const struct pm_verdicts *known);

/* Small nets that reach every variant of every layer's kernels: case i, or false at the end. */
bool pm_verify_case(size_t i, struct pm_verify_source *out);

/* ---- memory of verdicts ----------------------------------------------------------------- */

/* The verdicts of former runs on this device, driver and build of the program, in
 * ~/.cache/pumice/verified-*.txt (XDG_CACHE_HOME). A damaged file is the same as none. */
struct pm_verdicts *pm_verdicts_load(const struct pm_device *d);
void pm_verdicts_free(struct pm_verdicts **k);
/* NULL: nothing is known. */
const struct pm_verified *pm_verdicts_find(const struct pm_verdicts *k, const char *kernel,
                                           const char *variant);
const struct pm_verified *pm_verdicts_list(const struct pm_verdicts *k, size_t *count);
/* Adds what v has found to what the file holds by now (another process may have written), and writes
 * it. Failing costs the next start the time again, so it is only logged. */
void pm_verdicts_save(struct pm_verdicts *k, const struct pm_verify *v);

#ifdef __cplusplus
}
#endif

#endif
