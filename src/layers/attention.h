/* attention: the kernel rows of the layers attention_decoder and attention_search. All take struct
 * attention_params. A row of the batch is an example or, in a search, one of its beams; S is
 * p.steps, and the other letters are the members of the params. `u:` buffers with an axis S hold
 * all steps: a call writes step p.at, and the first call of a plan's step also writes zeros for the
 * others. The rows after the steps (keys, memory, inputs) take all steps and ignore p.at. */
#ifndef PUMICE_ATTENTION_H
#define PUMICE_ATTENTION_H

#include <pumice/layer.h>

#include "attention.params.h"

enum { PM_ATTENTION_START, PM_ATTENTION_END };   /* symbols; letters follow */
enum { PM_ATTENTION_MOST = 1024, PM_ATTENTION_BEAMS = 16 };
#define PM_ATTENTION_NEVER (-1e30f)              /* the total of a beam that does not exist */

/* Place of a step among all steps of the rows. */
static inline size_t pm_attention_place(const struct attention_params *p, size_t row, int step)
{
    return row * (size_t)p->steps + (size_t)step;
}

/* The row that this row continues at step p->at: in a search, the beam that it chose; else itself.
 * parents NULL: no search. */
static inline size_t pm_attention_parent(const struct attention_params *p, const int *parents,
                                         size_t row)
{
    int beam;

    if (!parents || p->at == 0)
        return row;
    beam = parents[pm_attention_place(p, row, p->at - 1)];
    beam = beam < 0 ? 0 : beam >= p->beams ? p->beams - 1 : beam;
    return row - row % (size_t)p->beams + (size_t)beam;
}

/* Writes zeros for all steps of a row except p->at. per: numbers of a step, of 4 bytes each. */
void pm_attention_clear(const struct attention_params *p, void *all, size_t row, size_t per);

/* keys [n / beams, t, attention], memory [n / beams, t, c], query [units, attention], v
 * [attention], y [n, S, units] or absent (the state is 0), parents I32 [n, S] (optional): q [n, S,
 * attention], alpha [n, S, t], context [n, S, c], and columns I32 [n, S] (optional): the first step
 * of the sequence with the largest weight. */
extern const struct pm_kernel pm_attention_weights;
/* kernel [classes + c + units, 4 units], bias, symbols I32 [n, S] (labels, or choices; absent at
 * the first step of a search), parents, context: gates [n, S, 4 units], c and y [n, S, units]. */
extern const struct pm_kernel pm_attention_cell;
/* y, dense [units, classes], bias: logits [n, S, classes]. */
extern const struct pm_kernel pm_attention_logits;
/* logits: symbols, parents I32 [n, S] and totals [n, S]. */
extern const struct pm_kernel pm_attention_select;

/* dy [n, S, units], dq of the step after or absent, query, gates, c, kernel, labels: dz [n, S, 4
 * units] and dc [n, units]. */
extern const struct pm_kernel pm_attention_back;
/* dz, kernel: dcontext [n, S, c]. */
extern const struct pm_kernel pm_attention_back_context;
/* dcontext, memory, keys, v, q, alpha: dscore [n, S, t] and dq [n, S, attention]. */
extern const struct pm_kernel pm_attention_back_weights;
/* keys, v, q, dscore: dkeys [n, t, attention], and dv of the same shape. The rows of dv add up to
 * the gradient of v. */
extern const struct pm_kernel pm_attention_back_keys;
/* alpha, dcontext: adds to dmemory [n, t, c]. */
extern const struct pm_kernel pm_attention_back_memory;
/* labels, context, y: x [n, S, classes + c + units], the inputs of the cell, and state [n, S,
 * units], the state before each step. */
extern const struct pm_kernel pm_attention_inputs;

#endif
