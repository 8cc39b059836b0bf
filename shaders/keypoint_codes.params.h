/* keypoint_code_loss: `rows` anchors of all examples, `per` of each; an example has m true objects
 * with `points` keypoints. decode_keypoints: rows are those of the chosen anchors. */
struct keypoint_code_params {
    int rows, per, m, points;
    int l2;       /* 1: half the squares; 0: Huber's loss */
    float sy, sx; /* scales of the codes */
    float delta;
};
struct decode_keypoints_params {
    int rows, per, anchors, points; /* per: chosen anchors of an image */
    float sy, sx;
};
