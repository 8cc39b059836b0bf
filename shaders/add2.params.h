struct add2_params {
    int count;
};
