struct to_float_params {
    int count;
    float add;
};
