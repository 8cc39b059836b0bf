/* font_face: font_face.h has the contract. */
#include "data/font_face.h"

bool pm_font_installed(const char *name, char *path, size_t size)
{
    /* Debian, Ubuntu; Fedora; older Fedora; Arch; openSUSE; the machine's own. */
    static const char *const folders[] = {
        "/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/dejavu-sans-fonts",
        "/usr/share/fonts/dejavu-sans-mono-fonts", "/usr/share/fonts/dejavu-serif-fonts",
        "/usr/share/fonts/dejavu", "/usr/share/fonts/TTF", "/usr/share/fonts/truetype",
        "/usr/local/share/fonts",
    };

    for (size_t i = 0; i < PM_COUNT(folders); i++)
        if (snprintf(path, size, "%s/%s", folders[i], name) < (int)size && pm_file_exists(path))
            return true;
    return false;
}

#ifdef PUMICE_FREETYPE
#include <ft2build.h>
#include FT_FREETYPE_H

#include "data/library.h"


static struct {
    __typeof__(&FT_Init_FreeType) init;
    __typeof__(&FT_Done_FreeType) done;
    __typeof__(&FT_New_Face) open;
    __typeof__(&FT_Set_Char_Size) set_size;
    __typeof__(&FT_Get_Char_Index) find;
    __typeof__(&FT_Load_Glyph) load;
} ft;

#define ENTRY(member, function) { #function, offsetof(__typeof__(ft), member) }
static const struct pm_library_entry entries[] = {
    ENTRY(init, FT_Init_FreeType),     ENTRY(done, FT_Done_FreeType),  ENTRY(open, FT_New_Face),
    ENTRY(set_size, FT_Set_Char_Size), ENTRY(find, FT_Get_Char_Index), ENTRY(load, FT_Load_Glyph),
};
static const char *const sonames[] = { "libfreetype.so.6", NULL };
static struct pm_library library = PM_LIBRARY(sonames, "libfreetype6", entries, &ft);

struct pm_font {
    FT_Library library; /* of its own, so fonts need no lock */
    FT_Face face;
};

int pm_font_open(const char *file, const char *user, struct pm_font **out)
{
    struct pm_font *f = pm_calloc(1, sizeof *f);
    int err = PM_OK;

    PM_TRY(pm_library_load(&library, user));
    if (!pm_file_exists(file))
        PM_TRY(pm_fail(PM_EDATA, "%s: there is no such font file", file));
    if (ft.init(&f->library))
        PM_TRY(pm_fail(PM_EFAIL, "%s: FreeType cannot be started", file));
    if (ft.open(f->library, file, 0, &f->face))
        PM_TRY(pm_fail(PM_EDATA, "%s: not a font that FreeType can read: give a file .ttf or .otf",
                       file));
    *out = f, f = NULL;
out:
    pm_font_close(&f);
    return err;
}

void pm_font_close(struct pm_font **f)
{
    if (*f && (*f)->library)
        ft.done((*f)->library); /* with its faces */
    pm_free(*f);
    *f = NULL;
}

bool pm_font_scale(struct pm_font *f, double pixels)
{
    return ft.set_size(f->face, 0, (FT_F26Dot6)(pixels * 64 + 0.5), 72, 72) == 0;
}

bool pm_font_has(const struct pm_font *f, uint32_t code)
{
    return ft.find(f->face, code) != 0;
}

void pm_font_letter(struct pm_font *f, uint32_t code, bool pixels, struct pm_letter *out)
{
    const FT_Int32 flags = FT_LOAD_TARGET_LIGHT | (pixels ? FT_LOAD_RENDER : 0);

    *out = (struct pm_letter){ 0 };
    if (ft.load(f->face, ft.find(f->face, code), flags))
        return;
    const FT_GlyphSlot slot = f->face->glyph;

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
#else
int pm_font_open(const char *file, const char *user, struct pm_font **out)
{
    *out = NULL;
    return pm_fail(PM_EFAIL, "%s: %s needs FreeType, which this build lacks: install "
                   "libfreetype-dev and build again", file, user);
}

void pm_font_close(struct pm_font **f)
{
    *f = NULL;
}

bool pm_font_scale(struct pm_font *f, double pixels)
{
    (void)f, (void)pixels;
    return false;
}

bool pm_font_has(const struct pm_font *f, uint32_t code)
{
    (void)f, (void)code;
    return false;
}

void pm_font_letter(struct pm_font *f, uint32_t code, bool pixels, struct pm_letter *out)
{
    (void)f, (void)code, (void)pixels;
    *out = (struct pm_letter){ 0 };
}
#endif
