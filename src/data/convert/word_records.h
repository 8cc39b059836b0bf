/* word_records, internal to data/convert: pictures of words with their texts, as converters of text
 * recognition collect them, and their records: image/encoded, format, filename, height, width,
 * transcript, lexicon, and keypoints. A word that is cut from a picture has its corners as key
 * points, which are those of its own picture.
 *
 * A converter begins a split and adds its words. pm_words_convert then decides about validation and
 * writes all splits. */
#ifndef PUMICE_DATA_CONVERT_WORD_RECORDS_H
#define PUMICE_DATA_CONVERT_WORD_RECORDS_H

#include "data/convert/box_records.h"

struct pm_lmdb;

struct pm_word {
    const char *path;      /* of the picture; in LMDB: of the file, for messages */
    const char *name;      /* image/filename */
    const char *text;      /* UTF-8 */
    const char *lexicon;   /* words with tabs between them; NULL: none */
    const struct pm_lmdb *lmdb; /* borrowed: it has the picture, as `name`; NULL: path has it */
    const float *keypoints; /* image/keypoints (data/word_points.h), of words without corners */
    size_t numbers;         /* of keypoints; 0: none */
    const char *keypoints_at; /* their place, for messages */
    const double *corners; /* [4][2]: y, x in pixels of the picture `path`, which the word is cut
                            * from: left top, right top, right bottom, left bottom of the text;
                            * NULL: the whole picture */
    const char *corners_at; /* their place, for messages */
    size_t group;          /* set by pm_words_add: words of one group come into one split */
};
/* All pointers of words are in the arena, or live as long as the list. */
struct pm_words {
    struct pm_arena *arena; /* borrowed */
    const char *lexicon;    /* of words without a lexicon of their own, set by pm_words_convert */
    int bad, exif;          /* enum pm_bad; enum pm_exif_boxes, for words with corners */
    double validation;      /* share of the groups, if there are no splits */
    uint64_t seed;
    /* Private. */
    struct pm_word *word; /* owned, like the following */
    struct pm_word_split {
        const char *name; /* NULL: a part becomes validation */
        size_t first;
    } *split;
    size_t count, capacity, splits, splits_capacity, groups;
};
/* Begins a split. name NULL: the words have no splits. */
void pm_words_split(struct pm_words *s, const char *name);
/* Adds a word to the last split. Words that are cut from one picture form a group if they are added
 * one after the other. Every other word is a group of its own. */
void pm_words_add(struct pm_words *s, struct pm_word of);
/* A whole converter: reads the file `lexicon` (NULL: none), calls add, which adds the words of the
 * folder src, and writes all splits. ctx: add's. PM_EDATA, also if src is no folder or has no
 * words. pm_words_free frees s, also after an error. */
int pm_words_convert(struct pm_words *s, const char *lexicon, const char *src,
                     int (*add)(void *ctx, const char *src), void *ctx, struct pm_making *m);
void pm_words_free(struct pm_words *s);

/* Checks a text: UTF-8 without control characters. PM_EDATA; where and line: of the text, for
 * messages; line 0: where says all. */
int pm_word_check(const char *text, size_t size, const char *where, size_t line);
/* Returns the text between the quotes "...", in the arena, or a text without quotes itself. */
const char *pm_word_unquoted(struct pm_arena *a, const char *text);
/* For fill: adds the fields of a word's record. lexicon may be NULL. */
void pm_word_record(struct pm_example_builder *b, const void *encoded, size_t size,
                    const char *format, int height, int width, const char *name, const char *text,
                    const char *lexicon);

#endif
