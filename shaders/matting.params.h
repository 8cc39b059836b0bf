/* matting_cross_entropy: logits [rows][2], labels [rows]. */
struct matting_params {
    int rows;
    int weighted;  /* 1: there are weights */
    int ignores;   /* 1: rows whose label is `ignore` do not count */
    float ignore;
};
