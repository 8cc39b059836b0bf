/* The functions of activation.def; src/layers/activation.h is the twin. If the kind is a
 * specialization constant, a pipeline contains only one of them. */
#ifndef PM_ACTIVATION_GLSL
#define PM_ACTIVATION_GLSL

#include "activation.def"

#define PM_BOTH(a, b) ((a) && (b))

const int PM_ACT_NONE = 0;
#define PM_ACT_ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z) \
    const int id = number;
PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
#undef PM_ACT_ROW

float pm_sigmoid(float z)
{
    return 1.0 / (1.0 + exp(-z));
}

float pm_tanh(float z)
{
    float a = abs(z), s = z * z;
    float far = 1.0 - 2.0 / (exp(2.0 * min(a, 40.0)) + 1.0);
    float near =
        z + z * s * (-1.0 / 3.0 + s * (2.0 / 15.0 + s * (-17.0 / 315.0 + s * (62.0 / 2835.0))));

    return a < 0.3 ? near : z < 0.0 ? -far : far;
}

float pm_act(int kind, float slope, float z)
{
#define PM_ACT_ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z) \
    case id: return value;
    switch (kind) {
    PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
    }
#undef PM_ACT_ROW
    return z;
}

/* Whether pm_act_slope takes z instead of y. */
bool pm_act_takes_z(int kind)
{
#define PM_ACT_ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z) \
    case id: return takes_z != 0;
    switch (kind) {
    PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
    }
#undef PM_ACT_ROW
    return false;
}

/* Returns dy/dz; v is y, or z if pm_act_takes_z. */
float pm_act_slope(int kind, float slope, float v)
{
#define PM_ACT_ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z) \
    case id: return derivative;
    switch (kind) {
    PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
    }
#undef PM_ACT_ROW
    return 1.0;
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
