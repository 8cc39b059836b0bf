/* Twin of src/layers/unary.h: the same functions, the same numbers for the kinds. */
#ifndef PM_UNARY_GLSL
#define PM_UNARY_GLSL

#include "lib/activation.glsl"
#include "lib/log1p.glsl"

const int UNARY_ELU = 0, UNARY_CELU = 1, UNARY_SELU = 2, UNARY_SOFTPLUS = 3, UNARY_SOFTSIGN = 4,
          UNARY_EXP = 5, UNARY_LOG = 6, UNARY_SQRT = 7, UNARY_RECIPROCAL = 8, UNARY_ABS = 9,
          UNARY_NEG = 10, UNARY_GELU = 11, UNARY_GELU_TANH = 12, UNARY_SWISH = 13,
          UNARY_MISH = 14, UNARY_CLIP = 15, UNARY_THRESHOLDED = 16, UNARY_AFFINE = 17,
          UNARY_SQUARE = 18, UNARY_CUBE = 19, UNARY_POWER = 20, UNARY_ERF = 21, UNARY_CEIL = 22,
          UNARY_FLOOR = 23, UNARY_ROUND = 24, UNARY_SIGN = 25;

float sigmoid(float z)
{
    return 1.0 / (1.0 + exp(-z));
}

float log_of(float x)
{
    int bits = floatBitsToInt(x), n = (bits - 0x3f3504f3) >> 23;
    float m = intBitsToFloat(bits - (n << 23)), s = (m - 1.0) / (m + 1.0), t = s * s;
    float y = s * (2.0 + t * (2.0 / 3.0 + t * (2.0 / 5.0 + t * (2.0 / 7.0 + t * (2.0 / 9.0)))));

    y = float(n) * 0.693145752 + (y + float(n) * 1.42860677e-6);
    if (x < 1.17549435e-38)
        y = intBitsToFloat(x < 0.0 ? 0x7fc00000 : 0xff800000);
    return x < intBitsToFloat(0x7f800000) ? y : x;
}

float erf(float x)
{
    float t = abs(x), s = x * x, near = 8.17948094e-5, far = 1.92663734e-4;
    float c = min(t, 4.0);

    near = near * s - 8.096167e-4;
    near = near * s + 5.19679394e-3;
    near = near * s - 2.68576294e-2;
    near = near * s + 1.12836622e-1;
    near = near * s - 3.76126319e-1;
    near = near * s + 1.28379166e-1;
    far = far * c - 3.01036122e-3;
    far = far * c + 2.20931079e-2;
    far = far * c - 1.0364835e-1;
    far = far * c - 6.37511194e-1;
    far = far * c - 1.12747669;
    far = far * c - 2.4466333e-4;
    far = 1.0 - exp(far);
    near = x + x * near;
    return t >= 0.95 ? (x < 0.0 ? -far : far) : near;
}

float power(float x, float a)
{
    float y = exp(a * log_of(abs(x))), half_of = a * 0.5;
    bool whole = roundEven(a) == a, odd = whole && roundEven(half_of) != half_of;

    y = a == 0.0 ? 1.0 : y;
    return x < 0.0 ? (whole ? (odd ? -y : y) : intBitsToFloat(0x7fc00000)) : y;
}

float mish_gate(float x)
{
    float e = exp(min(x, 20.0)), n = e * (e + 2.0);

    return n / (n + 2.0);
}

#define PM_GELU_A 0.79788456
#define PM_GELU_B 0.044715

