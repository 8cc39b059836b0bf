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
    float inv_count; /* 1 / rows; 0 if the statistics are constants; 1 if the sums are means */
    int crops, crop_rows; /* of src/layers/valid_rows.h, if count is present; else 0 */
};

/* If only some rows count: x [examples][crops][crop_rows][c] (src/layers/valid_rows.h). Each
 * example's rows are split into chunks of `chunk` rows. */
struct batch_norm_valid_stats_params {
    int examples, crops, crop_rows, c, chunk;
    int unbiased; /* 1: var is divided by the number of values - 1 */
    float epsilon;
};
struct batch_norm_valid_sums_params {
    int examples, crops, crop_rows, c, chunk;
    int act;
    int accumulate; /* 1: add to dbeta and dgamma instead of writing them */
    float slope;
};
