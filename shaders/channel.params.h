/* prelu, scale: x and y [rows][k], gamma and beta [k]. want: 1 for dx, 2 for the terms of gamma's
 * gradient. */
struct channel_params {
    int count, k, kind;
    int want;
};
