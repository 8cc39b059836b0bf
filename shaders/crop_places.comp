#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "crop.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 boxes;
    InI32 count;
    InF32 part;
    OutI32 place;
    OutF32 weight;
    crop_params p;
};

/* Whether the corner's magnitude is at most CROP_MOST. The comparison of bits does not depend on a
 * device's rules for NaN. */
bool usable(float corner)
{
    return (floatBitsToUint(corner) & 0x7fffffffu) <= floatBitsToUint(CROP_MOST);
}

/* precise: a fused product could move a sample across the map's border. */
float sample_at(float low, float high, float part, float last)
{
    precise float a = low * last, b = high * last;
    precise float product = part * (b - a);
    precise float s = a + product;

    return clamp(s, min(a, b), max(a, b));
}

void main()
{
    uint each = uint(p.rows + p.cols), total = uint(p.boxes) * each;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint box = i / each, k = i % each, axis = k < uint(p.rows) ? 0u : 1u;
        int last = (axis == 0u ? p.h : p.w) - 1;
        bool given = true;

        if (pm_has(1))
            given = int(box % uint(p.per_image)) < count.v[box / uint(p.per_image)];
        for (uint j = 0u; j < 4u; j++)
            given = given && usable(boxes.v[4u * box + j]);
        float s = sample_at(boxes.v[4u * box + axis], boxes.v[4u * box + 2u + axis], part.v[k],
                            float(last));
        bool inside = given && s > CROP_ABOVE && s <= float(last);

        s = inside ? max(s, 0.0) : 0.0;
        int low = min(int(s), max(last - 1, 0));
        place.v[i] = inside ? low : -1;
        weight.v[i] = s - float(low);
    }
}
