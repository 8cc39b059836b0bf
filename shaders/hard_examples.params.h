/* hard_examples: the rows of src/layers/hard_examples.c. */
struct hard_scores_params {
    int count;
    float loc, cls; /* weights of both losses */
};

struct hard_examples_params {
    int images, anchors;
    int most;         /* places of an image's list of chosen anchors */
    float ratio;      /* most unmatched anchors for each matched one; 0: no limit */
    int min_negatives;
};
