/* softmax_cross_entropy: logits [rows][k], labels [rows]. */
struct softmax_cross_entropy_params {
    int rows, k;
    int ignore;      /* label of rows that do not count */
    float smoothing; /* label_smoothing */
    float scale;     /* weight of the loss x this plan's share of the whole batch's */
    int weighted;    /* 1: there are weights */
    int count_kept;  /* 1: of the sum: rows count that are not ignored, whatever their weights */
    int divisor;     /* above 0: of the sum, in place of a count */
    int unlabelled;  /* 1: of the sum: there are no labels, only weights */
};
