/* unary: functions of one number that activation.h does not have, and their derivatives, which take
 * the argument. shaders/lib/unary.glsl is the twin.
 *
 * exp, log and erf use the project's own formulas. Loops with them can be vectorised, and a Vulkan
 * driver's log may be off by 2^-21 near 1. */
#ifndef PUMICE_UNARY_H
#define PUMICE_UNARY_H

#include "layers/activation.h"

enum pm_unary {
    PM_UNARY_ELU,         /* x > 0 ? x : a (e^x - 1) */
    PM_UNARY_CELU,        /* x > 0 ? x : a (e^(x / a) - 1) */
    PM_UNARY_SELU,        /* b * elu */
    PM_UNARY_SOFTPLUS,    /* log(1 + e^x) */
    PM_UNARY_SOFTSIGN,    /* x / (1 + |x|) */
    PM_UNARY_EXP,
    PM_UNARY_LOG,
    PM_UNARY_SQRT,
    PM_UNARY_RECIPROCAL,
    PM_UNARY_ABS,
    PM_UNARY_NEG,
    PM_UNARY_GELU,        /* x / 2 (1 + erf(x / sqrt 2)) */
    PM_UNARY_GELU_TANH,   /* x / 2 (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715
                           * x^3) */
    PM_UNARY_SWISH,       /* x sigmoid(a x) */
    PM_UNARY_MISH,        /* x tanh(softplus(x)) */
    PM_UNARY_CLIP,        /* x clamped to a..b */
    PM_UNARY_THRESHOLDED, /* x > a ? x : 0 */
    PM_UNARY_AFFINE,      /* a x + b */
    PM_UNARY_SQUARE,
    PM_UNARY_CUBE,
    PM_UNARY_POWER,       /* x^a; negative x is allowed if a is whole */
    PM_UNARY_ERF,
    PM_UNARY_CEIL,
    PM_UNARY_FLOOR,
    PM_UNARY_ROUND,       /* halves round to the even neighbour */
    PM_UNARY_SIGN,
    PM_UNARY_KINDS
};

/* Returns log x, -infinity for 0, NaN below. x = 2^n m, m in sqrt(1/2)..sqrt 2; log m = 2
 * artanh(s), s = (m - 1) / (m + 1), by the series to s^9, whose error is 1e-9. Subnormals count as
 * 0. */
PM_INLINE float pm_logf(float x)
{
    uint32_t bits;
    int32_t n;
    float m, s, t, y;

    memcpy(&bits, &x, 4);
    n = (int32_t)(bits - 0x3f3504f3u) >> 23;
    bits -= (uint32_t)n << 23;
    memcpy(&m, &bits, 4);
    s = (m - 1) / (m + 1), t = s * s;
    y = s * (2 + t * (2.0f / 3 + t * (2.0f / 5 + t * (2.0f / 7 + t * (2.0f / 9)))));
    y = (float)n * 0.693145752f + (y + (float)n * 1.42860677e-6f);
    y = x < 1.17549435e-38f ? (x < 0 ? NAN : -INFINITY) : y;
    return x < INFINITY ? y : x; /* infinity and NaN are returned unchanged */
}

/* An odd polynomial below 0.95, 1 - e^(a polynomial for log erfc) above. Both are fitted by least
 * squares on Chebyshev points; the error is below 2e-9. */
PM_INLINE float pm_erff(float x)
{
    float t = x < 0 ? -x : x, s = x * x, near = 8.17948094e-5f, far = 1.92663734e-4f;
    float c = t > 4 ? 4 : t;

    near = near * s - 8.096167e-4f;
    near = near * s + 5.19679394e-3f;
    near = near * s - 2.68576294e-2f;
    near = near * s + 1.12836622e-1f;
    near = near * s - 3.76126319e-1f;
    near = near * s + 1.28379166e-1f;
    far = far * c - 3.01036122e-3f;
    far = far * c + 2.20931079e-2f;
    far = far * c - 1.0364835e-1f;
    far = far * c - 6.37511194e-1f;
    far = far * c - 1.12747669f;
    far = far * c - 2.4466333e-4f;
    far = 1 - pm_expf(far);
    near = x + x * near;
    return t >= 0.95f ? (x < 0 ? -far : far) : near;
}

/* x^a: e^(a log |x|), with the sign of an odd power. */
PM_INLINE float pm_powerf(float x, float a)
{
    float y = pm_expf(a * pm_logf(x < 0 ? -x : x)), half = a * 0.5f;
    int whole = rintf(a) == a, odd = whole && rintf(half) != half;

    y = a == 0 ? 1 : y;
    return x < 0 ? (whole ? (odd ? -y : y) : NAN) : y;
}

/* tanh(softplus(x)): with e = e^x it is e (e + 2) / (e (e + 2) + 2). */
PM_INLINE float pm_mish_gate(float x)
{
    float e = pm_expf(x > 20 ? 20 : x), n = e * (e + 2);

    return n / (n + 2);
}

