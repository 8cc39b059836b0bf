/* quantize: numbers rounded to the 256 steps of a range (255 if the lowest is left out), as in
 * integer arithmetic. src/layers/quantize_rows.h describes the rows. */

/* Indices in a grid, GRID_SIZE floats: y = (floor((clamp(x, low, high) - low) * inverse - zero +
 * 0.5)) * step, or x if GRID_ON is 0. quant_params has variants of this. */
#define GRID_LOW 0
#define GRID_HIGH 1
#define GRID_STEP 2
#define GRID_INVERSE 3
#define GRID_ZERO 4
#define GRID_ON 5
#define GRID_SIZE 6

/* A narrower range counts as the range of zeros alone. So the steps' inverse fits a float, and
 * steps are not so small that some devices flush them to 0. */
#define LEAST_WIDTH 1e-30

/* A bias is a number of steps in int32. This is the greatest float that int32 holds. */
#define MOST_STEPS 2147483520.0

/* Indices in a state, STATE_SIZE floats: a range and the values to continue its averages. */
#define STATE_MIN 0
#define STATE_MAX 1
#define STATE_BIASED_MIN 2
#define STATE_BIASED_MAX 3
#define STATE_STEPS_MIN 4
#define STATE_STEPS_MAX 5
#define STATE_SIZE 6

/* x is split into `chunks` of equal length (the last may be shorter), by its count alone. */
struct quant_range_params {
    int count, chunks;
    float below; /* above 0: the range is symmetric, its least number is at most -below max */
    float above; /* 1 / below: its greatest number is at least -above min */
};
struct quant_track_params {
    float rate;    /* 1 - decay */
    float decline; /* -ln decay */
};
struct quant_grid_params {
    int narrow; /* 1: the lowest of the 256 steps is not used */
    int delay;  /* quantization is on from this step; the first step is 1 */
};
struct quant_params {
    int count;
    int even;  /* 1: half a step rounds to the even step, as in ONNX's QuantizeLinear */
    int steps; /* 1: y is a number of steps, an integer */
};
struct quant_bias_params {
    int k;
};
struct quant_fold_params {
    int count, k; /* number of weights; output channels: their last axis or axes */
};
struct quant_fold_bwd_params {
    int count, k;
    int accumulate; /* 1: add to dw instead of writing it */
};
struct quant_center_params {
    int k;
    int freeze; /* above 0: steps after this one use the moving averages; the first step is 1 */
};
struct quant_sums_params {
    int k;
    int accumulate;  /* 1: add to dgamma instead of writing it */
    float inv_count; /* 1 / rows */
    int freeze;      /* as in quant_center_params */
};
