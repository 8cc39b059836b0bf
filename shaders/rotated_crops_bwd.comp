#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "rotated_crops.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT dy;
    InF32 place;
    InI32 span;
    OutT dx;
    rotated_crops_params p;
};

/* Returns the sum over the samples of a box that touch the cell (row, col). */
T box_sum(uint box, vec2 cell, int down, int across, uint k)
{
    uint c = uint(p.c / VEC), cols = uint(p.cols);
    T sum = T(0);

    for (int i = down >> 16; i < (down & 0xffff); i++)
        for (int j = across >> 16; j < (across & 0xffff); j++) {
            uint at = (box * uint(p.rows) + uint(i)) * cols + uint(j);
            float wy = 1.0 - abs(place.v[2 * at] - cell.x);
            float wx = 1.0 - abs(place.v[2 * at + 1] - cell.y);

            if (wy > 0.0 && wx > 0.0)
                sum += wy * wx * dy.v[at * c + k];
        }
    return sum;
}

/* One vector of the map per lane. */
void main()
{
    uint c = uint(p.c / VEC), each = uint(p.per_image), h = uint(p.h), w = uint(p.w);
    uint total = uint(p.boxes) / each * h * w * c;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint cell = i / c, image = cell / (h * w);
        vec2 at = vec2(float(cell / w % h), float(cell % w));
        T sum = T(0);

        for (uint r = 0u; r < each; r++) {
            int down = span.v[2 * (cell * each + r)], across = span.v[2 * (cell * each + r) + 1];

            if (down != 0)
                sum += box_sum(image * each + r, at, down, across, i % c);
        }
        dx.v[i] = sum;
    }
}
