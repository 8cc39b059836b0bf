/* Address computation between the two images of a convolution, shared by all structures of kernels.
 *
 * Forward and data gradient are products. Their rows are pixels of the image that they write. Their
 * terms are (tap, channel) of the image that they read, the source:
 *     forward: rows y (n, oy, ox), source x; a tap lies at oy * stride - top + ky * dilation
 *     data gradient: rows dx (n, iy, ix), source dy; at (iy + top - ky * dilation) / stride
 * A data gradient's rows belong to one phase, iy = stride * v + phase. So a tap divides either for
 * all rows or for none. In both cases a row has an origin in the source (conv_position and
 * conv_origin, possibly outside the image), and a tap has an offset from it (conv_tap). Their sum
 * is the place in the source.
 *
 * The includer declares `const bool BACK` (data gradient) and the push block with params p. It may
 * define CONV_PHASES, the numbers of phases along the two axes of a data gradient, as constants. */
#ifndef PM_CONV_ADDRESS_GLSL
#define PM_CONV_ADDRESS_GLSL

#ifndef CONV_PHASES
#define CONV_PHASES ivec2(p.stride_h, p.stride_w)
#endif

int conv_ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

/* Number of lines and columns of the source. */
ivec2 conv_source()
{
    return BACK ? ivec2(p.oh, p.ow) : ivec2(p.h, p.w);
}

/* Number of lines and columns of the written image that belong to a phase; largest for phase 0. */
ivec2 conv_target(ivec2 phase)
{
    return BACK ? ivec2(conv_ceil_div(p.h - phase.x, CONV_PHASES.x),
                        conv_ceil_div(p.w - phase.y, CONV_PHASES.y))
                : ivec2(p.oh, p.ow);
}

/* With one phase, a constant, which the compiler need not keep in a register. */
ivec2 conv_phase(int number)
{
    if (!BACK || (CONV_PHASES.x == 1 && CONV_PHASES.y == 1))
        return ivec2(0);
    return ivec2(number / CONV_PHASES.y, number % CONV_PHASES.y);
}

/* Returns image, line and column of row number `row` in the target. */
ivec3 conv_position(int row, ivec2 target)
{
    uint line = uint(row) / uint(target.y);
    return ivec3(line / uint(target.x), line % uint(target.x), uint(row) % uint(target.y));
}

/* Returns the next row's position. */
ivec3 conv_next(ivec3 at, ivec2 target)
{
    at.z++;
    if (at.z == target.y) {
        at.z = 0;
        at.y++;
    }
    if (at.y == target.x) {
        at.y = 0;
        at.x++;
    }
    return at;
}

/* Returns line and column in the source for offset (0, 0). */
ivec2 conv_origin(ivec3 at)
{
    return BACK ? at.yz : at.yz * ivec2(p.stride_h, p.stride_w) - ivec2(p.top, p.left);
}

/* Returns the pixel's index in the written image. */
int conv_pixel(ivec3 at, ivec2 phase)
{
    return BACK ? (at.x * p.h + at.y * CONV_PHASES.x + phase.x) * p.w
                      + at.z * CONV_PHASES.y + phase.y
                : (at.x * p.oh + at.y) * p.ow + at.z;
}

/* Computes a tap's offset in the source. Returns false if the tap touches no row of this phase.
 * Operands of % and / are kept positive. */
bool conv_tap(ivec2 tap, ivec2 phase, out ivec2 offset)
{
    ivec2 reach = tap * ivec2(p.dilation_h, p.dilation_w);
    ivec2 stride = CONV_PHASES;
    if (!BACK) {
        offset = reach;
        return true;
    }
    ivec2 far = phase + ivec2(p.top, p.left) + reach * (stride - 1);
    offset = far / stride - reach;
    return far.x % stride.x == 0 && far.y % stride.y == 0;
}

#endif
