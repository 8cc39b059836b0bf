/* One struct per optimizer; count is the number of floats in the trainable block. */
struct optimizer_sgd_params {
    int count;
};
struct optimizer_momentum_params {
    int count;
    float momentum;
    int nesterov;
};
struct optimizer_rmsprop_params {
    int count;
    float decay, momentum, epsilon;
};
struct optimizer_adam_params { /* also adamw and nadam */
    int count;
    float beta1, beta2, epsilon;
};
/* count: chunks, variables or floats, depending on the call. */
struct optimizer_lamb_params {
    int count;
    float beta1, beta2, epsilon;
};
struct optimizer_adagrad_params {
    int count;
};
struct optimizer_adadelta_params {
    int count;
    float rho, epsilon;
};
struct optimizer_ftrl_params {
    int count;
    float power, l1, l2;
};
