/* mask_loss: boxes of all examples, each with a map of h x w x c logits. An example has m true
 * masks of mask_h x mask_w pixels, packed as bits into `words` words a row. */
struct mask_loss_params {
    int rows, per; /* boxes of all examples, of one */
    int m;
    int h, w, c;
    int labels;    /* targets of a true object; 0: it has a class instead */
    int mask_h, mask_w, words;
};
