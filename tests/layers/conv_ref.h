/* Shared by the references of convolutions and products: bias and activation after the sums. */
#ifndef CONV_REF_H
#define CONV_REF_H

#include "check.h"

/* y += bias (variable 1, unless bias=false), then the activation; the magnitudes follow. */
static inline void ref_tail(struct ref *r)
{
    const int channels = r->y.shape.dim[r->y.shape.rank - 1];
    const double slope = ref_number(r, "slope", 0.2);

    for (size_t i = 0; i < r->y.count; i++) {
        double *y = &r->y.v[i], *mag = &r->y.mag[i];

        if (!ref_says(r, "bias", "false", "true")) {
            *y += r->var[1].v[i % channels];
            *mag += fabs(r->var[1].v[i % channels]);
        }
        if (ref_says(r, "activation", "relu", "none"))
            *y = fmax(*y, 0);
        else if (ref_says(r, "activation", "relu6", "none"))
            *y = fmin(fmax(*y, 0), 6);
        else if (ref_says(r, "activation", "leaky_relu", "none"))
            *y = *y > 0 ? *y : slope * *y;
        else if (ref_says(r, "activation", "sigmoid", "none"))
            *y = 1 / (1 + exp(-*y)), *mag = 1 + *mag / 4;
        else if (ref_says(r, "activation", "tanh", "none"))
            *y = tanh(*y), *mag += 1;
        else if (ref_says(r, "activation", "hard_sigmoid", "none"))
            *y = fmax(0, fmin(1, (*y + 3) / 6)), *mag += 1;
    }
}

/* Number i (0 height, 1 width) of an option that holds one number or two. */
static inline int ref_pair(const struct ref *r, const char *key, int i, int otherwise)
{
    double v[2];
    const int count = ref_numbers(r, key, v, 2);

    return count == 0 ? otherwise : (int)v[count == 1 ? 0 : i];
}

#endif
