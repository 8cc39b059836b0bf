#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lstm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 x;
    InF32 y;
    InI32 lengths;
    OutF32 xh;
    lstm_inputs_params p;
};
#define HAS_LENGTHS pm_has(2)

void main()
{
    uint c = uint(p.c), units = uint(p.units), total = uint(p.n) * uint(p.t) * (c + units);

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint row = i / (c + units), k = i % (c + units);
        int at = int(row % uint(p.t)), before = at + p.before;
        bool runs = true;
        float v = 0.0;

        if (HAS_LENGTHS)
            runs = at < lengths.v[row / uint(p.t)];
        if (!runs)
            v = 0.0;
        else if (k < c)
            v = x.v[row * c + k];
        else if (before >= 0 && before < p.t)
            v = y.v[uint(int(row) + p.before) * units + k - c];
        xh.v[i] = v;
    }
}
