/* font_file: the font of draw_text. It is DejaVu Sans where the distributions install it; the
 * environment variable PM_FONT names another file, or "none" for the built-in letters. It is opened
 * when the first text is drawn, and kept until the process ends. */
#ifndef PM_FONT_FILE_H
#define PM_FONT_FILE_H

#include "data/font_face.h"

/* Takes the font for this thread, with `pixels` per em. Other threads wait until it is released.
 * Returns NULL if there is no font; *why is then the reason, valid for the process. */
struct pm_font *pm_font_take(double pixels, const char **why);
void pm_font_release(void);

#endif
