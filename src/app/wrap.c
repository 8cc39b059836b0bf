/* wrap: a text is a list of paragraphs. A paragraph is a line and the lines after it that begin in
 * its hanging column; an empty line, another column, or a command ends it. */
#include "app/wrap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST = 20 }; /* columns; narrower terminals get lines of this width */

int app_columns(void)
{
    const char *set = getenv("COLUMNS");
    struct winsize size = { 0 };

    if (set && atoi(set) > 0)
        return atoi(set);
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 0;
}

/* Columns of a text: its characters, without the further bytes of UTF-8. */
static size_t width_of(const char *text, size_t bytes)
{
    size_t width = 0;

    for (size_t i = 0; i < bytes; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

/* A line without its newline. */
struct line {
    const char *text;
    size_t length, indent;
    size_t hang;  /* the column of further lines */
    bool item;    /* "flag   explanation": hang is the column of the explanation */
    bool command; /* never joined */
};

static struct line line_at(const char *text)
{
    struct line l = { .text = text, .length = strcspn(text, "\n") };
    const char *gap;

    l.indent = strspn(text, " ");
    l.hang = l.indent;
    l.command = strncmp(text + l.indent, "pumice ", 7) == 0;
    gap = l.indent < l.length ? memmem(text + l.indent, l.length - l.indent, "  ", 2) : NULL;
    if (gap) {
        l.hang = (size_t)(gap - text) + strspn(gap, " ");
        l.item = l.hang < l.length;
    }
    if (l.command || l.indent >= l.length)
        l.hang = l.indent;
    return l;
}

static const char *after(const struct line *l)
{
    return l->text + l->length + (l->text[l->length] == '\n');
}

/* Whether a line continues the paragraph that `first` begins. */
static bool continues(const struct line *first, const struct line *l)
{
    return !first->command && !l->command && !l->item && l->indent < l->length &&
           l->indent == first->hang;
}

/* Appends the words of bytes, and breaks lines before those that do not fit. */
static void fill(struct pm_str *out, const char *text, size_t bytes, size_t hang, size_t columns,
                 size_t *at)
{
    const char *end = text + bytes;

    while (text < end) {
        const size_t spaces = strspn(text, " ");
        const char *word = text + spaces;
        const size_t left = word < end ? (size_t)(end - word) : 0;
        const size_t n = left ? strcspn(word, " \n") : 0;
        const size_t length = n < left ? n : left, width = width_of(word, length);

        if (length == 0)
            return;
        if (*at > hang && *at + spaces + width > columns) {
            pm_str_add(out, "\n%*s", (int)hang, "");
            *at = hang;
        } else {
            pm_str_add(out, "%*s", (int)spaces, "");
            *at += spaces;
        }
        pm_str_bytes(out, word, length);
        *at += width;
        text = word + length;
    }
}

static void fill_paragraph(struct pm_str *out, const char *text, const char *end, size_t columns)
{
    const struct line first = line_at(text);
    const size_t most = columns / 2;
    size_t hang = first.hang + (first.command ? 4 : 0), at = 0;

    hang = hang < most ? hang : first.indent + 4;
    fill(out, first.text, first.length, hang, columns, &at);
    for (text = after(&first); text < end;) {
        const struct line l = line_at(text);

        if (at + 1 + width_of(l.text + l.indent, strcspn(l.text + l.indent, " \n")) <= columns) {
            pm_str_add(out, " ");
            at++;
        } else {
            pm_str_add(out, "\n%*s", (int)hang, "");
            at = hang;
        }
        fill(out, l.text + l.indent, l.length - l.indent, hang, columns, &at);
        text = after(&l);
    }
    pm_str_add(out, "\n");
}

void app_wrap(struct pm_str *out, const char *text, int columns)
{
    const size_t width = columns < LEAST ? LEAST : (size_t)columns;

    if (columns <= 0) {
        pm_str_add(out, "%s", text);
        return;
    }
    while (*text) {
        const struct line first = line_at(text);
        const char *end = after(&first);
        bool fits = width_of(first.text, first.length) <= width;

        while (*end) {
            const struct line l = line_at(end);

            if (first.indent >= first.length || !continues(&first, &l))
                break;
            fits &= width_of(l.text, l.length) <= width;
            end = after(&l);
        }
        if (fits)
            pm_str_bytes(out, text, (size_t)(end - text));
        else
            fill_paragraph(out, text, end, width);
        text = end;
    }
}
