/* dataset_words, internal to app/: the key points of words in records, for dataset inspect. */
#ifndef PUMICE_APP_DATASET_WORDS_H
#define PUMICE_APP_DATASET_WORDS_H

#include <pumice/draw.h>

/* Draws image/keypoints into the record's picture: a line along each edge of the text, the upper
 * one in the first colour, and its points; the first one of each edge, where reading begins, is a
 * ring. A small picture is enlarged. The caller frees out with pm_image_free. PM_EDATA if the
 * picture or the points are damaged. Returns 1, or 0 if the record has no picture or no points. */
int app_draw_word(const struct pm_example *e, const char *where, struct pm_image8 *out);
/* What a check of words found. Zeros before the first record; app_word_check_free frees it. */
struct app_word_check {
    size_t wrong; /* records with wrong image/keypoints */
    char *first;  /* the reason of the first one; NULL: none */
};

/* Checks the record's image/keypoints, if it has some. Wrong ones are counted, and the first few of
 * them give warnings. PM_EDATA or PM_ECORRUPT if the picture is damaged. */
int app_check_word(struct app_word_check *c, const struct pm_example *e, const char *where);
/* PM_EDATA if there were wrong ones: their number and the first. path: what was checked. */
int app_word_check_result(const struct app_word_check *c, const char *path);
void app_word_check_free(struct app_word_check *c);

#endif
