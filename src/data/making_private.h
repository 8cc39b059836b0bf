/* making_private, inside data/: a data folder that is being made. making.c makes the folder and
 * puts it in place, making_split.c makes its records, making_info.c its text files. */
#ifndef PM_MAKING_PRIVATE_H
#define PM_MAKING_PRIVATE_H

#include <pumice/objects.h>

enum { PM_MOST_SPLITS = 8 };

struct pm_making_split {
    const char *name;
    size_t count, skipped;
    size_t *labels; /* [num_classes] record counts, in the arena; NULL: classes unknown */
    uint64_t *pixels; /* [map_classes] pixel counts of label maps, in the arena, or NULL */
};

struct pm_making {
    struct pm_arena *arena;
    const char *dst, *temporary, *name;
    int lock; /* of the temporary folder, or -1 */
    bool replace;
    struct pm_making_split split[PM_MOST_SPLITS];
    int splits;
    const char **labels;
    int num_classes, height, width, channels;
    bool segmentation;
    int ignore_label;
    const char *colormap;
    const char **map_labels; /* NULL: same as labels */
    int map_classes;
    int *things, things_count;
    int *mirrored, mirrored_count; /* keypoints */
    const char *digest; /* of a folder of pictures (photos.h), in whose place this one is read; or
                         * NULL; borrowed */
    struct pm_label_map boxes; /* classes of boxes; count 0: the records have none */
};

/* Checks a name for labels.txt, lists and file names: it must be a single line. what: "class 3".
 * Fails with err. */
int pm_making_check_name(enum pm_error err, const char *what, const char *name);
/* Writes labels.txt, label_map.pbtxt and dataset.json to the temporary folder. PM_EFAIL. */
int pm_making_write_info(const struct pm_making *m);

#endif
