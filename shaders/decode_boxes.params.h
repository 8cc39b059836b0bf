/* decode_boxes and class_scores: N anchors of an image; level k has anchors first_k to
 * first_k+1 - 1, and first_1 = 0. Levels that do not exist begin at N. */
struct decode_boxes_params {
    int rows;        /* images * anchors */
    int anchors;
    int first2, first3, first4, first5, first6, first7;
    int kind;        /* PM_CODER_... */
    float s0, s1, s2, s3, s4;
    float low, high; /* codes are limited to this range */
};

/* Codes of each class of a row; a row has one box. */
struct decode_box_rows_params {
    int rows;        /* boxes of y: rows of codes * classes */
    int classes;
    int kind;        /* PM_CODER_... */
    float s0, s1, s2, s3, s4;
    float low, high; /* codes are limited to this range */
};

#define CLASS_SCORES_IDENTITY 0
#define CLASS_SCORES_SIGMOID 1
#define CLASS_SCORES_SOFTMAX 2
/* An anchor is inside 0..1 if it is not further outside than this. */
#define CLASS_SCORES_BORDER 1e-6f
struct class_scores_params {
    int rows, anchors;
    int first2, first3, first4, first5, first6, first7;
    int columns;     /* logits of an anchor */
    int background;  /* 1: column 0 is the background */
    int converter;
    float scale;     /* factor on logits */
    float width;     /* rotated anchors: right border of the image; else 0 */
};
