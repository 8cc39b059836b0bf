#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "multiply.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InT a; InT dy; OutT db; multiply_params p; };

/* Sums of 32 pixels first, then their sum, so that the error grows only with pixels / 32. */
void main()
{
    uint c = uint(p.c / VEC), pixels = uint(p.pixels);

    for (uint i = pm_first(); i < uint(p.n) * c; i += pm_stride()) {
        uint base = i / c * pixels;
        T total = T(0);

        for (uint block = 0; block < pixels; block += 32) {
            T sum = T(0);

            for (uint k = block; k < min(block + 32, pixels); k++)
                sum += a.v[(base + k) * c + i % c] * dy.v[(base + k) * c + i % c];
            total += sum;
        }
        db.v[i] = total;
    }
}
