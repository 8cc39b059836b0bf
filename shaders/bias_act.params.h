/* bias_act: y = f(x + b), elements of [rows][channels]; the backward row is the same over y. */
#ifndef BIAS_ACT_PARAMS_H
#define BIAS_ACT_PARAMS_H

#define ACT_NONE 0
#define ACT_RELU 1
#define ACT_RELU6 2
#define ACT_LEAKY_RELU 3
#define ACT_SIGMOID 4
#define ACT_TANH 5
struct bias_act_params {
    int count, channels;
    int activation; /* ACT_... */
    float slope;    /* of leaky_relu */
    int bias;       /* 1: b is there */
};

#endif
