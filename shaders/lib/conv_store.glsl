/* The end of conv2d_s.comp: writes the sums of a workgroup's tile to c.
 *
 * The includer declares the constants of the tile, the push block, phase and sum. Invocation number
 * me has the rows me / ACROSS + i * DOWN of the tile, and the columns
 * (me % ACROSS + j * ACROSS) * 4 .. + 3 in sum[i * (TN / 4) + j]. */
#ifndef PM_CONV_STORE_GLSL
#define PM_CONV_STORE_GLSL

/* first: the tile's first row; rows: those of the phase. column: the tile's first column; columns:
 * those of the group. target: the size of the phase's image. */
void conv_store(int first, int rows, int column, int columns, int group, ivec2 target)
{
    uint me = gl_LocalInvocationIndex, line = me / uint(ACROSS), across = me % uint(ACROSS);
    OutF32 c1 = OutF32(c);
    OutF32x4 c4 = OutF32x4(c);

    [[unroll]] for (int i = 0; i < TM; i++) {
        int row = first + int(line) + i * DOWN;
        if (row >= rows)
            continue;
        int at = conv_pixel(conv_position(row, target), phase) * (columns * p.groups)
               + group * columns;
        [[unroll]] for (int j = 0; j < TN / 4; j++) {
            int to = column + (int(across) + j * ACROSS) * 4;
            if (VEC_B) {
                if (to < columns)
                    c4.v[(at + to) >> 2] = sum[i * (TN / 4) + j];
            } else {
                [[unroll]] for (int e = 0; e < 4; e++)
                    if (to + e < columns)
                        c1.v[at + to + e] = sum[i * (TN / 4) + j][e];
            }
        }
    }
}

#endif
