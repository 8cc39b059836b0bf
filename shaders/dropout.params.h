/* dropout: y = x * scale where floor(keep + U) is 1, else 0. U belongs to (seed, step, stream,
 * row, element); a work item makes four of them. */
struct dropout_params {
    int rows, per_row;         /* of x's first axis; elements of one */
    int first_row;             /* in the whole batch */
    float keep, scale;         /* scale = 1 / keep */
    unsigned stream_low, stream_high;
};
