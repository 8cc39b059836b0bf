/* conv2d_fwd and conv2d_bwd_data, structure S: tiles in shared memory, for GPUs.
 *
 * A workgroup makes BM rows (pixels) x BN columns (channels) and iterates over the terms (tap,
 * channel) BK at a time. An invocation makes TM x TN of them. While a tile is multiplied, the next
 * one is loaded into registers. The right tile is stored as [term][column]. There are two forms:
 * - The loop over a tile's terms is unrolled. The left tile is stored as [row][term], padded by 4,
 *   and is read four terms at a time.
 * - ROLLED, for compilers that move the loads of an unrolled loop to its beginning and then spill
 *   registers (Intel). The left tile is stored as [term][row], padded by 4, and is read four rows
 *   at a time. TM is a multiple of 4.
 *
 * Shapes that are not a multiple of the tiles are padded with zeros. The zeros are inserted when a
 * tile is written to shared memory. Until then, elements outside are fetched from element 0. A
 * fetch under a condition would be awaited at the end of the condition, so it could not overlap
 * with the multiplication.
 *
 * The workgroup has BM / TM * BN / TN invocations. BM * BK and BN * BK are multiples of four times
 * that (otherwise parts of the tiles would never be fetched), and TN and BK are multiples of 4.
 *
 * With several PARTS, each part adds up its own range of channels of all taps, and writes its sums
 * to t. conv2d_combine adds the parts.
 *
 * Grid: x = column tile + column tiles * group, y + 65535 * (z % layers) = row tile, z / layers =
 * phase + phases * part. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"
#include "moments.params.h"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const bool BACK = false;
layout(constant_id = 4) const bool FLAT = false;   /* forward, few channels: all taps are one */
layout(constant_id = 5) const bool VEC_A = false;  /* terms are a multiple of 4 */
layout(constant_id = 6) const bool VEC_B = false;  /* columns are a multiple of 4 */
layout(constant_id = 7) const bool ROLLED = false; /* the loop over a tile's terms is kept */
layout(constant_id = 8) const int PARTS = 1;       /* the terms are cut into parts */
layout(constant_id = 9) const int PHASES_Y = 1;    /* BACK: the strides */
layout(constant_id = 10) const int PHASES_X = 1;
layout(constant_id = 11) const int KW = 1;         /* FLAT: constants, to make divisions cheap */
layout(constant_id = 12) const int CHANNELS = 1;
layout(constant_id = 13) const int BM = 64;
layout(constant_id = 14) const int BN = 64;
layout(constant_id = 15) const int BK = 16;
layout(constant_id = 16) const int TM = 4;
layout(constant_id = 17) const int TN = 4;
layout(constant_id = 18) const bool ADD = false;    /* data gradient: add to c */
layout(constant_id = 19) const bool MOMENTS = false; /* also write the moments of c */

const int ACROSS = BN / TN, DOWN = BM / TM, SIZE = ACROSS * DOWN;
const int A_LOADS = BM * BK / 4 / SIZE, B_LOADS = BN * BK / 4 / SIZE;
const int PITCH = ROLLED ? BM / 4 + 1 : BK / 4 + 1;

layout(push_constant, scalar) uniform Push { uvec2 a; uvec2 w; uvec2 t; uvec2 c; uvec2 moments;
                                             conv2d_params p; };
#define CONV_PHASES ivec2(PHASES_Y, PHASES_X)
#include "lib/conv_address.glsl"

shared vec4 left[(ROLLED ? BK : BM) * PITCH];
shared vec4 right[BK * BN / 4];

/* This invocation's part of the next tile, and which of its elements exist. */
vec4 next_a[A_LOADS], next_b[B_LOADS];
bvec4 there_a[A_LOADS], there_b[B_LOADS];
/* The rows that this invocation fetches: their origin in the source, and the index of that
 * element. */
int row_y[A_LOADS], row_x[A_LOADS], row_at[A_LOADS];

/* The current position in the terms. The part has those from begin_term to terms - 1 of a tap. */
ivec2 tap = ivec2(0, -1), phase, offset;
int term = 0, begin_term = 0, terms, part = 0;

/* This invocation's sums [TM][TN / 4]. */
vec4 sum[TM * TN / 4];

/* Returns the row of the tile that sum[i * (TN / 4)] belongs to. */
int row_of(int i)
{
    int line = int(gl_LocalInvocationIndex / uint(ACROSS));
    return ROLLED ? (line + i / 4 * DOWN) * 4 + i % 4 : line + i * DOWN;
}
#include "lib/conv_store.glsl"
#include "lib/conv_moments.glsl"

