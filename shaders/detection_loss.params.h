/* detection_loss: the rows of one level of a detector's maps, and the sum over all levels. A level
 * has `rows` anchors, `per` of each example; they are anchors first..first+per-1 of the example's
 * `anchors`. An example has m true boxes. box_classifier_loss: a row is a box of an example. */

/* Losses of codes. */
#define DETECTION_SMOOTH_L1 0
#define DETECTION_L2 1
#define DETECTION_L1 2
#define DETECTION_IOU 3 /* from here on, losses of decoded boxes */
#define DETECTION_GIOU 4

struct detection_loc_params {
    int rows, per, first, anchors, m;
    int own;             /* 1: each example has its own anchors; 0: they are the same for all */
    int kind;
    int coder;           /* box_coder.params.h */
    float s0, s1, s2, s3, s4; /* scales of the coder */
    float delta;         /* smooth_l1 */
};

/* Losses of class scores. */
#define DETECTION_SIGMOID 0
#define DETECTION_SOFTMAX 1
#define DETECTION_FOCAL 2
#define DETECTION_BOOTSTRAPPED 3
#define DETECTION_BOOTSTRAPPED_HARD 4

/* Bits of flags. */
#define DETECTION_BACKGROUND 1 /* column 0 is the background */
#define DETECTION_ZEROS 2      /* its target is 0 even for unmatched anchors */
#define DETECTION_LOGITS 4     /* softmax: the targets are logits, whose softmax counts */
#define DETECTION_EQUAL 8      /* weights above 0 of matched boxes are replaced by 1 */

struct detection_cls_params {
    int rows, per, first, anchors, m;
    int columns;    /* scores of an anchor, with the background */
    int labels;     /* targets of a true box, for the last columns; 0: it has a class instead */
    int flags, kind;
    float negative; /* weight of unmatched anchors */
    float a;        /* softmax: 1 / logit_scale; focal: gamma; bootstrapped: alpha */
    float b;        /* focal: alpha; negative: none */
};

/* Codes of each class of a row: those of the class of its matched box are gathered. */
struct class_codes_params {
    int rows, per, m;
    int classes, codes; /* a row of x has classes * codes numbers */
    int labels;         /* targets of a true box; 0: it has a class instead */
};

/* What the losses of an example are divided by. */
#define DETECTION_BY_NOTHING 0
#define DETECTION_BY_MATCHES 1 /* max(sum of the weights of matched boxes, 1), of all examples */
#define DETECTION_BY_FIRST 2   /* the first number of the normalizer, for all examples */
#define DETECTION_BY_IMAGE 3   /* the example's number of the normalizer */
#define DETECTION_BY_COUNT 4   /* max(the same, 1); the normalizer holds int. Absent examples, whose
                                * first weight is below 0, count nothing, and the sums are
                                * multiplied by examples / max(present examples, 1) */

struct detection_sum_params {
    int rows, anchors, m; /* rows: anchors of all examples */
    int divisor;          /* DETECTION_BY_... */
    float loc_scale, cls_scale;
};
