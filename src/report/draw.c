/* draw: plain loops; pictures are few and small. */
#include <math.h>
#include <pumice/draw.h>
#include <string.h>

struct pm_color pm_draw_color(size_t i)
{
    /* Hues far apart first, then lighter and darker ones between them. */
    static const struct pm_color colors[] = {
        { 230, 60, 60 },   { 60, 140, 230 }, { 60, 190, 80 },   { 245, 190, 40 }, { 160, 90, 210 },
        { 50, 200, 200 },  { 240, 130, 40 }, { 235, 100, 180 }, { 150, 200, 50 }, { 120, 80, 50 },
        { 255, 160, 160 }, { 20, 70, 150 },  { 20, 110, 50 },   { 150, 120, 20 }, { 205, 175, 245 },
        { 15, 110, 115 },  { 150, 60, 10 },  { 150, 20, 95 },   { 90, 100, 110 }, { 190, 170, 130 },
    };

    return colors[i % PM_COUNT(colors)];
}

static double luma(struct pm_color c)
{
    return 0.299 * c.r + 0.587 * c.g + 0.114 * c.b;
}

static uint8_t mix(uint8_t old, double wanted, double opacity)
{
    return (uint8_t)(old + (wanted - old) * opacity + 0.5);
}

void pm_draw_area(struct pm_image8 *im, int y, int x, int height, int width, struct pm_color c,
                  double opacity)
{
    int top = y > 0 ? y : 0, left = x > 0 ? x : 0;
    int bottom = height < im->height - y ? y + height : im->height;
    int right = width < im->width - x ? x + width : im->width;

    for (int i = top; i < bottom; i++) {
        uint8_t *p =
            im->pixels + ((size_t)i * (size_t)im->width + (size_t)left) * (size_t)im->channels;
        for (int k = left; k < right; k++, p += im->channels) {
            if (im->channels < 3) {
                p[0] = mix(p[0], luma(c), opacity);
                continue;
            }
            p[0] = mix(p[0], c.r, opacity);
            p[1] = mix(p[1], c.g, opacity);
            p[2] = mix(p[2], c.b, opacity);
        }
    }
}

/* ---- boxes and bars -------------------------------------------------------------------- */

static void frame(struct pm_image8 *im, int y0, int x0, int y1, int x1, int thick,
                  struct pm_color c, double opacity)
{
    int height = y1 - y0, width = x1 - x0;

    if (thick > height / 2)
        thick = (height + 1) / 2;
    if (thick > width / 2)
        thick = (width + 1) / 2;
    pm_draw_area(im, y0, x0, thick, width, c, opacity);
    pm_draw_area(im, y1 - thick, x0, thick, width, c, opacity);
    pm_draw_area(im, y0 + thick, x0, height - 2 * thick, thick, c, opacity);
    pm_draw_area(im, y0 + thick, x1 - thick, height - 2 * thick, thick, c, opacity);
}

void pm_draw_box(struct pm_image8 *im, int y0, int x0, int y1, int x1, int thick,
                 struct pm_color c)
{
    static const struct pm_color black = { 0, 0, 0 };

    const int rim = (thick + 3) / 4;

    if (y1 <= y0 || x1 <= x0)
        return;
    frame(im, y0 - rim, x0 - rim, y1 + rim, x1 + rim, rim, black, 0.6);
    frame(im, y0, x0, y1, x1, thick, c, 1);
    if (y1 - y0 > 2 * (thick + rim) && x1 - x0 > 2 * (thick + rim))
        frame(im, y0 + thick, x0 + thick, y1 - thick, x1 - thick, rim, black, 0.6);
}

enum { BAR_LINE = 11 }; /* squares of scale pixels a line is high */

int pm_draw_bars_height(int count, int scale)
{
    return count * BAR_LINE * scale;
}

/* As much of text as fits into the width, with ".." where it was cut. */
static void cut_text(const char *text, int scale, int width, char *buf, size_t size)
{
    size_t fits = pm_draw_text_fit(text, scale, width);

    if (!text[fits]) {
        snprintf(buf, size, "%s", text);
        return;
    }
    fits = pm_draw_text_fit(text, scale, width - pm_draw_text_width("..", scale));
    snprintf(buf, size, "%.*s..", (int)fits, text);
}

