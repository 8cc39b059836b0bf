struct fma_peak_params {
    int count;      /* number of values */
    int iterations; /* steps per chain; a multiple of 8 */
    int chains;     /* independent chains per value: 4, 8, 12 or 16 */
    float a, b;     /* x = x * a + b */
};
