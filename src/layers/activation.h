/* activation: the element-wise functions that layers apply alone or at the end of a fused call.
 * They come from the list in shaders/activation.def. shaders/lib/activation.glsl is the GLSL twin.
 *
 * NaN stays NaN. The derivative is a function of y = f(z). y is kept in memory anyway, and using y
 * lets the forward call run in place. Some rows need z instead. */
#ifndef PUMICE_ACTIVATION_H
#define PUMICE_ACTIVATION_H

#include "activation.def"
#include "layers/vmath.h"

#define PM_BOTH(a, b) ((a) & (b)) /* branch-free, so that loops can be vectorised */

enum pm_activation {
    PM_ACT_NONE,
#define PM_ACT_ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z) id = number,
    PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
#undef PM_ACT_ROW
    PM_ACT_KINDS
};
/* Numbers are indices of choices. They are consecutive, and those of PM_ACTIVATIONS_OF_Y come
 * first. */
#define PM_ACT_COUNT(with, number, id, ...) +1
#define PM_ACT_IN_ORDER(with, number, id, name, onnx, value, derivative, takes_z, keeps_z)         \
    && (takes_z || number <= PM_ACT_OF_Y_KINDS)
#define PM_ACT_COUNT_Y(with, number, id, name, onnx, value, derivative, takes_z, keeps_z) +!takes_z
enum { PM_ACT_OF_Y_KINDS = 0 PM_ACTIVATION_LIST(PM_ACT_COUNT_Y, 0) };
_Static_assert(PM_ACT_KINDS == 1 PM_ACTIVATION_LIST(PM_ACT_COUNT, 0), "numbers grow by one");
_Static_assert(1 PM_ACTIVATION_LIST(PM_ACT_IN_ORDER, 0), "rows that take z come last");

/* The choices of an option; the index is the activation's number. One list has all activations. The
 * other has those whose derivative needs y alone, for calls that keep no z. */
#define PM_ACT_NAME(with, number, id, name, ...) "|" #name
#define PM_ACTIVATIONS "none" PM_ACTIVATION_LIST(PM_ACT_NAME, 0)
#define PM_ACT_NAME_Y_0(name) "|" #name
#define PM_ACT_NAME_Y_1(name)
#define PM_ACT_NAME_Y(with, number, id, name, onnx, value, derivative, takes_z, keeps_z)           \
    PM_ACT_NAME_Y_##takes_z(name)
#define PM_ACTIVATIONS_OF_Y "none" PM_ACTIVATION_LIST(PM_ACT_NAME_Y, 0)

PM_INLINE float pm_sigmoid(float z)
{
    return 1.0f / (1.0f + pm_expf(-z));
}

/* Near 0 the formula with exp cancels. There the odd series to z^9 is used; its error at 0.3 is
 * 5e-8 z. */
PM_INLINE float pm_tanh(float z)
{
    float a = z < 0 ? -z : z, s = z * z;
    float far = 1.0f - 2.0f / (pm_expf(2.0f * a) + 1.0f);
    float near =
        z + z * s * (-1.0f / 3 + s * (2.0f / 15 + s * (-17.0f / 315 + s * (62.0f / 2835))));

    return a < 0.3f ? near : z < 0 ? -far : far;
}

PM_INLINE float pm_act(int kind, float slope, float z)
{
    switch (kind) {
#define PM_ACT_ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z)              \
    case id: return value;
        PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
#undef PM_ACT_ROW
    default: return z;
    }
}

/* Whether pm_act_slope takes z instead of y. */
PM_INLINE int pm_act_takes_z(int kind)
{
    switch (kind) {
#define PM_ACT_ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z)              \
    case id: return takes_z;
        PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
#undef PM_ACT_ROW
    default: return 0;
    }
}

/* Whether pm_act_slope accepts z as well as y. */
PM_INLINE int pm_act_keeps_z(int kind)
{
    switch (kind) {
#define PM_ACT_ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z)              \
    case id: return keeps_z;
        PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
#undef PM_ACT_ROW
    default: return 0;
    }
}

/* Returns dy/dz. v is y, or z if pm_act_takes_z. At a corner it returns the flat side's slope. */
PM_INLINE float pm_act_slope(int kind, float slope, float v)
{
    switch (kind) {
#define PM_ACT_ROW(with, number, id, name, onnx, value, derivative, takes_z, keeps_z)              \
    case id: return derivative;
        PM_ACTIVATION_LIST(PM_ACT_ROW, 0)
#undef PM_ACT_ROW
    default: return 1;
    }
}

/* Runs CALL(kind) with kind as a constant, so that each loop is compiled for one kind. */
#define PM_ACT_CASE(CALL, number, id, ...) case id: CALL(id); break;
#define PM_ACT_SWITCH(kind, CALL)                                                                  \
    switch (kind) {                                                                                \
        PM_ACTIVATION_LIST(PM_ACT_CASE, CALL)                                                      \
    default: CALL(PM_ACT_NONE); break;                                                             \
    }

#endif
