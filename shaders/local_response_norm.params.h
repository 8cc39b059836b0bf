/* local_response_norm: x [rows][c]; s = bias + alpha * sum of x^2 within radius channels. */
struct local_response_norm_params {
    int rows, c, radius;
    float bias, alpha, beta;
};
