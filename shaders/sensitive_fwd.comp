#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "crop.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT x;
    InI32 place;
    InF32 bins;
    OutT y;
    crop_params p;
};

/* Returns the first and last cell that the samples first..first+count-1 touch on an axis of `size`
 * cells; the last is below the first if there is none. */
ivec2 touched(uint first, int count, int size)
{
    ivec2 cells = ivec2(size, -1);

    for (int s = 0; s < count; s++) {
        int low = place.v[first + uint(s)];

        if (low >= 0)
            cells = ivec2(min(cells.x, low), max(cells.y, min(low + 1, size - 1)));
    }
    return cells;
}

/* Returns the sum over one bin's cells in the channel k of its group. */
T bin_sum(uint box, int i, int j, uint k)
{
    int tall = p.rows / p.bins_h, wide = p.cols / p.bins_w;
    uint c = uint(p.c / VEC), pixel = c * uint(p.bins_h * p.bins_w);
    uint samples = box * uint(p.rows + p.cols);
    uint down = box * uint(p.bins_h * p.h + p.bins_w * p.w) + uint(i * p.h);
    uint across = box * uint(p.bins_h * p.h + p.bins_w * p.w) + uint(p.bins_h * p.h + j * p.w);
    ivec2 rows = touched(samples + uint(i * tall), tall, p.h);
    ivec2 cols = touched(samples + uint(p.rows + j * wide), wide, p.w);
    uint image = box / uint(p.per_image) * uint(p.h);
    T sum = T(0);

    for (int row = rows.x; row <= rows.y; row++) {
        T part = T(0);

        for (int col = cols.x; col <= cols.y; col++)
            part += bins.v[across + uint(col)] *
                    x.v[((image + uint(row)) * uint(p.w) + uint(col)) * pixel +
                        uint(i * p.bins_w + j) * c + k];
        sum += bins.v[down + uint(row)] * part;
    }
    return sum;
}

void main()
{
    uint c = uint(p.c / VEC);

    for (uint i = pm_first(); i < uint(p.boxes) * c; i += pm_stride()) {
        T sum = T(0);

        for (int bin = 0; bin < p.bins_h * p.bins_w; bin++)
            sum += bin_sum(i / c, bin / p.bins_w, bin % p.bins_w, i % c);
        y.v[i] = sum;
    }
}
