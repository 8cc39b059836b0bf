/* draw: draws text, boxes, masks and bars on 8-bit images, for the pictures of predict, report and
 * dataset inspect.
 * Everything is clipped to the image. On images with one channel, colours are converted to their
 * luma. */
#ifndef PUMICE_DRAW_H
#define PUMICE_DRAW_H

#include <pumice/data.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pm_color {
    uint8_t r, g, b;
};
/* Distinguishable colours for classes, instances and series; repeats after 20. */
struct pm_color pm_draw_color(size_t i);

/* Text is UTF-8. Letters come from the font DejaVu Sans, or from the file of the environment
 * variable PM_FONT, through FreeType. Capitals are 7 * scale pixels high; scale >= 1. Without the
 * library or the font, letters of 5 x 7 squares in cells of 6 x 9 are drawn, and a character that
 * is not ASCII as a frame; the first such character is reported as a warning. Thread-safe. */
int pm_draw_text_width(const char *text, int scale);
int pm_draw_text_height(int scale);
/* Returns the number of bytes of the longest beginning of text, in whole characters, that is not
 * wider than `width` pixels. */
size_t pm_draw_text_fit(const char *text, int scale, int width);
void pm_draw_text(struct pm_image8 *im, int y, int x, int scale, struct pm_color c,
                  const char *text);
/* Fills a rectangle; opacity 0..1. */
void pm_draw_area(struct pm_image8 *im, int y, int x, int height, int width, struct pm_color c,
                  double opacity);
/* Draws text on a background of colour c, in black or white, whichever has more contrast. */
void pm_draw_label(struct pm_image8 *im, int y, int x, int scale, struct pm_color c,
                   const char *text);
/* Draws the outline of rows y0..y1-1 and columns x0..x1-1, `thick` pixels inwards, with a dark rim
 * that makes it visible on any picture. */
void pm_draw_box(struct pm_image8 *im, int y0, int x0, int y1, int x1, int thick,
                 struct pm_color c);

/* A box of pm_draw_boxes. */
struct pm_marked_box {
    float box[4];           /* ymin, xmin, ymax, xmax; 0..1 spans the image */
    const char *text;       /* caption, borrowed; cut when it is wider than the image; NULL: none */
    struct pm_color color;  /* of the outline and of the caption's background */
    bool dashed;            /* a dashed outline, e.g. for crowds */
    /* The outline is that of rotated: cy, cx, h, w, angle as in struct pm_object, for the image's
     * sides or for those of a picture of the same shape. Its front edge, to which the angle points,
     * is three times as thick. box is the upright box around it. */
    bool turned;
    float rotated[5];
};
/* Draws boxes with captions. Lines and letters grow with the image, so that they are as readable
 * on a photo of 4000 pixels that is shown reduced as on one of 600. Smaller boxes are drawn over
 * larger ones, and captions over all boxes. A caption is placed where it hides the least of
 * captions of earlier boxes, so sort important boxes to the front. A box without an area is drawn
 * as a dot or a line; one that is not finite is left out. Enlarge an image below 600 pixels with
 * pm_draw_canvas first. */
void pm_draw_boxes(struct pm_image8 *im, const struct pm_marked_box *boxes, size_t count);
/* Returns the width of lines that pm_draw_boxes draws on this image, in pixels. */
int pm_draw_line_width(const struct pm_image8 *im);
/* Tints the pixels where mask[height * width] is not 0 and draws their outline. The mask is
 * stretched to the image. */
void pm_draw_mask(struct pm_image8 *im, const uint8_t *mask, int height, int width,
                  struct pm_color c);
/* Draws a disc around y, x (0..1 spans the image) with a dark rim; hollow: a ring. Nothing if y or
 * x is not finite. */
void pm_draw_point(struct pm_image8 *im, double y, double x, struct pm_color c, bool hollow);
/* Draws a line of this width between two points (0..1 spans the image); points may lie outside.
 * Nothing if a number is not finite. */
void pm_draw_line(struct pm_image8 *im, double y0, double x0, double y1, double x1,
                  struct pm_color c);
/* The same functions for a large image that people look at part by part: lines and letters have the
 * width for an image whose longer side is `side` pixels. 0: that of the image, as above. */
void pm_draw_boxes_at(struct pm_image8 *im, int side, const struct pm_marked_box *boxes,
                      size_t count);
void pm_draw_mask_at(struct pm_image8 *im, int side, const uint8_t *mask, int height, int width,
                     struct pm_color c);
void pm_draw_point_at(struct pm_image8 *im, int side, double y, double x, struct pm_color c,
                      bool hollow);
void pm_draw_line_at(struct pm_image8 *im, int side, double y0, double x0, double y1, double x1,
                     struct pm_color c);
/* Copies `in` to RGB, enlarged by the smallest whole factor that makes its longer side at least
 * `least` pixels. Free out with pm_image_free. */
void pm_draw_canvas(const struct pm_image8 *in, int least, struct pm_image8 *out);

/* One line of a bar chart: a label, a bar for share 0..1, and the share in per cent. */
struct pm_bar {
    const char *label; /* borrowed; cut when too long */
    double share;
    struct pm_color color;
};
int pm_draw_bars_height(int count, int scale);
/* Draws light text without a background: fill the area first. */
void pm_draw_bars(struct pm_image8 *im, int y, int x, int width, int scale,
                  const struct pm_bar *bars, int count);

/* Makes a picture for people: `in` in RGB, enlarged by a whole factor to at least 256 pixels in
 * width, with a panel below for title (may be NULL) and bars. Free out with pm_image_free. */
void pm_draw_picture(const struct pm_image8 *in, const char *title, const struct pm_bar *bars,
                     int count, struct pm_image8 *out);

/* Finds places for the letters of a text in a line of width 1, in the order of the text. Neighbours
 * are `gap` apart, or closer if there is no room. The letters are as near as possible to their
 * marks: the sum of squared distances is the least. at, out: [count], 0..1. out may be at. */
void pm_spread_letters(const double *at, int count, double gap, double *out);
/* Makes a picture like pm_draw_picture, with the title `text`. Above the title, a line leads from
 * each of the first `count` letters to the place at[k], 0..1 of the picture's width, where a tick
 * stands in the picture. `in` is enlarged by a whole factor until it is 480 pixels wide and the
 * letters have room; if its height then is more than 4096, only to 256 pixels or more. Free out
 * with pm_image_free. */
void pm_draw_marked_text(const struct pm_image8 *in, const char *text, const double *at, int count,
                         struct pm_image8 *out);

/* A colour of a legend and its meaning. */
struct pm_legend_entry {
    const char *label; /* borrowed */
    struct pm_color color;
};
/* Copies `in` to RGB, enlarged by a whole factor to at least 256 pixels in width if its height then
 * is at most 4096, with a legend below it. Entries fill lines from left to right. Free out with
 * pm_image_free. */
void pm_draw_legend(const struct pm_image8 *in, const struct pm_legend_entry *list, int count,
                    struct pm_image8 *out);

/* Reduces `in` so that no side exceeds `most`; each pixel is the mean of those it covers. Copies
 * `in` if it is small enough. Free out with pm_image_free. */
void pm_draw_shrink(const struct pm_image8 *in, int most, struct pm_image8 *out);

#ifdef __cplusplus
}
#endif

#endif
