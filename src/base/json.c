/* JSON text. cJSON makes the tree. Before that our own scanner reads the text, for two reasons: a
 * person who edits a config needs the line and column of a mistake, and cJSON accepts text that
 * must be rejected: duplicate keys (the last would silently win), integers that a double rounds,
 * NUL inside strings, text after the end. */
#include <pumice/options.h>

#include <assert.h>
#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 200, LINE_WIDTH = 96 };

struct scan {
    const char *name, *text, *at; /* borrowed; at is the next character */
    struct pm_json_place *places; /* places of all values, in document order */
    size_t count, capacity;
    int depth;
};

static struct pm_json_place place_of(const struct scan *s, const char *at)
{
    struct pm_json_place p = { 1, 1 };

    for (const char *c = s->text; c < at; c++) {
        p.column = *c == '\n' ? 1 : p.column + 1;
        p.line += *c == '\n';
    }
    return p;
}

/* Fails with "name:line:column: what". found: also show the text at this place. */
static int fail_at(const struct scan *s, const char *at, const char *what, bool found)
{
    struct pm_json_place p = place_of(s, at);
    int shown = 0;

    while (found && shown < 20 && at[shown] && !isspace((unsigned char)at[shown]))
        shown++;
    if (!found)
        return pm_fail(PM_ECONFIG, "%s:%d:%d: %s", s->name, p.line, p.column, what);
    if (!*at)
        return pm_fail(PM_ECONFIG, "%s:%d:%d: %s, but the text ends", s->name, p.line, p.column,
                       what);
    return pm_fail(PM_ECONFIG, "%s:%d:%d: %s, found '%.*s'", s->name, p.line, p.column, what,
                   shown ? shown : 1, at);
}

static void skip_space(struct scan *s)
{
    s->at += strspn(s->at, " \t\r\n");
}

static int scan_escape(struct scan *s)
{
    const char *start = s->at++;
    int digits = 0;

    if (*s->at && strchr("\"\\/bfnrt", *s->at)) {
        s->at++;
        return PM_OK;
    }
    if (*s->at != 'u')
        return fail_at(s, start,
                       "a backslash escape must be one of \\\" \\\\ \\/ \\b \\f \\n \\r "
                       "\\t \\uXXXX",
                       true);
    for (s->at++; digits < 4 && isxdigit((unsigned char)*s->at); s->at++)
        digits++;
    if (digits < 4 || strncmp(s->at - 4, "0000", 4) == 0)
        return fail_at(s, start, "\\u needs four hexadecimal digits, not all zero", true);
    return PM_OK;
}

static int scan_string(struct scan *s)
{
    const char *start = s->at++;

    while (*s->at != '"') {
        if (*s->at == '\0' || *s->at == '\n')
            return fail_at(s, start, "this string has no closing quote on its line", false);
        if ((unsigned char)*s->at < ' ')
            return fail_at(s, s->at, "a control character stands inside a string", false);
        if (*s->at == '\\') {
            int err = scan_escape(s);
            if (err < 0)
                return err;
        } else {
            s->at++;
        }
    }
    s->at++;
    return PM_OK;
}

static int scan_number(struct scan *s)
{
    const char *start = s->at;
    bool integer = true;

    s->at += *s->at == '-';
    size_t digits = strspn(s->at, "0123456789");
    if (digits == 0 || (digits > 1 && *s->at == '0'))
        return fail_at(s, start, "a number starts with a digit other than 0, or is 0", true);
    s->at += digits;
    if (*s->at == '.') {
        size_t decimals = strspn(s->at + 1, "0123456789");
        if (decimals == 0)
            return fail_at(s, start, "a digit must follow the decimal point", true);
        s->at += 1 + decimals;
        integer = false;
    }
    if (*s->at == 'e' || *s->at == 'E') {
        s->at += 1 + (s->at[1] == '+' || s->at[1] == '-');
        digits = strspn(s->at, "0123456789");
        if (digits == 0)
            return fail_at(s, start, "a digit must follow the exponent's e", true);
        s->at += digits;
        integer = false;
    }
    double value = strtod(start, NULL);
    if (isinf(value))
        return fail_at(s, start, "this number is beyond double precision", true);
    /* 2^53 + 1 reads as 2^53, so 2^53 itself must be rejected. */
    if (integer && fabs(value) >= 0x1p53)
        return fail_at(s, start, "integers must stay below 2^53 (9007199254740992)", true);
    return PM_OK;
}

static int scan_word(struct scan *s, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(s->at, word, n) != 0 || isalnum((unsigned char)s->at[n]))
        return fail_at(s, s->at, "expected a value", true);
    s->at += n;
    return PM_OK;
}

static int scan_value(struct scan *s, const char *placed);

