/* shards, inside data/: which files of a folder make up a split, by their names alone. */
#ifndef PUMICE_DATA_SHARDS_H
#define PUMICE_DATA_SHARDS_H

#include <pumice/base.h>

/* A file name cut into parts: "mnist_train_00001-of-00005.tfrecord" has the stem "mnist_train",
 * index 1 and total 5; a name without "-of-" has total 0. */
struct pm_shard_name {
    char stem[256];
    int index, total;
};
/* False when the name is not one of a shard: neither an ending .tfrecord, .tfrecords or .record nor
 * a number of a total. */
bool pm_shard_parse(const char *name, struct pm_shard_name *out);
/* The different stems of the shards in folder, in the arena. */
int pm_shards_stems(struct pm_arena *a, const char *folder, const char ***stems, size_t *count);
/* The shards of split in folder, in shard order, as names within it in the arena. split is a
 * split's name, or a whole stem, or a file's name, or a pattern (* ? [). Fails with PM_EDATA and
 * what is there when nothing matches, a shard is missing, or two data sets match. */
int pm_shards_find(struct pm_arena *a, const char *folder, const char *split, char ***names,
                   size_t *count);

#endif
