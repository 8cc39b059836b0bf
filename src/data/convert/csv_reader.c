/* Reading a CSV file row by row. */
#include "data/convert/csv_reader.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "data/convert/annotated.h"

static int fail_row(const struct pm_csv *c, const char *what)
{
    return pm_fail(PM_EDATA, "%s:%u: %s", c->path, c->line, what);
}

enum state { START, PLAIN, QUOTED, CLOSED }; /* of a field */

struct row {
    enum state state;
    size_t n, begin; /* characters of the row, first one of the field */
};

static int end_field(struct pm_csv *c, struct row *r)
{
    while (r->state == PLAIN && r->n > r->begin && strchr(" \t\r", c->text[r->n - 1]))
        r->n--;
    c->text[r->n++] = '\0';
    if (c->count == PM_CSV_FIELDS)
        return fail_row(c, "has more than 64 fields");
    c->field[c->count++] = c->text + r->begin;
    r->begin = r->n;
    r->state = START;
    return PM_OK;
}

/* Takes a character that neither ends the field nor the row. */
static int take(struct pm_csv *c, struct row *r, int k)
{
    if (k == 0)
        return fail_row(c, "has a zero byte: it is not a text file");
    if (r->n + 2 >= sizeof c->text)
        return fail_row(c, "the row is longer than 65534 bytes: is a quote not closed?");
    if (r->state == START && (k == ' ' || k == '\r'))
        return PM_OK;
    if (k == '"' && r->state != PLAIN) {
        r->state = r->state == QUOTED ? CLOSED : QUOTED;
        if (r->state == CLOSED || r->n == r->begin) /* else the second one of two */
            return PM_OK;
    } else if (r->state == CLOSED) {
        return k == ' ' || k == '\r' ? PM_OK
                                     : fail_row(c, "has text behind a closing quote: a quote "
                                                   "inside of quotes is written twice");
    } else if (r->state == START) {
        r->state = PLAIN;
    }
    c->text[r->n++] = (char)k;
    return PM_OK;
}

/* Reads a row, which may be empty: one empty field. Returns 0 at the end of the file. */
static int read_row(struct pm_csv *c)
{
    struct row r = { START, 0, 0 };
    int err = PM_OK, k = EOF;

    c->line = c->lines + 1;
    c->count = 0;
    while ((k = getc(c->f)) != EOF) {
        c->lines += k == '\n';
        if (r.state == QUOTED || (k != '\n' && k != c->delimiter))
            err = take(c, &r, k);
        else if ((err = end_field(c, &r)) == PM_OK && k == '\n')
            return 1;
        if (err < 0)
            return err;
    }
    if (ferror(c->f))
        return pm_fail(PM_EDATA, "%s: %s", c->path, strerror(errno));
    if (r.state == QUOTED)
        return fail_row(c, "a quote that begins in this row is not closed");
    if (r.n == 0 && r.state == START && c->count == 0)
        return 0;
    err = end_field(c, &r);
    return err < 0 ? err : 1;
}

int pm_csv_row(struct pm_csv *c)
{
    int err;

    while ((err = read_row(c)) == 1 && c->count == 1 && !c->field[0][0])
        continue;
    return err;
}

/* Selects the delimiter by the first line, and skips a byte order mark. */
static void sniff(struct pm_csv *c)
{
    size_t seen[3] = { 0 };
    static const char marks[] = ",;\t";
    char head[3] = "";

    const bool marked = fread(head, 1, 3, c->f) == 3 && !memcmp(head, "\xef\xbb\xbf", 3);
    if (!marked)
        rewind(c->f);
    const long begin = ftell(c->f);
    for (int k, n = 0; (k = getc(c->f)) != EOF && k != '\n' && n < PM_CSV_ROW; n++)
        for (size_t i = 0; i < PM_COUNT(seen); i++)
            seen[i] += k == marks[i];
    c->delimiter = seen[0] ? ',' : seen[1] ? ';' : seen[2] ? '\t' : ',';
    fseek(c->f, begin, SEEK_SET);
}

int pm_csv_open(const char *path, struct pm_csv *c)
{
    int err = PM_OK, fd = -1;
    uint64_t size = 0;

    c->f = NULL;
    c->path = path;
    c->lines = 0;
    PM_TRY(pm_file_open(path, &fd, &size));
    c->f = fdopen(fd, "rb");
    if (!c->f)
        PM_TRY(pm_fail(PM_EDATA, "%s: %s", path, strerror(errno)));
    sniff(c);
    PM_TRY(pm_csv_row(c));
    if (err == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: is empty; the first row must have the names of the "
                       "columns", path));
    err = PM_OK;
out:
    if (err < 0 && c->f)
        pm_csv_close(c);
    else if (err < 0 && fd >= 0)
        close(fd);
    return err;
}

void pm_csv_close(struct pm_csv *c)
{
    if (c->f)
        fclose(c->f);
    c->f = NULL;
}

/* Whether two names are equal, apart from case, spaces and underscores. */
static bool same_name(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (*a == '_' || *a == ' ')
            a++;
        while (*b == '_' || *b == ' ')
            b++;
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
    }
}

int pm_csv_find(const struct pm_csv *c, const char *const *names)
{
    for (; *names; names++)
        for (int i = 0; i < c->count; i++)
            if (same_name(c->field[i], *names))
                return i;
    return -1;
}

const char *pm_csv_at(const struct pm_csv *c, int column)
{
    return column >= 0 && column < c->count ? c->field[column] : NULL;
}

int pm_csv_number(const struct pm_csv *c, int column, const char *name, double *out)
{
    const char *text = pm_csv_at(c, column);

    if (text && pm_number_in_text(text, out))
        return PM_OK;
    return pm_fail(PM_EDATA, "%s:%u: %s is \"%.40s\"; write a number", c->path, c->line, name,
                   text ? text : "");
}
