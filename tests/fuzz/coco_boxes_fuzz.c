/* The coco converter. The input holds the instances file and, after a byte of 1, the file of
 * keypoints. The picture a.png has 3 x 4 pixels. Masks are written. */
#include "fuzz.h"

#include <pumice/data.h>

static void make_picture(void)
{
    uint8_t pixels[36] = { 0 }, *png = NULL;
    const struct pm_image8 im = { 3, 4, 3, pixels };
    size_t size = 0;

    if (pm_make_folders(fuzz_path("train2017")) < 0 ||
        pm_make_folders(fuzz_path("annotations")) < 0 || pm_image_encode_png(&im, &png, &size) < 0)
        abort();
    fuzz_write(fuzz_path("train2017/a.png"), png, size);
    pm_free(png);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (fuzz_begin())
        make_picture();
    const char *points = fuzz_path("annotations/person_keypoints_train2017.json");
    const uint8_t *end = size ? memchr(data, 1, size) : NULL;
    const size_t n = end ? (size_t)(end - data) : size;
    fuzz_write(fuzz_path("annotations/instances_train2017.json"), data, n);
    remove(points);
    if (end)
        fuzz_write(points, end + 1, size - n - 1);
    pm_dataset_convert("coco", fuzz_folder, fuzz_path("made"), "num_shards=1 masks=true");
    pm_remove_tree(fuzz_path("made"));
    return 0;
}
