/* draw_legend: a picture with the colours of its classes and their names below it. */
#include <pumice/draw.h>
#include <string.h>

enum { SMALLEST = 256, LARGEST = 4096 }; /* pixels of an enlarged picture's sides */
static const struct pm_color ground = { 32, 34, 38 }, light = { 235, 235, 235 };

/* Where the entries stand: each has a square of 7 * scale pixels and its name. */
struct flow {
    int scale, margin, width; /* of the picture */
    int x, y, line;           /* of the next entry, from the panel's corner; height of a line */
};

/* Returns the width of an entry, with the gap behind it. */
static int entry_width(const struct flow *f, const char *label)
{
    return 9 * f->scale + pm_draw_text_width(label, f->scale) + 6 * f->scale;
}

/* Moves to the next line if the entry does not fit into the rest of this one. */
static void wrap(struct flow *f, int width)
{
    if (f->x > f->margin && f->x + width - 6 * f->scale > f->width - f->margin) {
        f->x = f->margin;
        f->y += f->line;
    }
}

/* Draws the entries into the panel that begins at row `top`; im NULL: only measures. Returns the
 * panel's height. */
static int draw_entries(struct pm_image8 *im, int top, int picture_width,
                        const struct pm_legend_entry *list, int count)
{
    const int scale = picture_width / 360 + 1, side = 7 * scale;
    struct flow f = { scale, 5 * scale, picture_width, 5 * scale, 5 * scale, 12 * scale };

    for (int i = 0; i < count; i++) {
        const int width = entry_width(&f, list[i].label);

        wrap(&f, width);
        if (im) {
            pm_draw_area(im, top + f.y, f.x, side, side, light, 1); /* a rim shows black */
            pm_draw_area(im, top + f.y + 1, f.x + 1, side - 2, side - 2, list[i].color, 1);
            pm_draw_text(im, top + f.y, f.x + 9 * scale, scale, light, list[i].label);
        }
        f.x += width;
    }
    return count ? f.y + f.line : 0;
}

void pm_draw_legend(const struct pm_image8 *in, const struct pm_legend_entry *list, int count,
                    struct pm_image8 *out)
{
    struct pm_image8 picture;
    const int longer = in->height > in->width ? in->height : in->width;
    const int most = longer < LARGEST ? LARGEST / longer : 1; /* a tall picture may be huge */
    const int wanted = in->width < SMALLEST ? (SMALLEST + in->width - 1) / in->width : 1;
    const int factor = wanted < most ? wanted : most;

    pm_draw_canvas(in, factor * longer, &picture);
    const int panel = draw_entries(NULL, 0, picture.width, list, count);
    *out = (struct pm_image8){ picture.height + panel, picture.width, 3, NULL };
    out->pixels = pm_malloc((size_t)out->height * (size_t)out->width * 3);
    memcpy(out->pixels, picture.pixels, (size_t)picture.height * (size_t)picture.width * 3);
    pm_draw_area(out, picture.height, 0, panel, out->width, ground, 1);
    draw_entries(out, picture.height, picture.width, list, count);
    pm_image_free(&picture);
}
