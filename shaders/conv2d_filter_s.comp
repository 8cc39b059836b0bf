/* conv2d_bwd_filter, structure S: tiles in shared memory, for GPUs (see conv2d_s.comp).
 *
 * dw [tap * channel][column] is a product over pixels. A workgroup makes BM rows, which may belong
 * to several taps, x BN columns. It covers one of PARTS runs of pixels, BK pixels at a time. Both
 * tiles are stored as [pixel][row or column]. With several parts each writes its own sums to t
 * [part]. If LAST, the workgroup that finishes a tile last adds them, else conv2d_combine does, in
 * the same order. The conditions of conv2d_s.comp on the tiles hold here too, and TM is a multiple
 * of 4. As there, the next tile is fetched without conditions, and ROLLED keeps the loop over a
 * tile's pixels.
 *
 * Grid: x = column tile + column tiles * group, y = row tile, z = part. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int PARTS = 1;
layout(constant_id = 4) const bool VEC_A = false;  /* channels are a multiple of 4 */
layout(constant_id = 5) const bool VEC_B = false;  /* columns are a multiple of 4 */
layout(constant_id = 6) const bool ROLLED = false; /* the loop over a tile's pixels is kept */
layout(constant_id = 7) const int OH = 1;          /* constants, to make divisions cheap */
layout(constant_id = 8) const int OW = 1;
layout(constant_id = 9) const int BM = 64;
layout(constant_id = 10) const int BN = 64;
layout(constant_id = 11) const int BK = 16;
layout(constant_id = 12) const int TM = 4;
layout(constant_id = 13) const int TN = 4;
layout(constant_id = 14) const bool LAST = false;

const int ACROSS = BN / TN, DOWN = BM / TM, SIZE = ACROSS * DOWN;
const int A_LOADS = BM * BK / 4 / SIZE, B_LOADS = BN * BK / 4 / SIZE;

layout(push_constant, scalar) uniform Push { uvec2 x; uvec2 dy; uvec2 t; uvec2 dw;
                                             uvec2 done; conv2d_params p; };

#include "lib/last.glsl"

shared vec4 left[BK * BM / 4];
shared vec4 right[BK * BN / 4];

int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

/* This invocation's part of the next tile, and which of its elements exist. */
vec4 next_a[A_LOADS], next_b[B_LOADS];
bvec4 there_a[A_LOADS], there_b[B_LOADS];
/* The rows that this invocation fetches: the tap's offset and the channel. If VEC_A, all four
 * belong to one tap. A row after the last has an offset outside every image. */
int row_y[4], row_x[4], row_c[4];

/* Fetches the tile of pixels pixel .. pixel + BK - 1; pixels from `end` on are not fetched. */
void fetch(int pixel, int end, int group, int b_column)
{
    uint me = gl_LocalInvocationIndex;
    InF32 x1 = InF32(x), b1 = InF32(dy);
    InF32x4 x4 = InF32x4(x), b4 = InF32x4(dy);

    [[unroll]] for (int i = 0; i < A_LOADS; i++) {
        uint at = uint(pixel) + me / uint(BM / 4) + i * (SIZE / (BM / 4)), line = at / uint(OW);
        int top = int(line % uint(OH)) * p.stride_h, side = int(at % uint(OW)) * p.stride_w;
        int n = int(line / uint(OH));
        [[unroll]] for (int e = 0; e < (VEC_A ? 1 : 4); e++) {
            int iy = top + row_y[e], ix = side + row_x[e];
            int from = ((n * p.h + iy) * p.w + ix) * p.c + row_c[e];
            bool there = at < end && uint(iy) < uint(p.h) && uint(ix) < uint(p.w);
            if (VEC_A) {
                there_a[i] = bvec4(there);
                next_a[i] = x4.v[there ? from >> 2 : 0];
            } else {
                there_a[i][e] = there;
                next_a[i][e] = x1.v[there ? from : 0];
            }
        }
    }
    [[unroll]] for (int i = 0; i < B_LOADS; i++) {
        int at = pixel + int(me / uint(BN / 4)) + i * (SIZE / (BN / 4));
        int columns = p.k / p.groups;
        int from = at * p.k + group * columns + b_column;
        if (VEC_B) {
            there_b[i] = bvec4(at < end && b_column < columns);
            next_b[i] = b4.v[there_b[i].x ? from >> 2 : 0];
        } else {
            [[unroll]] for (int e = 0; e < 4; e++) {
                there_b[i][e] = at < end && b_column + e < columns;
                next_b[i][e] = b1.v[there_b[i][e] ? from + e : 0];
            }
        }
    }
}

/* This invocation's sums [TM][TN / 4]. */
vec4 sum[TM * TN / 4];

/* Adds the products of the tile's pixel number k. */
void multiply(int k)
{
    uint line = gl_LocalInvocationIndex / uint(ACROSS);
    uint across = gl_LocalInvocationIndex % uint(ACROSS);
    vec4 l[TM / 4];

    [[unroll]] for (int i = 0; i < TM / 4; i++)
        l[i] = left[k * (BM / 4) + line + i * DOWN];
    [[unroll]] for (int j = 0; j < TN / 4; j++) {
        vec4 r = right[k * (BN / 4) + across + j * ACROSS];
        [[unroll]] for (int i = 0; i < TM; i++)
            sum[i * (TN / 4) + j] = fma(vec4(l[i / 4][i % 4]), r, sum[i * (TN / 4) + j]);
    }
}

