/* thin_plate_sampler: n pictures [h][w][c], of which `samples` points each are sampled. Their
 * places follow from `points` control points of the picture. */
struct thin_plate_params {
    int n, points, samples;
    int h, w, c;
};
