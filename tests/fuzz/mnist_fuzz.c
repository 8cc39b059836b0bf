/* IDX files through the converter: the first byte is the share of the images' file, the rest of the
 * input its bytes and the labels'. */
#include <pumice/data.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[64], images[128], labels[128], made[128];

static void clean(void)
{
    pm_remove_tree(folder);
}

static void setup(void)
{
    snprintf(folder, sizeof folder, "%s/pumice-fuzz-XXXXXX",
             pm_is_folder("/dev/shm") ? "/dev/shm" : "/tmp");
    if (!mkdtemp(folder))
        abort();
    snprintf(images, sizeof images, "%s/train-images-idx3-ubyte", folder);
    snprintf(labels, sizeof labels, "%s/train-labels-idx1-ubyte", folder);
    snprintf(made, sizeof made, "%s/made", folder);
    pm_log_set_level(PM_LEVEL_ERROR);
    atexit(clean);
}

static void write_plain(const char *path, const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    if (!f || fwrite(data, 1, size, f) != size || fclose(f) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (!folder[0])
        setup();
    size_t cut = (size - 1) * data[0] / 255;
    write_plain(images, data + 1, cut);
    write_plain(labels, data + 1 + cut, size - 1 - cut);
    pm_dataset_convert("mnist", folder, made, NULL);
    pm_remove_tree(made);
    return 0;
}