void main()
{
    uint me = gl_LocalInvocationIndex;
    int channels = p.c / p.groups, columns = p.k / p.groups;
    int tiles = ceil_div(columns, BN), rows = p.kh * p.kw * channels;
    int group = int(gl_WorkGroupID.x) / tiles, column = int(gl_WorkGroupID.x) % tiles * BN;
    int first = int(gl_WorkGroupID.y) * BM, part = int(gl_WorkGroupID.z);
    int pixels = p.n * OH * OW, chunk = ceil_div(ceil_div(pixels, PARTS), BK) * BK;
    int pixel = part * chunk, end = min(pixel + chunk, pixels);

    [[unroll]] for (int e = 0; e < (VEC_A ? 1 : 4); e++) {
        int row = first + int(me % uint(BM / 4)) * 4 + e, tap = row / channels;
        row_y[e] = row < rows ? tap / p.kw * p.dilation_h - p.top : -1000000;
        row_x[e] = tap % p.kw * p.dilation_w - p.left;
        row_c[e] = group * channels + row % channels;
    }
    int b_column = column + int(me % uint(BN / 4)) * 4;
    uint line = me / uint(ACROSS), across = me % uint(ACROSS); /* position in the sums */

    [[unroll]] for (int i = 0; i < TM * TN / 4; i++)
        sum[i] = vec4(0.0);

    fetch(pixel, end, group, b_column);
    for (; pixel < end; pixel += BK) {
        barrier(); /* all invocations have multiplied the previous tile */
        [[unroll]] for (int i = 0; i < A_LOADS; i++)
            left[me + i * SIZE] = mix(vec4(0.0), next_a[i], there_a[i]);
        [[unroll]] for (int i = 0; i < B_LOADS; i++)
            right[me + i * SIZE] = mix(vec4(0.0), next_b[i], there_b[i]);
        barrier();
        fetch(pixel + BK, end, group, b_column);
        if (ROLLED) {
            [[dont_unroll]] for (int k = 0; k < BK; k++)
                multiply(k);
        } else {
            [[unroll]] for (int k = 0; k < BK; k++)
                multiply(k);
        }
    }

    int own = column + int(across) * 4; /* the first column of this invocation */
    if (LAST) {
        CoherentF32 t1 = CoherentF32(t);
        CoherentF32x4 t4 = CoherentF32x4(t);
        uint tile = gl_WorkGroupID.y * uint(tiles * p.groups) + gl_WorkGroupID.x;

        [[unroll]] for (int i = 0; i < TM; i++) {
            int row = first + (int(line) + i / 4 * DOWN) * 4 + i % 4;
            int at = (part * rows + row) * p.k + group * columns;
            [[unroll]] for (int j = 0; j < TN / 4; j++) {
                int to = own + j * ACROSS * 4;
                vec4 v = sum[i * (TN / 4) + j];
                if (VEC_B && row < rows && to < columns)
                    t4.v[(at + to) >> 2] = v;
                [[unroll]] for (int e = 0; e < 4; e++)
                    if (!VEC_B && row < rows && to + e < columns)
                        t1.v[at + to + e] = v[e];
            }
        }
        if (!pm_is_last(tile, uint(PARTS)))
            return;
        [[unroll]] for (int i = 0; i < TM * TN / 4; i++)
            sum[i] = vec4(0.0);
        for (int k = 0; k < PARTS; k++)
            [[unroll]] for (int i = 0; i < TM; i++) {
                int row = first + (int(line) + i / 4 * DOWN) * 4 + i % 4;
                int at = (k * rows + row) * p.k + group * columns;
                [[unroll]] for (int j = 0; j < TN / 4; j++) {
                    int to = own + j * ACROSS * 4;
                    if (VEC_B && row < rows && to < columns)
                        sum[i * (TN / 4) + j] += t4.v[(at + to) >> 2];
                    [[unroll]] for (int e = 0; e < 4; e++)
                        if (!VEC_B && row < rows && to + e < columns)
                            sum[i * (TN / 4) + j][e] += t1.v[at + to + e];
                }
            }
    }

    bool direct = LAST || PARTS == 1, add = direct && p.accumulate != 0;
    InOutF32 c1 = InOutF32(direct ? dw : t);
    InOutF32x4 c4 = InOutF32x4(direct ? dw : t);
    [[unroll]] for (int i = 0; i < TM; i++) {
        int row = first + (int(line) + i / 4 * DOWN) * 4 + i % 4;
        if (row >= rows)
            continue;
        int at = ((direct ? 0 : part * rows) + row) * p.k + group * columns;
        [[unroll]] for (int j = 0; j < TN / 4; j++) {
            int to = own + j * ACROSS * 4;
            vec4 v = sum[i * (TN / 4) + j];
            if (VEC_B) {
                if (to < columns)
                    c4.v[(at + to) >> 2] = add ? c4.v[(at + to) >> 2] + v : v;
            } else {
                [[unroll]] for (int e = 0; e < 4; e++)
                    if (to + e < columns)
                        c1.v[at + to + e] = add ? c1.v[at + to + e] + v[e] : v[e];
            }
        }
    }
}