/* Reads a comma before another item (*more: true), or the closing mark (*more: false). */
static int scan_separator(struct scan *s, char close, bool *more)
{
    skip_space(s);
    *more = *s->at == ',';
    if (*s->at != ',' && *s->at != close)
        return fail_at(s, s->at, close == '}' ? "expected ',' or '}'" : "expected ',' or ']'",
                       true);
    s->at++;
    skip_space(s);
    if (*more && *s->at == close)
        return fail_at(s, s->at, "no comma may stand before the closing mark", false);
    return PM_OK;
}

static int scan_member(struct scan *s)
{
    const char *key = s->at;
    int err = PM_OK;

    if (*s->at != '"')
        return fail_at(s, s->at, "expected a key in quotes", true);
    PM_TRY(scan_string(s));
    skip_space(s);
    if (*s->at != ':')
        PM_TRY(fail_at(s, s->at, "expected ':' after the key", true));
    s->at++;
    skip_space(s);
    PM_TRY(scan_value(s, key));
out:
    return err;
}

static int scan_items(struct scan *s, char close)
{
    int err = PM_OK;
    bool more = true;

    if (++s->depth > DEEPEST)
        return fail_at(s, s->at, "nested too deeply (200 levels)", false);
    s->at++;
    skip_space(s);
    if (*s->at == close) {
        s->at++;
        more = false;
    }
    while (more) {
        PM_TRY(close == '}' ? scan_member(s) : scan_value(s, s->at));
        PM_TRY(scan_separator(s, close, &more));
    }
    s->depth--;
out:
    return err;
}

/* Scans a value. placed: where messages about the value point (its key, or the value itself). */
static int scan_value(struct scan *s, const char *placed)
{
    PM_GROW(s->places, s->count, s->capacity);
    s->places[s->count].line = (int)(placed - s->text); /* an offset until all values are scanned */
    s->count++;
    switch (*s->at) {
    case '{':
        return scan_items(s, '}');
    case '[':
        return scan_items(s, ']');
    case '"':
        return scan_string(s);
    case 't':
        return scan_word(s, "true");
    case 'f':
        return scan_word(s, "false");
    case 'n':
        return scan_word(s, "null");
    default:
        if (*s->at == '-' || isdigit((unsigned char)*s->at))
            return scan_number(s);
        return fail_at(s, s->at, "expected a value", true);
    }
}

/* Converts offsets to lines and columns in one pass. A key precedes its value, so offsets only
 * grow. */
static void place_all(struct scan *s)
{
    const char *c = s->text;
    struct pm_json_place p = { 1, 1 };

    for (size_t i = 0; i < s->count; i++) {
        for (const char *to = s->text + s->places[i].line; c < to; c++) {
            p.column = *c == '\n' ? 1 : p.column + 1;
            p.line += *c == '\n';
        }
        s->places[i] = p;
    }
}

/* Returns a copy of text with // comments (outside strings) replaced by spaces. */
static char *blank_comments(const char *text)
{
    char *copy = pm_strdup(text);
    bool in_string = false;

    if (strncmp(copy, "\xef\xbb\xbf", 3) == 0)
        memset(copy, ' ', 3); /* an editor's byte order mark */
    for (char *c = copy; *c; c++) {
        if (*c == '\n')
            in_string = false;
        else if (in_string && *c == '\\' && c[1] && c[1] != '\n')
            c++;
        else if (*c == '"')
            in_string = !in_string;
        else if (!in_string && c[0] == '/' && c[1] == '/')
            for (; c[1] && c[1] != '\n'; c++)
                c[0] = c[1] = ' ';
    }
    return copy;
}

struct key {
    const char *name;
    struct pm_json_place place;
};

static int by_name_then_place(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order                            ? order
           : x->place.line != y->place.line ? x->place.line - y->place.line
                                            : x->place.column - y->place.column;
}

/* Walks in document order; *next counts the values visited. */
static int check_duplicates(const char *name, const cJSON *v, const struct pm_json_place *places,
                            size_t *next)
{
    int err = PM_OK;
    size_t count = 0, capacity = 0;
    struct key *keys = NULL;

    (*next)++;
    for (const cJSON *child = v->child; child; child = child->next) {
        if (cJSON_IsObject(v)) {
            PM_GROW(keys, count, capacity);
            keys[count++] = (struct key){ child->string, places[*next] };
        }
        PM_TRY(check_duplicates(name, child, places, next));
    }
    if (count)
        qsort(keys, count, sizeof *keys, by_name_then_place);
    for (size_t i = 1; i < count; i++)
        if (strcmp(keys[i].name, keys[i - 1].name) == 0)
            PM_TRY(pm_fail(PM_ECONFIG, "%s:%d:%d: key '%s' is given twice, first in line %d", name,
                           keys[i].place.line, keys[i].place.column, keys[i].name,
                           keys[i - 1].place.line));
out:
    pm_free(keys);
    return err;
}

int pm_json_parse_places(const char *name, const char *text, struct cJSON **out,
                         struct pm_json_place **places)
{
    int err = PM_OK;
    char *copy = blank_comments(text);
    struct scan s = { .name = name, .text = copy, .at = copy };
    cJSON *v = NULL;
    size_t next = 0;

