/* thin_plate_sampler: n pictures [h][w][c], each with `points` control points. The output has
 * `samples` pixels for each picture. */
struct thin_plate_params {
    int n, points, samples;
    int h, w, c;
};
