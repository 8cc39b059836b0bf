/* softmax_cross_entropy: logits [rows][k], labels [rows]. */
struct softmax_cross_entropy_params {
    int rows, k;
    int ignore;      /* label of rows that are ignored */
    float smoothing; /* label_smoothing */
    float scale;     /* weight of the loss x this plan's share of the whole batch */
    int count_kept;  /* sum: 1 counts all rows that are not ignored, whatever their weights */
    int divisor;     /* sum: if above 0, used instead of a count */
};
