#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "crop.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InT x;
    InI32 place;
    InF32 weight;
    OutT y;
    crop_params p;
};

void main()
{
    uint c = uint(p.c / VEC), rows = uint(p.rows), cols = uint(p.cols);
    uint w = uint(p.w), total = uint(p.boxes) * rows * cols * c;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint pixel = i / c, line = pixel / cols, box = line / rows;
        uint row = box * (rows + cols) + line % rows;
        uint col = box * (rows + cols) + rows + pixel % cols;
        bool inside = place.v[row] >= 0 && place.v[col] >= 0;
        uint top = uint(max(place.v[row], 0)), left = uint(max(place.v[col], 0));
        uint bottom = min(top + 1u, uint(p.h) - 1u), right = min(left + 1u, w - 1u);
        uint first = box / uint(p.per_image) * uint(p.h), k = i % c;
        float fy = weight.v[row], fx = weight.v[col];
        T sum = (1.0 - fy) * (1.0 - fx) * x.v[((first + top) * w + left) * c + k];

        sum += (1.0 - fy) * fx * x.v[((first + top) * w + right) * c + k];
        sum += fy * (1.0 - fx) * x.v[((first + bottom) * w + left) * c + k];
        sum += fy * fx * x.v[((first + bottom) * w + right) * c + k];
        y.v[i] = inside ? sum : T(0);
    }
}
