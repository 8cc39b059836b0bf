/* The panoptic converter. The input holds the JSON file and, after a byte of 1, the map a.png
 * that the JSON may name. Without that byte a.png is a map of 4 x 3 segments with the ids 1..12. */
#include "fuzz.h"

#include <pumice/data.h>

static void make_pictures(void)
{
    uint8_t pixels[36] = { 0 }, *png = NULL;
    const struct pm_image8 im = { 3, 4, 3, pixels };
    size_t size = 0;

    for (int i = 0; i < 12; i++)
        pixels[3 * i] = (uint8_t)(i + 1);
    if (pm_make_folders(fuzz_path("train2017")) < 0 ||
        pm_make_folders(fuzz_path("annotations/panoptic_train2017")) < 0 ||
        pm_image_encode_png(&im, &png, &size) < 0)
        abort();
    fuzz_write(fuzz_path("train2017/a.png"), png, size);
    fuzz_write(fuzz_path("usual.png"), png, size);
    pm_free(png);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *usual = NULL;
    size_t usual_size = 0;

    if (fuzz_begin())
        make_pictures();
    const uint8_t *end = size ? memchr(data, 1, size) : NULL;
    const size_t n = end ? (size_t)(end - data) : size;
    fuzz_write(fuzz_path("annotations/panoptic_train2017.json"), data, n);
    if (!end && pm_file_read(fuzz_path("usual.png"), &usual, &usual_size) < 0)
        abort();
    fuzz_write(fuzz_path("annotations/panoptic_train2017/a.png"),
               end ? (const char *)end + 1 : usual, end ? size - n - 1 : usual_size);
    pm_free(usual);
    pm_dataset_convert("panoptic", fuzz_folder, fuzz_path("made"), "num_shards=1");
    pm_remove_tree(fuzz_path("made"));
    return 0;
}
