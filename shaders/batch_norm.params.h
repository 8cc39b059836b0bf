/* batch_norm: x [rows][c]; statistics per channel. flags are a sum of the BN_... values below. */
#define BN_GAMMA 1    /* gamma (scale) is present */
#define BN_BETA 2     /* beta (offset) is present */
#define BN_RESIDUAL 4 /* a second input is added before the activation */
#define BN_DBETA 8    /* requested gradients */
#define BN_DGAMMA 16
#define BN_DX 32
#define BN_DRESIDUAL 64

/* Rows are split into `chunks` of equal length (the last may be shorter), by shape alone. */
struct batch_norm_stats_params {
    int rows, c, chunks;
    float epsilon;
};
struct batch_norm_sums_params {
    int rows, c, chunks;
    int act, flags;
    int accumulate; /* 1: add to dbeta and dgamma instead of writing them */
    float slope;
};
struct batch_norm_params {
    int rows, c;
    int act, flags;
    float slope;
    float inv_count; /* 1 / rows; 0 if the statistics are constants */
};
