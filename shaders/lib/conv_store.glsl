/* The end of conv2d_s.comp: writes the sums of a workgroup's tile to c. With several parts, it
 * writes them to t [part][result], behind transposed weights if t has them. ADD: adds
 * them to c, row by row, so that few of the old values are in registers at a time.
 *
 * The includer declares the constants of the tile, the push block, phase, part, sum and row_of.
 * Invocation number me has row row_of(i) of the tile and the columns
 * (me % ACROSS + j * ACROSS) * 4 .. + 3 in sum[i * (TN / 4) + j]. */
#ifndef PM_CONV_STORE_GLSL
#define PM_CONV_STORE_GLSL

/* first: the tile's first row; rows: those of the phase. column: the tile's first column; columns:
 * those of the group. target: the size of the phase's image. */
void conv_store(int first, int rows, int column, int columns, int group, ivec2 target)
{
    uint across = gl_LocalInvocationIndex % uint(ACROSS);
    InOutF32 c1 = InOutF32(PARTS > 1 ? t : c);
    InOutF32x4 c4 = InOutF32x4(PARTS > 1 ? t : c);
    int width = columns * p.groups, before = group * columns;
    if (PARTS > 1 && BACK)
        before += (p.transposed != 0 ? 0 : p.kh * p.kw * p.k * columns)
                + part * p.n * p.h * p.w * width;
    else if (PARTS > 1)
        before += part * p.n * p.oh * p.ow * width;
    ivec3 at_row;

    [[unroll]] for (int i = 0; i < TM; i++) {
        int row = first + row_of(i), pixel = row;
        if (PHASES_Y * PHASES_X > 1) {
            at_row = ROLLED && i % 4 > 0 ? conv_next(at_row, target) : conv_position(row, target);
            pixel = conv_pixel(at_row, phase);
        }
        if (row >= rows)
            continue;
        int at = pixel * width + before;
        [[unroll]] for (int j = 0; j < TN / 4; j++) {
            int to = column + (int(across) + j * ACROSS) * 4;
            if (VEC_B) {
                if (to < columns)
                    c4.v[(at + to) >> 2] = ADD ? c4.v[(at + to) >> 2] + sum[i * (TN / 4) + j]
                                               : sum[i * (TN / 4) + j];
            } else {
                [[unroll]] for (int e = 0; e < 4; e++)
                    if (to + e < columns)
                        c1.v[at + to + e] = ADD ? c1.v[at + to + e] + sum[i * (TN / 4) + j][e]
                                                : sum[i * (TN / 4) + j][e];
            }
        }
    }
}

#endif
