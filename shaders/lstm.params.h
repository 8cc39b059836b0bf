/* lstm_step, lstm_back: step `at` of sequences of n examples, t steps and c channels. */
struct lstm_params {
    int n, t, c, units;
    int at;
    int before;      /* the step whose state comes before; -1: none, the state is 0 */
    int after;       /* the step whose state comes after; -1: none */
    float forget_bias;
    int accumulate;  /* 0: first call; it also writes zeros for all other steps */
};
/* lstm_inputs: the state before step k is that of step k + before, which is -1 or 1. */
struct lstm_inputs_params {
    int n, t, c, units;
    int before;
};
