/* resample: x [n][h][w][c], y [n][oh][ow][c]. row and col hold, for each row and column of y, the
 * offset of its taps in the list of taps. After these offsets come the taps' places in x. */
struct resample_params {
    int n, h, w, c;
    int oh, ow;
};
