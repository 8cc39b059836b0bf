#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "rotated_crops.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 boxes;
    InI32 count;
    InF32 part;
    OutF32 place;
    rotated_crops_params p;
};
#include "lib/rotated_crops.glsl"

/* One sample per lane. */
void main()
{
    uint rows = uint(p.rows), cols = uint(p.cols), total = uint(p.boxes) * rows * cols;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint box = i / (rows * cols);
        float row = -2.0, col = -2.0;

        if (usable(box)) {
            rotated r = box_of(box);
            float u = (2.0 * part.v[i / cols % rows] - 1.0) * r.h;
            float v = (2.0 * part.v[rows + i % cols] - 1.0) * r.w;

            row = (r.y + u * r.c + v * r.s) * p.tall;
            col = (r.x + v * r.c - u * r.s) * p.wide;
        }
        place.v[2 * i] = row;
        place.v[2 * i + 1] = col;
    }
}