/* Advances to the next BK terms: of the same tap, or of the next tap that touches this phase's
 * rows. */
void advance()
{
    term += BK;
    if (tap.y >= 0 && term < terms)
        return;
    term = begin_term;
    do {
        tap.y++;
        if (tap.y == p.kw || (FLAT && tap.y > 0))
            tap = ivec2(FLAT ? p.kh : tap.x + 1, 0);
    } while (tap.x < p.kh && !conv_tap(tap, phase, offset));
}

/* Whether there are terms at the current position. */
bool more()
{
    return tap.x < p.kh;
}

/* Fetches the next tile, if there is one. b_column: column in the group. */
void fetch(int group, int b_column)
{
    uint me = gl_LocalInvocationIndex;
    int a_term = int(me % uint(BK / 4)) * 4, b_term = int(me / uint(BN / 4));
    int channels = (BACK ? p.k : p.c) / p.groups, columns = (BACK ? p.c : p.k) / p.groups;
    int a_width = channels * p.groups, b_width = BACK ? columns : p.k;
    ivec2 source = conv_source();
    InF32 a1 = InF32(a), b1 = InF32(BACK && p.transposed == 0 ? t : w);
    InF32x4 a4 = InF32x4(a), b4 = InF32x4(BACK && p.transposed == 0 ? t : w);

    /* It is cheaper to compute an offset again than to keep it in registers. */
    if (ROLLED)
        conv_tap(tap, phase, offset);
    int shift = FLAT ? 0 : (offset.x * source.y + offset.y) * a_width;
    [[unroll]] for (int i = 0; i < A_LOADS; i++) {
        int at = row_at[i] + shift + term + a_term;
        bool inside = more() && uint(row_y[i] + offset.x) < uint(source.x)
                   && uint(row_x[i] + offset.y) < uint(source.y);
        if (FLAT) {
            [[unroll]] for (int e = 0; e < 4; e++) {
                uint flat_term = uint(term + a_term + e), at_tap = flat_term / uint(CHANNELS);
                int y = int(at_tap / uint(KW)) * p.dilation_h;
                int x = int(at_tap % uint(KW)) * p.dilation_w;
                there_a[i][e] = more() && flat_term < terms && uint(row_y[i] + y) < uint(source.x)
                             && uint(row_x[i] + x) < uint(source.y);
                int from = row_at[i] + (y * source.y + x) * a_width
                         + int(flat_term % uint(CHANNELS));
                next_a[i][e] = a1.v[there_a[i][e] ? from : 0];
            }
        } else if (VEC_A) {
            there_a[i] = bvec4(inside && term + a_term < terms);
            next_a[i] = a4.v[there_a[i].x ? at >> 2 : 0];
        } else {
            [[unroll]] for (int e = 0; e < 4; e++) {
                there_a[i][e] = inside && term + a_term + e < terms;
                next_a[i][e] = a1.v[there_a[i][e] ? at + e : 0];
            }
        }
    }
    int at_tap = FLAT ? 0 : tap.x * p.kw + tap.y;
    int at_b = BACK ? (at_tap * p.k + group * channels) * b_width
                    : at_tap * channels * b_width + group * columns;
    [[unroll]] for (int i = 0; i < B_LOADS; i++) {
        int line = term + b_term + i * (SIZE / (BN / 4));
        int at = at_b + line * b_width + b_column;
        if (VEC_B) {
            there_b[i] = bvec4(more() && line < terms && b_column < columns);
            next_b[i] = b4.v[there_b[i].x ? at >> 2 : 0];
        } else {
            [[unroll]] for (int e = 0; e < 4; e++) {
                there_b[i][e] = more() && line < terms && b_column + e < columns;
                next_b[i][e] = b1.v[there_b[i][e] ? at + e : 0];
            }
        }
    }
}

/* Writes this invocation's part of the left tile to shared memory. */
void put_left()
{
    uint column = gl_LocalInvocationIndex % uint(BK / 4);

    [[unroll]] for (int i = 0; i < A_LOADS; i++) {
        uint row = gl_LocalInvocationIndex / uint(BK / 4) + i * (SIZE / (BK / 4));
        vec4 v = mix(vec4(0.0), next_a[i], there_a[i]);
        if (ROLLED) {
            [[unroll]] for (int e = 0; e < 4; e++)
                left[column * 4 * PITCH + row / 4 + e * PITCH][row % 4] = v[e];
        } else {
            left[row * PITCH + column] = v;
        }
    }
}

