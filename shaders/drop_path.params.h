/* drop_path: y = x * factor of its row + residual; factor = 1 / (1 - d) where U >= d, else 0, with
 * d = drop * min(step, steps) / steps. U belongs to (seed, step, stream, row). The CPU and a
 * shader compare with the same d: one product of two floats, no division. */
struct drop_path_params {
    int rows, per_row;         /* of x's first axis; elements of one */
    int first_row;             /* in the whole batch */
    int steps;                 /* 0: no schedule, d = drop */
    float drop, rate;          /* the share dropped in the end; rate = drop / steps */
    int residual;              /* it is there, and added */
    unsigned stream_low, stream_high;
};
