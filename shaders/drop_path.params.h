/* drop_path: y = x * factor of its row + residual. factor = 1 / (1 - d) if U >= d, else 0, with d =
 * drop * min(step, steps) / steps. U depends on (seed, step, stream, row). CPU and shader compare
 * with the same d: one product of two floats, no division. */
struct drop_path_params {
    int rows, per_row;         /* rows of x's first axis; elements per row */
    int first_row;             /* index in the whole batch */
    int steps;                 /* 0: no schedule, d = drop */
    float drop, rate;          /* drop probability at the end; rate = drop / steps */
    unsigned stream_low, stream_high;
};
