/* All attention_* kernels: step `at` of n rows. `beams` rows read the same sequence of t vectors of
 * c channels. src/layers/attention.h describes the kernels. */
struct attention_params {
    int n, beams, steps;
    int t, c;
    int attention;   /* units of the attention */
    int units;       /* of the cell */
    int classes;
    int search;      /* 0: symbols are the labels; 1: the search chose them */
    int at;
    float forget_bias;
    int accumulate;  /* 0: first call; it also writes zeros for all other steps */
};