/* Adds the products of four terms, the tile's number k * 4 .. + 3. */
void multiply_four(int k)
{
    uint line = gl_LocalInvocationIndex / uint(ACROSS);
    uint across = gl_LocalInvocationIndex % uint(ACROSS);
    vec4 r[TN];

    [[unroll]] for (int j = 0; j < TN; j++)
        r[j] = right[(k * 4 + j / (TN / 4)) * (BN / 4) + across + j % (TN / 4) * ACROSS];
    [[unroll]] for (int i = 0; i < TM; i++) {
        vec4 l = left[(line + i * DOWN) * PITCH + k];
        [[unroll]] for (int s = 0; s < 4; s++)
            [[unroll]] for (int j = 0; j < TN / 4; j++)
                sum[i * (TN / 4) + j] = fma(vec4(l[s]), r[s * (TN / 4) + j],
                                            sum[i * (TN / 4) + j]);
    }
}

/* Adds the products of one term, the tile's number k. */
void multiply_term(int k)
{
    uint line = gl_LocalInvocationIndex / uint(ACROSS);
    uint across = gl_LocalInvocationIndex % uint(ACROSS);
    vec4 l[TM / 4];

    [[unroll]] for (int i = 0; i < TM / 4; i++)
        l[i] = left[k * PITCH + line + i * DOWN];
    [[unroll]] for (int j = 0; j < TN / 4; j++) {
        vec4 r = right[k * (BN / 4) + across + j * ACROSS];
        [[unroll]] for (int i = 0; i < TM; i++)
            sum[i * (TN / 4) + j] = fma(vec4(l[i / 4][i % 4]), r, sum[i * (TN / 4) + j]);
    }
}

void main()
{
    uint me = gl_LocalInvocationIndex;
    int channels = (BACK ? p.k : p.c) / p.groups, columns = (BACK ? p.c : p.k) / p.groups;
    int tiles = conv_ceil_div(columns, BN);
    int group = int(gl_WorkGroupID.x) / tiles, column = int(gl_WorkGroupID.x) % tiles * BN;
    int a_width = channels * p.groups;
    terms = FLAT ? p.kh * p.kw * channels : channels;

    ivec2 whole = conv_target(ivec2(0)), source = conv_source();
    int layers = conv_ceil_div(conv_ceil_div(p.n * whole.x * whole.y, BM), 65535);
    int z = int(gl_WorkGroupID.z) / layers;
    if (PARTS > 1) {
        int chunk = conv_ceil_div(conv_ceil_div(terms, BK), PARTS) * BK;
        part = z / (PHASES_Y * PHASES_X);
        z %= PHASES_Y * PHASES_X;
        begin_term = part * chunk;
        terms = min(begin_term + chunk, terms);
    }
    phase = conv_phase(z);
    ivec2 target = conv_target(phase);
    int rows = p.n * target.x * target.y;
    int first = (int(gl_WorkGroupID.z) % layers * 65535 + int(gl_WorkGroupID.y)) * BM;
    if (first >= rows)
        tap.x = p.kh; /* no terms. A return would skip barriers, which PoCL 3.1 compiles wrongly */

    uint a_row = me / uint(BK / 4);
    [[unroll]] for (int i = 0; i < A_LOADS; i++) {
        int row = first + int(a_row) + i * (SIZE / (BK / 4));
        ivec3 at = conv_position(min(row, rows - 1), target);
        ivec2 origin = conv_origin(at);
        row_y[i] = row < rows ? origin.x : -1000000; /* outside the image for every tap */
        row_x[i] = origin.y;
        row_at[i] = ((at.x * source.x + origin.x) * source.y + origin.y) * a_width
                  + group * channels;
    }
    int b_column = column + int(me % uint(BN / 4)) * 4;
    [[unroll]] for (int i = 0; i < TM * TN / 4; i++)
        sum[i] = vec4(0.0);

    advance();
    fetch(group, b_column);
    while (more()) {
        barrier(); /* all invocations have multiplied the previous tile */
        put_left();
        [[unroll]] for (int i = 0; i < B_LOADS; i++)
            right[me + i * SIZE] = mix(vec4(0.0), next_b[i], there_b[i]);
        barrier();
        advance();
        fetch(group, b_column);
        if (ROLLED) {
            [[dont_unroll]] for (int k = 0; k < BK; k++)
                multiply_term(k);
        } else {
            [[unroll]] for (int k = 0; k < BK / 4; k++)
                multiply_four(k);
        }
    }
    conv_store(first, rows, column, columns, group, target);
    if (MOMENTS)
        conv_moments(first, rows, column, columns, group);
}
