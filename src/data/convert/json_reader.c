/* A pull parser of JSON, for annotation files of hundreds of megabytes from which a converter needs
 * only a few numbers. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/convert/json_reader.h"

int pm_json_reader_open(const char *path, struct pm_json_reader *r)
{
    int fd;
    const int err = pm_file_open(path, &fd, NULL);

    *r = (struct pm_json_reader){ .path = path, .line = 1, .f = err < 0 ? NULL : fdopen(fd, "rb") };
    if (err < 0)
        return err;
    if (!r->f) {
        close(fd);
        return pm_fail(PM_EFAIL, "%s: cannot be opened: %s", path, strerror(errno));
    }
    setvbuf(r->f, NULL, _IOFBF, 1 << 18);
    return PM_OK;
}

void pm_json_reader_close(struct pm_json_reader *r)
{
    if (r->f)
        fclose(r->f);
    r->f = NULL;
}

int pm_json_reader_fail(const struct pm_json_reader *r, const char *fmt, ...)
{
    struct pm_str what = { 0 };
    va_list args;

    va_start(args, fmt);
    pm_str_add_args(&what, fmt, args);
    va_end(args);
    const int err = pm_fail(PM_EDATA, "%s:%u: %s%s", r->path, r->line,
                            ferror(r->f) ? "reading failed; expected "
                            : feof(r->f) ? "the file ends here; expected "
                                         : "expected ",
                            what.text);
    pm_str_free(&what);
    return err;
}

static int next_char(struct pm_json_reader *r)
{
    const int c = getc_unlocked(r->f);
    r->line += c == '\n';
    return c;
}

/* Peeks at the next character that is not white space. */
static int peek(struct pm_json_reader *r)
{
    int c = next_char(r);
    while (c == ' ' || c == '\n' || c == '\t' || c == '\r')
        c = next_char(r);
    if (c != EOF)
        ungetc(c, r->f);
    return c;
}

static int take(struct pm_json_reader *r, char wanted, const char *what)
{
    if (peek(r) != wanted)
        return pm_json_reader_fail(r, "%s", what);
    next_char(r);
    return PM_OK;
}

int pm_json_enter(struct pm_json_reader *r, char bracket)
{
    return take(r, bracket, bracket == '{' ? "an object" : "a list");
}

/* Whether another item follows. Consumes the comma. */
static int another(struct pm_json_reader *r, size_t *n, char end)
{
    if (peek(r) == end) {
        next_char(r);
        return 0;
    }
    if ((*n)++ == 0)
        return 1;
    const int err = take(r, ',', end == '}' ? "',' or '}'" : "',' or ']'");
    return err < 0 ? err : 1;
}

int pm_json_item(struct pm_json_reader *r, size_t *n)
{
    return another(r, n, ']');
}

int pm_json_member(struct pm_json_reader *r, size_t *n)
{
    int err = another(r, n, '}');

    if (err <= 0)
        return err;
    if ((err = pm_json_string(r)) < 0 || (err = take(r, ':', "':'")) < 0)
        return err;
    return 1;
}

int pm_json_number(struct pm_json_reader *r, double *out)
{
    size_t n = 0;
    char *end = NULL;

    peek(r);
    for (int c; n < 64 && (c = next_char(r)) != EOF;) {
        if (!isdigit(c) && (c == 0 || !strchr("+-.eE", c))) {
            ungetc(c, r->f);
            r->line -= c == '\n';
            break;
        }
        r->text[n++] = (char)c;
    }
    r->text[n] = '\0';
    *out = strtod(r->text, &end);
    return n == 0 || *end || !isfinite(*out) ? pm_json_reader_fail(r, "a number") : PM_OK;
}

int pm_json_whole(struct pm_json_reader *r, int64_t most, int64_t *out)
{
    double v = 0;
    const int err = pm_json_number(r, &v);

    if (err < 0)
        return err;
    if (!(v >= 0 && v <= (double)most) || v != (double)(int64_t)v)
        return pm_json_reader_fail(r, "a whole number of 0..%" PRId64 ", not %s", most, r->text);
    *out = (int64_t)v;
    return PM_OK;
}

static size_t put_utf8(unsigned u, char *out)
{
    const int more = u < 0x80 ? 0 : u < 0x800 ? 1 : u < 0x10000 ? 2 : 3;
    static const unsigned first[] = { 0, 0xc0, 0xe0, 0xf0 };

    out[0] = (char)(first[more] | u >> 6 * more);
    for (int i = 1; i <= more; i++)
        out[i] = (char)(0x80 | (u >> 6 * (more - i) & 63));
    return (size_t)more + 1;
}

