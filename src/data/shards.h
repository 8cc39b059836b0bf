/* shards, inside data/: selects the files of a split in a folder by their names alone. */
#ifndef PUMICE_DATA_SHARDS_H
#define PUMICE_DATA_SHARDS_H

#include <pumice/base.h>

/* Parts of a file name. "mnist_train_00001-of-00005.tfrecord" has the stem "mnist_train", index 1
 * and total 5. A name without "-of-" has total 0. */
struct pm_shard_name {
    char stem[256];
    int index, total;
};
/* Returns false if the name is not a shard's: it has neither an ending .tfrecord, .tfrecords or
 * .record nor an "i-of-n" number. */
bool pm_shard_parse(const char *name, struct pm_shard_name *out);
/* Whether a stem ("mnist_train") belongs to a split ("train"). */
bool pm_shards_stem_is(const char *stem, const char *split);
/* Lists the different stems of the shards in folder, allocated in the arena. */
int pm_shards_stems(struct pm_arena *a, const char *folder, const char ***stems, size_t *count);
/* Lists the shards of split in folder, in shard order, as names within the folder, allocated in the
 * arena. split: a split's name, a whole stem, a file name, or a pattern (* ? [). Fails with
 * PM_EDATA if nothing matches, a shard is missing, or two data sets match. The message lists the
 * splits found. */
int pm_shards_find(struct pm_arena *a, const char *folder, const char *split, char ***names,
                   size_t *count);

#endif
