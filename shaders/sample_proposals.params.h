/* sample_proposals: an image has `candidates` candidates: its p proposals and, with `append`, its m
 * true boxes. */
struct sample_proposals_params {
    int images, p, m, candidates;
    int rows;          /* sampled boxes of an image, at most */
    int positives;     /* of these, at most; -1: nothing is drawn, every candidate is chosen */
    int first_example; /* index in the whole batch */
    float below;       /* the float before the threshold: overlaps above it match */
    unsigned stream_low, stream_high;
};

/* Kinds of candidates. A match with true box g is MATCHED + g. */
#define SAMPLE_ABSENT 0
#define SAMPLE_BACKGROUND 1
#define SAMPLE_MATCHED 2
