/* conv2d_bwd_filter, structure R: a register tile read directly from memory (see conv2d_r.comp).
 *
 * dw [tap][channel][column] is a product over pixels. A workgroup is one subgroup. It makes TM
 * channels of one tap x TN columns per lane. Its rows are within one tap, so the pixels of a line
 * with a partner in the image form one range, and the innermost loop has no test. Pixels are split
 * into PARTS runs of lines (of pixels if PLAIN). With several parts each writes its own sums to t
 * [part], and conv2d_combine adds them.
 *
 * Grid: x = column tile + column tiles * group, y = tap * channel tiles + channel tile, z =
 * part. */
#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef PAIR
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#endif
#include "lib/conv.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int PARTS = 1;
layout(constant_id = 4) const bool PLAIN = false; /* 1x1, stride 1, no padding: one long line */
layout(constant_id = 5) const bool EDGE = false;  /* EDGE and BEFORE as in conv2d_r.comp */
layout(constant_id = 6) const int BEFORE = 0;
#ifdef FIXED_TM /* for drivers that do not unroll loops over specialization constants */
const int TM = FIXED_TM, TN = FIXED_TN;
const bool VEC = FIXED_VEC;
#else
layout(constant_id = 7) const int TM = 8;
layout(constant_id = 8) const int TN = 4;
layout(constant_id = 9) const bool VEC = false;  /* channels and TM are multiples of 4 */
#endif
#ifdef PAIR /* two neighbouring columns per load; even columns, even TN, no EDGE */
const int WIDE = 2;
layout(buffer_reference, std430, buffer_reference_align = 8)
    readonly restrict buffer InPair { uint64_t v[]; };
#else
const int WIDE = 1;
#endif

layout(push_constant, scalar) uniform Push { uvec2 x; uvec2 dy; InOutF32 t; InOutF32 dw;
                                             uvec2 done; conv2d_params p; };

int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

void main()
{
    int lanes = int(gl_WorkGroupSize.x), lane = int(gl_LocalInvocationID.x);
    int channels = p.c / p.groups, columns = p.k / p.groups;
    int first = BEFORE > 0 ? columns / BEFORE * BEFORE : 0, wide = TN * lanes;
    int tiles = EDGE ? ceil_div(columns - first, wide) : (columns - first) / wide;
    int group = int(gl_WorkGroupID.x) / tiles;
    int column = first + int(gl_WorkGroupID.x) % tiles * wide;
    int channel_tiles = ceil_div(channels, TM);
    int tap = int(gl_WorkGroupID.y) / channel_tiles;
    int channel = int(gl_WorkGroupID.y) % channel_tiles * TM;
    int part = int(gl_WorkGroupID.z), last = channels - 1 - channel; /* last row that may be read */

    InF32 x1 = InF32(x);
    InF32x4 x4 = InF32x4(x);
#ifdef PAIR
    InPair b = InPair(dy);
#else
    InF32 b = InF32(dy);
#endif
    int col[TN / WIDE];
    [[unroll]] for (int j = 0; j < TN / WIDE; j++) {
        col[j] = column + (j * lanes + lane) * WIDE;
        if (EDGE)
            col[j] = min(col[j], columns - 1);
        col[j] += group * columns;
    }
    float sum[TM * TN];
    [[unroll]] for (int i = 0; i < TM * TN; i++)
        sum[i] = 0.0;

    /* Output columns begin..end - 1 of a line have this tap inside the image. */
    int shift_y = tap / p.kw * p.dilation_h - p.top, shift_x = tap % p.kw * p.dilation_w - p.left;
    int chunk = ceil_div(PLAIN ? p.n * p.oh * p.ow : p.n * p.oh, PARTS), line = part * chunk;
    int stop = min(line + chunk, PLAIN ? p.n * p.oh * p.ow : p.n * p.oh), begin, end;
    if (PLAIN) {
        begin = line;
        end = stop;
        stop = line + 1;
    } else {
        begin = shift_x < 0 ? ceil_div(-shift_x, p.stride_w) : 0;
        end = shift_x < p.w ? min((p.w - 1 - shift_x) / p.stride_w + 1, p.ow) : 0;
    }
    for (; line < stop; line++) {
        int at_x = 0, at_b = 0;
        if (!PLAIN) {
            int iy = line % p.oh * p.stride_h + shift_y;
            if (uint(iy) >= uint(p.h))
                continue;
            at_x = ((line / p.oh * p.h + iy) * p.w + shift_x) * p.c;
            at_b = line * p.ow * p.k;
        }
        at_x += begin * p.stride_w * p.c + group * channels + channel;
        at_b += begin * p.k;
        for (int ox = begin; ox < end; ox++) {
            float left[TM], right[TN];
            if (VEC)
                [[unroll]] for (int i = 0; i < TM; i += 4) {
                    vec4 four = x4.v[(at_x + min(i, last - 3)) >> 2];
                    left[i] = four.x;
                    left[i + 1] = four.y;
                    left[i + 2] = four.z;
                    left[i + 3] = four.w;
                }
            else
                [[unroll]] for (int i = 0; i < TM; i++)
                    left[i] = x1.v[at_x + min(i, last)];
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
                    sum[i * TN + j] = fma(left[i], right[j], sum[i * TN + j]);
            at_x += p.stride_w * p.c;
            at_b += p.k;
        }
    }

    bool direct = PARTS == 1, add = direct && p.accumulate != 0;
    [[unroll]] for (int i = 0; i < TM; i++)
        if (channel + i < channels) {
            int to = ((part * p.kh * p.kw + tap) * channels + channel + i) * p.k + group * columns;
            [[unroll]] for (int j = 0; j < TN; j++) {
                int u = column + (j / WIDE * lanes + lane) * WIDE + j % WIDE;
                if (EDGE && u >= columns)
                    continue;
                if (direct)
                    dw.v[to + u] = add ? dw.v[to + u] + sum[i * TN + j] : sum[i * TN + j];
                else
                    t.v[to + u] = sum[i * TN + j];
            }
        }
}
