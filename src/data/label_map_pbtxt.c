/* label_map_pbtxt: reads protobuf's text form of a label map. Known fields that are not used are
 * skipped; unknown ones are errors, because a misspelt name would lose a class. Nothing recurses:
 * the format has two levels. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "data/label_map.h"

/* ---- tokens --------------------------------------------------------------------------------- */

struct text {
    struct pm_label_reading *r;
    const char *p;
    unsigned line;
};

static int fail_text(const struct text *t, const char *wanted)
{
    return pm_label_fail(t->r, t->line, "expected %s, found: \"%.*s\"%s", wanted,
                         (int)strcspn(t->p, "\r\n") < 20 ? (int)strcspn(t->p, "\r\n") : 20, t->p,
                         *t->p ? "" : " (the end of the file)");
}

/* Skips white space, comments, and the separators that are allowed between fields. */
static char peek(struct text *t)
{
    for (;; t->p++) {
        if (*t->p == '#')
            t->p += strcspn(t->p, "\n");
        if (*t->p == '\n')
            t->line++;
        else if (!*t->p || !strchr(" \t\r\v\f,;", *t->p))
            return *t->p;
    }
}

static int take_word(struct text *t, char *out, size_t size)
{
    size_t n = 0;

    peek(t);
    while (isalnum((unsigned char)t->p[n]) || t->p[n] == '_')
        n++;
    if (n == 0 || n >= size)
        return fail_text(t, "the name of a field");
    memcpy(out, t->p, n);
    out[n] = '\0';
    t->p += n;
    return PM_OK;
}

/* The byte of the escape after a backslash, or -1. */
static int escape(const char **p)
{
    static const char names[] = "abfnrtv\\'\"?", values[] = "\a\b\f\n\r\t\v\\'\"?";
    const char c = *(*p)++, *at = c ? strchr(names, c) : NULL;
    int v = 0, n = 0;

    if (at)
        return (unsigned char)values[at - names];
    if (c == 'x' || c == 'X') {
        for (; n < 2 && isxdigit((unsigned char)**p); n++, (*p)++)
            v = v * 16 + (isdigit((unsigned char)**p) ? **p - '0' : (**p | 32) - 'a' + 10);
        return n ? v : -1;
    }
    for ((*p)--; n < 3 && **p >= '0' && **p <= '7'; n++, (*p)++)
        v = v * 8 + **p - '0';
    return n && v < 256 ? v : -1;
}

/* Reads 'a' "b" as ab, in the arena. */
static int take_string(struct text *t, const char **out)
{
    struct pm_str s = { 0 };
    char quote = peek(t);
    int err = PM_OK;

    if (quote != '"' && quote != '\'')
        PM_TRY(fail_text(t, "a text in quotes"));
    for (; quote == '"' || quote == '\''; quote = peek(t)) {
        t->p++;
        while (*t->p != quote) {
            if (!*t->p || *t->p == '\n')
                PM_TRY(fail_text(t, "the quote that ends the text"));
            const char *from = t->p++;
            const int c = *from == '\\' ? escape(&t->p) : (unsigned char)*from;
            if (c <= 0) {
                t->p = from;
                PM_TRY(fail_text(t, "a valid escape"));
            }
            pm_str_bytes(&s, &(char){ (char)c }, 1);
        }
        t->p++;
    }
    *out = pm_arena_strdup(t->r->arena, s.text ? s.text : "");
out:
    pm_str_free(&s);
    return err;
}

static int take_number(struct text *t, int64_t *out)
{
    char *end = NULL;

    peek(t);
    errno = 0;
    const long long v = strtoll(t->p, &end, 0);
    if (end == t->p || isalnum((unsigned char)*end) || *end == '.' || *end == '_')
        return fail_text(t, "a whole number");
    if (errno)
        return fail_text(t, "a number of at most 64 bits");
    *out = v;
    t->p = end;
    return PM_OK;
}

/* Consumes the ':' before a value. */
static int take_colon(struct text *t)
{
    if (peek(t) != ':')
        return fail_text(t, "':'");
    t->p++;
    return PM_OK;
}

