#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "matmul.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InF32 a; InF32 b; OutF32 y; matmul_params p; };

void main()
{
    uint m = uint(p.m), n = uint(p.n), k = uint(p.k);

    for (uint at = pm_first(); at < uint(p.batch) * m * n; at += pm_stride()) {
        uint j = at % n, i = at / n % m, z = at / n / m;
        float sum = 0.0;

        for (uint l = 0; l < k; l++)
            sum += a.v[z * m * k + (p.a_across != 0 ? l * m + i : i * k + l)] *
                   b.v[z * k * n + (p.b_across != 0 ? j * k + l : l * n + j)];
        y.v[at] = sum;
    }
}
