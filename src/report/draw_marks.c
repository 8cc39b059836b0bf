/* draw_marks: the letters of a text below its picture, each with a line to the place it was read
 * at. */
#include <math.h>
#include <pumice/draw.h>
#include <string.h>

void pm_spread_letters(const double *at, int count, double gap, double *out)
{
    /* With q[i] = out[i] - i * gap the rule is that q does not fall: isotonic regression, whose
     * result may be limited afterwards. Runs of equal q are merged until none falls. */
    int *length = pm_malloc(((size_t)count + 1) * sizeof *length), runs = 0;
    const double room = fmin(gap, 1.0 / (count > 0 ? count : 1));
    double *q = pm_malloc(((size_t)count + 1) * sizeof *q);

    for (int i = 0; i < count; i++) {
        q[runs] = at[i] - i * room;
        length[runs++] = 1;
        for (; runs > 1 && q[runs - 2] >= q[runs - 1]; runs--) {
            const int both = length[runs - 2] + length[runs - 1];

            q[runs - 2] = (q[runs - 2] * length[runs - 2] + q[runs - 1] * length[runs - 1]) / both;
            length[runs - 2] = both;
        }
    }
    for (int run = 0, i = 0; run < runs; run++)
        for (const int end = i + length[run]; i < end; i++)
            out[i] = fmin(fmax(q[run], room / 2), 1 - (count - 0.5) * room) + i * room;
    pm_free(length);
    pm_free(q);
}

/* Squares of `scale` pixels: a wide letter with a gap, the height of the lines and of the strip. */
enum { LETTER = 11, LINES = 16, STRIP = LINES + 13 };

/* Draws the line of a letter: a tick with a dark rim in the lowest part of the picture, and from
 * there to the letter. Lines grow with the letters. picture: its rows. */
static void draw_mark(struct pm_image8 *im, int picture, double mark, double letter, int scale,
                      struct pm_color c)
{
    static const struct pm_color black = { 0, 0, 0 };
    const int tick = picture / 5 > 3 * scale ? picture / 5 : 3 * scale, side = 400 * (scale + 1);
    const double rows = im->height, top = (picture - tick) / rows, bottom = picture / rows;

    pm_draw_line_at(im, 2 * side, top, mark, bottom, mark, black);
    pm_draw_line_at(im, side, top, mark, bottom, mark, c);
    pm_draw_line_at(im, side, bottom, mark, (picture + LINES * scale) / rows, letter, c);
}

static void draw_strip(struct pm_image8 *im, int picture, int scale, const char *text,
                       const double *at, int count)
{
    /* Neighbours differ, so lines that cross can be told apart. */
    static const struct pm_color colors[] = { { 92, 179, 234 }, { 255, 154, 77 } };
    double *place = pm_malloc(((size_t)count + 1) * sizeof *place);

    pm_spread_letters(at, count, LETTER * scale / (double)im->width, place);
    for (int i = 0; i < count && *text; i++) {
        const struct pm_color c = colors[i % (int)PM_COUNT(colors)];
        uint32_t code;
        const int bytes = pm_utf8_next(text, strlen(text), &code);
        char letter[8] = { 0 };

        memcpy(letter, text, (size_t)(bytes > 0 ? bytes : 1));
        text += bytes > 0 ? bytes : 1;
        draw_mark(im, picture, at[i], place[i], scale, c);
        pm_draw_text(im, picture + (LINES + 2) * scale,
                     (int)(place[i] * im->width) - pm_draw_text_width(letter, scale) / 2, scale, c,
                     letter);
    }
    pm_free(place);
}

void pm_draw_marked_text(const struct pm_image8 *in, const char *text, const double *at, int count,
                         struct pm_image8 *out)
{
    static const struct pm_color ground = { 32, 34, 38 };
    enum { SMALLEST = 480, HIGHEST = 4096, PICTURE = 256 /* least width of pm_draw_picture */ };
    const int least = LETTER * count > SMALLEST ? LETTER * count : SMALLEST;
    const int side = in->height > in->width ? in->height : in->width;
    int factor = (least + in->width - 1) / in->width;
    struct pm_image8 canvas, whole;
    int scale;

    while (factor > 1 && factor * in->height > HIGHEST && (factor - 1) * in->width >= PICTURE)
        factor--;
    pm_draw_canvas(in, side * factor, &canvas);
    scale = canvas.width / 360 + 1;
    while (scale > 1 && LETTER * scale * count > canvas.width)
        scale--;
    whole = (struct pm_image8){ canvas.height + STRIP * scale, canvas.width, 3, NULL };
    whole.pixels = pm_malloc((size_t)whole.height * (size_t)whole.width * 3);
    memcpy(whole.pixels, canvas.pixels, (size_t)canvas.height * (size_t)canvas.width * 3);
    pm_draw_area(&whole, canvas.height, 0, STRIP * scale, whole.width, ground, 1);
    draw_strip(&whole, canvas.height, scale, text, at, count);
    pm_draw_picture(&whole, text, NULL, 0, out);
    pm_image_free(&canvas);
    pm_image_free(&whole);
}
