/* concat: the whole is [outer][total], part i [outer][w_i]. An absent part is read as zeros and not
 * written. */
struct concat_params {
    int outer, total;
    int w0, w1, w2, w3, w4, w5, w6, w7;
};
