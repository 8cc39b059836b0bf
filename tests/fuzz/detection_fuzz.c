/* The text files of the converters of boxes. The first byte selects the converter. The rest of
 * the input, separated by FUZZ_BETWEEN, holds the files of that converter; an empty part leaves
 * no file. */
#include "fuzz.h"

#include <pumice/data.h>

static const struct {
    const char *format, *src, *options;
    const char *files[4];
    size_t count;
} kinds[] = {
    { "voc", "v", "", { "v/Annotations/a.xml" }, 1 },
    { "voc", "w", "", { "w/ImageSets/Main/train.txt", "w/Annotations/a.xml" }, 2 },
    { "kitti", "k", "classes=[\"car\",\"dontcare\"]", { "k/label_2/a.txt" }, 1 },
    { "kitti", "k", "bad=error min_side=1", { "k/label_2/a.txt" }, 1 },
    { "yolo", "y", "masks=true", { "y/data.yaml", "y/labels/a.txt", "y/list.txt" }, 3 },
    { "yolo", "z", "", { "z/obj.data", "z/obj.names", "z/train.txt", "z/obj/a.txt" }, 4 },
    { "boxes", "b", "", { "b/train.csv", "b/all.csv" }, 2 },
    { "open_images",
      "o",
      "",
      { "o/annotations/train-annotations-bbox.csv", "o/annotations/class-descriptions.csv" },
      2 },
    { "open_images",
      "o",
      "expand_hierarchy=true",
      { "o/annotations/train-annotations-bbox.csv", "o/annotations/class-descriptions.csv",
        "o/annotations/hierarchy.json" },
      3 },
    { "dota", "d", "", { "d/labelTxt/a.txt" }, 1 },
    { "dota", "d", "size=16 overlap=8 scale=0.5 empty=true", { "d/labelTxt/a.txt" }, 1 },
    { "hrsc", "h", "classes=id", { "h/ImageSets/train.txt", "h/Annotations/a.xml" }, 2 },
    { "icdar", "i", "", { "i/gt_a.txt" }, 1 },
    { "yolo", "y", "boxes=rotated masks=rle", { "y/data.yaml", "y/labels/a.txt" }, 2 },
};

static void make_folder_of(const char *name)
{
    char folder[300];

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(name, '/') - name), name);
    if (pm_make_folders(fuzz_path(folder)) < 0)
        abort();
}

/* Writes a picture of 3 x 2 pixels in every layout. */
static void make_pictures(void)
{
    static const char *const pictures[] = {
        "v/JPEGImages/a.png", "w/JPEGImages/a.png", "k/image_2/a.png", "y/images/a.png",
        "z/obj/a.png",        "b/images/a.png",     "o/train/a.png",
        "d/images/a.png",     "h/images/a.png",     "i/images/a.png",
    };
    uint8_t pixels[18] = { 0 }, *png = NULL;
    const struct pm_image8 im = { 2, 3, 3, pixels };
    size_t size = 0;

    if (pm_image_encode_png(&im, &png, &size) < 0)
        abort();
    for (size_t i = 0; i < PM_COUNT(pictures); i++) {
        make_folder_of(pictures[i]);
        fuzz_write(fuzz_path(pictures[i]), png, size);
    }
    pm_free(png);
    for (size_t i = 0; i < PM_COUNT(kinds); i++)
        for (size_t k = 0; k < kinds[i].count; k++)
            make_folder_of(kinds[i].files[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t at = 1;

    if (fuzz_begin())
        make_pictures();
    if (size == 0)
        return 0;
    const size_t kind = data[0] % PM_COUNT(kinds);
    fuzz_put_parts(kinds[kind].files, kinds[kind].count, data, size, &at);
    pm_dataset_convert(kinds[kind].format, fuzz_path(kinds[kind].src), fuzz_path("out"),
                       kinds[kind].options);
    pm_remove_tree(fuzz_path("out"));
    return 0;
}
