struct fma_peak_params {
    int count;      /* values */
    int iterations; /* of each chain; a multiple of 8 */
    int chains;     /* independent ones a value: 4, 8, 12 or 16 */
    float a, b;     /* x = x * a + b */
};
