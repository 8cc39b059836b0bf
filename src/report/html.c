/* html: html.h has the contract. */
#include "report/html.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void pm_html_raw(struct pm_str *s, const char *text)
{
    pm_str_bytes(s, text, strlen(text));
}

static const char *entity(char c)
{
    return c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" :
           c == '\'' ? "&#39;" : NULL;
}

/* Newlines and tabs are HTML's own white space. Other control characters, marks of writing
 * direction and bytes that are no UTF-8 are shown as escapes. */
void pm_html_escape(struct pm_str *s, const char *text, size_t length)
{
    for (int used; length > 0; text += used, length -= (size_t)used) {
        char piece[PM_PRINTABLE];
        const int n = pm_printable_next(text, length, piece, &used);

        if (entity(*text))
            pm_html_raw(s, entity(*text));
        else if (*text == '\n' || *text == '\t')
            pm_str_bytes(s, text, 1);
        else
            pm_str_bytes(s, piece, (size_t)n);
    }
}

void pm_html_fill(struct pm_str *s, const char *template, const char *const *values, size_t count)
{
    size_t used = 0;

    for (const char *at = template;;) {
        const char *hole = strstr(at, "{}");

        if (!hole) {
            pm_html_raw(s, at);
            break;
        }
        pm_str_bytes(s, at, (size_t)(hole - at));
        assert(used < count);
        if (values[used])
            pm_html_escape(s, values[used], strlen(values[used]));
        used++;
        at = hole + 2;
    }
    assert(used == count);
    (void)count;
}

void pm_html_json_text(struct pm_str *s, const char *text)
{
    struct pm_str plain = { 0 };

    pm_str_printable(&plain, text, strlen(text));
    pm_html_raw(s, "\"");
    for (const char *c = plain.text; c && *c; c++) {
        if (*c == '"' || *c == '\\' || *c == '<' || *c == '>' || *c == '&')
            pm_str_add(s, "\\u%04x", (unsigned)*c);
        else
            pm_str_bytes(s, c, 1);
    }
    pm_html_raw(s, "\"");
    pm_str_free(&plain);
}

void pm_html_json_number(struct pm_str *s, double value)
{
    if (isfinite(value))
        pm_str_add(s, "%.6g", value);
    else
        pm_html_raw(s, "null");
}

/* ---- numbers ----------------------------------------------------------------------------- */

#define SPACE "\xc2\xa0" /* that does not break a line */
#define NOTHING "\xe2\x80\x93"

char *pm_text_count(double value, char buf[PM_TEXT])
{
    char digits[32];
    size_t n = 0;

    if (!isfinite(value) || fabs(value) >= 1e15)
        return pm_text_number(value, buf);
    snprintf(digits, sizeof digits, "%.0f", value);
    for (size_t i = 0, length = strlen(digits); i < length; i++) {
        buf[n++] = digits[i];
        if (digits[i] != '-' && i + 1 < length && (length - i - 1) % 3 == 0)
            buf[n++] = ',';
    }
    buf[n] = '\0';
    return buf;
}

/* 1.2e-7: without the zeros before the exponent. */
static void small_or_large(double value, char buf[PM_TEXT])
{
    snprintf(buf, PM_TEXT, "%.3g", value);
    char *digits = strpbrk(buf, "e");

    if (!digits)
        return;
    digits += 2;
    char *to = digits[-1] == '+' ? digits - 1 : digits;
    digits += strspn(digits, "0");
    memmove(to, digits, strlen(digits) + 1);
}

char *pm_text_number(double value, char buf[PM_TEXT])
{
    const double size = fabs(value);

    if (!isfinite(value))
        snprintf(buf, PM_TEXT, NOTHING);
    else if (size >= 1e6 || (size > 0 && size < 1e-4))
        small_or_large(value, buf);
    else if (size >= 1000)
        pm_text_count(value, buf);
    else
        snprintf(buf, PM_TEXT, "%.4g", value);
    return buf;
}

char *pm_text_share(double value, char buf[PM_TEXT])
{
    if (!isfinite(value))
        snprintf(buf, PM_TEXT, NOTHING);
    else if (value > 0.9999 && value < 1)
        snprintf(buf, PM_TEXT, "99.99" SPACE "%%"); /* 100 % means all of them */
    else if (value == 0 || value == 1)
        snprintf(buf, PM_TEXT, "%.0f" SPACE "%%", 100 * value);
    else
        snprintf(buf, PM_TEXT, "%.2f" SPACE "%%", 100 * value);
    return buf;
}

char *pm_text_percent(double value, char buf[PM_TEXT])
{
    if (!isfinite(value))
        snprintf(buf, PM_TEXT, NOTHING);
    else if (value >= 0.9995 && value < 1)
        snprintf(buf, PM_TEXT, "99.9" SPACE "%%"); /* 100 % means all of them */
    else if (value > 0 && value < 1e-4)
        snprintf(buf, PM_TEXT, "<" SPACE "0.01" SPACE "%%");
    else
        snprintf(buf, PM_TEXT, "%.3g" SPACE "%%", 100 * value);
    return buf;
}

char *pm_text_seconds(double value, char buf[PM_TEXT])
{
    const double whole = floor(value + 0.5);

    if (!isfinite(value) || value < 0)
        snprintf(buf, PM_TEXT, NOTHING);
    else if (value < 1)
        snprintf(buf, PM_TEXT, "%.3g" SPACE "ms", 1e3 * value);
    else if (value < 60)
        snprintf(buf, PM_TEXT, "%.3g" SPACE "s", value);
    else if (whole < 3600)
        snprintf(buf, PM_TEXT, "%.0f" SPACE "min %02.0f" SPACE "s", floor(whole / 60),
                 fmod(whole, 60));
    else if (whole < 86400)
        snprintf(buf, PM_TEXT, "%.0f" SPACE "h %02.0f" SPACE "min", floor(whole / 3600),
                 floor(fmod(whole, 3600) / 60));
    else
        snprintf(buf, PM_TEXT, "%.0f" SPACE "d %.0f" SPACE "h", floor(whole / 86400),
                 floor(fmod(whole, 86400) / 3600));
    return buf;
}
