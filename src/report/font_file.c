/* font_file: font_file.h has the contract. */
#include "report/font_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* The lock protects all members. */
static struct {
    pthread_mutex_t lock;
    bool tried;
    struct pm_font *face; /* NULL: none */
    double pixels;        /* per em, of the face */
    char why[512];        /* the reason if there is none */
} font = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *choose_file(char *path, size_t size)
{
    const char *given = getenv("PM_FONT");

    if (given && *given)
        return given;
    return pm_font_installed("DejaVuSans.ttf", path, size) ? path : NULL;
}

static void open_font(void)
{
    char path[256];
    const char *file = choose_file(path, sizeof path);

    font.tried = true;
    if (!file)
        snprintf(font.why, sizeof font.why, "the font DejaVu Sans is not installed: install the "
                 "package fonts-dejavu-core, or set PM_FONT to a font file");
    else if (strcmp(file, "none") == 0)
        snprintf(font.why, sizeof font.why, "PM_FONT is none");
    else if (pm_font_open(file, "drawing them", &font.face) < 0) {
        snprintf(font.why, sizeof font.why, "%s%s", getenv("PM_FONT") ? "PM_FONT: " : "",
                 pm_error_text());
        PM_INFO("draw", "pictures have the built-in letters: %s", font.why);
    }
}

struct pm_font *pm_font_take(double pixels, const char **why)
{
    pthread_mutex_lock(&font.lock);
    if (!font.tried)
        open_font();
    if (font.face && font.pixels != pixels && pm_font_scale(font.face, pixels))
        font.pixels = pixels;
    if (font.face && font.pixels == pixels)
        return font.face;
    if (!font.why[0]) /* a bitmap font without this size */
        snprintf(font.why, sizeof font.why, "the font cannot be scaled: set PM_FONT to another");
    *why = font.why;
    pthread_mutex_unlock(&font.lock);
    return NULL;
}

void pm_font_release(void)
{
    pthread_mutex_unlock(&font.lock);
}
