/* resample: x [n][h][w][c], y [n][oh][ow][c]. row and col list for each row and column of y where in
 * the list of taps its own begin, and after these offsets the taps' places in x. */
struct resample_params {
    int n, h, w, c;
    int oh, ow;
};
