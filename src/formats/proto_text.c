/* proto_text: tokens, then fields. Levels are a list on the arena, so nothing recurses. */
#include "formats/proto_text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tokens --------------------------------------------------------------------------------- */

struct reader {
    struct pm_arena *arena;
    struct pm_proto_text_error *error;
    const char *p;
    unsigned line;
    bool keep_escapes;
    size_t fields;
};

static int expected(const struct reader *r, const char *wanted)
{
    const size_t rest = strcspn(r->p, "\r\n");

    r->error->line = r->line;
    snprintf(r->error->text, sizeof r->error->text, "expected %s, found: \"%.*s\"%s", wanted,
             rest < 20 ? (int)rest : 20, r->p, *r->p ? "" : " (the end of the file)");
    return PM_EDATA;
}

static int too_many(const struct reader *r, const char *what, int most)
{
    r->error->line = r->line;
    snprintf(r->error->text, sizeof r->error->text, "more than %d %s", most, what);
    return PM_EDATA;
}

/* Skips white space, comments, and these separators. */
static char skip(struct reader *r, const char *separators)
{
    for (;; r->p++) {
        if (*r->p == '#')
            r->p += strcspn(r->p, "\n");
        if (*r->p == '\n')
            r->line++;
        else if (!*r->p || (!strchr(" \t\r\v\f", *r->p) && !strchr(separators, *r->p)))
            return *r->p;
    }
}

/* Skips also the separators that are allowed between fields. */
static char peek(struct reader *r)
{
    return skip(r, ",;");
}

