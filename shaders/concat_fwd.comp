#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "concat.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT a;
    InT b;
    InT c;
    InT d;
    InT e;
    InT f;
    InT g;
    InT h;
    OutT y;
    concat_params p;
};

void main()
{
    uint total = uint(p.total / VEC), w0 = uint(p.w0 / VEC), w1 = uint(p.w1 / VEC);
    uint w2 = uint(p.w2 / VEC), w3 = uint(p.w3 / VEC), w4 = uint(p.w4 / VEC);
    uint w5 = uint(p.w5 / VEC), w6 = uint(p.w6 / VEC), w7 = uint(p.w7 / VEC);

    for (uint i = pm_first(); i < uint(p.outer) * total; i += pm_stride()) {
        uint row = i / total, at = i % total;
        T value = T(0);

        if (at < w0) {
            if (pm_has(0))
                value = a.v[row * w0 + at];
        } else if ((at -= w0) < w1) {
            if (pm_has(1))
                value = b.v[row * w1 + at];
        } else if ((at -= w1) < w2) {
            if (pm_has(2))
                value = c.v[row * w2 + at];
        } else if ((at -= w2) < w3) {
            if (pm_has(3))
                value = d.v[row * w3 + at];
        } else if ((at -= w3) < w4) {
            if (pm_has(4))
                value = e.v[row * w4 + at];
        } else if ((at -= w4) < w5) {
            if (pm_has(5))
                value = f.v[row * w5 + at];
        } else if ((at -= w5) < w6) {
            if (pm_has(6))
                value = g.v[row * w6 + at];
        } else if (pm_has(7)) {
            value = h.v[row * w7 + (at - w6)];
        }
        y.v[i] = value;
    }
}
