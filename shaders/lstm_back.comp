#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/activation.glsl"
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lstm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 dy;
    InF32 gates;
    InF32 c;
    InF32 kernel;
    InI32 lengths;
    InOutF32 t; /* of the C function */
    InOutF32 dz;
    InOutF32 dc;
    lstm_params p;
};
#include "lib/transposed_rows.glsl"
#define HAS_LENGTHS pm_has(4)

uint place(uint row, int step)
{
    return row * uint(p.t) + uint(step);
}

float weight_of(int which, uint unit, uint term)
{
    return kernel.v[(uint(p.c) + unit) * 4 * uint(p.units) + term];
}

float value_of(int which, uint row, uint term)
{
    return dz.v[place(row, p.after) * 4 * uint(p.units) + term];
}

void clear(uint row, uint j)
{
    uint units = uint(p.units);

    for (int step = 0; step < p.t; step++)
        if (step != p.at)
            for (uint g = 0; g < 4; g++)
                dz.v[(4 * place(row, step) + g) * units + j] = 0.0;
}

void write_unit(uint row, uint j, float dh)
{
    uint units = uint(p.units), at = place(row, p.at), from = 4 * at * units + j;
    float i = gates.v[from], u = gates.v[from + units], f = gates.v[from + 2 * units];
    float o = gates.v[from + 3 * units], th = pm_tanh(c.v[at * units + j]), old = 0.0, carry = 0.0;
    bool runs = true;

    if (p.before >= 0)
        old = c.v[place(row, max(p.before, 0)) * units + j];
    if (HAS_LENGTHS)
        runs = p.at < lengths.v[row];
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

void end_row(uint row, uint j, float dh)
{
    if (j >= uint(p.units) || row >= uint(p.n))
        return;
    if (p.accumulate == 0)
        clear(row, j);
    write_unit(row, j, dh);
}

/* 64 units of 4 examples per group. The calls of end_row have constant indices: with others,
 * compilers keep the array in memory. */
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
        if (p.accumulate != 0 && p.after >= 0)
            add_products(0, first, rows, unit, units, 4 * units, s);
        end_row(first, j, s[0]);
        end_row(first + 1, j, s[1]);
        end_row(first + 2, j, s[2]);
        end_row(first + 3, j, s[3]);
    } while (pm_next_row(group) < groups);
}
