/* Which taps of a window lie in the image, and which windows cover a pixel, along one axis. */
#ifndef PM_POOL_GLSL
#define PM_POOL_GLSL

/* Taps [x, y) of the window that begins at `first` (may be negative). */
ivec2 pm_taps(int first, int kernel, int size)
{
    return ivec2(max(0, -first), min(kernel, size - first));
}

/* Windows [x, y) that hold input position i. */
ivec2 pm_windows(int i, int before, int kernel, int stride, int out_size)
{
    int last = i + before, first = last - kernel + 1;

    return ivec2(first <= 0 ? 0 : (first + stride - 1) / stride, min(out_size, last / stride + 1));
}

#endif
