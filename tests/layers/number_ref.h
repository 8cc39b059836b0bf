/* Shared by the references of recurrent layers: numbers with the size of what their errors are
 * relative to. */
#ifndef NUMBER_REF_H
#define NUMBER_REF_H

#include "check.h"

/* mag: check.h. */
struct number { double v, mag; };

static inline struct number exact(double v)
{
    return (struct number){ v, fabs(v) };
}

static inline struct number plus(struct number a, struct number b)
{
    return (struct number){ a.v + b.v, a.mag + b.mag };
}

static inline struct number times(struct number a, struct number b)
{
    return (struct number){ a.v * b.v, fabs(a.v) * b.mag + fabs(b.v) * a.mag };
}

static inline struct number sigmoid(struct number z)
{
    const double v = 1 / (1 + exp(-z.v));

    return (struct number){ v, v + z.mag / 4 };
}

static inline struct number tangent(struct number z)
{
    const double v = tanh(z.v);

    return (struct number){ v, fabs(v) + z.mag };
}

#endif
