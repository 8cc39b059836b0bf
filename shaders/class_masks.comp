#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "class_masks.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InI32 classes;
    InI32 count;
    OutF32 y;
    class_masks_params p;
};

void main()
{
    uint pixels = uint(p.pixels), per = uint(p.per), all = uint(p.images) * pixels * per;

    for (uint i = pm_first(); i < all; i += pm_stride()) {
        uint d = i % per, pixel = i / per % pixels, image = i / per / pixels;
        int k = p.c == 1 ? 0 : classes.v[image * per + d];
        bool valid = int(d) < count.v[image] && k >= 0 && k < p.c;
        uint at = ((image * per + d) * pixels + pixel) * uint(p.c);

        y.v[i] = valid ? 1.0 / (1.0 + exp(-x.v[at + uint(max(k, 0))])) : 0.0;
    }
}
