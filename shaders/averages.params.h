/* averages: moving averages of the variables; count is in floats, a multiple of 64. */
struct averages_update_params {
    int count;
};
