/* attention_weights, attention_cell, attention_logits, attention_select, attention_back,
 * attention_back_context, attention_back_weights, attention_back_keys, attention_back_memory: step
 * `at` of n rows. `beams` rows read the same sequence of t vectors of c channels. */
struct attention_params {
    int n, beams, steps;
    int t, c;
    int attention;   /* units of the attention */
    int units;       /* of the cell */
    int classes;
    int search;      /* 0: symbols are the labels; 1: they are the choices of the search */
    int at;
    float forget_bias;
    int accumulate;  /* 0: first call; it also writes zeros for all other steps */
};
