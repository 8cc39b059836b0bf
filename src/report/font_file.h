/* font_file: the letters of a TrueType font, for draw_text. FreeType is loaded when the first text
 * is drawn. The font is DejaVu Sans where the distributions install it; the environment variable
 * PM_FONT names another file, or "none" for the built-in letters. Letters are placed one after the
 * other: scripts that join letters, and text from right to left, need a shaping library, which is
 * not used. */
#ifndef PM_FONT_FILE_H
#define PM_FONT_FILE_H

#include <pumice/base.h>

/* A letter as coverage of pixels, 0..255. */
struct pm_letter {
    int left, top;           /* of the first pixel: right of the pen, above the base line */
    int rows, width, stride; /* stride: bytes from row to row */
    const uint8_t *coverage; /* valid until the next letter is taken; NULL if not wanted */
    int advance;             /* to the next letter, in pixels */
};
/* Takes the font for this thread, with `pixels` per em. Other threads wait until it is released.
 * Returns false if there is no font; *why is then the reason, valid for the process. */
bool pm_font_take(double pixels, const char **why);
/* Reads a letter, or the font's replacement if it has none. pixels: whether coverage is wanted. */
void pm_font_letter(uint32_t code, bool pixels, struct pm_letter *out);
void pm_font_release(void);

#endif
