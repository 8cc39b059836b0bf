/* IDX files, read by the converter. The first byte is the share of the images' file; the rest of
 * the input holds its bytes and then those of the labels' file. */
#include "fuzz.h"

#include <pumice/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    fuzz_begin();
    size_t cut = (size - 1) * data[0] / 255;
    fuzz_write(fuzz_path("train-images-idx3-ubyte"), data + 1, cut);
    fuzz_write(fuzz_path("train-labels-idx1-ubyte"), data + 1 + cut, size - 1 - cut);
    pm_dataset_convert("mnist", fuzz_folder, fuzz_path("made"), NULL);
    pm_remove_tree(fuzz_path("made"));
    return 0;
}
