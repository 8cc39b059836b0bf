/* squared_error, absolute_error: prediction and target [count], weights [count / per]. */
struct error_params {
    int count, per;
    int absolute; /* 1: |d|, 0: d^2 */
    int nonzero;  /* 1: the divisor is the number of terms that are not 0, 0: the sum of the
                   * weights */
    int undivided; /* 1: there is no divisor */
    float scale;  /* weight of the loss, x this plan's share of the whole batch if divided */
};
