/* vmath: helpers for the C side of element-wise kernels, in addition to PM_CLONES. With them the
 * compiler can vectorise loops. */
#ifndef PUMICE_VMATH_H
#define PUMICE_VMATH_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/vector.h"

/* e^x within 2 ulp, 0 below e^-87, infinity above e^88.7; NaN stays NaN. The library's expf cannot
 * be vectorised without giving up IEEE rules elsewhere. x = n ln 2 + r, |r| <= ln 2 / 2. Taylor's
 * series to r^7 has an error of 5e-9. n is read from the low bits of x / ln 2 + 1.5 * 2^23. */
PM_INLINE float pm_expf(float x)
{
    float c = x < -87.0f ? -87.0f : x > 89.0f ? 89.0f : x;
    float t = c * 1.44269504f + 12582912.0f, n = t - 12582912.0f, scale;
    float r = c - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.0f / 5040;
    uint32_t bits;

    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    memcpy(&bits, &t, 4);
    bits = (bits + 126u) << 23; /* 2^(n - 1), so that n = 128 fits; doubled below */
    memcpy(&scale, &bits, 4);
    p = p * scale * 2.0f;
    return x < -87.0f ? 0.0f : p;
}

/* log(1 + e) for e in 0..1: 2 artanh(e / (2 + e)) with an error of 2e-8 of it. */
PM_INLINE float pm_log1pf(float e)
{
    float s = e / (2 + e), t = s * s, y = 2.0f / 15;

    y = y * t + 2.0f / 13;
    y = y * t + 2.0f / 11;
    y = y * t + 2.0f / 9;
    y = y * t + 2.0f / 7;
    y = y * t + 2.0f / 5;
    y = y * t + 2.0f / 3;
    y = y * t + 2;
    return s * y;
}

/* Sum and maximum of n >= 1 values, in an order that depends on n alone. There are 16 partial
 * results, one per remainder of the index, so that vectors of any width work. */
PM_INLINE float pm_row_sum(const float *x, int n)
{
    float part[16] = { 0 };
    int i = 0;

    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++)
            part[k] += x[i + k];
    for (; i < n; i++)
        part[i % 16] += x[i];
    for (int width = 8; width > 0; width /= 2)
        for (int k = 0; k < width; k++)
            part[k] += part[k + width];
    return part[0];
}

enum { PM_EXP_PIECE = 1024 }; /* values that pm_exp_sum copies at once */

/* Returns the sum of e^(x - most) over count values, in an order that depends on count alone. It
 * adds pieces, so that few roundings affect each term: 132 for 65536 values. stride: from value to
 * value. */
PM_INLINE float pm_exp_sum(const float *x, int count, size_t stride, float most)
{
    float e[PM_EXP_PIECE], sum = 0;

    for (int first = 0; first < count; first += PM_EXP_PIECE) {
        const int n = count - first < PM_EXP_PIECE ? count - first : PM_EXP_PIECE;

        for (int i = 0; i < n; i++)
            e[i] = x[(size_t)(first + i) * stride] - most;
        PM_SIMD
        for (int i = 0; i < n; i++)
            e[i] = pm_expf(e[i]);
        sum += pm_row_sum(e, n);
    }
    return sum;
}

PM_INLINE float pm_row_max(const float *x, int n)
{
    float part[16];
    int i = 0;

    for (int k = 0; k < 16; k++)
        part[k] = x[0];
    for (; i + 16 <= n; i += 16)
        for (int k = 0; k < 16; k++)
            part[k] = x[i + k] > part[k] ? x[i + k] : part[k];
    for (; i < n; i++)
        part[i % 16] = x[i] > part[i % 16] ? x[i] : part[i % 16];
    for (int k = 1; k < 16; k++)
        part[0] = part[k] > part[0] ? part[k] : part[0];
    return part[0];
}

#endif
