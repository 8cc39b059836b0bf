#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "crop.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT dy;
    InI32 place;
    InF32 weight;
    InI32 span;
    OutT dx;
    crop_params p;
};
#include "lib/crop.glsl"

/* Returns the sum over the samples of a box that touch the cell (row, col). */
T box_sum(uint box, ivec2 cell, int down, int across, uint k)
{
    uint c = uint(p.c / VEC), rows = uint(p.rows), cols = uint(p.cols), at = box * (rows + cols);
    T sum = T(0);

    for (int i = down >> 16; i < (down & 0xffff); i++) {
        uint line = (box * rows + uint(i)) * cols;
        T part = T(0);

        for (int j = across >> 16; j < (across & 0xffff); j++)
            part += crop_weight(at + rows + uint(j), cell.y) * dy.v[(line + uint(j)) * c + k];
        sum += crop_weight(at + uint(i), cell.x) * part;
    }
    return sum;
}

void main()
{
    uint c = uint(p.c / VEC), each = uint(p.per_image), h = uint(p.h), w = uint(p.w);
    uint total = uint(p.boxes) / each * h * w * c;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint cell = i / c, col = cell % w, row = cell / w % h, image = cell / w / h;
        uint rows_at = (image * (h + w) + row) * each;
        uint cols_at = (image * (h + w) + h + col) * each;
        T sum = T(0);

        for (uint r = 0u; r < each; r++) {
            int down = span.v[rows_at + r], across = span.v[cols_at + r];

            if (down != 0 && across != 0)
                sum += box_sum(image * each + r, ivec2(row, col), down, across, i % c);
        }
        dx.v[i] = sum;
    }
}
