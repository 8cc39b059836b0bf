/* ctc_loss: n examples of t steps with c logits, and up to `most` symbols each. */
struct ctc_loss_params {
    int n, t, c, most;
    int blank;
    int by_symbols; /* 1: an example's loss is divided by its number of symbols */
};
