#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "crop.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InI32 place; OutI32 span; crop_params p; };

void main()
{
    uint each = uint(p.per_image), axes = uint(p.h + p.w), total = uint(p.boxes) * axes;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint at = i / each % axes, box = i / each / axes * each + i % each;
        bool column = at >= uint(p.h);
        int cell = int(at) - (column ? p.h : 0), samples = column ? p.cols : p.rows;
        uint first = box * uint(p.rows + p.cols) + (column ? uint(p.rows) : 0u);
        int begin = 0, end = 0;

        for (int k = 0; k < samples; k++) {
            int low = place.v[first + uint(k)];

            if (low >= 0 && (low == cell || low + 1 == cell)) {
                begin = end == 0 ? k : begin;
                end = k + 1;
            }
        }
        span.v[i] = begin << 16 | end;
    }
}
