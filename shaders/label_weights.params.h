/* label_weights: labels and y [rows], table [k]. */
struct label_weights_params {
    int rows, k;
    int ignore;
};
