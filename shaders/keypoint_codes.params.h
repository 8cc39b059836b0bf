/* keypoint_code_loss: `rows` anchors of all examples, `per` of each; an example has m true objects
 * with `points` keypoints. decode_keypoints: rows are those of the chosen anchors. */
struct keypoint_code_params {
    int rows, per, m, points;
    int kind;     /* DETECTION_SMOOTH_L1 or DETECTION_L2 of detection_loss.params.h */
    float sy, sx; /* scales of the codes */
    float delta;
};
struct decode_keypoints_params {
    int rows, per, anchors, points; /* per: chosen anchors of an image */
    float sy, sx;
};
