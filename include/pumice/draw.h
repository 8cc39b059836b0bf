/* draw: text, boxes and bars on 8-bit images, for the pictures of predict and report. Everything is
 * clipped to the image; on one channel colours become their luma. */
#ifndef PUMICE_DRAW_H
#define PUMICE_DRAW_H

#include <pumice/data.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pm_color {
    uint8_t r, g, b;
};
/* Well distinguishable colours for classes, instances, series; repeats after 20. */
struct pm_color pm_draw_color(size_t i);

/* A letter is 5 x 7 squares of scale x scale pixels in a cell of 6 x 9; what is not ASCII shows as a
 * frame. scale >= 1. */
int pm_draw_text_width(const char *text, int scale);
int pm_draw_text_height(int scale);
void pm_draw_text(struct pm_image8 *im, int y, int x, int scale, struct pm_color c,
                  const char *text);
/* Fills; opacity 0..1. */
void pm_draw_area(struct pm_image8 *im, int y, int x, int height, int width, struct pm_color c,
                  double opacity);
/* Text on a ground of colour c, in black or white, whichever is read better. */
void pm_draw_label(struct pm_image8 *im, int y, int x, int scale, struct pm_color c,
                   const char *text);
/* Outline of rows y0..y1-1 and columns x0..x1-1, `thick` pixels inwards, with a dark rim so that it
 * is seen on any picture. */
void pm_draw_box(struct pm_image8 *im, int y0, int x0, int y1, int x1, int thick,
                 struct pm_color c);

/* One line of a bar chart: a label, a bar for share 0..1, and the share in per cent. */
struct pm_bar {
    const char *label; /* borrowed; cut when too long */
    double share;
    struct pm_color color;
};
int pm_draw_bars_height(int count, int scale);
/* Light text on whatever is there: fill the ground first. */
void pm_draw_bars(struct pm_image8 *im, int y, int x, int width, int scale,
                  const struct pm_bar *bars, int count);

/* A picture to look at: `in` in RGB, small ones enlarged by a whole factor until 256 pixels wide,
 * with a panel below that holds title (may be NULL) and bars. out is freed with pm_image_free. */
void pm_draw_picture(const struct pm_image8 *in, const char *title, const struct pm_bar *bars,
                     int count, struct pm_image8 *out);

/* `in` made smaller, each pixel the mean of those it covers, so that neither side is longer than
 * `most`; a copy where it is small enough. out is freed with pm_image_free. */
void pm_draw_shrink(const struct pm_image8 *in, int most, struct pm_image8 *out);

#ifdef __cplusplus
}
#endif

#endif
