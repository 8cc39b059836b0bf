#include "base/patterns.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string.h>

/* A name has some 100 characters; a pattern without nested repetitions needs fewer steps than
 * characters squared. */
enum { MOST_STEPS = 1000000, MOST_DEPTH = 10000, MOST_HEAP_KIB = 8192, LONGEST = 10000 };

struct pm_patterns {
    int count, used;            /* all patterns; those that are not empty */
    char **text;                /* owned */
    pcre2_code **code;          /* owned; NULL: the pattern is empty */
    pcre2_match_context *limits;
    char *where;                /* owned */
};

/* Python reads "{,3}" as "{0,3}", PCRE2 before 10.43 as these four characters. */
static char *python_counts(const char *text)
{
    struct pm_str s = { 0 };
    bool in_class = false;

    for (const char *c = text; *c; c++) {
        if (*c == '\\' && c[1]) {
            pm_str_add(&s, "%c%c", c[0], c[1]);
            c++;
            continue;
        }
        if (*c == '[' && !in_class) {
            in_class = true;
            /* a ']' that comes first is a member of the class */
            int first = c[1] == '^' ? 2 : 1;

            if (c[first] == ']') {
                pm_str_add(&s, "%.*s", first + 1, c);
                c += first;
                continue;
            }
        } else if (*c == ']') {
            in_class = false;
        }
        pm_str_add(&s, "%c", *c);
        if (*c == '{' && c[1] == ',' && !in_class && strspn(c + 2, "0123456789") > 0 &&
            c[2 + strspn(c + 2, "0123456789")] == '}')
            pm_str_add(&s, "0");
    }
    return s.text;
}

static int compile(struct pm_patterns *p, int i)
{
    char *text = python_counts(p->text[i]);
    int code, err = PM_OK;
    size_t at;
    PCRE2_UCHAR message[256];

    if (strlen(text) > LONGEST)
        err = pm_fail(PM_ECONFIG, "%s: a regular expression of %zu characters; at most %d are "
                      "allowed", p->where, strlen(text), LONGEST);
    else
        p->code[i] = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                   PCRE2_ANCHORED | PCRE2_NEVER_UTF | PCRE2_NEVER_BACKSLASH_C,
                                   &code, &at, NULL);
    if (err == PM_OK && !p->code[i]) {
        pcre2_get_error_message(code, message, sizeof message);
        err = pm_fail(PM_ECONFIG, "%s: \"%s\" is not a regular expression: %s at character %zu",
                      p->where, p->text[i], (const char *)message, at + 1);
    }
    pm_free(text);
    return err;
}

int pm_patterns_compile(const char *const *texts, int count, const char *where,
                        struct pm_patterns **out)
{
    struct pm_patterns *p = pm_calloc(1, sizeof *p);
    int err = PM_OK;

    p->count = count;
    p->where = pm_strdup(where);
    p->text = pm_calloc((size_t)count, sizeof *p->text);
    p->code = pm_calloc((size_t)count, sizeof *p->code);
    p->limits = pcre2_match_context_create(NULL);
    if (!p->limits)
        PM_TRY(pm_fail(PM_EFAIL, "%s: no memory for regular expressions", where));
    pcre2_set_match_limit(p->limits, MOST_STEPS);
    pcre2_set_depth_limit(p->limits, MOST_DEPTH);
    pcre2_set_heap_limit(p->limits, MOST_HEAP_KIB);
    for (int i = 0; i < count; i++) {
        p->text[i] = pm_strdup(texts[i]);
        if (!*texts[i])
            continue;
        p->used++;
        PM_TRY(compile(p, i));
    }
    *out = p, p = NULL;
out:
    pm_patterns_destroy(&p);
    return err;
}

void pm_patterns_destroy(struct pm_patterns **patterns)
{
    struct pm_patterns *p = *patterns;

    if (!p)
        return;
    for (int i = 0; i < p->count; i++) {
        pm_free(p->text[i]);
        pcre2_code_free(p->code[i]);
    }
    pcre2_match_context_free(p->limits);
    pm_free(p->text);
    pm_free(p->code);
    pm_free(p->where);
    pm_free(p);
    *patterns = NULL;
}

int pm_patterns_count(const struct pm_patterns *p)
{
    return p ? p->used : 0;
}

/* Returns 1, 0 or PM_ECONFIG. */
static int match(const struct pm_patterns *p, int i, const char *name)
{
    pcre2_match_data *data = p->code[i] ? pcre2_match_data_create(1, NULL) : NULL;
    PCRE2_UCHAR message[256];
    int result;

    if (!data)
        return 0;
    result = pcre2_match(p->code[i], (PCRE2_SPTR)name, strlen(name), 0, 0, data, p->limits);
    pcre2_match_data_free(data);
    if (result >= 0 || result == PCRE2_ERROR_NOMATCH)
        return result >= 0;
    pcre2_get_error_message(result, message, sizeof message);
    return pm_fail(PM_ECONFIG, "%s: \"%s\" on the name %s: %s. Simplify the expression: a repeated "
                   "group that repeats something itself takes too many steps", p->where,
                   p->text[i], name, (const char *)message);
}

int pm_patterns_find(const struct pm_patterns *p, const char *name)
{
    for (int i = 0; p && i < p->count; i++) {
        int found = match(p, i, name);

        if (found)
            return found < 0 ? found : i;
    }
    return PM_NO_PATTERN;
}

bool pm_patterns_one(const struct pm_patterns *p, int i, const char *name)
{
    return match(p, i, name) == 1;
}
