/* bias_act: y = f(x + b), elements of [rows][channels]. The backward row uses the same struct over
 * y. */
#ifndef BIAS_ACT_PARAMS_H
#define BIAS_ACT_PARAMS_H

struct bias_act_params {
    int count, channels;
    int activation; /* number in activation.def */
    float slope;    /* of leaky_relu */
};

#endif
