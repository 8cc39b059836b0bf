/* The text files of the ImageNet builder (odd first byte) and of the generic one. The rest of
 * the input, separated by bytes of 1, holds synsets (or classes), words, boxes and the synsets
 * of the validation pictures; an empty part leaves no file. */
#include "fuzz.h"

#include <pumice/data.h>

static const char *const files[] = {
    "imagenet_lsvrc_2015_synsets.txt", "imagenet_metadata.txt", "imagenet_2012_bounding_boxes.csv",
    "imagenet_2012_validation_synset_labels.txt",
};

static void make_pictures(void)
{
    uint8_t pixels[12] = { 0 }, *jpeg = NULL;
    const struct pm_image8 im = { 2, 2, 3, pixels };
    size_t size = 0;

    if (pm_make_folders(fuzz_path("train/a")) < 0 || pm_make_folders(fuzz_path("train/b c")) < 0 ||
        pm_make_folders(fuzz_path("val")) < 0 || pm_image_encode_jpeg(&im, 90, &jpeg, &size) < 0)
        abort();
    fuzz_write(fuzz_path("train/a/1.JPEG"), jpeg, size);
    fuzz_write(fuzz_path("train/b c/2.JPEG"), jpeg, size);
    fuzz_write(fuzz_path("val/3.JPEG"), jpeg, size);
    pm_free(jpeg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (fuzz_begin())
        make_pictures();
    if (size == 0)
        return 0;
    const bool imagenet = data[0] & 1;
    data++, size--;
    for (size_t k = 0; k < PM_COUNT(files); k++) {
        const uint8_t *end = size ? memchr(data, 1, size) : NULL;
        const size_t n = end ? (size_t)(end - data) : size;
        pm_remove_tree(fuzz_path(files[k]));
        if (n)
            fuzz_write(fuzz_path(files[k]), data, n);
        if (n && k == 0)
            fuzz_write(fuzz_path("labels.txt"), data, n);
        data += end ? n + 1 : n;
        size -= end ? n + 1 : n;
    }
    pm_dataset_convert(imagenet ? "imagenet" : "build_image_data", fuzz_folder, fuzz_path("made"),
                       "train_shards=2 validation_shards=1");
    pm_remove_tree(fuzz_path("made"));
    return 0;
}
