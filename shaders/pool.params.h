/* max_pool, avg_pool: x [n][h][w][c], y [n][oh][ow][c]; the first window begins `top` rows above and
 * `left` columns before the image. */
struct pool_params {
    int n, h, w, c;
    int oh, ow;
    int kh, kw;
    int stride_h, stride_w;
    int top, left;
    int keep_index; /* max_pool: note where each maximum was */
};
