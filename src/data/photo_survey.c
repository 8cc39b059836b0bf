/* photo_survey: counts and measures the pictures of a folder. */
#include "data/photo_survey.h"

#include "data/convert/convert.h"
#include "data/photos.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Headers of most files lie in their first bytes. */
enum { HEAD_BYTES = 256 << 10 };

/* Returns the longer side in pixels; 0 if the size cannot be read. */
static int longer_side(const char *path)
{
    char *data = pm_malloc(HEAD_BYTES);
    size_t size = 0;
    int fd = -1, height = 0, width = 0;
    ssize_t n = pm_file_open(path, &fd, NULL) == PM_OK ? 1 : 0; /* a pipe could block */

    for (; n > 0 && size < HEAD_BYTES; size += n > 0 ? (size_t)n : 0)
        n = read(fd, data + size, HEAD_BYTES - size);
    if (fd >= 0)
        close(fd);
    bool known = size > 0 && pm_image_measure(data, size, 0, path, &height, &width) == PM_OK;

    if (!known && size == HEAD_BYTES) { /* a TIFF's size may be at its end */
        pm_free(data);
        data = NULL;
        known = pm_file_read(path, &data, &size) == PM_OK &&
                pm_image_measure(data, size, 0, path, &height, &width) == PM_OK;
    }
    pm_free(data);
    return !known ? 0 : height > width ? height : width;
}

static int by_size(const void *a, const void *b)
{
    const int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

static void measure(const struct pm_sources *all, size_t most, struct pm_photo_survey *out)
{
    const size_t count = all->count < most ? all->count : most;
    int *sides = pm_calloc(count + 1, sizeof *sides);

    for (size_t i = 0; i < count; i++) {
        const int side = longer_side(all->item[i * all->count / count].path);

        if (side > 0)
            sides[out->measured++] = side;
    }
    if (out->measured) {
        qsort(sides, out->measured, sizeof *sides, by_size);
        out->longest = sides[out->measured - 1];
        out->usual = sides[out->measured / 2];
    }
    pm_free(sides);
}

/* Finds a split that is not trained on, by its name in the conversion. */
static const char *other_split(struct pm_arena *a, const char *folder)
{
    static const char *const validation[] = { "validation", "val", "valid", "Val", NULL };
    static const char *const test[] = { "test", "testing", "Test", NULL };

    return pm_first_folder(a, folder, validation) ? "validation"
           : pm_first_folder(a, folder, test)     ? "test" : NULL;
}

int pm_photos_survey(struct pm_arena *a, const char *folder, size_t most,
                     struct pm_photo_survey *out)
{
    const char *root = pm_folder_root(a, folder);
    struct pm_sources all = { .deep = true };
    int err = PM_OK;

    *out = (struct pm_photo_survey){ 0 };
    PM_TRY(pm_photos_classes(a, folder, &out->classes, &out->class_count));
    out->counts = pm_arena_alloc(a, (size_t)out->class_count * sizeof *out->counts);
    for (int k = 0; k < out->class_count; k++) {
        const size_t before = all.count;

        PM_TRY(pm_sources_folder(a, pm_arena_printf(a, "%s/%s", root, out->classes[k]), k, &all));
        out->counts[k] = all.count - before;
    }
    out->pictures = all.count;
    out->own_splits = strcmp(root, folder) != 0;
    out->split = out->own_splits ? other_split(a, folder) : NULL;
    measure(&all, most, out);
out:
    pm_sources_free(&all);
    return err;
}
