/* concat: y [outer][total]; input i is [outer][w_i], an absent one has width 0. want: bit i for the
 * gradients to write. */
struct concat_params {
    int outer, total, want;
    int w0, w1, w2, w3, w4, w5, w6, w7;
};
