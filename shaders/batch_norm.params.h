/* batch_norm: x [rows][c]; statistics per channel. */

/* Rows are split into `chunks` of equal length (the last may be shorter), by shape alone. */
struct batch_norm_stats_params {
    int rows, c, chunks;
    float epsilon;
};
struct batch_norm_sums_params {
    int rows, c, chunks;
    int act;
    int accumulate; /* 1: add to dbeta and dgamma instead of writing them */
    float slope;
};
struct batch_norm_params {
    int rows, c;
    int act;
    float slope;
    float inv_count; /* 1 / rows; 0 if the statistics are constants */
};
