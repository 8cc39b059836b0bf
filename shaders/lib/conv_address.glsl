/* Where the two images of a convolution meet: addresses shared by every structure of kernel.
 *
 * Forward and data gradient are products whose rows are pixels of the image they write, and whose
 * terms are (tap, channel) of the image they read, the source:
 *     forward: rows y (n, oy, ox), source x; a tap lies at oy * stride - top + ky * dilation
 *     data gradient: rows dx (n, iy, ix), source dy; at (iy + top - ky * dilation) / stride
 * A data gradient's rows are those of one phase, iy = stride * v + phase: then a tap either divides
 * for all rows or for none. So in both cases a row has an origin in the source (conv_row: image,
 * line, column, perhaps outside), a tap has an offset from it (conv_tap), and they add up.
 *
 * The includer declares `const bool BACK` (data gradient) and the push block with params p. */
#ifndef PM_CONV_ADDRESS_GLSL
#define PM_CONV_ADDRESS_GLSL

int conv_ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

/* Lines and columns of the source. */
ivec2 conv_source()
{
    return BACK ? ivec2(p.oh, p.ow) : ivec2(p.h, p.w);
}

/* Lines and columns of the written image that belong to a phase; phase 0 has most. */
ivec2 conv_target(ivec2 phase)
{
    return BACK ? ivec2(conv_ceil_div(p.h - phase.x, p.stride_h),
                        conv_ceil_div(p.w - phase.y, p.stride_w))
                : ivec2(p.oh, p.ow);
}

ivec2 conv_phase(int number)
{
    return BACK ? ivec2(number / p.stride_w, number % p.stride_w) : ivec2(0);
}

/* Image, line and column of row number `row` in the target. */
ivec3 conv_position(int row, ivec2 target)
{
    int line = row / target.y;
    return ivec3(line / target.x, line % target.x, row % target.y);
}

/* The next row's position. */
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

/* Line and column in the source of offset (0, 0). */
ivec2 conv_origin(ivec3 at)
{
    return BACK ? at.yz : at.yz * ivec2(p.stride_h, p.stride_w) - ivec2(p.top, p.left);
}

/* Pixel of the written image. */
int conv_pixel(ivec3 at, ivec2 phase)
{
    return BACK ? (at.x * p.h + at.y * p.stride_h + phase.x) * p.w + at.z * p.stride_w + phase.y
                : (at.x * p.oh + at.y) * p.ow + at.z;
}

/* A tap's offset in the source; false when it touches no row of this phase. Operands of % and / are
 * kept positive. */
bool conv_tap(ivec2 tap, ivec2 phase, out ivec2 offset)
{
    ivec2 reach = tap * ivec2(p.dilation_h, p.dilation_w);
    ivec2 stride = ivec2(p.stride_h, p.stride_w);
    if (!BACK) {
        offset = reach;
        return true;
    }
    ivec2 far = phase + ivec2(p.top, p.left) + reach * (stride - 1);
    offset = far / stride - reach;
    return far.x % p.stride_h == 0 && far.y % p.stride_w == 0;
}

#endif
