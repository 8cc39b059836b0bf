#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/activation.glsl"
#include "lib/buffers.glsl"
#include "lib/presence.glsl"
#include "attention.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push {
    InF32 kernel;
    InF32 bias;
    InI32 symbols;
    InI32 parents;
    InF32 context;
    InOutF32 t; /* of the C function */
    InOutF32 gates;
    InOutF32 c;
    InOutF32 y;
    attention_params p;
};
#include "lib/attention.glsl"
#define HAS_SYMBOLS pm_has(2)
#define HAS_PARENTS pm_has(3)
const uint ROWS = 4; /* of a lane; main names them all */

vec4 weights_of(uint row, uint j)
{
    uint units = uint(p.units), at = row * 4 * units + j;

    return vec4(kernel.v[at], kernel.v[at + units], kernel.v[at + 2 * units],
                kernel.v[at + 3 * units]);
}

/* The row that this row continues, and the step before. */
uint before_of(uint row)
{
    uint from = row;

    if (HAS_PARENTS)
        from = attention_beam(row, parents.v[attention_before(row)]);
    return attention_before(from);
}

/* Adds the products of the context and of the state before, for unit j of the rows from `first` on.
 * The loops end at their end because all lanes load the same numbers; see pm_next_row. */
void add_products(uint first, uint j, inout vec4 z[ROWS])
{
    uint k = 0, last = uint(p.n) - 1, c = uint(p.c);

    do {
        vec4 w = weights_of(uint(p.classes) + k, j);

        for (uint r = 0; r < ROWS; r++)
            z[r] += w * context.v[attention_place(min(first + r, last), p.at) * c + k];
    } while (++k < c);
}

void add_state(uint first, uint j, inout vec4 z[ROWS])
{
    uint k = 0, last = uint(p.n) - 1, units = uint(p.units);
    uint from[ROWS];

    for (uint r = 0; r < ROWS; r++)
        from[r] = before_of(min(first + r, last)) * units;
    do {
        vec4 w = weights_of(uint(p.classes + p.c) + k, j);

        for (uint r = 0; r < ROWS; r++)
            z[r] += w * y.v[from[r] + k];
    } while (++k < units);
}

void clear(uint row, uint j)
{
    uint units = uint(p.units);

    for (int step = 0; step < p.steps; step++)
        if (step != p.at) {
            uint at = attention_place(row, step);

            y.v[at * units + j] = 0.0;
            c.v[at * units + j] = 0.0;
            for (uint g = 0; g < 4; g++)
                gates.v[(4 * at + g) * units + j] = 0.0;
        }
}

/* The kernel's row of the symbol before. */
vec4 symbol_weights(uint row, uint j)
{
    int symbol = ATTENTION_START;

    if (HAS_SYMBOLS && p.at > 0)
        symbol = symbols.v[attention_before(row)];
    vec4 w = weights_of(uint(clamp(symbol, 0, p.classes - 1)), j);

    return symbol >= 0 && symbol < p.classes ? w : vec4(0.0);
}

void end_row(uint row, uint j, bool has_state, vec4 z)
{
    if (j >= uint(p.units) || row >= uint(p.n))
        return;
    if (p.accumulate == 0)
        clear(row, j);
    uint units = uint(p.units), at = attention_place(row, p.at), from = 4 * at * units + j;
    bool runs = true;
    float old = 0.0;

    z += symbol_weights(row, j) + vec4(bias.v[j], bias.v[j + units], bias.v[j + 2 * units],
                                       bias.v[j + 3 * units]);
    if (HAS_SYMBOLS)
        runs = p.search != 0 || symbols.v[at] >= 0;
    if (has_state)
        old = c.v[before_of(row) * units + j];
    vec4 g = vec4(pm_sigmoid(z.x), pm_tanh(z.y), pm_sigmoid(z.z + p.forget_bias), pm_sigmoid(z.w));

    if (!runs)
        g = vec4(0.0);
    float cell = runs ? old * g.z + g.x * g.y : 0.0;

    for (uint k = 0; k < 4; k++)
        gates.v[from + k * units] = g[k];
    c.v[at * units + j] = cell;
    y.v[at * units + j] = pm_tanh(cell) * g.w;
}

/* 64 units of 4 rows per group. The calls of end_row have constant indices: with others, compilers
 * keep the array in memory. */
void main()
{
    uint group = gl_WorkGroupID.x, units = uint(p.units), blocks = (units + 63) / 64;
    uint groups = blocks * ((uint(p.n) + ROWS - 1) / ROWS);
    bool has_state = p.accumulate != 0 && p.at > 0;

    do {
        uint unit = group % blocks * 64 + gl_LocalInvocationID.x, first = group / blocks * ROWS;
        uint j = min(unit, units - 1);
        vec4 z[ROWS];

        for (uint r = 0; r < ROWS; r++)
            z[r] = vec4(0.0);
        add_products(first, j, z);
        if (has_state)
            add_state(first, j, z);
        end_row(first, unit, has_state, z[0]);
        end_row(first + 1, unit, has_state, z[1]);
        end_row(first + 2, unit, has_state, z[2]);
        end_row(first + 3, unit, has_state, z[3]);
    } while (pm_next_row(group) < groups);
}
