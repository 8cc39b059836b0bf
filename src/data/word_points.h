/* word_points: the key points of a picture of a word, image/keypoints: two lines of points, along
 * the upper and the lower edge of the text. Source: the text recognition fork of TensorFlow's
 * Object Detection API, whose records have this key. */
#ifndef PUMICE_DATA_WORD_POINTS_H
#define PUMICE_DATA_WORD_POINTS_H

#include <pumice/data.h>

/* The numbers are x, y, x, y, ... in pixels of the upright picture, whose first pixel spans 0..1.
 * The first half are the points of the upper edge, the second half those of the lower edge, both in
 * the direction of reading. */
struct pm_word_points {
    const float *xy; /* [2][count][2], borrowed */
    int count;       /* points of each edge, at least 2; 0: there are none */
};
/* Numbers of the key points of a quadrangle, and of an upright picture that shows only the word. */
enum { PM_WORD_CORNERS = 8 };
static inline void pm_word_points_of_picture(int height, int width, float out[PM_WORD_CORNERS])
{
    for (int i = 0; i < PM_WORD_CORNERS / 2; i++) {
        out[2 * i] = (float)(i % 2 ? width : 0);
        out[2 * i + 1] = (float)(i / 2 ? height : 0);
    }
}
/* Checks a list of `count` numbers for a picture of this size. PM_EDATA, a line that begins with
 * where: the points cannot be divided into two equal edges of at least 2 points, a number is not
 * finite, a point is more than one picture outside of the picture, or an edge has no length. */
int pm_word_points_check(const float *xy, size_t count, int height, int width, const char *where);
/* Reads and checks image/keypoints. out->count is 0 if the record has no such key, or an empty
 * list. out borrows from e. PM_EDATA. */
int pm_word_points_read(const struct pm_example *e, int height, int width, const char *where,
                        struct pm_word_points *out);
/* Divides each edge into count - 1 >= 1 parts of equal length, and writes their ends, both ends of
 * the edge included: out [2][count][2], x, y in pixels. An edge is the polyline through its points.
 * Lengths are measured along it in pixels of the picture, before any resizing. */
void pm_word_points_divide(const struct pm_word_points *p, int count, float *out);

#endif
