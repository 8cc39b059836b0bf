#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "thin_plate.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 points;
    InF32 matrix;
    OutI32 place;
    OutF32 weight;
    thin_plate_params p;
};

/* Writes the place s on an axis. The test of bits does not depend on a device's rules for NaN. */
void put_place(float s, int size, uint to)
{
    float last = float(size - 2);
    bool number = (floatBitsToUint(s) & 0x7fffffffu) <= 0x7f800000u;
    bool inside = number && s >= 0.0 && s <= last;
    float limited = inside ? s : number && s > last ? last : 0.0;
    int at = int(limited);

    place.v[to] = inside ? at : -1 - at;
    weight.v[to] = number ? limited - float(at) : uintBitsToFloat(0x7fc00000u);
}

void main()
{
    uint samples = uint(p.samples), count = uint(p.points), total = uint(p.n) * samples;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint sample_at = i % samples, point = i / samples * 2u * count;
        precise float x = 0.0, y = 0.0;

        for (uint k = 0u; k < count; k++) {
            float m = matrix.v[k * samples + sample_at];
            precise float px = m * points.v[point + 2u * k];
            precise float py = m * points.v[point + 2u * k + 1u];

            x += px;
            y += py;
        }
        precise float across = x * float(p.w), down = y * float(p.h);

        put_place(across, p.w, 2u * i);
        put_place(down, p.h, 2u * i + 1u);
    }
}
