/* activation: y = f(x) over count values; kind is an enum pm_activation. */
struct activation_params {
    int count, kind;
    float slope; /* of leaky_relu */
};
