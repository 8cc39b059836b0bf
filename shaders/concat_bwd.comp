#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "concat.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT dy;
    OutT da;
    OutT db;
    OutT dc;
    OutT dd;
    OutT de;
    OutT df;
    OutT dg;
    OutT dh;
    concat_params p;
};

void main()
{
    uint total = uint(p.total / VEC), w0 = uint(p.w0 / VEC), w1 = uint(p.w1 / VEC);
    uint w2 = uint(p.w2 / VEC), w3 = uint(p.w3 / VEC), w4 = uint(p.w4 / VEC);
    uint w5 = uint(p.w5 / VEC), w6 = uint(p.w6 / VEC), w7 = uint(p.w7 / VEC);

    for (uint i = pm_first(); i < uint(p.outer) * total; i += pm_stride()) {
        uint row = i / total, at = i % total;
        T value = dy.v[i];

        if (at < w0) {
            if (pm_has(1))
                da.v[row * w0 + at] = value;
        } else if ((at -= w0) < w1) {
            if (pm_has(2))
                db.v[row * w1 + at] = value;
        } else if ((at -= w1) < w2) {
            if (pm_has(3))
                dc.v[row * w2 + at] = value;
        } else if ((at -= w2) < w3) {
            if (pm_has(4))
                dd.v[row * w3 + at] = value;
        } else if ((at -= w3) < w4) {
            if (pm_has(5))
                de.v[row * w4 + at] = value;
        } else if ((at -= w4) < w5) {
            if (pm_has(6))
                df.v[row * w5 + at] = value;
        } else if ((at -= w5) < w6) {
            if (pm_has(7))
                dg.v[row * w6 + at] = value;
        } else if (pm_has(8)) {
            dh.v[row * w7 + (at - w6)] = value;
        }
    }
}
