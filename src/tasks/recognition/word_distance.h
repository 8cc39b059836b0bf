/* word_distance: how far a word that was read is from the true one. Rules: the recognition metrics
 * of the text recognition fork of TensorFlow's Object Detection API. All functions are
 * thread-safe. */
#ifndef PM_WORD_DISTANCE_H
#define PM_WORD_DISTANCE_H

#include "tasks/recognition/charset.h"

/* Levenshtein's distance: the least number of letters to insert, to remove or to replace. */
int pm_edit_distance(const struct pm_letters *a, const struct pm_letters *b);
/* Keeps digits and Latin letters of ASCII, as lower-case letters, in place. The original program
 * compares words in this form. */
void pm_letters_strip(struct pm_letters *l);
bool pm_letters_equal(const struct pm_letters *a, const struct pm_letters *b);
/* Returns the word of a lexicon that is nearest to the word read; of several equally near ones the
 * first. count >= 1. */
int pm_nearest_word(const struct pm_letters *word, const struct pm_letters *lexicon, int count);

#endif
