/* label_weights: labels and y [rows], table [k]. */
struct label_weights_params {
    int rows, k;
    int ignore;
    int weighted; /* 1: weights are present */
};