float pm_unary(int kind, float a, float b, float x)
{
    float t;

    switch (kind) {
    case UNARY_ELU:
        return x > 0.0 ? x : a * (exp(x) - 1.0);
    case UNARY_CELU:
        return x > 0.0 ? x : a * (exp(x / a) - 1.0);
    case UNARY_SELU:
        return b * (x > 0.0 ? x : a * (exp(x) - 1.0));
    case UNARY_SOFTPLUS:
        return (x < 0.0 ? 0.0 : x) + log1p(exp(x < 0.0 ? x : -x));
    case UNARY_SOFTSIGN:
        return x / (1.0 + (x < 0.0 ? -x : x));
    case UNARY_EXP:
        return exp(x);
    case UNARY_LOG:
        return log_of(x);
    case UNARY_SQRT:
        return sqrt(x);
    case UNARY_RECIPROCAL:
        return 1.0 / x;
    case UNARY_ABS:
        return abs(x);
    case UNARY_NEG:
        return -x;
    case UNARY_GELU:
        return 0.5 * x * (1.0 + erf(x * 0.70710678));
    case UNARY_GELU_TANH:
        return x * sigmoid(2.0 * PM_GELU_A * (x + PM_GELU_B * x * x * x));
    case UNARY_SWISH:
        return x * sigmoid(a * x);
    case UNARY_MISH:
        return x * mish_gate(x);
    case UNARY_CLIP:
        t = x < a ? a : x;
        return t > b ? b : t;
    case UNARY_THRESHOLDED:
        return x <= a ? 0.0 : x;
    case UNARY_AFFINE:
        return a * x + b;
    case UNARY_SQUARE:
        return x * x;
    case UNARY_CUBE:
        return x * x * x;
    case UNARY_POWER:
        return power(x, a);
    case UNARY_ERF:
        return erf(x);
    case UNARY_CEIL:
        return ceil(x);
    case UNARY_FLOOR:
        return floor(x);
    case UNARY_ROUND:
        return roundEven(x);
    case UNARY_SIGN:
        return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x;
    default:
        return x;
    }
}

/* Returns the derivative. At a corner it is the flat side's; it is 0 for step functions. */
float pm_unary_slope(int kind, float a, float b, float x)
{
    float s, t;

    switch (kind) {
    case UNARY_ELU:
        return x > 0.0 ? 1.0 : a * exp(x);
    case UNARY_CELU:
        return x > 0.0 ? 1.0 : exp(x / a);
    case UNARY_SELU:
        return b * (x > 0.0 ? 1.0 : a * exp(x));
    case UNARY_SOFTPLUS:
        return sigmoid(x);
    case UNARY_SOFTSIGN:
        t = 1.0 + (x < 0.0 ? -x : x);
        return 1.0 / (t * t);
    case UNARY_EXP:
        return exp(x);
    case UNARY_LOG:
        return 1.0 / x;
    case UNARY_SQRT:
        return 0.5 / sqrt(x);
    case UNARY_RECIPROCAL:
        return -1.0 / (x * x);
    case UNARY_ABS:
        return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : 0.0;
    case UNARY_NEG:
        return -1.0;
    case UNARY_GELU:
        return 0.5 * (1.0 + erf(x * 0.70710678)) + x * 0.39894228 * exp(-0.5 * x * x);
    case UNARY_GELU_TANH:
        s = sigmoid(2.0 * PM_GELU_A * (x + PM_GELU_B * x * x * x));
        return s + x * s * (1.0 - s) * (2.0 * PM_GELU_A * (1.0 + 3.0 * PM_GELU_B * x * x));
    case UNARY_SWISH:
        s = sigmoid(a * x);
        return s + a * x * s * (1.0 - s);
    case UNARY_MISH:
        t = mish_gate(x);
        return t + x * (1.0 - t * t) * sigmoid(x);
    case UNARY_CLIP:
        return x > a && x < b ? 1.0 : 0.0;
    case UNARY_THRESHOLDED:
        return x > a ? 1.0 : 0.0;
    case UNARY_AFFINE:
        return a;
    case UNARY_SQUARE:
        return 2.0 * x;
    case UNARY_CUBE:
        return 3.0 * x * x;
    case UNARY_POWER:
        return a == 0.0 ? 0.0 : a * power(x, a - 1.0);
    case UNARY_ERF:
        return 1.12837917 * exp(-x * x);
    default:
        return 0.0;
    }
}

vec4 pm_unary(int kind, float a, float b, vec4 x)
{
    return vec4(pm_unary(kind, a, b, x.x), pm_unary(kind, a, b, x.y), pm_unary(kind, a, b, x.z),
                pm_unary(kind, a, b, x.w));
}

vec4 pm_unary_slope(int kind, float a, float b, vec4 x)
{
    return vec4(pm_unary_slope(kind, a, b, x.x), pm_unary_slope(kind, a, b, x.y),
                pm_unary_slope(kind, a, b, x.z), pm_unary_slope(kind, a, b, x.w));
}

#endif