/* Reads the four digits of \u. Returns false if they are not digits. */
static bool four_digits(struct pm_json_reader *r, unsigned *u)
{
    *u = 0;
    for (int i = 0; i < 4; i++) {
        const int d = next_char(r);
        if (!isxdigit(d))
            return false;
        *u = *u * 16 + (unsigned)(isdigit(d) ? d - '0' : tolower(d) - 'a' + 10);
    }
    return true;
}

/* Decodes the escape after a backslash. Returns the number of bytes; 0 if JSON has no such
 * escape. */
static size_t escape(struct pm_json_reader *r, char *out)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const int c = next_char(r);
    const char *at = c > 0 ? strchr(names, c) : NULL;
    unsigned u = 0, low = 0;

    if (at) {
        *out = values[at - names];
        return 1;
    }
    if (c != 'u' || !four_digits(r, &u))
        return 0;
    if (u >= 0xd800 && u < 0xdc00) { /* the first of a pair */
        if (next_char(r) != '\\' || next_char(r) != 'u' || !four_digits(r, &low) ||
            low < 0xdc00 || low >= 0xe000)
            return 0;
        u = 0x10000 + ((u - 0xd800) << 10 | (low - 0xdc00));
    }
    return u && (u < 0xd800 || u >= 0xe000) ? put_utf8(u, out) : 0;
}

/* Reads the next character of a string. Returns the number of its bytes, 0 at the closing quote. */
static int string_part(struct pm_json_reader *r, char bytes[4])
{
    const int c = next_char(r);

    if (c == '"')
        return 0;
    bytes[0] = (char)c;
    const size_t count = c == '\\' ? escape(r, bytes) : c > 0 && c != '\n';
    return count ? (int)count : pm_json_reader_fail(r, "the end of a string");
}

/* Reads a string. wanted: stores all of it in r->text; otherwise skips it. */
static int string(struct pm_json_reader *r, bool wanted)
{
    size_t n = 0;
    char bytes[4];
    int count, err = take(r, '"', "a string");

    if (err < 0)
        return err;
    while ((count = string_part(r, bytes)) > 0) {
        if (!wanted)
            continue;
        if (n + (size_t)count >= sizeof r->text)
            return pm_json_reader_fail(r, "a string of at most 4095 bytes");
        memcpy(r->text + n, bytes, (size_t)count);
        n += (size_t)count;
    }
    r->text[n] = '\0';
    return count;
}

int pm_json_string(struct pm_json_reader *r)
{
    return string(r, true);
}

int pm_json_long_string(struct pm_json_reader *r, size_t most, struct pm_str *out)
{
    const size_t begin = out->length;
    char bytes[4];
    int count, err = take(r, '"', "a string");

    if (err < 0)
        return err;
    while ((count = string_part(r, bytes)) > 0) {
        if (out->length - begin + (size_t)count > most)
            return pm_json_reader_fail(r, "a string of at most %zu bytes", most);
        pm_str_bytes(out, bytes, (size_t)count);
    }
    return count;
}

int pm_json_next(struct pm_json_reader *r)
{
    return peek(r);
}

int pm_json_text(struct pm_json_reader *r)
{
    double v;
    return peek(r) == '"' ? pm_json_string(r) : pm_json_number(r, &v);
}

int pm_json_skip(struct pm_json_reader *r)
{
    size_t depth = 0;

    do {
        int c = peek(r), err = PM_OK;
        if (c == EOF)
            return pm_json_reader_fail(r, "a value");
        if (c == '"') {
            if ((err = string(r, false)) < 0)
                return err;
        } else if (c == '{' || c == '[') {
            next_char(r);
            depth++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return pm_json_reader_fail(r, "a value");
            next_char(r);
            depth--;
        } else if (depth) {
            next_char(r); /* of numbers, words, commas, colons */
        } else {
            while ((c = next_char(r)) != EOF && (c == 0 || !strchr(",]} \t\r\n", c)))
                ;
            if (c != EOF) {
                ungetc(c, r->f);
                r->line -= c == '\n';
            }
        }
    } while (depth);
    return PM_OK;
}

int pm_json_end(struct pm_json_reader *r)
{
    return peek(r) == EOF && !ferror(r->f) ? PM_OK : pm_json_reader_fail(r, "the file's end");
}
