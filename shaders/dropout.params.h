/* dropout: y = x * scale where floor(keep + U) is 1, else 0. U belongs to (seed, step, stream,
 * example, element); a work item makes four of them. */
struct dropout_params {
    int examples, per_example; /* of x; elements of one */
    int first_example;         /* of x's first one in the whole batch */
    float keep, scale;         /* scale = 1 / keep */
    unsigned stream_low, stream_high;
};
