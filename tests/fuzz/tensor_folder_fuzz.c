/* A folder of tensor files as TensorFlow writes it: the text file `checkpoint`, bundles in
 * several files, a saved model. The input holds parts separated by the byte 30: a file's name up
 * to a newline, then its bytes. A name that ends with .index gets a table made from the entries
 * that follow. The first byte chooses what is opened: the folder, its `checkpoint`, or a bundle
 * in it. */
#include "fuzz.h"
#include "fuzz_tf.h"

enum { MOST_FILES = 8, MOST_NAME = 60 };

/* Writes the file of one part. `path` gets its path, or "" when the name is invalid. */
static void put_file(const uint8_t *data, size_t size, char path[256])
{
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    const size_t length = line ? (size_t)(line - data) : size;
    char name[MOST_NAME + 1] = "";
    struct pm_str table = { 0 };

    path[0] = 0;
    if (!line || length == 0 || length > MOST_NAME || memchr(data, '/', length) ||
        memchr(data, 0, length) || data[0] == '.')
        return;
    memcpy(name, data, length);
    data = line + 1, size -= length + 1;
    snprintf(path, 256, "%s/%s%s", fuzz_folder, strncmp(name, "variables.", 10) ? "" : "variables/",
             name);
    if (pm_is_folder(path)) { /* the name is that of the folder "variables" */
        path[0] = 0;
        return;
    }
    if (pm_ends_with(name, ".index")) {
        fuzz_tf_table(&table, data, size);
        data = (const uint8_t *)table.text, size = table.length;
    }
    fuzz_write(path, data, size);
    pm_str_free(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const opened[] = { "", "checkpoint", "b", "b.index", "variables/variables" };
    char files[MOST_FILES][256];
    int count = 0;

    if (size == 0)
        return 0;
    if (fuzz_begin() && pm_make_folders(fuzz_path("variables")) < 0)
        abort();
    for (size_t at = 1; at < size && count < MOST_FILES;) {
        const size_t begin = at, length = fuzz_part(data, size, &at);

        put_file(data + begin, length, files[count++]);
    }
    fuzz_tf_read(fuzz_path(opened[data[0] % PM_COUNT(opened)]));
    while (count-- > 0)
        if (files[count][0])
            unlink(files[count]);
    return 0;
}
