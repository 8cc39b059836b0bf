/* Makes foreign text safe to show: on a terminal, in a table and in a CSV file.
 *
 * Names of classes, tensors and files come from other people's files. If printed raw, a control
 * character in them moves the cursor, starts an escape sequence or begins a new line. A mark of
 * writing direction shows the letters after it in another order. Both become visible escapes.
 * Visible characters stay: letters of every script, quotes and backslashes. So escaping an escaped
 * text again changes nothing. */
#include <pumice/base.h>

#include <string.h>

int pm_utf8_next(const char *from, size_t length, uint32_t *code)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {
        { 0x80, 0x00, 0 }, { 0xe0, 0xc0, 0x80 }, { 0xf0, 0xe0, 0x800 }, { 0xf8, 0xf0, 0x10000 }
    };
    const unsigned char *text = (const unsigned char *)from;

    for (size_t n = 0; n < PM_COUNT(forms); n++) {
        if ((text[0] & forms[n].mask) != forms[n].lead)
            continue;
        *code = (unsigned char)(text[0] & ~forms[n].mask);
        for (size_t i = 1; i <= n; i++) {
            if (i >= length || (text[i] & 0xc0) != 0x80)
                return 0;
            *code = *code << 6 | (text[i] & 0x3f);
        }
        const bool surrogate = *code >= 0xd800 && *code <= 0xdfff;
        return *code < forms[n].least || *code > 0x10ffff || surrogate ? 0 : (int)n + 1;
    }
    return 0;
}

void pm_utf8_add(struct pm_str *s, uint32_t code)
{
    if (code < 0x80)
        pm_str_add(s, "%c", (int)code);
    else if (code < 0x800)
        pm_str_add(s, "%c%c", (int)(0xc0 | code >> 6), (int)(0x80 | (code & 0x3f)));
    else if (code < 0x10000)
        pm_str_add(s, "%c%c%c", (int)(0xe0 | code >> 12), (int)(0x80 | (code >> 6 & 0x3f)),
                   (int)(0x80 | (code & 0x3f)));
    else
        pm_str_add(s, "%c%c%c%c", (int)(0xf0 | code >> 18), (int)(0x80 | (code >> 12 & 0x3f)),
                   (int)(0x80 | (code >> 6 & 0x3f)), (int)(0x80 | (code & 0x3f)));
}

bool pm_is_right_to_left(uint32_t code)
{
    static const uint32_t blocks[][2] = {
        { 0x590, 0x65f }, { 0x66a, 0x6ef }, { 0x6fa, 0x8ff }, { 0xfb1d, 0xfdff },
        { 0xfe70, 0xfefe }, { 0x10800, 0x10fff }, { 0x1e800, 0x1efff },
    };

    for (size_t i = 0; i < PM_COUNT(blocks); i++)
        if (code >= blocks[i][0] && code <= blocks[i][1])
            return true;
    return false;
}

/* Whether it is a control character (C0, DEL, C1) or a line separator. */
static bool breaks_line(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 || code == 0x2029;
}

/* Whether it breaks lines, or changes the direction of the text after it: Unicode's bidirectional
 * embeddings, overrides and isolates. */
static bool is_hidden(uint32_t code)
{
    return breaks_line(code) || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

bool pm_is_line(const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        uint32_t code = 0;
        int n = pm_utf8_next(text, left, &code);
        if (n > 0 && breaks_line(code))
            return false;
        n = n > 0 ? n : 1;
        text += n;
        left -= (size_t)n;
    }
    return true;
}

int pm_printable_next(const char *text, size_t length, char out[PM_PRINTABLE], int *used)
{
    uint32_t code = 0;
    int n = pm_utf8_next(text, length, &code);

    *used = n > 0 ? n : 1;
    if (n == 0)
        return snprintf(out, PM_PRINTABLE, "\\x%02X", (unsigned char)text[0]);
    if (is_hidden(code))
        return snprintf(out, PM_PRINTABLE, code < 0x80 ? "\\x%02X" : "\\u{%X}", (unsigned)code);
    memcpy(out, text, (size_t)n);
    out[n] = '\0';
    return n;
}

size_t pm_printable(char *out, size_t size, const char *text)
{
    size_t left = strlen(text), filled = 0;

    while (left > 0) {
        char piece[PM_PRINTABLE];
        int used;
        const int n = pm_printable_next(text, left, piece, &used);
        if (filled + (size_t)n >= size)
            break;
        memcpy(out + filled, piece, (size_t)n);
        filled += (size_t)n;
        text += used;
        left -= (size_t)used;
    }
    out[filled] = '\0';
    return filled;
}

void pm_str_printable(struct pm_str *s, const char *text, size_t length)
{
    for (int used; length > 0; text += used, length -= (size_t)used) {
        char piece[PM_PRINTABLE];
        const int n = pm_printable_next(text, length, piece, &used);
        pm_str_bytes(s, piece, (size_t)n);
    }
}

void pm_str_name(struct pm_str *s, const char *text, int width)
{
    int columns = 0;
    size_t from = s->length;

    pm_str_printable(s, text, strlen(text));
    for (; from < s->length; from++)
        columns += ((unsigned char)s->text[from] & 0xc0) != 0x80;
    if (columns < width)
        pm_str_add(s, "%*s", width - columns, "");
}

void pm_str_csv(struct pm_str *s, const char *text)
{
    struct pm_str plain = { 0 };

    if (text[0] && strchr("=+-@", text[0]))
        pm_str_add(&plain, "'");
    pm_str_printable(&plain, text, strlen(text));
    if (!plain.length || !strpbrk(plain.text, ",\"")) {
        pm_str_bytes(s, plain.text, plain.length);
    } else {
        pm_str_add(s, "\"");
        for (const char *c = plain.text; *c; c++)
            pm_str_add(s, *c == '"' ? "\"\"" : "%c", *c);
        pm_str_add(s, "\"");
    }
    pm_str_free(&plain);
}
