/* slice, pad: a small box of sn x sh x sw x sc values at (n0, h0, w0, c0) of a big n x h x w x c
 * tensor. */
struct window_params {
    int n, h, w, c;
    int n0, h0, w0, c0;
    int sn, sh, sw, sc;
    float fill; /* pad: the value around the box */
};
