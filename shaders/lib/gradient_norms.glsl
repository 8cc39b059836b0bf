/* Shared by the two dispatches of gradient_norms. */
#include "lib/reduce.glsl"
layout(push_constant, scalar) uniform Push {
    InF32 partials;
    InU32 vars;
    InOutF32 sums; /* per variable: the square of its clipped norm, its part of the decay's loss */
    OutF32 norms;
    OutF32 scale;
    OutF32 result;
    OutU32 flag;
    gradient_norms_params p;
};

float clip_factor(float norm, float clip)
{
    return clip > 0.0 && norm > clip ? clip / norm : 1.0;
}
