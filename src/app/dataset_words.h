/* dataset_words, internal to app/: the key points of words in records, for dataset inspect. */
#ifndef PUMICE_APP_DATASET_WORDS_H
#define PUMICE_APP_DATASET_WORDS_H

#include <pumice/draw.h>

/* Draws image/keypoints into the record's picture: a line along each edge of the text, the upper
 * one in the first colour, and its points; the first one of each edge, where reading begins, is a
 * ring. A small picture is enlarged. The caller frees out with pm_image_free. PM_EDATA if the
 * picture or the points are damaged. Returns 1, or 0 if the record has no picture or no points. */
int app_draw_word(const struct pm_example *e, const char *where, struct pm_image8 *out);
/* Checks the record's image/keypoints, if it has some. PM_EDATA. */
int app_check_word(const struct pm_example *e, const char *where);

#endif
