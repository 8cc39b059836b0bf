/* batch_norm: x [rows][c]; statistics per channel. */

/* Rows are split into chunks of `chunk` rows (the last may be shorter), by shape alone. */
struct batch_norm_stats_params {
    int rows, c, chunk;
    int moments; /* 1: the chunks' moments are given (kernel.h), x is absent */
    float epsilon;
};
/* The same with `chunks` of equal length. */
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
