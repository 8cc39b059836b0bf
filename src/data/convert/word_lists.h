/* word_lists, internal to data/convert: reads lists that name pictures of words and their texts. */
#ifndef PUMICE_DATA_CONVERT_WORD_LISTS_H
#define PUMICE_DATA_CONVERT_WORD_LISTS_H

#include "data/convert/word_records.h"

/* Initialise words and folders; free with pm_word_lists_free after the words are written. */
struct pm_word_lists {
    struct pm_words *words;      /* borrowed; words are added to its last split */
    const char *const *folders;  /* NULL-terminated: where pictures are looked for, in order */
    struct pm_lmdb **lmdb;       /* owned: files whose pictures are still to be read */
    size_t lmdb_count, lmdb_capacity;
};
/* Adds the words of a list, by its name's ending: .json or .jsonl: JSON; .mdb, .lmdb, or a folder
 * with data.mdb: LMDB; others: a line for each word. Pictures are not read yet, but must exist.
 * PM_EDATA, with file and line or key, for what is missing or malformed, and for texts that are not
 * UTF-8. */
int pm_word_list_add(struct pm_word_lists *l, const char *path);
void pm_word_lists_free(struct pm_word_lists *l);

#endif
