struct copy_peak_params {
    int count; /* of four floats each */
};
