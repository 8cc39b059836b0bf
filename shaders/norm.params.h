/* layer_norm, group_norm: x [n][pixels][c]. A row is the c / groups channels of a group in all
 * pixels of an image. stats [rows][3]: mean, the mean of x - mean (the rounding error), 1 /
 * deviation. */
struct norm_params {
    int n, pixels, c, groups;
    float epsilon;
};
