/* conv2d_fwd and conv2d_bwd_data, structure R: a register tile read directly from memory.
 *
 * A workgroup is one subgroup. It makes TM rows (pixels) x TN columns per lane (channels). All
 * lanes have the same rows, so the left matrix is read by uniform loads, four terms at a time if
 * the channels allow it (VEC). Lanes are neighbours in the columns of the right matrix, which is
 * [tap][channel][column]: w itself forward, a transposed copy for the data gradient (in t, or w
 * itself if p.transposed is set). This structure is for drivers that run on the CPU: no shared
 * memory, no barrier, every load used TM or TN times.
 *
 * If the columns are not a multiple of a tile, there are two dispatches: whole tiles, then the rest
 * with a narrower tile. BEFORE is the width of the first dispatch's tiles. EDGE is set if even the
 * narrower tile extends beyond the columns.
 *
 * Grid: x + 65535 * (z % layers) = row tile, y = column tile + column tiles * group, z / layers =
 * phase. Workgroups that run one after the other share a panel of the right matrix, which stays in
 * the cache. */
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef PAIR
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const bool BACK = false;
layout(constant_id = 4) const bool EDGE = false;
layout(constant_id = 5) const int BEFORE = 0;
#ifdef FIXED_TM /* for drivers that do not unroll loops over specialization constants */
const int TM = FIXED_TM, TN = FIXED_TN;
const bool VEC = FIXED_VEC;
#else
layout(constant_id = 6) const int TM = 8;
layout(constant_id = 7) const int TN = 4;
layout(constant_id = 8) const bool VEC = false;
#endif
#ifdef PAIR /* two neighbouring columns per load; even columns, even TN, no EDGE */
const int WIDE = 2;
layout(buffer_reference, std430, buffer_reference_align = 8)
    readonly restrict buffer InPair { uint64_t v[]; };
#else
const int WIDE = 1;
#endif

layout(push_constant, scalar) uniform Push { uvec2 a; uvec2 w; uvec2 t; InOutF32 c; uvec2 moments;
                                             conv2d_params p; };
#include "lib/conv_address.glsl"

void main()
{
    int lanes = int(gl_WorkGroupSize.x), lane = int(gl_LocalInvocationID.x);
    int terms = (BACK ? p.k : p.c) / p.groups, columns = (BACK ? p.c : p.k) / p.groups;
    int begin = BEFORE > 0 ? columns / BEFORE * BEFORE : 0, wide = TN * lanes;
    int tiles = EDGE ? conv_ceil_div(columns - begin, wide) : (columns - begin) / wide;
    int group = int(gl_WorkGroupID.y) / tiles;
    int column = begin + int(gl_WorkGroupID.y) % tiles * wide;
    int a_width = terms * p.groups, b_width = BACK ? columns : p.k;

    ivec2 whole = conv_target(ivec2(0)), source = conv_source();
    int layers = conv_ceil_div(conv_ceil_div(p.n * whole.x * whole.y, TM), 65535);
    ivec2 phase = conv_phase(int(gl_WorkGroupID.z) / layers), target = conv_target(phase);
    int rows = p.n * target.x * target.y;
    int first = (int(gl_WorkGroupID.z) % layers * 65535 + int(gl_WorkGroupID.x)) * TM;
    if (first >= rows)
        return;

    InF32 a1 = InF32(a);
    InF32x4 a4 = InF32x4(a);
#ifdef PAIR
    InPair b = InPair(BACK && p.transposed == 0 ? t : w);
#else
    InF32 b = InF32(BACK && p.transposed == 0 ? t : w);
#endif

    /* Rows: their origin in the source, and the index of that element. */
    int row_y[TM], row_x[TM], row_at[TM], out_at[TM];
    ivec3 at = conv_position(first, target);
    [[unroll]] for (int i = 0; i < TM; i++) {
        ivec2 origin = conv_origin(at);
        row_y[i] = first + i < rows ? origin.x : -1000000; /* outside the image for every tap */
        row_x[i] = origin.y;
        row_at[i] = ((at.x * source.x + origin.x) * source.y + origin.y) * a_width + group * terms;
        out_at[i] = conv_pixel(at, phase) * (columns * p.groups) + group * columns;
        at = conv_next(at, target);
    }

    /* Columns: column col[j] + u of the group, u < WIDE. */
    int col[TN / WIDE];
    [[unroll]] for (int j = 0; j < TN / WIDE; j++) {
        col[j] = column + (j * lanes + lane) * WIDE;
        if (EDGE)
            col[j] = min(col[j], columns - 1);
    }

    float sum[TM * TN];
    [[unroll]] for (int i = 0; i < TM * TN; i++)
        sum[i] = 0.0;

    for (int ky = 0; ky < p.kh; ky++)
        for (int kx = 0; kx < p.kw; kx++) {
            ivec2 offset;
            if (!conv_tap(ivec2(ky, kx), phase, offset))
                continue;
            int shift = (offset.x * source.y + offset.y) * a_width;
            int at_a[TM];
            [[unroll]] for (int i = 0; i < TM; i++) {
                bool inside = uint(row_y[i] + offset.x) < uint(source.x)
                           && uint(row_x[i] + offset.y) < uint(source.y);
                at_a[i] = inside ? row_at[i] + shift : -1;
            }
            int at_b = BACK ? ((ky * p.kw + kx) * p.k + group * terms) * b_width
                            : (ky * p.kw + kx) * terms * b_width + group * columns;

            const int STEP = VEC ? 4 : 1;
            for (int term = 0; term < terms; term += STEP) {
                vec4 left[TM];
                [[unroll]] for (int i = 0; i < TM; i++) {
                    left[i] = vec4(0.0);
                    if (at_a[i] >= 0) {
                        if (VEC)
                            left[i] = a4.v[(at_a[i] + term) >> 2];
                        else
                            left[i].x = a1.v[at_a[i] + term];
                    }
                }
                [[unroll]] for (int s = 0; s < STEP; s++) {
                    float right[TN];
                    [[unroll]] for (int j = 0; j < TN / WIDE; j++) {
#ifdef PAIR
                        uvec2 two = unpack32(b.v[(at_b + col[j]) >> 1]);
                        right[2 * j] = uintBitsToFloat(two.x);
                        right[2 * j + 1] = uintBitsToFloat(two.y);
#else
                        right[j] = b.v[at_b + col[j]];
#endif
                    }
                    [[unroll]] for (int i = 0; i < TM; i++)
                        [[unroll]] for (int j = 0; j < TN; j++)
                            sum[i * TN + j] = fma(left[i][s], right[j], sum[i * TN + j]);
                    at_b += b_width;
                }
            }
        }

    if (BACK && p.accumulate != 0)
        [[unroll]] for (int i = 0; i < TM; i++)
            if (first + i < rows)
                [[unroll]] for (int j = 0; j < TN; j++) {
                    int to = column + (j / WIDE * lanes + lane) * WIDE + j % WIDE;
                    if (!EDGE || to < columns)
                        sum[i * TN + j] = c.v[out_at[i] + to] + sum[i * TN + j];
                }
    [[unroll]] for (int i = 0; i < TM; i++)
        if (first + i < rows)
            [[unroll]] for (int j = 0; j < TN; j++) {
                int to = column + (j / WIDE * lanes + lane) * WIDE + j % WIDE;
                if (!EDGE || to < columns)
                    c.v[out_at[i] + to] = sum[i * TN + j];
            }
}
