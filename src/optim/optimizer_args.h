/* The values that every optimizer's CPU function reads first. */
#ifndef PM_OPTIMIZER_ARGS_H
#define PM_OPTIMIZER_ARGS_H

#include "optimizer.params.h"
#include "optim/optimizer.h"

struct optimizer_args {
    const float *g;
    const uint32_t *owner;
    const float *scale, *result;
    bool finite;
    const struct pm_step *step;
    float *w, *slot[PM_MAX_SLOTS];
};

static inline struct optimizer_args optimizer_args_of(const struct pm_args *a)
{
    return (struct optimizer_args){
        .g = a->buf[0], .owner = a->buf[1], .scale = a->buf[2], .result = a->buf[3],
        .finite = *(const uint32_t *)a->buf[4] != 0, .step = a->buf[5], .w = a->buf[6],
        .slot = { a->buf[7], a->buf[8], a->buf[9] },
    };
}

/* Returns the gradient's factor in the block of 64 floats that holds element i. */
static inline float optimizer_scale(const struct optimizer_args *o, size_t i)
{
    return o->scale[o->owner[i / 64]] * o->result[PM_RESULT_CLIP];
}

/* Loops over blocks of 64: the body sees i and s, the gradient's factor. Ranges are multiples of 64
 * because rows set .grain = 4096. */
#define OPTIMIZER_LOOP(o, begin, end, ...)                                                         \
    for (size_t block_ = (begin); block_ < (end); block_ += 64) {                                  \
        size_t last_ = block_ + 64 < (end) ? block_ + 64 : (end);                                  \
        float s = optimizer_scale(&(o), block_);                                                   \
        for (size_t i = block_; i < last_; i++)                                                    \
            __VA_ARGS__                                                                            \
    }

#endif
