/* global_pool: x [n][pixels][c], y [n][c]. */
struct global_pool_params {
    int n, pixels, c;
};
