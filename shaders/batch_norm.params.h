/* batch_norm: x [rows][c]; statistics per channel. flags are of BN_... below. */
#define BN_GAMMA 1    /* there is a scale */
#define BN_BETA 2     /* there is an offset */
#define BN_RESIDUAL 4 /* a second input is added before the activation */
#define BN_DBETA 8    /* gradients that are wanted */
#define BN_DGAMMA 16
#define BN_DX 32
#define BN_DRESIDUAL 64

/* Rows are cut into `chunks` of equal length (the last may be shorter), by shape alone. */
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
    float inv_count; /* 1 / rows; 0 where the statistics are constants */
};
struct batch_norm_update_params {
    int c;
    float rate;   /* 1 - decay */
    float factor; /* of the variance: n / (n - 1) when unbiased */
};
