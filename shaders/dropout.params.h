/* dropout: y = x * scale where floor(keep + U) is 1, else 0. U depends on (seed, step, stream, row,
 * element). A work item makes four elements. */
struct dropout_params {
    int rows, per_row;         /* rows of x's first axis; elements per row */
    int first_row;             /* index in the whole batch */
    float keep, scale;         /* scale = 1 / keep */
    unsigned stream_low, stream_high;
};
