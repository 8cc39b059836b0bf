#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "crop.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InI32 place;
    InF32 weight;
    OutF32 bins;
    crop_params p;
};
#include "lib/crop.glsl"

void main()
{
    uint down = uint(p.bins_h * p.h), each = down + uint(p.bins_w * p.w);

    for (uint i = pm_first(); i < uint(p.boxes) * each; i += pm_stride()) {
        uint box = i / each, at = i % each;
        bool column = at >= down;
        int size = column ? p.w : p.h, k = int(column ? at - down : at);
        int samples = column ? p.cols / p.bins_w : p.rows / p.bins_h;
        uint first = box * uint(p.rows + p.cols) + uint((column ? p.rows : 0) + k / size * samples);
        float sum = 0.0;

        for (int s = 0; s < samples; s++)
            sum += crop_weight(first + uint(s), k % size);
        bins.v[i] = sum * (column ? p.col_share : p.row_share);
    }
}