void pm_draw_bars(struct pm_image8 *im, int y, int x, int width, int scale,
                  const struct pm_bar *bars, int count)
{
    static const struct pm_color light = { 235, 235, 235 }, trough = { 70, 72, 78 };
    const int gap = 6 * scale, number = pm_draw_text_width("100 %", scale);
    const int most = (width - number) / 2;
    int labels = 0;

    for (int i = 0; i < count; i++) {
        const int n = pm_draw_text_width(bars[i].label, scale);
        labels = n > labels ? n : labels;
    }
    labels = labels < most ? labels : most;
    const int from = x + labels + gap, room = x + width - number - gap - from;
    for (int i = 0; i < count; i++, y += BAR_LINE * scale) {
        char text[256];
        double share = fmin(1, fmax(0, bars[i].share)); /* NaN counts as 0 */
        cut_text(bars[i].label, scale, labels, text, sizeof text);
        pm_draw_text(im, y + scale, x, scale, light, text);
        pm_draw_area(im, y + scale, from, 7 * scale, room, trough, 1);
        pm_draw_area(im, y + scale, from, 7 * scale, (int)(share * room + 0.5), bars[i].color, 1);
        snprintf(text, sizeof text, share > 0 && share < 0.0995 ? "%.1f %%" : "%.0f %%",
                 100 * share);
        pm_draw_text(im, y + scale, x + width - pm_draw_text_width(text, scale), scale, light,
                     text);
    }
}

/* ---- the whole picture ----------------------------------------------------------------- */

static void enlarge(const struct pm_image8 *in, int factor, struct pm_image8 *out)
{
    for (int y = 0; y < in->height * factor; y++)
        for (int x = 0; x < in->width * factor; x++) {
            const uint8_t *from = in->pixels + ((size_t)(y / factor) * (size_t)in->width +
                                                (size_t)(x / factor)) * (size_t)in->channels;
            uint8_t *to = out->pixels + ((size_t)y * (size_t)out->width + (size_t)x) * 3;
            for (int c = 0; c < 3; c++)
                to[c] = from[in->channels < 3 ? 0 : c];
        }
}

void pm_draw_canvas(const struct pm_image8 *in, int least, struct pm_image8 *out)
{
    const int side = in->height > in->width ? in->height : in->width;
    const int factor = side < least ? (least + side - 1) / side : 1;

    *out = (struct pm_image8){ .height = in->height * factor, .width = in->width * factor,
                               .channels = 3 };
    out->pixels = pm_malloc((size_t)out->height * (size_t)out->width * 3);
    enlarge(in, factor, out);
}

void pm_draw_picture(const struct pm_image8 *in, const char *title, const struct pm_bar *bars,
                     int count, struct pm_image8 *out)
{
    static const struct pm_color ground = { 32, 34, 38 }, white = { 255, 255, 255 };
    enum { SMALLEST = 256 };
    int factor = in->width < SMALLEST ? (SMALLEST + in->width - 1) / in->width : 1;
    int width = in->width * factor, height = in->height * factor;
    int scale = width / 360 + 1, margin = 5 * scale;
    int title_height = title ? 12 * scale : 0;
    int panel = title || count ? 2 * margin + title_height + pm_draw_bars_height(count, scale) : 0;
    char text[256];

    *out = (struct pm_image8){ .height = height + panel, .width = width, .channels = 3 };
    out->pixels = pm_malloc((size_t)out->height * (size_t)out->width * 3);
    enlarge(in, factor, out);
    pm_draw_area(out, height, 0, panel, width, ground, 1);
    if (title) {
        int size = pm_draw_text_width(title, scale) <= width - 2 * margin ? scale : (scale + 1) / 2;
        cut_text(title, size, width - 2 * margin, text, sizeof text);
        pm_draw_text(out, height + margin, margin, size, white, text);
    }
    pm_draw_bars(out, height + margin + title_height, margin, width - 2 * margin, scale, bars,
                 count);
}

/* Mean of the rows y0..y1-1 and columns x0..x1-1 of channel c. */
static uint8_t mean_of(const struct pm_image8 *im, int y0, int y1, int x0, int x1, int c)
{
    uint64_t sum = 0;

    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++)
            sum += im->pixels[((size_t)y * (size_t)im->width + (size_t)x) * (size_t)im->channels +
                              (size_t)c];
    const uint64_t n = (uint64_t)(y1 - y0) * (uint64_t)(x1 - x0);
    return (uint8_t)((sum + n / 2) / n);
}

void pm_draw_shrink(const struct pm_image8 *in, int most, struct pm_image8 *out)
{
    const int side = in->height > in->width ? in->height : in->width;
    const int64_t to = side > most ? most : side;
    const int height = (int)(in->height * to / side), width = (int)(in->width * to / side);

    *out = (struct pm_image8){ height > 0 ? height : 1, width > 0 ? width : 1, in->channels, NULL };
    out->pixels = pm_malloc((size_t)out->height * (size_t)out->width * (size_t)out->channels);
    uint8_t *p = out->pixels;
    for (int64_t y = 0; y < out->height; y++)
        for (int64_t x = 0; x < out->width; x++)
            for (int c = 0; c < out->channels; c++)
                *p++ = mean_of(in, (int)(y * in->height / out->height),
                               (int)((y + 1) * in->height / out->height),
                               (int)(x * in->width / out->width),
                               (int)((x + 1) * in->width / out->width), c);
}
