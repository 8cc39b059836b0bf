#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "softmax_cross_entropy.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint LANES = 256; /* lanes of softmax_cross_entropy_part */
layout(push_constant, scalar) uniform Push {
    InF32 losses;
    InI32 labels;
    InF32 weights;
    InOutF32 part;
    OutF32 loss;
    OutF32 factor;
    softmax_cross_entropy_params p;
};

void main()
{
    float total = 0.0;
    uint count = 0;

    for (uint i = 0; i < LANES; i++) {
        total += part.v[i];
        count += uint(part.v[LANES + i]);
    }
    count = p.divisor > 0 ? uint(p.divisor) : count;
    float f = count > 0 ? p.scale / float(count) : 0.0;
    bool finite = !isnan(total) && !isinf(total);
    loss.v[0] = finite ? total * f : uintBitsToFloat(0x7fc00000u);
    factor.v[0] = finite ? f : uintBitsToFloat(0x7fc00000u);
}