/* Consumes the '{' or '<' of a message, which may follow a ':'. *close: what ends it. */
static int take_open(struct text *t, char *close)
{
    if (peek(t) == ':')
        t->p++;
    const char c = peek(t);
    if (c != '{' && c != '<')
        return fail_text(t, "'{'");
    *close = c == '{' ? '}' : '>';
    t->p++;
    return PM_OK;
}

/* Skips the value of a field that is not used: a word, a number or a list of them. */
static int skip_value(struct text *t)
{
    int err = PM_OK;

    PM_TRY(take_colon(t));
    const bool list = peek(t) == '[';
    t->p += list;
    do {
        const char c = peek(t);
        if (list && c == ']')
            break;
        const size_t n = strspn(t->p, "+-.0123456789abcdefghijklmnopqrstuvwxyz_"
                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (n == 0)
            PM_TRY(fail_text(t, "a value"));
        t->p += n;
    } while (list);
    t->p += list;
out:
    return err;
}

/* ---- fields --------------------------------------------------------------------------------- */

static int read_point(struct text *t, struct pm_label_raw *item)
{
    char close = 0, word[32];
    int64_t id = -1;
    const char *name = NULL;
    const unsigned line = t->line;
    int err = PM_OK;

    PM_TRY(take_open(t, &close));
    while (peek(t) != close) {
        PM_TRY(take_word(t, word, sizeof word));
        PM_TRY(take_colon(t));
        if (!strcmp(word, "id"))
            PM_TRY(take_number(t, &id));
        else if (!strcmp(word, "label"))
            PM_TRY(take_string(t, &name));
        else
            PM_TRY(pm_label_fail(t->r, t->line,
                                 "a keypoint has no field %s; its fields are id and label", word));
    }
    t->p++;
    PM_TRY(pm_label_add_point(t->r, item, id, name ? name : "", line));
out:
    return err;
}

/* Sets a text once. */
static int read_text(struct text *t, const char *field, const char **out)
{
    int err = PM_OK;

    if (*out)
        PM_TRY(pm_label_fail(t->r, t->line, "%s appears twice in one item: remove one", field));
    PM_TRY(take_colon(t));
    PM_TRY(take_string(t, out));
out:
    return err;
}

static int read_field(struct text *t, struct pm_label_raw *item)
{
    static const char *const known[] = { "name",         "id",
                                         "display_name", "keypoints",
                                         "ancestor_ids", "descendant_ids",
                                         "frequency",    "instance_count" };
    char word[32];
    int err = PM_OK;

    PM_TRY(take_word(t, word, sizeof word));
    size_t k = 0;
    while (k < PM_COUNT(known) && strcmp(known[k], word))
        k++;
    switch (k) {
    case 0:
        PM_TRY(read_text(t, word, &item->name));
        break;
    case 1:
        if (item->has_id)
            PM_TRY(pm_label_fail(t->r, t->line, "id appears twice in one item: remove one"));
        PM_TRY(take_colon(t));
        PM_TRY(take_number(t, &item->id));
        item->has_id = true;
        break;
    case 2:
        PM_TRY(read_text(t, word, &item->display_name));
        break;
    case 3:
        PM_TRY(read_point(t, item));
        break;
    case PM_COUNT(known): {
        const char *near = pm_nearest(word, known, PM_COUNT(known));
        PM_TRY(pm_label_fail(t->r, t->line, "an item of a label map has no field %s%s%s%s", word,
                             near ? " (did you mean " : "", near ? near : "", near ? "?)" : ""));
        break;
    }
    default:
        PM_TRY(skip_value(t));
        break;
    }
out:
    return err;
}

int pm_label_read_pbtxt(struct pm_label_reading *r, const char *text)
{
    struct text t = { r, text, 1 };
    char word[32], close = 0;
    int err = PM_OK;

    r->lines = true;
    while (peek(&t)) {
        PM_TRY(take_word(&t, word, sizeof word));
        if (strcmp(word, "item"))
            PM_TRY(
                pm_label_fail(r, t.line, "expected item, found: %s; is this a label map?", word));
        const unsigned line = t.line;
        PM_TRY(take_open(&t, &close));
        struct pm_label_raw *item = pm_label_add(r, line);
        while (peek(&t) != close)
            PM_TRY(read_field(&t, item));
        t.p++;
    }
out:
    return err;
}
