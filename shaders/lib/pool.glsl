/* The taps of a window that are in the image, and the windows that cover a pixel, along one
 * axis. */
#ifndef PM_POOL_GLSL
#define PM_POOL_GLSL

/* Returns taps [x, y) of the window that begins at `first` (may be negative). */
ivec2 pm_taps(int first, int kernel, int dilation, int size)
{
    if (dilation == 1)
        return ivec2(max(0, -first), min(kernel, size - first));
    return ivec2((max(0, -first) + dilation - 1) / dilation,
                 min(kernel, (size - first + dilation - 1) / dilation));
}

/* Returns windows [x, y) that cover input position i. */
ivec2 pm_windows(int i, int before, int reach, int stride, int out_size)
{
    int last = i + before, first = last - reach + 1;

    return ivec2(first <= 0 ? 0 : (first + stride - 1) / stride, min(out_size, last / stride + 1));
}

#endif
