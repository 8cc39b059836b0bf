struct copy_peak_params {
    int count; /* vectors of four floats */
};
