#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 dz;
    InF32 kernel;
    InOutF32 dcontext;
    attention_params p;
};
#include "lib/attention.glsl"
#include "lib/transposed_rows.glsl"

float weight_of(int which, uint unit, uint term)
{
    return kernel.v[(uint(p.classes) + unit) * 4 * uint(p.units) + term];
}

float value_of(int which, uint row, uint term)
{
    return dz.v[attention_place(row, p.at) * 4 * uint(p.units) + term];
}

void end_row(uint row, uint j, float d)
{
    uint c = uint(p.c);

    if (j >= c || row >= uint(p.n))
        return;
    for (int step = 0; step < p.steps && p.accumulate == 0; step++)
        if (step != p.at)
            dcontext.v[attention_place(row, step) * c + j] = 0.0;
    dcontext.v[attention_place(row, p.at) * c + j] = d;
}

/* 64 channels of 4 rows per group; see attention_back.comp. */
void main()
{
    uint group = gl_WorkGroupID.x, c = uint(p.c), blocks = (c + 63) / 64;
    uint rows = uint(p.n), groups = blocks * ((rows + ROWS - 1) / ROWS);

    do {
        uint unit = group % blocks * 64, j = unit + gl_LocalInvocationID.x;
        uint first = group / blocks * ROWS;
        float s[ROWS];

        for (uint r = 0; r < ROWS; r++)
            s[r] = 0.0;
        add_products(0, first, rows, unit, c, 4 * uint(p.units), s);
        end_row(first, j, s[0]);
        end_row(first + 1, j, s[1]);
        end_row(first + 2, j, s[2]);
        end_row(first + 3, j, s[3]);
    } while (pm_next_row(group) < groups);
}
