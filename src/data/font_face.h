/* font_face: the letters of a font file (TrueType, OpenType) by FreeType, which is loaded with the
 * first font. Letters are placed one after the other: scripts that join letters, and text from
 * right to left, need a shaping library, which is not used. */
#ifndef PM_FONT_FACE_H
#define PM_FONT_FACE_H

#include <pumice/base.h>

/* A letter as coverage of pixels, 0..255. */
struct pm_letter {
    int left, top;           /* of the first pixel: right of the pen, above the base line */
    int rows, width, stride; /* stride: bytes from row to row */
    const uint8_t *coverage; /* valid until the font's next letter; NULL if not wanted */
    int advance;             /* to the next letter, in pixels */
};
/* A font of one file. One thread may use it at a time; different fonts do not share anything. */
struct pm_font;
/* Finds a font file such as "DejaVuSans.ttf" where distributions install the fonts DejaVu. Returns
 * false if it is not installed. */
bool pm_font_installed(const char *name, char *path, size_t size);
/* Opens the first font of the file. user: who needs it, for messages, as in pm_library_load.
 * PM_EDATA if FreeType cannot read the file; PM_EFAIL without FreeType. Thread-safe. */
int pm_font_open(const char *file, const char *user, struct pm_font **out);
void pm_font_close(struct pm_font **f); /* accepts NULL in *f */
/* Sets the size in pixels per em. Returns false if the font is a bitmap without this size. */
bool pm_font_scale(struct pm_font *f, double pixels);
/* Whether the font has a letter of its own for this code point. */
bool pm_font_has(const struct pm_font *f, uint32_t code);
/* Reads a letter in the size set, or the font's replacement if it has none; zeros if it is damaged.
 * pixels: whether coverage is wanted. */
void pm_font_letter(struct pm_font *f, uint32_t code, bool pixels, struct pm_letter *out);

#endif
