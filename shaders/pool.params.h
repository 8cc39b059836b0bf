/* max_pool, avg_pool: x [n][h][w][c], y [n][oh][ow][c]; the first window begins `top` rows above
 * and `left` columns before the image. */
struct pool_params {
    int n, h, w, c;
    int oh, ow;
    int kh, kw;
    int stride_h, stride_w, dilation_h, dilation_w; /* avg_pool: dilation is 1 */
    int top, left, bottom, right;
    int count_pad;  /* avg_pool: divide by the cells in image and padding */
    int accumulate; /* backward: add to dx instead of writing it */
};
