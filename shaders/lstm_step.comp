#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/activation.glsl"
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "lstm.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 pre;
    InF32 kernel;
    InF32 bias;
    InI32 lengths;
    InOutF32 t; /* of the C function */
    InOutF32 gates;
    InOutF32 c;
    InOutF32 y;
    lstm_params p;
};
#define HAS_LENGTHS pm_has(3)
const uint ROWS = 4; /* examples of a lane; main names them all */

uint place(uint row, int step)
{
    return row * uint(p.t) + uint(step);
}

/* Adds the products of the state before, for unit j of the rows from `first` on. The loop ends at
 * its end because all lanes load the same state; see pm_next_row. */
void add_state(uint first, uint j, inout vec4 z[ROWS])
{
    uint units = uint(p.units), k = 0;

    do {
        uint at = (uint(p.c) + k) * 4 * units + j;
        vec4 w = vec4(kernel.v[at], kernel.v[at + units], kernel.v[at + 2 * units],
                      kernel.v[at + 3 * units]);

        for (uint r = 0; r < ROWS; r++)
            z[r] += w * y.v[place(min(first + r, uint(p.n) - 1), p.before) * units + k];
    } while (++k < units);
}

void clear(uint row, uint j)
{
    uint units = uint(p.units);

    for (int step = 0; step < p.t; step++)
        if (step != p.at) {
            uint at = place(row, step);

            y.v[at * units + j] = 0.0;
            c.v[at * units + j] = 0.0;
            for (uint g = 0; g < 4; g++)
                gates.v[(4 * at + g) * units + j] = 0.0;
        }
}

/* z: the sums of the gates i, j, f, o without what does not depend on the state. */
void write_unit(uint row, uint j, bool has_state, vec4 z)
{
    uint units = uint(p.units), at = place(row, p.at), from = 4 * at * units + j;
    bool runs = true;
    float old = 0.0;

    z += vec4(pre.v[from] + bias.v[j], pre.v[from + units] + bias.v[j + units],
              pre.v[from + 2 * units] + bias.v[j + 2 * units],
              pre.v[from + 3 * units] + bias.v[j + 3 * units]);
    if (HAS_LENGTHS)
        runs = p.at < lengths.v[row];
    if (has_state)
        old = c.v[place(row, p.before) * units + j];
    vec4 g = vec4(pm_sigmoid(z.x), pm_tanh(z.y), pm_sigmoid(z.z + p.forget_bias), pm_sigmoid(z.w));

    if (!runs)
        g = vec4(0.0);
    float cell = runs ? old * g.z + g.x * g.y : 0.0;

    for (uint k = 0; k < 4; k++)
        gates.v[from + k * units] = g[k];
    c.v[at * units + j] = cell;
    y.v[at * units + j] = pm_tanh(cell) * g.w;
}

void end_row(uint row, uint unit, bool has_state, vec4 z)
{
    if (unit >= uint(p.units) || row >= uint(p.n))
        return;
    if (p.accumulate == 0)
        clear(row, unit);
    write_unit(row, unit, has_state, z);
}

/* 64 units of 4 examples per group. The calls of end_row have constant indices: with others,
 * compilers keep the array in memory. */
void main()
{
    uint group = gl_WorkGroupID.x, units = uint(p.units), blocks = (units + 63) / 64;
    uint groups = blocks * ((uint(p.n) + ROWS - 1) / ROWS);
    bool has_state = p.accumulate != 0 && p.before >= 0;

    do {
        uint unit = group % blocks * 64 + gl_LocalInvocationID.x, first = group / blocks * ROWS;
        uint j = min(unit, units - 1);
        vec4 z[ROWS];

        for (uint r = 0; r < ROWS; r++)
            z[r] = vec4(0.0);
        if (has_state)
            add_state(first, j, z);
        end_row(first, unit, has_state, z[0]);
        end_row(first + 1, unit, has_state, z[1]);
        end_row(first + 2, unit, has_state, z[2]);
        end_row(first + 3, unit, has_state, z[3]);
    } while (pm_next_row(group) < groups);
}
