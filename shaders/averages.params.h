/* averages: moving averages of the variables; count is in floats, a multiple of 64. */
struct averages_update_params {
    int count;
    int copy; /* 1: the averages become the values */
};
