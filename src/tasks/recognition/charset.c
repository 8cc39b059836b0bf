/* charset: charset.h has the contract. */
#include "tasks/recognition/charset.h"

#include <stdlib.h>
#include <string.h>

/* ---- charsets ----------------------------------------------------------------------------- */

static const char digits[] = "0123456789", small[] = "abcdefghijklmnopqrstuvwxyz",
                  capitals[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                  symbols[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
/* The order of the symbols is that of the original program. */
static const struct {
    const char *name, *parts[5];
} named[] = {
    { "lowercase", { digits, small } },
    { "allcases", { digits, small, capitals } },
    { "allcases_symbols", { digits, small, capitals, symbols } },
};

static int by_letter(const void *a, const void *b, void *letters)
{
    const uint32_t *l = letters, x = l[*(const int *)a], y = l[*(const int *)b];

    return x < y ? -1 : x > y;
}

static void sort(struct pm_charset *c, struct pm_arena *a)
{
    c->sorted = pm_arena_alloc(a, ((size_t)c->count + 1) * sizeof *c->sorted);
    for (int i = 0; i < c->count; i++)
        c->sorted[i] = i;
    qsort_r(c->sorted, (size_t)c->count, sizeof *c->sorted, by_letter, c->letters);
}

static void open_named(const char *const *parts, struct pm_arena *a, struct pm_charset *c)
{
    size_t room = 0;

    for (int i = 0; parts[i]; i++)
        room += strlen(parts[i]);
    c->letters = pm_arena_alloc(a, room * sizeof *c->letters);
    for (int i = 0; parts[i]; i++)
        for (const char *p = parts[i]; *p; p++)
            c->letters[c->count++] = (unsigned char)*p;
}

static int read_file(const char *path, struct pm_arena *a, struct pm_charset *c)
{
    char *text = NULL, *save = NULL;
    struct pm_letters line = { 0 };
    int err = PM_OK, number = 0;

    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    c->letters = pm_arena_alloc(a, (strlen(text) + 1) * sizeof *c->letters);
    for (char *p = strtok_r(text, "\r\n", &save); p; p = strtok_r(NULL, "\r\n", &save)) {
        number++;
        pm_letters_free(&line);
        PM_TRY(pm_letters_read(p, strlen(p), false, path, &line));
        if (line.count != 1)
            PM_TRY(pm_fail(PM_EDATA, "%s: entry %d, \"%.100s\", has %d letters: write one letter "
                           "in each line", path, number, p, line.count));
        c->letters[c->count++] = line.code[0];
    }
    if (c->count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: there is no letter in it: write one in each line", path));
out:
    pm_letters_free(&line);
    pm_free(text);
    return err;
}

static int check_twice(const struct pm_charset *c, const char *path)
{
    for (int i = 1; i < c->count; i++) {
        const int a = c->sorted[i - 1], b = c->sorted[i];
        struct pm_str letter = { 0 };

        if (c->letters[a] != c->letters[b])
            continue;
        pm_utf8_add(&letter, c->letters[a]);
        const int err = pm_fail(PM_EDATA, "%s: the letter %s is in it twice, as entries %d and "
                                "%d: remove one", path, letter.text, (a < b ? a : b) + 1,
                                (a < b ? b : a) + 1);
        pm_str_free(&letter);
        return err;
    }
    return PM_OK;
}

int pm_charset_open(const char *name, const char *where, struct pm_arena *a,
                    const struct pm_charset **out)
{
    struct pm_charset *c = pm_arena_alloc(a, sizeof *c);
    int err = PM_OK;

    *c = (struct pm_charset){ 0 };
    for (size_t i = 0; i < PM_COUNT(named); i++)
        if (strcmp(name, named[i].name) == 0)
            open_named(named[i].parts, a, c);
    if (c->count == 0) {
        if (!pm_file_exists(name))
            PM_TRY(pm_fail(PM_ECONFIG, "%s: \"%s\" is neither lowercase, allcases or "
                           "allcases_symbols nor a file with one letter in each line", where,
                           name));
        PM_TRY(read_file(name, a, c));
    }
    sort(c, a);
    PM_TRY(check_twice(c, name));
    *out = c;
out:
    return err;
}

int pm_charset_find(const struct pm_charset *c, uint32_t letter)
{
    int first = 0, last = c->count;

    while (first < last) {
        const int middle = first + (last - first) / 2;

        if (c->letters[c->sorted[middle]] < letter)
            first = middle + 1;
        else
            last = middle;
    }
    return first < c->count && c->letters[c->sorted[first]] == letter ? c->sorted[first] : -1;
}

void pm_charset_text(const struct pm_charset *c, const int32_t *text, int count,
                     struct pm_str *out)
{
    for (int i = 0; i < count; i++)
        pm_utf8_add(out, c->letters[text[i]]);
}
