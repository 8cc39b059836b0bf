#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "rotated_crops.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 boxes;
    InI32 count;
    OutI32 span;
    rotated_crops_params p;
};
#include "lib/rotated_crops.glsl"

/* Returns the samples of an axis with places in at - around .. at + around: 65536 begin + end; 0:
 * none. The axis reaches from -side to side. */
int span_of(float at, float around, float side, int samples)
{
    float scale = float(samples - 1) / (2.0 * side), middle = 0.5 * float(samples - 1);
    float low = (at - around) * scale + middle - 1e-3, high = (at + around) * scale + middle + 1e-3;

    if (abs(at) > side + around)
        return 0;
    if (samples == 1 || side < 1e-6 * around)
        return samples;
    int begin = int(ceil(clamp(low, 0.0, float(samples))));
    int end = int(floor(clamp(high, -1.0, float(samples - 1)))) + 1;

    return begin < end ? begin << 16 | end : 0;
}

/* One cell and box per lane. */
void main()
{
    uint each = uint(p.per_image), h = uint(p.h), w = uint(p.w);
    uint total = uint(p.boxes) * h * w;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint cell = i / each, box = cell / (h * w) * each + i % each;
        int down = 0, across = 0;

        if (usable(box)) {
            rotated r = box_of(box);
            float ty = 1.0 / max(p.tall, 1e-20), tx = 1.0 / max(p.wide, 1e-20);
            float y = float(cell / w % h) * ty, x = float(cell % w) * tx;
            float rest = 1e-6 * (abs(r.y) + abs(r.x) + r.h + r.w + y + x);
            float dy = y - r.y, dx = x - r.x;

            down = span_of(dy * r.c - dx * r.s, abs(r.c) * ty + abs(r.s) * tx + rest, r.h, p.rows);
            across = span_of(dy * r.s + dx * r.c, abs(r.s) * ty + abs(r.c) * tx + rest, r.w,
                             p.cols);
        }
        span.v[2 * i] = across != 0 ? down : 0;
        span.v[2 * i + 1] = down != 0 ? across : 0;
    }
}
