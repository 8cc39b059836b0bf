/* lstm_cell: a cell of long short-term memory, for one example. The layers lstm and
 * attention_decoder share it; lstm.c has the formulas. */
#ifndef PUMICE_LSTM_CELL_H
#define PUMICE_LSTM_CELL_H

#include "layers/activation.h"

/* Makes the gates g of a row from their sums z + pre + bias, [4 units] each, in the order i, j, f,
 * o; then the state c from the one before, old, and the output y. */
PM_INLINE void pm_lstm_gates(const float *z, const float *pre, const float *bias,
                             float forget_bias, const float *old, size_t units, float *g,
                             float *c, float *y)
{
    PM_SIMD
    for (size_t k = 0; k < units; k++) {
        const size_t kj = units + k, kf = 2 * units + k, ko = 3 * units + k;
        const float i = pm_sigmoid(z[k] + pre[k] + bias[k]);
        const float j = pm_tanh(z[kj] + pre[kj] + bias[kj]);
        const float f = pm_sigmoid(z[kf] + pre[kf] + bias[kf] + forget_bias);
        const float o = pm_sigmoid(z[ko] + pre[ko] + bias[ko]);

        c[k] = old[k] * f + i * j;
        y[k] = pm_tanh(c[k]) * o;
        g[k] = i, g[kj] = j, g[kf] = f, g[ko] = o;
    }
}

/* Makes the gradients of the gates' sums. dh: of the output and of the state; dc of the next c,
 * which becomes that of c before. */
PM_INLINE void pm_lstm_back(const float *g, const float *c, const float *old, const float *dh,
                            size_t units, float *dz, float *dc)
{
    PM_SIMD
    for (size_t k = 0; k < units; k++) {
        const size_t kj = units + k, kf = 2 * units + k, ko = 3 * units + k;
        const float i = g[k], j = g[kj], f = g[kf], o = g[ko], th = pm_tanh(c[k]);
        const float d = dc[k] + dh[k] * o * (1 - th * th);

        dz[k] = d * j * i * (1 - i);
        dz[kj] = d * i * (1 - j * j);
        dz[kf] = d * old[k] * f * (1 - f);
        dz[ko] = dh[k] * th * o * (1 - o);
        dc[k] = d * f;
    }
}

#endif
