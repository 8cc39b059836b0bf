/* matting_cross_entropy: logits [rows][2], labels [rows]. */
struct matting_params {
    int rows;
    int ignores;   /* 1: rows with the label `ignore` do not count */
    float ignore;
};