#define PM_GELU_A 0.79788456f
#define PM_GELU_B 0.044715f

PM_INLINE float pm_unary(int kind, float a, float b, float x)
{
    float t;

    switch (kind) {
    case PM_UNARY_ELU:
        return x > 0 ? x : a * (pm_expf(x) - 1);
    case PM_UNARY_CELU:
        return x > 0 ? x : a * (pm_expf(x / a) - 1);
    case PM_UNARY_SELU:
        return b * (x > 0 ? x : a * (pm_expf(x) - 1));
    case PM_UNARY_SOFTPLUS:
        return (x < 0 ? 0 : x) + pm_log1pf(pm_expf(x < 0 ? x : -x));
    case PM_UNARY_SOFTSIGN:
        return x / (1 + (x < 0 ? -x : x));
    case PM_UNARY_EXP:
        return pm_expf(x);
    case PM_UNARY_LOG:
        return pm_logf(x);
    case PM_UNARY_SQRT:
        return sqrtf(x);
    case PM_UNARY_RECIPROCAL:
        return 1 / x;
    case PM_UNARY_ABS:
        return fabsf(x);
    case PM_UNARY_NEG:
        return -x;
    case PM_UNARY_GELU:
        return 0.5f * x * (1 + pm_erff(x * 0.70710678f));
    case PM_UNARY_GELU_TANH:
        return x * pm_sigmoid(2 * PM_GELU_A * (x + PM_GELU_B * x * x * x));
    case PM_UNARY_SWISH:
        return x * pm_sigmoid(a * x);
    case PM_UNARY_MISH:
        return x * pm_mish_gate(x);
    case PM_UNARY_CLIP:
        t = x < a ? a : x;
        return t > b ? b : t;
    case PM_UNARY_THRESHOLDED:
        return x <= a ? 0 : x;
    case PM_UNARY_AFFINE:
        return a * x + b;
    case PM_UNARY_SQUARE:
        return x * x;
    case PM_UNARY_CUBE:
        return x * x * x;
    case PM_UNARY_POWER:
        return pm_powerf(x, a);
    case PM_UNARY_ERF:
        return pm_erff(x);
    case PM_UNARY_CEIL:
        return ceilf(x);
    case PM_UNARY_FLOOR:
        return floorf(x);
    case PM_UNARY_ROUND:
        return rintf(x);
    case PM_UNARY_SIGN:
        return x > 0 ? 1 : x < 0 ? -1 : x;
    default:
        return x;
    }
}

/* Returns the derivative. At a corner it is the flat side's; it is 0 for step functions. */
PM_INLINE float pm_unary_slope(int kind, float a, float b, float x)
{
    float s, t;

    switch (kind) {
    case PM_UNARY_ELU:
        return x > 0 ? 1 : a * pm_expf(x);
    case PM_UNARY_CELU:
        return x > 0 ? 1 : pm_expf(x / a);
    case PM_UNARY_SELU:
        return b * (x > 0 ? 1 : a * pm_expf(x));
    case PM_UNARY_SOFTPLUS:
        return pm_sigmoid(x);
    case PM_UNARY_SOFTSIGN:
        t = 1 + (x < 0 ? -x : x);
        return 1 / (t * t);
    case PM_UNARY_EXP:
        return pm_expf(x);
    case PM_UNARY_LOG:
        return 1 / x;
    case PM_UNARY_SQRT:
        return 0.5f / sqrtf(x);
    case PM_UNARY_RECIPROCAL:
        return -1 / (x * x);
    case PM_UNARY_ABS:
        return x > 0 ? 1 : x < 0 ? -1 : 0;
    case PM_UNARY_NEG:
        return -1;
    case PM_UNARY_GELU:
        return 0.5f * (1 + pm_erff(x * 0.70710678f)) + x * 0.39894228f * pm_expf(-0.5f * x * x);
    case PM_UNARY_GELU_TANH:
        s = pm_sigmoid(2 * PM_GELU_A * (x + PM_GELU_B * x * x * x));
        return s + x * s * (1 - s) * (2 * PM_GELU_A * (1 + 3 * PM_GELU_B * x * x));
    case PM_UNARY_SWISH:
        s = pm_sigmoid(a * x);
        return s + a * x * s * (1 - s);
    case PM_UNARY_MISH:
        t = pm_mish_gate(x);
        return t + x * (1 - t * t) * pm_sigmoid(x);
    case PM_UNARY_CLIP:
        return (x > a) & (x < b) ? 1 : 0;
    case PM_UNARY_THRESHOLDED:
        return x > a ? 1 : 0;
    case PM_UNARY_AFFINE:
        return a;
    case PM_UNARY_SQUARE:
        return 2 * x;
    case PM_UNARY_CUBE:
        return 3 * x * x;
    case PM_UNARY_POWER:
        return a == 0 ? 0 : a * pm_powerf(x, a - 1);
    case PM_UNARY_ERF:
        return 1.12837917f * pm_expf(-x * x);
    default:
        return 0;
    }
}

#endif