/* Reads the characters of these kinds into the arena. */
static int take_word(struct reader *r, bool name, const char **out)
{
    size_t n = 0;

    peek(r);
    while (isalnum((unsigned char)r->p[n]) || r->p[n] == '_' ||
           (!name && r->p[n] && strchr("+-.", r->p[n])))
        n++;
    if (n == 0)
        return expected(r, name ? "the name of a field" : "a value");
    *out = pm_arena_printf(r->arena, "%.*s", (int)n, r->p);
    r->p += n;
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

/* Adds one character of a string, or what an escape stands for. */
static int take_character(struct reader *r, struct pm_str *s)
{
    const char *from = r->p++;
    const int c = *from == '\\' ? escape(&r->p) : (unsigned char)*from;

    if (c > 0) {
        pm_str_bytes(s, &(char){ (char)c }, 1);
    } else if (r->keep_escapes && isalpha((unsigned char)from[1]) && !strchr("xX", from[1])) {
        pm_str_bytes(s, from, 2);
        r->p = from + 2;
    } else {
        r->p = from;
        return expected(r, "a valid escape");
    }
    return PM_OK;
}

/* Reads 'a' "b" as ab. */
static int take_string(struct reader *r, const char **out)
{
    struct pm_str s = { 0 };
    char quote = peek(r);
    int err = PM_OK;

    for (; quote == '"' || quote == '\''; quote = skip(r, "")) {
        r->p++;
        while (*r->p != quote) {
            if (!*r->p || *r->p == '\n')
                PM_TRY(expected(r, "the quote that ends the text"));
            PM_TRY(take_character(r, &s));
        }
        r->p++;
    }
    *out = pm_arena_strdup(r->arena, s.text ? s.text : "");
out:
    pm_str_free(&s);
    return err;
}

/* ---- fields --------------------------------------------------------------------------------- */

/* A message that is open. */
struct level {
    struct pm_proto_text **end; /* where its next field goes */
    char close;
    /* Of a list of messages: the name that the next one has. NULL: not in a list. */
    const char *list;
};

static int add_field(struct reader *r, struct level *level, const char *name, unsigned line,
                     struct pm_proto_text **out)
{
    if (++r->fields > PM_PROTO_TEXT_FIELDS)
        return too_many(r, "fields", PM_PROTO_TEXT_FIELDS);
    *out = pm_arena_alloc(r->arena, sizeof **out);
    **out = (struct pm_proto_text){ .name = name, .line = line };
    *level->end = *out;
    level->end = &(*out)->next;
    return PM_OK;
}

/* Reads a value that is not a message into a new field. */
static int take_scalar(struct reader *r, struct level *level, const char *name, unsigned line)
{
    struct pm_proto_text *f = NULL;
    int err = PM_OK;

    const char c = peek(r);
    PM_TRY(add_field(r, level, name, line, &f));
    if (c == '"' || c == '\'') {
        f->kind = PM_PROTO_TEXT_STRING;
        PM_TRY(take_string(r, &f->value));
    } else {
        f->kind = PM_PROTO_TEXT_WORD;
        PM_TRY(take_word(r, false, &f->value));
    }
out:
    return err;
}

/* Opens a message, whose '{' or '<' comes next. */
static int open_message(struct reader *r, struct level *levels, int *depth, const char *name,
                        unsigned line)
{
    struct pm_proto_text *f = NULL;
    int err = PM_OK;

    if (*depth == PM_PROTO_TEXT_DEPTH)
        PM_TRY(too_many(r, "levels of messages", PM_PROTO_TEXT_DEPTH));
    PM_TRY(add_field(r, &levels[*depth], name, line, &f));
    f->kind = PM_PROTO_TEXT_MESSAGE;
    levels[++*depth] = (struct level){ &f->first, *r->p == '{' ? '}' : '>', NULL };
    r->p++;
out:
    return err;
}

/* Reads "name: value", or what opens a message or a list. */
static int take_field(struct reader *r, struct level *levels, int *depth)
{
    const char *name = levels[*depth].list;
    const bool in_list = name != NULL;
    bool colon = in_list;
    int err = PM_OK;

    peek(r);
    const unsigned line = r->line;
    if (!in_list) {
        PM_TRY(take_word(r, true, &name));
        colon = peek(r) == ':';
        r->p += colon;
    }
    const char c = peek(r);
    if (c == '{' || c == '<')
        PM_TRY(open_message(r, levels, depth, name, line));
    else if (!colon)
        PM_TRY(expected(r, "'{' or ':'"));
    else if (c == '[' && !in_list)
        levels[*depth].list = name, r->p++;
    else
        PM_TRY(take_scalar(r, &levels[*depth], name, line));
out:
    return err;
}

int pm_proto_text_parse(struct pm_arena *a, const char *text, bool keep_escapes,
                        const struct pm_proto_text **out, struct pm_proto_text_error *error)
{
    struct reader r = { a, error, text, 1, keep_escapes, 0 };
    struct pm_proto_text *root = pm_arena_alloc(a, sizeof *root);
    struct level *levels = pm_malloc((PM_PROTO_TEXT_DEPTH + 1) * sizeof *levels);
    int depth = 0, err = PM_OK;

    *root = (struct pm_proto_text){ .name = "", .line = 1 };
    levels[0] = (struct level){ &root->first, '\0', NULL };
    for (;;) {
        struct level *level = &levels[depth];
        const char c = peek(&r);

        if (level->list && c == ']') {
            level->list = NULL;
            r.p++;
        } else if (!level->list && c == level->close) {
            if (depth == 0)
                break;
            depth--;
            r.p++;
        } else {
            PM_TRY(take_field(&r, levels, &depth));
        }
    }
    *out = root;
out:
    pm_free(levels);
    return err;
}

/* ---- values --------------------------------------------------------------------------------- */

bool pm_proto_text_int(const struct pm_proto_text *f, int64_t *out)
{
    char *end = NULL;

    if (f->kind != PM_PROTO_TEXT_WORD)
        return false;
    errno = 0;
    const long long v = strtoll(f->value, &end, 0);
    if (end == f->value || *end || errno)
        return false;
    *out = v;
    return true;
}

bool pm_proto_text_number(const struct pm_proto_text *f, double *out)
{
    char *end = NULL;

    if (f->kind != PM_PROTO_TEXT_WORD)
        return false;
    const double v = strtod(f->value, &end);
    if (end == f->value || (*end && strcmp(end, "f") != 0) || !isfinite(v))
        return false;
    *out = v;
    return true;
}

bool pm_proto_text_bool(const struct pm_proto_text *f, bool *out)
{
    static const char *const words[2][4] = { { "false", "False", "f", "0" },
                                             { "true", "True", "t", "1" } };

    for (int v = 0; f->kind == PM_PROTO_TEXT_WORD && v < 2; v++)
        for (size_t i = 0; i < PM_COUNT(words[v]); i++)
            if (strcmp(f->value, words[v][i]) == 0) {
                *out = v;
                return true;
            }
    return false;
}
