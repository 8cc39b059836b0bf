/* Lists of words for the converters words and icdar, and files of LMDB. The first byte selects a
 * row of the table. The rest of the input, separated by FUZZ_BETWEEN, holds the files of that row;
 * an empty part leaves no file. A file of LMDB is the whole rest. */
#include "fuzz.h"

#include <pumice/data.h>

static const struct {
    const char *format, *src, *options;
    const char *files[2]; /* if the options end in "=", the second file is their value */
    size_t count;         /* of parts; 0: the first file is the whole rest */
} kinds[] = {
    { "words", "a", "", { "a/gt.txt" }, 1 },
    { "words", "b", "validation=0", { "b/train.jsonl", "b/test.json" }, 2 },
    { "words", "c", "bad=error", { "c/data.mdb" }, 0 },
    { "words", "d", "validation=0 lexicon=", { "d/labels.tsv", "words.txt" }, 2 },
    { "icdar", "e", "words=true validation=0", { "e/gt_a.txt" }, 1 },
};

static void make_pictures(void)
{
    uint8_t pixels[18] = { 0 }, *png = NULL;
    const struct pm_image8 im = { 2, 3, 3, pixels };
    size_t size = 0;

    if (pm_image_encode_png(&im, &png, &size) < 0)
        abort();
    for (size_t i = 0; i < PM_COUNT(kinds); i++) {
        char name[16];

        snprintf(name, sizeof name, "%s/a.png", kinds[i].src);
        if (pm_make_folders(fuzz_path(kinds[i].src)) < 0)
            abort();
        fuzz_write(fuzz_path(name), png, size);
    }
    pm_free(png);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t at = 1;
    char options[300];

    if (fuzz_begin())
        make_pictures();
    if (size == 0)
        return 0;
    const size_t kind = data[0] % PM_COUNT(kinds);

    if (kinds[kind].count == 0)
        fuzz_write(fuzz_path(kinds[kind].files[0]), data + 1, size - 1);
    fuzz_put_parts(kinds[kind].files, kinds[kind].count, data, size, &at);
    snprintf(options, sizeof options, "%s%s", kinds[kind].options,
             pm_ends_with(kinds[kind].options, "=") ? fuzz_path(kinds[kind].files[1]) : "");
    pm_dataset_convert(kinds[kind].format, fuzz_path(kinds[kind].src), fuzz_path("out"), options);
    pm_remove_tree(fuzz_path("out"));
    return 0;
}
