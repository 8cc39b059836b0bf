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
#define HAS_LENGTHS pm_has(4)
const uint ROWS = 4;   /* examples of a lane; main names them all */
const uint TERMS = 16; /* of the sums, at once */
shared float tile[64 * (TERMS + 1)];

uint place(uint row, int step)
{
    return row * uint(p.t) + uint(step);
}

/* Loads weights of 64 units, from term m on; they are 0 after the last term. */
void load_tile(uint unit, uint m)
{
    uint units = uint(p.units);

    barrier();
    for (uint i = gl_LocalInvocationID.x; i < 64 * TERMS; i += 64) {
        uint k = min(unit + i / TERMS, units - 1), term = m + i % TERMS;
        float w = kernel.v[(uint(p.c) + k) * 4 * units + min(term, 4 * units - 1)];

        tile[i / TERMS * (TERMS + 1) + i % TERMS] = term < 4 * units ? w : 0.0;
    }
    barrier();
}

/* Fills s with the gradients of the states of one unit from the step after. */
void add_state(uint first, uint unit, inout float s[ROWS])
{
    uint units = uint(p.units);

    for (uint m = 0; m < 4 * units; m += TERMS) {
        load_tile(unit, m);
        for (uint i = 0; i < TERMS; i++) {
            float w = tile[gl_LocalInvocationID.x * (TERMS + 1) + i];
            uint term = min(m + i, 4 * units - 1);

            for (uint r = 0; r < ROWS; r++)
                s[r] += w * dz.v[place(min(first + r, uint(p.n) - 1), p.after) * 4 * units + term];
        }
    }
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
    uint groups = blocks * ((uint(p.n) + ROWS - 1) / ROWS);

    do {
        uint unit = group % blocks * 64, j = unit + gl_LocalInvocationID.x;
        uint first = group / blocks * ROWS;
        float s[ROWS];

        for (uint r = 0; r < ROWS; r++)
            s[r] = 0.0;
        if (p.accumulate != 0 && p.after >= 0)
            add_state(first, unit, s);
        end_row(first, j, s[0]);
        end_row(first + 1, j, s[1]);
        end_row(first + 2, j, s[2]);
        end_row(first + 3, j, s[3]);
    } while (pm_next_row(group) < groups);
}
