/* letters: texts as code points, in normal form C. charset.h has the contract. */
#include "tasks/recognition/charset.h"

#include <string.h>

#include "data/library.h"

/* utf8proc's interface. Its header is not needed to build: the library is loaded for the first text
 * beyond ASCII. */
static struct {
    /* Returns the number of code points written, or a negative error. options: see below. */
    ptrdiff_t (*decompose)(const uint8_t *text, ptrdiff_t length, int32_t *out, ptrdiff_t room,
                           int options);
    ptrdiff_t (*compose)(int32_t *code, ptrdiff_t length, int options);
    int32_t (*lower)(int32_t code);
} utf8proc;
enum { STABLE = 1 << 1, COMPOSE = 1 << 3 }; /* UTF8PROC_STABLE, UTF8PROC_COMPOSE */

#define ENTRY(member, function) { #function, offsetof(__typeof__(utf8proc), member) }
static const struct pm_library_entry entries[] = {
    ENTRY(decompose, utf8proc_decompose),
    ENTRY(compose, utf8proc_normalize_utf32),
    ENTRY(lower, utf8proc_tolower),
};
static const char *const sonames[] = { "libutf8proc.so.3", "libutf8proc.so.2", NULL };
static struct pm_library library = PM_LIBRARY(sonames, "libutf8proc2", entries, &utf8proc);

/* Decodes into room for `size` code points. *ascii: all are below 128. */
static int decode(const char *text, size_t size, const char *where, struct pm_letters *out,
                  bool *ascii)
{
    *ascii = true;
    for (size_t at = 0; at < size;) {
        uint32_t code;
        const int n = pm_utf8_next(text + at, size - at, &code);

        if (n == 0)
            return pm_fail(PM_EDATA, "%s: the text \"%.*s\" is not UTF-8 at its byte %zu", where,
                           (int)(size < 100 ? size : 100), text, at);
        if (code < 0x20 || (code >= 0x7f && code < 0xa0))
            return pm_fail(PM_EDATA, "%s: the text \"%.*s\" has a control character at its byte "
                           "%zu", where, (int)(size < 100 ? size : 100), text, at);
        *ascii &= code < 128;
        out->code[out->count++] = code;
        at += (size_t)n;
    }
    return PM_OK;
}

/* Brings them into normal form C: the canonical decomposition, composed again. */
static int normalise(const char *text, size_t size, bool lower, const char *where,
                     struct pm_letters *l)
{
    int err = PM_OK;
    int32_t *code = NULL;
    const int options = STABLE | COMPOSE;

    PM_TRY(pm_library_load(&library, "text beyond ASCII"));
    const ptrdiff_t room = utf8proc.decompose((const uint8_t *)text, (ptrdiff_t)size, NULL, 0,
                                              options);
    if (room < 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: the text \"%.*s\" cannot be normalised", where,
                       (int)(size < 100 ? size : 100), text));
    code = pm_malloc(((size_t)room + 1) * sizeof *code);
    utf8proc.decompose((const uint8_t *)text, (ptrdiff_t)size, code, room, options);
    const ptrdiff_t count = utf8proc.compose(code, room, options);
    if (count < 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: the text \"%.*s\" cannot be normalised", where,
                       (int)(size < 100 ? size : 100), text));
    pm_free(l->code);
    l->code = pm_malloc(((size_t)count + 1) * sizeof *l->code);
    l->count = (int)count;
    for (ptrdiff_t i = 0; i < count; i++)
        l->code[i] = (uint32_t)(lower ? utf8proc.lower(code[i]) : code[i]);
out:
    pm_free(code);
    return err;
}

int pm_letters_read(const char *text, size_t size, bool lower, const char *where,
                    struct pm_letters *out)
{
    struct pm_letters l = { .code = pm_malloc((size + 1) * sizeof *l.code) };
    bool ascii;
    int err = PM_OK;

    PM_TRY(decode(text, size, where, &l, &ascii));
    if (!ascii)
        PM_TRY(normalise(text, size, lower, where, &l));
    for (int i = 0; lower && i < l.count; i++)
        if (l.code[i] >= 'A' && l.code[i] <= 'Z')
            l.code[i] += 'a' - 'A';
    *out = l;
    l = (struct pm_letters){ 0 };
out:
    pm_letters_free(&l);
    return err;
}

void pm_letters_free(struct pm_letters *l)
{
    pm_free(l->code);
    *l = (struct pm_letters){ 0 };
}

void pm_letters_text(const struct pm_letters *l, struct pm_str *out)
{
    for (int i = 0; i < l->count; i++)
        pm_utf8_add(out, l->code[i]);
}
