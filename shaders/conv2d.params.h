/* conv2d: x [n][h][w][c], w [kh][kw][c / groups][k], y [n][oh][ow][k]. Also depthwise: w
 * [kh][kw][c][mult], k = c * mult, groups = c. `top` and `left`: rows of padding above, columns
 * left. */
#ifndef CONV2D_PARAMS_H
#define CONV2D_PARAMS_H

struct conv2d_params {
    int n, h, w, c;
    int oh, ow, k;
    int kh, kw;
    int stride_h, stride_w;
    int dilation_h, dilation_w;
    int top, left;
    int groups;
    int accumulate; /* gradients: add to dx or dw instead of writing it */
    int transposed; /* data gradient: w is [kh][kw][k][c / groups] */
    int moments;    /* forward, data gradient: also write the moments of y or dx (kernel.h) */
};

#endif
