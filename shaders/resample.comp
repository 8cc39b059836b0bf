#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "resample.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT x;
    InI32 row;
    InF32 row_weight;
    InI32 col;
    InF32 col_weight;
    OutT y;
    resample_params p;
};

void main()
{
    uint c = uint(p.c / VEC), count = uint(p.n * p.oh * p.ow) * c;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint pixel = i / c;
        int ox = int(pixel % uint(p.ow)), line = int(pixel / uint(p.ow));
        int oy = line % p.oh, image = line / p.oh;
        T sum = T(0);

        for (int a = row.v[oy]; a < row.v[oy + 1]; a++) {
            int base = (image * p.h + row.v[p.oh + 1 + a]) * p.w;
            T part = T(0);

            for (int b = col.v[ox]; b < col.v[ox + 1]; b++)
                part += col_weight.v[b] * x.v[uint(base + col.v[p.ow + 1 + b]) * c + i % c];
            sum += row_weight.v[a] * part;
        }
        y.v[i] = sum;
    }
}
