/* word_picture: one drawn word, as a picture: in a font, over a ground, with slant, perspective,
 * shadow and blur. */
#ifndef PM_WORD_PICTURE_H
#define PM_WORD_PICTURE_H

#include <pumice/data.h>
#include <pumice/rng.h>

#include "data/font_face.h"
#include "data/word_points.h"

/* Coverage of a word's letters, 0..255. Free pixels with pm_free. */
struct pm_word_ink {
    int height, width;
    uint8_t *pixels;
};
/* Draws the letters in a font, `size` pixels per em, without empty rows or columns around them;
 * but at least the rows of a letter such as x, so that a dot stays small. Returns false, with
 * nothing to free, if the font lacks one of the letters or nothing is drawn. text: `count` code
 * points, count >= 1. */
bool pm_word_ink(struct pm_font *font, double size, const uint32_t *text, int count,
                 struct pm_word_ink *out);
/* Brings the word into a picture of this height, whose width fits the word: with random slant,
 * perspective, margins, colours, shadow, blur and grain, as a function of r only. photo: a part of
 * it becomes the ground; NULL: a drawn ground. out: colour; its pixels are owned by the caller.
 * points: receives the key points (data/word_points.h), where the ink's corners are in the picture:
 * x, y in pixels of left top, right top, left bottom, right bottom; NULL: not wanted. */
void pm_word_draw(struct pm_rng *r, const struct pm_word_ink *ink, int height,
                  const struct pm_image8 *photo, struct pm_image8 *out,
                  float points[PM_WORD_CORNERS]);

#endif
