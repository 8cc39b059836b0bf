/* The twin of src/layers/activation.h: the same functions, the same numbers for the kinds. The kind
 * is a specialization constant, so a pipeline holds one of them. */
#ifndef PM_ACTIVATION_GLSL
#define PM_ACTIVATION_GLSL

const int ACT_NONE = 0, ACT_RELU = 1, ACT_RELU6 = 2, ACT_LEAKY_RELU = 3, ACT_SIGMOID = 4, ACT_TANH = 5,
          ACT_HARD_SIGMOID = 6, ACT_HARD_SWISH = 7;

float pm_tanh(float z)
{
    float a = abs(z), s = z * z;
    float far = 1.0 - 2.0 / (exp(2.0 * min(a, 40.0)) + 1.0);
    float near = z + z * s * (-1.0 / 3.0 + s * (2.0 / 15.0 + s * (-17.0 / 315.0 + s * (62.0 / 2835.0))));

    return a < 0.3 ? near : z < 0.0 ? -far : far;
}

float pm_act(int kind, float slope, float z)
{
    float t;

    switch (kind) {
    case ACT_RELU:
        return z < 0.0 ? 0.0 : z;
    case ACT_RELU6:
        t = z < 0.0 ? 0.0 : z;
        return t > 6.0 ? 6.0 : t;
    case ACT_LEAKY_RELU:
        return z > 0.0 ? z : slope * z;
    case ACT_SIGMOID:
        return 1.0 / (1.0 + exp(-z));
    case ACT_TANH:
        return pm_tanh(z);
    case ACT_HARD_SIGMOID:
    case ACT_HARD_SWISH:
        t = z + 3.0 < 0.0 ? 0.0 : z + 3.0;
        t = (t > 6.0 ? 6.0 : t) * (1.0 / 6.0);
        return kind == ACT_HARD_SWISH ? z * t : t;
    default:
        return z;
    }
}

/* v is z for hard_swish, else y. */
float pm_act_slope(int kind, float slope, float v)
{
    switch (kind) {
    case ACT_RELU:
        return v > 0.0 ? 1.0 : 0.0;
    case ACT_RELU6:
        return v > 0.0 && v < 6.0 ? 1.0 : 0.0;
    case ACT_LEAKY_RELU:
        return v > 0.0 ? 1.0 : slope;
    case ACT_SIGMOID:
        return v * (1.0 - v);
    case ACT_TANH:
        return 1.0 - v * v;
    case ACT_HARD_SIGMOID:
        return v > 0.0 && v < 1.0 ? 1.0 / 6.0 : 0.0;
    case ACT_HARD_SWISH:
        return v <= -3.0 ? 0.0 : v >= 3.0 ? 1.0 : v * (1.0 / 3.0) + 0.5;
    default:
        return 1.0;
    }
}

vec4 pm_act(int kind, float slope, vec4 z)
{
    return vec4(pm_act(kind, slope, z.x), pm_act(kind, slope, z.y), pm_act(kind, slope, z.z),
                pm_act(kind, slope, z.w));
}

vec4 pm_act_slope(int kind, float slope, vec4 v)
{
    return vec4(pm_act_slope(kind, slope, v.x), pm_act_slope(kind, slope, v.y),
                pm_act_slope(kind, slope, v.z), pm_act_slope(kind, slope, v.w));
}

#endif
