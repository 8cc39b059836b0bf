/* The moments of a workgroup's tile, for conv2d_s.comp: the mean of each chunk of MOMENT_ROWS rows,
 * and the sum of squared distances from it, from the sums in the registers. The tile's rows must be
 * neighbours in the written image, so not those of one of several phases.
 *
 * An invocation has LINES rows of a chunk. It writes their moments to the shared memory of the
 * tiles. Then one invocation per column combines them in order by Chan's formula, M2 = sum of
 * (M2_i + n_i (mean_i - mean)^2). Nothing cancels if the mean is large. The includer declares what
 * lib/conv_store.glsl needs, left and right with at least SIZE elements, and moments. */
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

/* The arguments are those of conv_store. */
void conv_moments(int first, int rows, int column, int columns, int group)
{
    int me = int(gl_LocalInvocationIndex);
    OutF32 to = OutF32(moments);

    [[unroll]] for (int chunk = 0; chunk < BM / MOMENT_ROWS; chunk++)
        [[unroll]] for (int j = 0; j < TN / 4; j++) {
            int left_over = rows - first - chunk * MOMENT_ROWS;
            int lines = conv_lines(me / ACROSS, left_over);
            vec4 mean = vec4(0.0), square = vec4(0.0);

            [[unroll]] for (int i = 0; i < LINES; i++)
                mean += i < lines ? sum[(chunk * LINES + i) * (TN / 4) + j] : vec4(0.0);
            mean *= 1.0 / float(max(lines, 1));
            [[unroll]] for (int i = 0; i < LINES; i++) {
                vec4 d = sum[(chunk * LINES + i) * (TN / 4) + j] - mean;
                square += i < lines ? d * d : vec4(0.0);
            }
            barrier(); /* the shared memory has been read */
            left[me] = mean;
            right[me] = square;
            barrier();
            int at = me / 4, e = me % 4, k = column + (at + j * ACROSS) * 4 + e;
            if (at < ACROSS && k < columns && left_over > 0) {
                float all = 0.0, m2 = 0.0;

                for (int line = 0; line < DOWN; line++)
                    all += float(conv_lines(line, left_over)) * left[line * ACROSS + at][e];
                all *= 1.0 / float(min(left_over, MOMENT_ROWS));
                for (int line = 0; line < DOWN; line++) {
                    float d = left[line * ACROSS + at][e] - all;
                    m2 += right[line * ACROSS + at][e]
                        + float(conv_lines(line, left_over)) * d * d;
                }
                int channels = columns * p.groups, place = first / MOMENT_ROWS + chunk;
                to.v[place * 2 * channels + group * columns + k] = all;
                to.v[(place * 2 + 1) * channels + group * columns + k] = m2;
            }
        }
}

#endif
