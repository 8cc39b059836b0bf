/* keypoint_loss: boxes of all examples, each with heatmaps of h x w places for each of `points`
 * keypoints. An example has m true objects. */
struct keypoint_loss_params {
    int rows, per; /* boxes of all examples, of one */
    int m;
    int h, w, points;
};