    skip_space(&s);
    PM_TRY(scan_value(&s, s.at));
    skip_space(&s);
    if (*s.at)
        PM_TRY(fail_at(&s, s.at, "expected the end of the text", true));
    place_all(&s);
    v = cJSON_Parse(copy);
    if (!v)
        PM_TRY(fail_at(&s, cJSON_GetErrorPtr() ? cJSON_GetErrorPtr() : copy,
                       "this is not valid JSON (broken UTF-16 escape?)", true));
    PM_TRY(check_duplicates(name, v, s.places, &next));
    assert(next == s.count);
    *out = v, v = NULL;
    if (places)
        *places = s.places, s.places = NULL;
out:
    cJSON_Delete(v);
    pm_free(s.places);
    pm_free(copy);
    return err;
}

int pm_json_parse(const char *name, const char *text, struct cJSON **out)
{
    return pm_json_parse_places(name, text, out, NULL);
}

/* ---- printing -------------------------------------------------------------------------- */

/* Escapes valid characters that control a terminal, beyond what JSON requires: DEL, C1, marks of
 * writing direction. Returns the character's bytes, or 0 if it is none of these. */
static int print_hidden(struct pm_str *s, const char *c)
{
    char piece[PM_PRINTABLE];
    unsigned code;
    int used;

    pm_printable_next(c, strnlen(c, 4), piece, &used);
    if (*c == 0x7f)
        pm_str_add(s, "\\u007f");
    else if (used > 1 && sscanf(piece, "\\u{%X}", &code) == 1)
        pm_str_add(s, "\\u%04x", code);
    else
        return 0;
    return used;
}

static void print_string(struct pm_str *s, const char *text)
{
    pm_str_add(s, "\"");
    for (const char *c = text; *c; c++) {
        const int hidden = print_hidden(s, c);
        if (hidden) {
            c += hidden - 1;
            continue;
        }
        if (*c == '"' || *c == '\\')
            pm_str_add(s, "\\%c", *c);
        else if (*c == '\n')
            pm_str_add(s, "\\n");
        else if (*c == '\t')
            pm_str_add(s, "\\t");
        else if ((unsigned char)*c < ' ')
            pm_str_add(s, "\\u%04x", *c);
        else
            pm_str_bytes(s, c, 1);
    }
    pm_str_add(s, "\"");
}

static void print_number(struct pm_str *s, double value)
{
    char text[32];
    int digits = 15;

    do
        snprintf(text, sizeof text, "%.*g", digits, value);
    while (strtod(text, NULL) != value && ++digits <= 17);
    pm_str_add(s, "%s", isfinite(value) ? text : "null"); /* JSON cannot express infinity and NaN */
}

static bool holds_object(const cJSON *v)
{
    for (const cJSON *child = v->child; child; child = child->next)
        if (cJSON_IsObject(child) || holds_object(child))
            return true;
    return cJSON_IsObject(v);
}

static void print_scalar(struct pm_str *s, const cJSON *v)
{
    if (cJSON_IsString(v))
        print_string(s, v->valuestring);
    else if (cJSON_IsNumber(v))
        print_number(s, v->valuedouble);
    else
        pm_str_add(s, cJSON_IsTrue(v) ? "true" : cJSON_IsFalse(v) ? "false" : "null");
}

static void print_key(struct pm_str *s, const cJSON *child)
{
    print_string(s, child->string);
    pm_str_add(s, ": ");
}

static void print_flat(struct pm_str *s, const cJSON *v)
{
    bool object = cJSON_IsObject(v);

    if (!object && !cJSON_IsArray(v)) {
        print_scalar(s, v);
        return;
    }
    pm_str_add(s, object ? "{" : "[");
    for (const cJSON *child = v->child; child; child = child->next) {
        pm_str_add(s, "%s", child != v->child ? ", " : object ? " " : "");
        if (object)
            print_key(s, child);
        print_flat(s, child);
    }
    pm_str_add(s, object ? v->child ? " }" : "}" : "]");
}

/* Prints a value. may_flat: the value is an item of a list, and is printed on one line if it
 * fits. */
static void print_value(struct pm_str *s, const cJSON *v, int indent, bool may_flat)
{
    bool object = cJSON_IsObject(v);
    size_t start = s->length;

    if (!v->child || may_flat || !holds_object(v)) {
        print_flat(s, v);
        if (!v->child || s->length - start + (size_t)indent <= LINE_WIDTH)
            return;
        s->length = start;
    }
    pm_str_add(s, object ? "{" : "[");
    for (const cJSON *child = v->child; child; child = child->next) {
        pm_str_add(s, "%s\n%*s", child == v->child ? "" : ",", indent + 2, "");
        if (object)
            print_key(s, child);
        print_value(s, child, indent + 2, !object);
    }
    pm_str_add(s, "\n%*s%s", indent, "", object ? "}" : "]");
}

char *pm_json_print(const struct cJSON *v)
{
    struct pm_str s = { 0 };

    print_value(&s, v, 0, false);
    return s.text;
}
