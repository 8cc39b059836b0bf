/* suppress: parameters of the rows of src/layers/suppress_rows.c. */
struct suppress_params {
    int lists;             /* images * classes; list = image * classes + class */
    int n;                 /* boxes of an image */
    int classes;
    int boxes;             /* boxes of a row: 1, or one for each class */
    int most;              /* boxes kept of a list, at most */
    float score_threshold; /* candidates have a higher score */
    float iou_threshold;   /* a larger overlap suppresses */
    float decay;           /* soft suppression: -0.5 / sigma; 0: hard */
};

/* Rotated boxes, cy, cx, h, w, angle, become the eight numbers of lib/rotated_clip.h. */
struct rotated_prepare_params {
    int rows;
};

struct suppress_best_params {
    int rows, classes;
};

struct suppress_classes_params {
    int images, n, classes;
    int most;              /* kept boxes of an image */
    int each;              /* classes of a box */
    float score_threshold;
};

struct suppress_merge_params {
    int images, n;
    int boxes;             /* boxes of a row: 1, or one for each class */
    int entries;           /* of an image */
    int most;              /* entries of a class; each class has that many */
    int each;              /* entries of a kept box */
    int outputs;           /* detections of an image, at most */
    int change_frame;      /* 1: boxes are relative to the window */
};
