/* The moments of a workgroup's tile, for conv2d_s.comp: the mean of each chunk of MOMENT_ROWS rows,
 * and the sum of squared distances from it, from the sums in the registers. The tile's rows must be
 * neighbours in the written image, so not those of one of several phases.
 *
 * An invocation has LINES rows of a chunk. It writes their moments to the shared memory of the
 * tiles. Then one invocation per four columns combines them in order by Chan's formula, M2 = sum of
 * (M2_i + n_i (mean_i - mean)^2). Nothing cancels if the mean is large: means are those of
 * differences from the first value. The includer declares what lib/conv_store.glsl needs, left and
 * right with at least SIZE elements, and moments. */
#ifndef PM_CONV_MOMENTS_GLSL
#define PM_CONV_MOMENTS_GLSL

const int LINES = 4; /* DOWN is MOMENT_ROWS / LINES */

/* Returns how many of an invocation's rows of a chunk exist (row_of). left_over: rows from the
 * chunk's first one to the end of the image. */
int conv_lines(int line, int left_over)
{
    int lines = ROLLED ? left_over - line * LINES : (left_over - line + DOWN - 1) / DOWN;
    return clamp(lines, 0, LINES);
}

/* Moments of the columns (me % ACROSS + j * ACROSS) * 4 .. + 3 of one chunk of the tile. */
void conv_chunk_moments(int chunk, int j, int first, int rows, int column, int columns, int group)
{
    int me = int(gl_LocalInvocationIndex), left_over = rows - first - chunk * MOMENT_ROWS;
    int lines = conv_lines(me / ACROSS, left_over);
    vec4 shift = sum[chunk * LINES * (TN / 4) + j], mean = vec4(0.0), square = vec4(0.0);

    [[unroll]] for (int i = 1; i < LINES; i++)
        mean += i < lines ? sum[(chunk * LINES + i) * (TN / 4) + j] - shift : vec4(0.0);
    mean *= 1.0 / float(max(lines, 1));
    [[unroll]] for (int i = 0; i < LINES; i++) {
        vec4 d = sum[(chunk * LINES + i) * (TN / 4) + j] - shift - mean;
        square += i < lines ? d * d : vec4(0.0);
    }
    barrier(); /* the shared memory has been read */
    left[me] = shift + mean;
    right[me] = square;
    barrier();
    if (me < ACROSS && left_over > 0) {
        int k = column + (me + j * ACROSS) * 4, channels = columns * p.groups;
        int at = (first / MOMENT_ROWS + chunk) * 2 * channels + group * columns + k;
        vec4 all = vec4(0.0), m2 = vec4(0.0);

        [[dont_unroll]] for (int line = 1; line < DOWN; line++)
            all += float(conv_lines(line, left_over)) * (left[line * ACROSS + me] - left[me]);
        all = left[me] + all * (1.0 / float(min(left_over, MOMENT_ROWS)));
        [[dont_unroll]] for (int line = 0; line < DOWN; line++) {
            vec4 d = left[line * ACROSS + me] - all;
            m2 += right[line * ACROSS + me] + float(conv_lines(line, left_over)) * d * d;
        }
        if (VEC_B) {
            if (k < columns) {
                OutF32x4(moments).v[at >> 2] = all;
                OutF32x4(moments).v[(at + channels) >> 2] = m2;
            }
        } else {
            [[unroll]] for (int e = 0; e < 4; e++)
                if (k + e < columns) {
                    OutF32(moments).v[at + e] = all[e];
                    OutF32(moments).v[at + channels + e] = m2[e];
                }
        }
    }
}

/* The arguments are those of conv_store. A tile has one or two chunks, and one or two vectors of
 * columns. These are calls, not loops: Mesa does not unroll a loop that has another loop in it. */
void conv_moments(int first, int rows, int column, int columns, int group)
{
    conv_chunk_moments(0, 0, first, rows, column, columns, group);
    if (TN > 4)
        conv_chunk_moments(0, 1, first, rows, column, columns, group);
    if (BM > MOMENT_ROWS)
        conv_chunk_moments(1, 0, first, rows, column, columns, group);
    if (BM > MOMENT_ROWS && TN > 4)
        conv_chunk_moments(1, 1, first, rows, column, columns, group);
}

#endif
