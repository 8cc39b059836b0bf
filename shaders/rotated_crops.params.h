/* rotated_crops: a map [n][h][w] with rotated boxes [n][per_image][5]. Each box has rows x cols
 * samples. */
struct rotated_crops_params {
    int boxes; /* n per_image */
    int per_image;
    int rows, cols;
    int h, w, c;
    float tall, wide; /* cells in one unit of the boxes; 0: the map has one row or column */
};
/* Boxes with a number of a greater magnitude have no samples. */
#define CROP_MOST_ROTATED 1e9f
