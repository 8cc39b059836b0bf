/* bias_act: y = f(x + b), elements of [rows][channels]; the backward row is the same over y. */
#ifndef BIAS_ACT_PARAMS_H
#define BIAS_ACT_PARAMS_H

struct bias_act_params {
    int count, channels;
    int activation; /* by number: activation.def */
    float slope;    /* of leaky_relu */
    int bias;       /* 1: b is there */
};

#endif
