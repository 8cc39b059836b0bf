/* font_file: font_file.h has the contract. */
#include "report/font_file.h"

#ifdef PUMICE_FREETYPE
#include <ft2build.h>
#include FT_FREETYPE_H

#include "data/library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct {
    __typeof__(&FT_Init_FreeType) init;
    __typeof__(&FT_New_Face) open;
    __typeof__(&FT_Set_Char_Size) set_size;
    __typeof__(&FT_Get_Char_Index) find;
    __typeof__(&FT_Load_Glyph) load;
} ft;

#define ENTRY(member, function) { #function, offsetof(__typeof__(ft), member) }
static const struct pm_library_entry entries[] = {
    ENTRY(init, FT_Init_FreeType),    ENTRY(open, FT_New_Face),
    ENTRY(set_size, FT_Set_Char_Size), ENTRY(find, FT_Get_Char_Index),
    ENTRY(load, FT_Load_Glyph),
};
static const char *const sonames[] = { "libfreetype.so.6", NULL };
static struct pm_library library = PM_LIBRARY(sonames, "libfreetype6", entries, &ft);

/* Debian, Ubuntu; Fedora; older Fedora; Arch; openSUSE; the machine's own. */
static const char *const places[] = {
    "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/dejavu-sans-fonts/DejaVuSans.ttf",
    "/usr/share/fonts/dejavu/DejaVuSans.ttf",
    "/usr/share/fonts/TTF/DejaVuSans.ttf",
    "/usr/share/fonts/truetype/DejaVuSans.ttf",
    "/usr/local/share/fonts/DejaVuSans.ttf",
};

/* The process's font, kept until the process ends. The lock protects all members. */
static struct {
    pthread_mutex_t lock;
    bool tried;
    FT_Library library;
    FT_Face face;   /* NULL: none */
    double pixels;  /* per em, of the face */
    char why[512];  /* the reason if there is none */
} font = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *choose_file(void)
{
    const char *given = getenv("PM_FONT");

    if (given && *given)
        return given;
    for (size_t i = 0; i < PM_COUNT(places); i++)
        if (pm_file_exists(places[i]))
            return places[i];
    return NULL;
}

static void open_font(void)
{
    const char *file = choose_file();

    font.tried = true;
    if (!file)
        snprintf(font.why, sizeof font.why, "the font DejaVu Sans is not installed: install the "
                 "package fonts-dejavu-core, or set PM_FONT to a font file");
    else if (strcmp(file, "none") == 0)
        snprintf(font.why, sizeof font.why, "PM_FONT is none");
    else if (pm_library_load(&library, "drawing them") < 0)
        snprintf(font.why, sizeof font.why, "%s", pm_error_text());
    else if (ft.init(&font.library) || ft.open(font.library, file, 0, &font.face))
        snprintf(font.why, sizeof font.why, "%s%s: not a font that FreeType can read",
                 getenv("PM_FONT") ? "PM_FONT: " : "", file);
}

bool pm_font_take(double pixels, const char **why)
{
    pthread_mutex_lock(&font.lock);
    if (!font.tried)
        open_font();
    if (font.face && font.pixels != pixels &&
        ft.set_size(font.face, 0, (FT_F26Dot6)(pixels * 64 + 0.5), 72, 72) == 0)
        font.pixels = pixels;
    if (font.face && font.pixels == pixels)
        return true;
    if (!font.why[0]) /* a bitmap font without this size */
        snprintf(font.why, sizeof font.why, "the font cannot be scaled: set PM_FONT to another");
    *why = font.why;
    pthread_mutex_unlock(&font.lock);
    return false;
}

void pm_font_letter(uint32_t code, bool pixels, struct pm_letter *out)
{
    const FT_Int32 flags = FT_LOAD_TARGET_LIGHT | (pixels ? FT_LOAD_RENDER : 0);

    *out = (struct pm_letter){ 0 };
    if (ft.load(font.face, ft.find(font.face, code), flags))
        return;
    const FT_GlyphSlot slot = font.face->glyph;

    out->advance = (int)((slot->advance.x + 32) >> 6);
    if (!pixels || slot->bitmap.pixel_mode != FT_PIXEL_MODE_GRAY)
        return;
    out->left = slot->bitmap_left;
    out->top = slot->bitmap_top;
    out->rows = (int)slot->bitmap.rows;
    out->width = (int)slot->bitmap.width;
    out->stride = slot->bitmap.pitch;
    out->coverage = slot->bitmap.buffer;
}

void pm_font_release(void)
{
    pthread_mutex_unlock(&font.lock);
}
#else
bool pm_font_take(double pixels, const char **why)
{
    (void)pixels;
    *why = "this build lacks FreeType: install libfreetype-dev and build again";
    return false;
}

void pm_font_letter(uint32_t code, bool pixels, struct pm_letter *out)
{
    (void)code, (void)pixels;
    *out = (struct pm_letter){ 0 };
}

void pm_font_release(void)
{
}
#endif
