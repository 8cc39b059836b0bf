/* check_modes: shared by the modes of check. Each mode runs one case; a failure prints a line. */
#ifndef CHECK_MODES_H
#define CHECK_MODES_H

#include "check_run.h"

#define CHECK_EPSILON 0x1p-24 /* float32's unit of rounding */

struct check {
    struct pm_device *cpu, *device; /* device: the one under test, or the cpu */
    void (*doctor)(struct subject *s);
    int cases, failures;
    long values, kinks;             /* compared values, and values that grad left out because a
                                     * kink was too near */
};

typedef int (*mode_fn)(struct check *k, const struct entry *e, const struct check_case *c);
int mode_ref(struct check *k, const struct entry *e, const struct check_case *c);
int mode_grad(struct check *k, const struct entry *e, const struct check_case *c);
int mode_parity(struct check *k, const struct entry *e, const struct check_case *c);
int mode_bench(struct check *k, const struct entry *e, const struct check_case *c);

static inline double or_default(double v, double otherwise)
{
    return v > 0 ? v : otherwise;
}

/* The contents of a float tensor. */
static inline const float *floats(const struct subject *s, struct pm_tensor t)
{
    return (const float *)s->values[t.value].data;
}

#endif
