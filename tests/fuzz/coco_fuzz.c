/* COCO's annotations, read by the wake words converter. The input is the file of both splits; a
 * picture that it may name lies beside it. */
#include "fuzz.h"

#include <pumice/data.h>

/* Writes a grey picture of 4 x 3, a.png, to both folders. */
static void make_pictures(void)
{
    uint8_t pixels[12] = { 0 }, *png = NULL;
    const struct pm_image8 im = { 3, 4, 1, pixels };
    size_t size = 0;

    if (pm_make_folders(fuzz_path("train2014")) < 0 || pm_make_folders(fuzz_path("val2014")) < 0 ||
        pm_make_folders(fuzz_path("annotations")) < 0 || pm_image_encode_png(&im, &png, &size) < 0)
        abort();
    fuzz_write(fuzz_path("train2014/a.png"), png, size);
    fuzz_write(fuzz_path("val2014/a.png"), png, size);
    pm_free(png);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (fuzz_begin())
        make_pictures();
    fuzz_write(fuzz_path("annotations/instances_train2014.json"), data, size);
    fuzz_write(fuzz_path("annotations/instances_val2014.json"), data, size);
    pm_dataset_convert("visualwakewords", fuzz_folder, fuzz_path("made"),
                       "train_shards=2 validation_shards=1");
    pm_remove_tree(fuzz_path("made"));
    return 0;
}
