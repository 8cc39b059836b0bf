/* Moving averages of the variables; count is floats, a multiple of 64. */
struct averages_update_params {
    int count;
};
