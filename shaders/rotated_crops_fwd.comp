#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "rotated_crops.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InT x; InF32 place; OutT y; rotated_crops_params p; };

/* A cell's vector k times its weight; 0 outside of the map. */
T cell_of(uint image, int row, int col, uint k, float weight)
{
    uint at = (image * uint(p.h) + uint(clamp(row, 0, p.h - 1))) * uint(p.w) +
              uint(clamp(col, 0, p.w - 1));
    bool inside = row >= 0 && row < p.h && col >= 0 && col < p.w;

    return inside ? weight * x.v[at * uint(p.c / VEC) + k] : T(0);
}

void main()
{
    uint c = uint(p.c / VEC), total = uint(p.boxes) * uint(p.rows) * uint(p.cols) * c;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint at = i / c, image = at / uint(p.rows * p.cols * p.per_image);
        float row = place.v[2 * at], col = place.v[2 * at + 1];
        bool inside = row > -1.0 && row < float(p.h) && col > -1.0 && col < float(p.w);
        int top = int(floor(clamp(row, -1.0, float(p.h))));
        int left = int(floor(clamp(col, -1.0, float(p.w))));
        float fy = row - float(top), fx = col - float(left);
        T sum = cell_of(image, top, left, i % c, (1.0 - fy) * (1.0 - fx));

        sum += cell_of(image, top, left + 1, i % c, (1.0 - fy) * fx);
        sum += cell_of(image, top + 1, left, i % c, fy * (1.0 - fx));
        sum += cell_of(image, top + 1, left + 1, i % c, fy * fx);
        y.v[i] = inside ? sum : T(0);
    }
}
