/* Shared by the fuzz targets that read files: a scratch folder in memory. */
#ifndef FUZZ_H
#define FUZZ_H

#include <pumice/base.h>

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char fuzz_folder[64];

static inline void fuzz_clean(void)
{
    pm_remove_tree(fuzz_folder);
}

/* Makes the folder once. Only errors are logged. */
static inline bool fuzz_begin(void)
{
    if (fuzz_folder[0])
        return false;
    snprintf(fuzz_folder, sizeof fuzz_folder, "%s/pumice-fuzz-XXXXXX",
             pm_is_folder("/dev/shm") ? "/dev/shm" : "/tmp");
    if (!mkdtemp(fuzz_folder))
        abort();
    pm_log_set_level(PM_LEVEL_ERROR);
    atexit(fuzz_clean);
    return true;
}

/* "FOLDER/name" in one of eight static buffers. */
static inline const char *fuzz_path(const char *name)
{
    static char text[8][256];
    static int next;

    next = (next + 1) % 8;
    snprintf(text[next], sizeof text[next], "%s/%s", fuzz_folder, name);
    return text[next];
}

enum { FUZZ_BETWEEN = 30 }; /* separates the parts of an input that holds several files */

/* Returns the part at *at, up to the next separator; *at moves past it. */
static inline size_t fuzz_part(const uint8_t *data, size_t size, size_t *at)
{
    const uint8_t *end = *at < size ? memchr(data + *at, FUZZ_BETWEEN, size - *at) : NULL;
    const size_t length = end ? (size_t)(end - data) - *at : size - *at;

    *at += length + (end != NULL);
    return length;
}

/* Writes a file without the syncs of pm_file_write. */
static inline void fuzz_write(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");

    if (!f || (size && fwrite(data, 1, size, f) != size) || fclose(f) != 0)
        abort();
}

/* Writes the parts to files of these names in the folder; an empty part leaves no file. */
static inline void fuzz_put_parts(const char *const *names, size_t count, const uint8_t *data,
                                  size_t size, size_t *at)
{
    for (size_t i = 0; i < count; i++) {
        const size_t begin = *at, length = fuzz_part(data, size, at);

        if (length)
            fuzz_write(fuzz_path(names[i]), data + begin, length);
        else
            remove(fuzz_path(names[i]));
    }
}

#endif
