/* bias_grad: db [channels] = sums over the rows of dz [rows][channels]. */
struct bias_grad_params {
    int rows, channels;
    int accumulate; /* 1: add to db instead of writing it */
};
