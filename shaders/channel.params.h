/* prelu, scale: x and y [rows][k], gamma and beta [k]. */
struct channel_params {
    int count, k, kind;
};
