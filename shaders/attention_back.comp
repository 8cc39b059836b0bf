#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/activation.glsl"
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 dy;
    InF32 dq;
    InF32 query;
    InF32 gates;
    InF32 c;
    InF32 kernel;
    InI32 labels;
    InOutF32 t; /* of the C function */
    InOutF32 dz;
    InOutF32 dc;
    attention_params p;
};
#include "lib/attention.glsl"
#include "lib/transposed_rows.glsl"
#define HAS_QUERIES pm_has(1)

float weight_of(int which, uint unit, uint term)
{
    uint row = uint(p.classes + p.c) + unit;

    return which == 0 ? kernel.v[row * 4 * uint(p.units) + min(term, uint(4 * p.units - 1))]
                      : query.v[unit * uint(p.attention) + min(term, uint(p.attention - 1))];
}

float value_of(int which, uint row, uint term)
{
    uint at = attention_place(row, min(p.at + 1, p.steps - 1));
    float value = 0.0;

    if (which == 0)
        value = dz.v[at * 4 * uint(p.units) + term];
    else if (HAS_QUERIES)
        value = dq.v[at * uint(p.attention) + term];
    return value;
}

void clear(uint row, uint j)
{
    uint units = uint(p.units);

    for (int step = 0; step < p.steps; step++)
        if (step != p.at)
            for (uint g = 0; g < 4; g++)
                dz.v[(4 * attention_place(row, step) + g) * units + j] = 0.0;
}

void end_row(uint row, uint j, float dh)
{
    if (j >= uint(p.units) || row >= uint(p.n))
        return;
    if (p.accumulate == 0)
        clear(row, j);
    uint units = uint(p.units), at = attention_place(row, p.at), from = 4 * at * units + j;
    float i = gates.v[from], u = gates.v[from + units], f = gates.v[from + 2 * units];
    float o = gates.v[from + 3 * units], th = pm_tanh(c.v[at * units + j]), old = 0.0, carry = 0.0;
    bool runs = labels.v[at] >= 0;

    if (p.at > 0)
        old = c.v[attention_before(row) * units + j];
    if (p.accumulate != 0)
        carry = dc.v[row * units + j];
    dh += dy.v[at * units + j];
    float cell = carry + dh * o * (1.0 - th * th);
    vec4 d = vec4(cell * u * i * (1.0 - i), cell * i * (1.0 - u * u),
                  cell * old * f * (1.0 - f), dh * th * o * (1.0 - o));

    for (uint k = 0; k < 4; k++)
        dz.v[from + k * units] = runs ? d[k] : 0.0;
    dc.v[row * units + j] = runs ? cell * f : 0.0;
}

/* 64 units of 4 rows per group. The calls of end_row have constant indices: with others, compilers
 * keep the array in memory. */
void main()
{
    uint group = gl_WorkGroupID.x, units = uint(p.units), blocks = (units + 63) / 64;
    uint rows = uint(p.n), groups = blocks * ((rows + ROWS - 1) / ROWS);

    do {
        uint unit = group % blocks * 64, j = unit + gl_LocalInvocationID.x;
        uint first = group / blocks * ROWS;
        float s[ROWS];

        for (uint r = 0; r < ROWS; r++)
            s[r] = 0.0;
        if (p.accumulate != 0 && p.at + 1 < p.steps) {
            add_products(0, first, rows, unit, units, 4 * units, s);
            if (HAS_QUERIES)
                add_products(1, first, rows, unit, units, uint(p.attention), s);
        }
        end_row(first, j, s[0]);
        end_row(first + 1, j, s[1]);
        end_row(first + 2, j, s[2]);
        end_row(first + 3, j, s[3]);
    } while (pm_next_row(group) < groups);
}
