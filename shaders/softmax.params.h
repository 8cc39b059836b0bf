/* softmax: y = exp(x) / sum of exp(x) over the last axis; x [rows][k]. */
struct softmax_params {
    int rows, k;
    int logarithm; /* log_softmax */
};
