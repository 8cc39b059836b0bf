/* crop_and_resize, sensitive_crops: a map [n][h][w] with boxes [n][per_image][4]. Each box has
 * rows x cols samples, in bins_h x bins_w bins of equal size (crop_and_resize: one bin). */
struct crop_params {
    int boxes; /* n per_image */
    int per_image;
    int rows, cols;
    int h, w, c; /* c: channels of the crops */
    int bins_h, bins_w;
    float row_share, col_share; /* 1 / rows, 1 / cols */
};
/* Boxes with a corner of a greater magnitude have no samples; nothing overflows below it. */
#define CROP_MOST 1e30f
/* Places above this are on the map. It is not 0, because devices may round the smallest floats to
 * 0, and all of them must decide alike. */
#define CROP_ABOVE (-1e-30f)
