/* The end of a step. chunks: [chunks][4] words: first float, floats, trainable variable, whether
 * no layer gives a gradient (g counts as 0). vars:
 * [vars][4] words: first chunk, chunks, weight decay and multiplier (bits of floats). */
struct gradient_prepare_params {
    int chunks;
};
struct gradient_norms_params {
    int vars;
    float clip_variable; /* 0 = off */
    float clip_global;   /* 0 = off */
};
