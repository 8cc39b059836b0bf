/* argmax: x [rows][k], y [rows]. */
struct argmax_params { int rows, k; };
