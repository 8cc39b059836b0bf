/* draw_text: text on pictures, with the letters of a font, or with the built-in ones.
 *
 * Both have the same size: capitals are 7 * scale pixels high and stand on the row 7 * scale. In a
 * font, marks above capitals reach up to 2 * scale pixels above the text's first row, and letters
 * such as g as many below its last row. */
#include <pumice/draw.h>
#include <string.h>

#include "report/font.h"
#include "report/font_file.h"

#include <stdatomic.h>

/* Size of an em: capitals of DejaVu Sans are 0.729 em high. */
static const double em = 9.6;

/* Takes the next character off the text: its code, 0xfffd if the byte is not of valid UTF-8. */
static uint32_t next_code(const char **text)
{
    uint32_t code;
    const int n = pm_utf8_next(*text, strlen(*text), &code);

    *text += n > 0 ? n : 1;
    return n > 0 && code >= 0x20 ? code : 0xfffd;
}

static bool has_foreign(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text >= 0x80)
            return true;
    return false;
}

/* Takes the font; NULL: the built-in letters. Once per process, a text that they cannot show is
 * reported. */
static struct pm_font *take_font(const char *text, int scale)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    const char *why;
    struct pm_font *font = pm_font_take(em * scale, &why);

    if (font)
        return font;
    if (has_foreign(text) && !atomic_flag_test_and_set(&warned))
        PM_WARN("draw", "letters beyond ASCII, as in \"%s\", are drawn as frames: %s", text, why);
    return NULL;
}

/* ---- built-in letters -------------------------------------------------------------------- */

enum { CELL = FONT_WIDTH + 1 };

/* Moves behind the next letter and returns its glyph. Bytes that continue a UTF-8 sequence belong
 * to the one before. */
static int next_glyph(const char **text)
{
    unsigned char c = (unsigned char)*(*text)++;

    while (c >= 0xc0 && ((unsigned char)**text & 0xc0) == 0x80)
        (*text)++;
    return c >= 0x20 && c < 0x7f ? c - 0x20 : FONT_GLYPHS - 1;
}

static void draw_glyph(struct pm_image8 *im, int y, int x, int scale, struct pm_color c, int glyph)
{
    for (int row = 0; row < FONT_ROWS; row++) {
        const char *art = font_art[glyph / FONT_ACROSS][row] + glyph % FONT_ACROSS * CELL;

        for (int k = 0; k < FONT_WIDTH; k++)
            if (art[k] == '#')
                pm_draw_area(im, y + row * scale, x + k * scale, scale, scale, c, 1);
    }
}

/* ---- measuring --------------------------------------------------------------------------- */

/* Returns the bytes of the longest beginning of at most `most` pixels, and its width. */
static size_t measure(const char *text, int scale, int most, int *width)
{
    struct pm_font *font = take_font(text, scale);
    const char *at = text, *end = text;
    int x = 0;

    *width = 0;
    while (*at) {
        int right;

        if (font) {
            struct pm_letter letter;

            pm_font_letter(font, next_code(&at), false, &letter);
            right = x += letter.advance;
        } else {
            next_glyph(&at);
            x += CELL * scale;
            right = x - scale; /* the last letter has no gap behind it */
        }
        if (right > most)
            break;
        end = at;
        *width = right;
    }
    if (font)
        pm_font_release();
    return (size_t)(end - text);
}

int pm_draw_text_width(const char *text, int scale)
{
    int width;

    measure(text, scale, INT32_MAX, &width);
    return width;
}

size_t pm_draw_text_fit(const char *text, int scale, int width)
{
    int used;

    return measure(text, scale, width, &used);
}

int pm_draw_text_height(int scale)
{
    return FONT_ROWS * scale;
}

/* ---- drawing ----------------------------------------------------------------------------- */

static void draw_letter(struct pm_image8 *im, int base, int x, struct pm_color c,
                        const struct pm_letter *letter)
{
    for (int row = 0; row < letter->rows && letter->coverage; row++)
        for (int k = 0; k < letter->width; k++) {
            const int coverage = letter->coverage[row * letter->stride + k];

            if (coverage)
                pm_draw_area(im, base - letter->top + row, x + letter->left + k, 1, 1, c,
                             coverage / 255.0);
        }
}

void pm_draw_text(struct pm_image8 *im, int y, int x, int scale, struct pm_color c,
                  const char *text)
{
    struct pm_font *font = take_font(text, scale);

    if (!font) {
        for (; *text && x < im->width; x += CELL * scale)
            draw_glyph(im, y, x, scale, c, next_glyph(&text));
        return;
    }
    while (*text && x < im->width) {
        struct pm_letter letter;

        pm_font_letter(font, next_code(&text), true, &letter);
        draw_letter(im, y + 7 * scale, x, c, &letter);
        x += letter.advance;
    }
    pm_font_release();
}

void pm_draw_label(struct pm_image8 *im, int y, int x, int scale, struct pm_color c,
                   const char *text)
{
    static const struct pm_color black = { 0, 0, 0 }, white = { 255, 255, 255 };
    const double luma = 0.299 * c.r + 0.587 * c.g + 0.114 * c.b;

    pm_draw_area(im, y, x, pm_draw_text_height(scale) + 3 * scale,
                 pm_draw_text_width(text, scale) + 4 * scale, c, 1);
    pm_draw_text(im, y + 2 * scale, x + 2 * scale, scale, luma > 140 ? black : white, text);
}
