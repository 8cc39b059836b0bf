/* charset: the letters that a recogniser of text can read, as symbols 0, 1, ... Rules: the text
 * recognition fork of TensorFlow's Object Detection API. */
#ifndef PM_CHARSET_H
#define PM_CHARSET_H

#include <pumice/base.h>

/* Constant after pm_charset_open; any thread may read it. In the arena. */
struct pm_charset {
    int count;
    uint32_t *letters; /* [count]: code point of each symbol */
    int *sorted;       /* [count]: symbols by their code points, for pm_charset_find */
};
/* Opens a charset: "lowercase" (0-9, a-z), "allcases" (0-9, a-z, A-Z), "allcases_symbols" (the 94
 * printable characters of ASCII without the space), or a file with one letter in each line. Empty
 * lines are not counted; a line may be one space. where: the key, for messages. PM_ECONFIG for an
 * unknown name, PM_EDATA for a file that is not UTF-8, has a line of several letters, or a letter
 * twice. */
int pm_charset_open(const char *name, const char *where, struct pm_arena *a,
                    const struct pm_charset **out);
/* Returns the letter's symbol, or -1. */
int pm_charset_find(const struct pm_charset *c, uint32_t letter);
/* Appends a text of `count` symbols as UTF-8. */
void pm_charset_text(const struct pm_charset *c, const int32_t *symbols, int count,
                     struct pm_str *out);

/* ---- code points -------------------------------------------------------------------------- */

/* A text as code points, in Unicode's normal form C: a letter and a combining mark become one code
 * point if there is one. Initialise with zeros, free with pm_letters_free. */
struct pm_letters {
    uint32_t *code;
    int count;
};
/* Reads UTF-8 of `size` bytes. lower: letters become lower-case ones. PM_EDATA if it is not UTF-8,
 * or has a control character; PM_EFAIL if a text beyond ASCII needs libutf8proc, and it cannot be
 * loaded. where: for messages. */
int pm_letters_read(const char *text, size_t size, bool lower, const char *where,
                    struct pm_letters *out);
void pm_letters_free(struct pm_letters *l);
/* Appends them as UTF-8. */
void pm_letters_text(const struct pm_letters *l, struct pm_str *out);

#endif
