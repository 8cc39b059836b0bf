/* strided_copy: y [d0]..[d5], row-major, = scale * x at the sum of index_k * s_k. A stride of 0
 * repeats x along an axis. */
struct strided_params {
    int count;
    float scale;
    int d[6], s[6];
};
