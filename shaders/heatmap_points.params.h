/* heatmap_points: the heatmaps of h x w places of `per` boxes of each image, `points` of each. */
struct heatmap_points_params { int images, per, h, w, points; };
