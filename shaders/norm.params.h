/* layer_norm, group_norm: x [n][pixels][c]. A row is the c / groups channels of a group in all
 * pixels of an image. flags: 1 gamma, 2 beta. want: 1 for dx, 2 for the terms of gamma's gradient.
 * stats [rows][3]: mean, the mean of x - mean (the rounding error), 1 / deviation. */
struct norm_params {
    int n, pixels, c, groups;
    int flags, want;
    float epsilon;
};
