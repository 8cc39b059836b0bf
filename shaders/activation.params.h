/* activation: y = f(x) over count values; kind is of enum pm_activation. */
struct activation_params {
    int count, kind;
    float slope; /* leaky_relu */
};
