/* CIFAR-10's binary files. The first byte chooses the size of the test file: a number of
 * records, and possibly one byte more. */
#include "fuzz.h"

#include <pumice/data.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { RECORD = 3073 };

    if (size == 0)
        return 0;
    fuzz_begin();
    size_t cut = (size_t)(data[0] >> 1) * RECORD + (data[0] & 1);
    cut = cut < size - 1 ? cut : size - 1;
    fuzz_write(fuzz_path("test_batch.bin"), data + 1, cut);
    fuzz_write(fuzz_path("data_batch_1.bin"), data + 1 + cut, size - 1 - cut);
    pm_dataset_convert("cifar10", fuzz_folder, fuzz_path("made"), NULL);
    pm_remove_tree(fuzz_path("made"));
    return 0;
}
