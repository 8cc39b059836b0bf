/* tf_table: the sorted table of names in a TensorFlow checkpoint: blocks of keys and values, an
 * index block with their positions, and a footer. It is the table file format of LevelDB. */
#ifndef PUMICE_FORMATS_TF_TABLE_H
#define PUMICE_FORMATS_TF_TABLE_H

#include "formats/tensor_format.h"

enum { PM_TF_FOOTER = 48, PM_TF_BLOCK_TAIL = 5 };

/* The uncompressed entries of a block. */
struct pm_tf_block {
    uint8_t *data; /* owned */
    size_t size;   /* of the entries, without what follows them */
    uint64_t offset; /* in the file, for messages */
};
struct pm_tf_table {
    const struct pm_tensor_file *f; /* borrowed */
    int source;
    uint64_t end; /* of the blocks: where the footer begins */
    struct pm_tf_block index;
    struct pm_tf_block last; /* cache of find(), unless the block is large */
};
struct pm_tf_entry {
    const char *key; /* followed by a zero byte; may hold others */
    size_t key_size;
    const uint8_t *value;
    size_t value_size;
};
/* Receives an entry. Key and value are valid until it returns. */
typedef int pm_tf_use(void *ctx, const struct pm_tf_entry *e);

/* Whether a file ends like a table, or begins like a V1 checkpoint. */
bool pm_tf_is_table(const char *path);
/* Opens the table in a source of f. The checksum of every block is checked when it is read. */
int pm_tf_table_open(const struct pm_tensor_file *f, int source, struct pm_tf_table *out);
void pm_tf_table_close(struct pm_tf_table *t);
/* Calls back with all entries, in the order of their keys. */
int pm_tf_table_walk(const struct pm_tf_table *t, pm_tf_use *use, void *ctx);
/* Finds the entry of a key; PM_EDATA if the table has none. Not thread-safe: it caches a block. */
int pm_tf_table_find(struct pm_tf_table *t, const char *key, size_t key_size, pm_tf_use *use,
                     void *ctx);
/* "FILE: WHAT", PM_EDATA, of the table's file. */
int pm_tf_table_bad(const struct pm_tf_table *t, const char *fmt, ...) PM_PRINTF(2, 3);

/* ---- writing ----------------------------------------------------------------------------- */

struct pm_tf_block_writer {
    struct pm_str entries, restarts, last; /* last: key */
    size_t count, every; /* entries; how many to the next whole key */
};
/* Initialise with zeros. */
struct pm_tf_table_writer {
    struct pm_str out; /* the file's bytes */
    struct pm_tf_block_writer data, index;
    struct pm_str last, handle; /* of the previous block, while pending */
    bool pending;               /* its index entry waits for the next key */
};
/* Keys must increase. */
void pm_tf_table_add(struct pm_tf_table_writer *w, const char *key, size_t key_size,
                     const void *value, size_t value_size);
void pm_tf_table_finish(struct pm_tf_table_writer *w);
void pm_tf_table_free(struct pm_tf_table_writer *w);

#endif
