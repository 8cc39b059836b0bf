/* augment_pad: random padding, as rows of their own and after crops. */
#ifndef PM_AUGMENT_PAD_H
#define PM_AUGMENT_PAD_H

#include "data/augment.h"

/* Ratios of a padded size to the whole picture's, height and width; padding pixel 0..255, one
 * number or three, empty: the mean of the picture that is padded. */
#define PM_PAD_MEMBERS struct pm_floats min_padded_size_ratio, max_padded_size_ratio, pad_color
#define PM_OPTS_PAD_RATIO(tag)                                                                    \
    PM_FLOATS(tag, min_padded_size_ratio, "[1,1]", 0.01, 100,                                     \
              "smallest height and width after padding, as multiples of the picture's"),          \
        PM_FLOATS(tag, max_padded_size_ratio, "[2,2]", 0.01, 100,                                 \
                  "largest height and width after padding, as multiples of the picture's")
#define PM_OPTS_PAD_COLOR(tag)          \
    PM_FLOATS(tag, pad_color, NULL, 0, 255, \
              "pixel of the padding, one number or three; null = the mean of the picture")
/* Checks a cfg with these members; unused ones may be empty. */
#define PM_CHECK_PAD(c, where)                                                          \
    pm_check_pad(&(c)->min_padded_size_ratio, &(c)->max_padded_size_ratio, &(c)->pad_color, where)
int pm_check_pad(const struct pm_floats *least, const struct pm_floats *most,
                 const struct pm_floats *color, const char *where);

/* Draws the padded size, least..most - 1 for each side but at least the picture's, and the
 * picture's place in it. out: the window y, x, height, width in the picture's frame. */
void pm_draw_padding(struct pm_rng *r, const int sides[2], const int least[2], const int most[2],
                     int out[4]);
/* Adds the window, with the color or the mean. */
void pm_place_padding(const struct pm_floats *color, const int window[4], struct pm_geometry *g);

#endif
