/* The end of a step. chunks is [chunks][4] words: first float, number of floats, trainable
 * variable, and whether no layer writes a gradient (g counts as 0). vars is [vars][4] words: first
 * chunk, number of chunks, weight decay and multiplier (bits of floats). */
struct gradient_prepare_params {
    int chunks;
};
struct gradient_norms_params {
    int vars;
    float clip_variable; /* 0: off */
    float clip_global;   /* 0: off */
};
