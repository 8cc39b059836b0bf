/* The text files of the converters of pictures with label maps. The first byte chooses camvid,
 * ade20k, voc_segmentation, or pairs with a file of colours or of classes. The rest of the
 * input, separated by bytes of 1, holds the files of that converter; an empty part leaves no
 * file. */
#include "fuzz.h"

#include <pumice/data.h>

static const struct {
    const char *format, *src, *options;
    const char *files[4];
} kinds[] = {
    { "camvid", "c", "", { "c/train.txt", "c/classes.txt", "c/label_colors.txt", "c/val.txt" } },
    { "ade20k", "a", "", { "a/objectInfo150.txt" } },
    { "voc_segmentation",
      "v",
      "labels_file=",
      { "v/ImageSets/Segmentation/train.txt", "names.txt" } },
    { "pairs", "p", "ignore_class=b colours=", { NULL, "names.txt" } },
    { "pairs", "p", "classes=", { NULL, "names.txt" } },
};

/* Writes a picture and a map of one pixel each, in every layout. */
static void make_pictures(void)
{
    static const char *const files[][2] = {
        { "c/a.jpg", "c/b.png" },
        { "a/images/training/a.jpg", "a/annotations/training/a.png" },
        { "v/JPEGImages/a.jpg", "v/SegmentationClass/a.png" },
        { "p/images/train/a.jpg", "p/labels/train/a.png" },
    };
    static const char *const folders[] = { "c", "a/images/training", "a/annotations/training",
                                           "v/JPEGImages", "v/SegmentationClass",
                                           "v/ImageSets/Segmentation", "p/images/train",
                                           "p/labels/train" };
    uint8_t pixels[3] = { 0 }, *out = NULL;
    const struct pm_image8 color = { 1, 1, 3, pixels }, grey = { 1, 1, 1, pixels };
    size_t size = 0;

    for (size_t i = 0; i < PM_COUNT(folders); i++)
        if (pm_make_folders(fuzz_path(folders[i])) < 0)
            abort();
    for (size_t i = 0; i < PM_COUNT(files); i++)
        for (int k = 0; k < 2; k++) {
            if ((k ? pm_image_encode_png(&grey, &out, &size)
                   : pm_image_encode_jpeg(&color, 90, &out, &size)) < 0)
                abort();
            fuzz_write(fuzz_path(files[i][k]), out, size);
            pm_free(out);
        }
    if (pm_image_encode_png(&color, &out, &size) < 0)
        abort();
    fuzz_write(fuzz_path("c/d.png"), out, size);
    pm_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char options[400];

    if (fuzz_begin())
        make_pictures();
    if (size == 0)
        return 0;
    const size_t kind = data[0] % PM_COUNT(kinds);
    data++, size--;
    for (size_t k = 0; k < PM_COUNT(kinds[kind].files); k++) {
        if (!kinds[kind].files[k])
            continue;
        const char *path = fuzz_path(kinds[kind].files[k]);
        const uint8_t *end = size ? memchr(data, 1, size) : NULL;
        const size_t n = end ? (size_t)(end - data) : size;
        if (n)
            fuzz_write(path, data, n);
        else
            remove(path);
        data += n, size -= n;
        if (size)
            data++, size--;
    }
    const bool named = kinds[kind].options[0];
    snprintf(options, sizeof options, "%s%s", kinds[kind].options,
             named ? fuzz_path("names.txt") : "");
    pm_dataset_convert(kinds[kind].format, fuzz_path(kinds[kind].src), fuzz_path("out"), options);
    pm_remove_tree(fuzz_path("out"));
    return 0;
}
