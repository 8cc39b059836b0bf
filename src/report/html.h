/* html: text for a page. Everything that comes from a run (names, labels, log lines) is untrusted
 * text: it must go through PM_HTML's {} or pm_html_json_text, never into a template. */
#ifndef PM_HTML_H
#define PM_HTML_H

#include <pumice/base.h>

/* Appends template with each {} replaced by the next value, escaped for HTML text and quoted
 * attributes. PM_HTML(s, "<td class=\"{}\">{}</td>", name, PM_NUMBER(x)); */
void pm_html_fill(struct pm_str *s, const char *template, const char *const *values, size_t count);
#define PM_HTML(s, template, ...)                                                                  \
    pm_html_fill(s, template, (const char *const[]){ __VA_ARGS__ },                                \
                 sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))
/* Appends text without escaping. */
void pm_html_raw(struct pm_str *s, const char *text);
/* Shows control characters other than newline and tab, and marks of writing direction, as visible
 * escapes (pm_printable). */
void pm_html_escape(struct pm_str *s, const char *text, size_t length);
/* A JSON string with its quotes, safe inside <script>: no <, > or & is left in it. */
void pm_html_json_text(struct pm_str *s, const char *text);
/* A JSON number of at most 6 digits; null when not finite. */
void pm_html_json_number(struct pm_str *s, double value);

/* Numbers as people read them, into buf, which is returned. The macros make the buffer. */
enum { PM_TEXT = 48 };
char *pm_text_count(double value, char buf[PM_TEXT]);   /* 1,234,567 */
char *pm_text_number(double value, char buf[PM_TEXT]);  /* four digits: 0.01234, 12.34, 1.2e-5 */
char *pm_text_share(double value, char buf[PM_TEXT]);   /* 0.9742: 97.42 % */
char *pm_text_percent(double value, char buf[PM_TEXT]); /* three digits: 77.6 %, 0.72 % */
char *pm_text_seconds(double value, char buf[PM_TEXT]); /* 34 ms, 12.3 s, 4 min 05 s, 2 h 05 min */
#define PM_COUNT_TEXT(v) pm_text_count((double)(v), (char[PM_TEXT]){ 0 })
#define PM_NUMBER(v) pm_text_number(v, (char[PM_TEXT]){ 0 })
#define PM_SHARE(v) pm_text_share(v, (char[PM_TEXT]){ 0 })
#define PM_PERCENT(v) pm_text_percent(v, (char[PM_TEXT]){ 0 })
#define PM_SECONDS(v) pm_text_seconds(v, (char[PM_TEXT]){ 0 })

#endif
