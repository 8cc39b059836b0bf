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

/* An invocation makes one element of one channel, or a vector of four. With -DODD it makes four
 * channels at any offset, so that lists are read once for four. A pixel's last invocation makes its
 * last four channels and skips those that the previous invocation writes. */
#ifdef ODD
#define V vec4
#define PER_PIXEL ((uint(p.c) + 3u) / 4u)

V at(uint pixel, uint part)
{
    uint i = pixel * uint(p.c) + min(4u * part, uint(p.c) - 4u);

    return V(x.v[i], x.v[i + 1u], x.v[i + 2u], x.v[i + 3u]);
}

void put(uint pixel, uint part, V sum)
{
    uint first = min(4u * part, uint(p.c) - 4u), i = pixel * uint(p.c) + first;

    [[unroll]] for (uint k = 0u; k < 4u; k++)
        if (first + k >= 4u * part)
            y.v[i + k] = sum[k];
}
#else
#define V T
#define PER_PIXEL uint(p.c / VEC)

V at(uint pixel, uint part)
{
    return x.v[pixel * PER_PIXEL + part];
}

void put(uint pixel, uint part, V sum)
{
    y.v[pixel * PER_PIXEL + part] = sum;
}
#endif

void main()
{
    uint c = PER_PIXEL, count = uint(p.n * p.oh * p.ow) * c;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint pixel = i / c;
        int ox = int(pixel % uint(p.ow)), line = int(pixel / uint(p.ow));
        int oy = line % p.oh, image = line / p.oh;
        V sum = V(0);

        for (int a = row.v[oy]; a < row.v[oy + 1]; a++) {
            int base = (image * p.h + row.v[p.oh + 1 + a]) * p.w;
            V part = V(0);

            for (int b = col.v[ox]; b < col.v[ox + 1]; b++)
                part += col_weight.v[b] * at(uint(base + col.v[p.ow + 1 + b]), i % c);
            sum += row_weight.v[a] * part;
        }
        put(pixel, i % c, sum);
    }
}
