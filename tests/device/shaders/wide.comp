#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
/* Params too large for the push block, which holds their address instead. */
struct wide_params { int count; int add[40]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer WideParams {
    wide_params p;
};
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 x; OutF32 y; WideParams at; };

void main()
{
    for (uint i = pm_first(); i < uint(at.p.count); i += pm_stride())
        y.v[i] = x.v[i] + float(at.p.add[i % 40]);
}
