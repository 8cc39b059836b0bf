/* region_loss_sum: `per` losses of each of `images` examples. */
struct region_loss_sum_params {
    int images, per;
    int together; /* 1: one divisor for all examples */
    float pixels; /* terms of a loss whose weight is 1 */
    float scale;
};
