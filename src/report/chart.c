/* chart: chart.h has the contract. Coordinates are of a square of 1000 x 1000. */
#include "report/chart.h"
#include "report/html.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { FEW = 12, DOTS = 24 }; /* numbers of values: below FEW unsmoothed, below DOTS with a dot
                               * each */

/* ---- series ------------------------------------------------------------------------------ */

static struct pm_chart_series *add_series(struct pm_chart *c, const char *label,
                                          enum pm_chart_style style, int capacity)
{
    if (c->count == PM_CHART_SERIES)
        return NULL;
    struct pm_chart_series *s = &c->series[c->count++];
    *s = (struct pm_chart_series){ .label = pm_strdup(label), .run = -1, .style = style };
    s->points = pm_malloc((size_t)capacity * sizeof *s->points);
    return s;
}

static void add_curve(struct pm_chart *c, const struct pm_curve *curve, const char *label,
                      enum pm_chart_style style, int run, int color, int dash)
{
    struct pm_chart_series *s = add_series(c, label, style, 2 * PM_CURVE_BINS);

    if (!s)
        return;
    s->run = run;
    s->color = color % PM_CHART_COLORS;
    s->dash = dash;
    s->count = style == PM_CHART_LINE ? pm_curve_smooth(curve, s->points)
                                      : pm_curve_points(curve, s->points);
}

int pm_chart_dash(int i)
{
    enum { DASHES = 4 };

    return (i + i / PM_CHART_COLORS) % DASHES;
}

void pm_chart_curve(struct pm_chart *c, const struct pm_curve *curve, const char *label, int run,
                    int color, int dash)
{
    char text[256];

    if (!curve || curve->count <= FEW) {
        pm_chart_dots(c, curve, label, run, color, dash);
        return;
    }
    snprintf(text, sizeof text, "%s, each value", label);
    add_curve(c, curve, text, PM_CHART_RAW, run, color, dash);
    add_curve(c, curve, label, PM_CHART_LINE, run, color, dash);
}

void pm_chart_smooth(struct pm_chart *c, const struct pm_curve *curve, const char *label, int color)
{
    if (curve && curve->count > FEW)
        add_curve(c, curve, label, PM_CHART_LINE, -1, color, 0);
    else
        pm_chart_dots(c, curve, label, -1, color, 0);
}

void pm_chart_dots(struct pm_chart *c, const struct pm_curve *curve, const char *label, int run,
                   int color, int dash)
{
    if (curve && curve->count > 0)
        add_curve(c, curve, label, PM_CHART_DOTS, run, color, dash);
}

void pm_chart_line(struct pm_chart *c, const char *label, int color, int dash,
                   const struct pm_curve_point *points, int count)
{
    struct pm_chart_series *s = add_series(c, label, PM_CHART_LINE, count);

    if (!s)
        return;
    memcpy(s->points, points, (size_t)count * sizeof *points);
    s->count = count;
    s->color = color % PM_CHART_COLORS;
    s->dash = dash;
}

void pm_chart_area(struct pm_chart *c, const char *label, const char *note, int color,
                   const struct pm_curve_point *points, int count)
{
    struct pm_chart_series *s = add_series(c, label, PM_CHART_AREA, count);

    if (!s)
        return;
    memcpy(s->points, points, (size_t)count * sizeof *points);
    s->note = pm_strdup(note);
    s->count = count;
    s->color = color % PM_CHART_COLORS;
}

/* ---- scales ------------------------------------------------------------------------------ */

/* Sums of the areas up to and with series n at its point i; others: the value. */
static double top_of(const struct pm_chart *c, int n, int i)
{
    double sum = c->series[n].points[i].value;

    for (int k = 0; k < n && c->series[n].style == PM_CHART_AREA; k++)
        if (c->series[k].style == PM_CHART_AREA && i < c->series[k].count)
            sum += c->series[k].points[i].value;
    return sum;
}

static bool has_area(const struct pm_chart *c)
{
    return c->count > 0 && c->series[0].style == PM_CHART_AREA;
}

/* Range of the values, or of the positive values for a logarithmic scale; false if there are
 * none. */
static bool value_range(const struct pm_chart *c, bool log, struct pm_scale *out)
{
    double low = INFINITY, high = -INFINITY;

    for (int n = 0; n < c->count; n++)
        for (int i = 0; i < c->series[n].count; i++) {
            const double v = top_of(c, n, i);
            if (!isfinite(v) || (log && v <= 0))
                continue;
            low = fmin(low, v);
            high = fmax(high, v);
        }
    if (low > high)
        return false;
    if (has_area(c) || (c->from_zero && low > 0 && !log))
        low = 0;
    const bool capped = c->format == PM_CHART_SHARE && high <= 1 + 1e-9, positive = low >= 0;
    if (low == high && !log)
        low -= fabs(low) * 0.1 + (low == 0), high += fabs(high) * 0.1 + (high == 0);
    const double room = log ? pow(high / low, 0.04) * (low == high ? 1.5 : 1) : 0.04 * (high - low);
    *out = log ? (struct pm_scale){ low / room, high * room, true }
               : (struct pm_scale){ has_area(c) ? 0 : low - room, high + room, false };
    if (!log && positive && out->from < 0)
        out->from = 0;
    if (capped && out->to > 1)
        out->to = 1 + 0.02 * (1 - out->from);
    return out->to > out->from;
}

static struct pm_scale step_range(const struct pm_chart *c)
{
    struct pm_scale s = { 0, 1, false };

    if (c->log_axis) {
        s = (struct pm_scale){ INFINITY, 0, true };
        for (int n = 0; n < c->count; n++)
            for (int i = 0; i < c->series[n].count; i++) {
                s.from = fmin(s.from, c->series[n].points[i].step);
                s.to = fmax(s.to, c->series[n].points[i].step);
            }
        return s;
    }
    for (int n = 0; n < c->count; n++)
        if (c->series[n].count > 0)
            s.to = fmax(s.to, c->series[n].points[c->series[n].count - 1].step);
    return s;
}

/* ---- drawing ----------------------------------------------------------------------------- */

void pm_chart_point(struct pm_str *s, char letter, double x, double y)
{
    pm_str_add(s, "%c%.5g %.5g", letter, round(x * 10) / 10, round(y * 10) / 10);
}

static void draw_line(struct pm_str *html, const struct pm_chart_series *s,
                      const struct pm_scale *x, const struct pm_scale *y)
{
    bool down = false;

    for (int i = 0; i < s->count; i++) {
        const struct pm_curve_point p = s->points[i];
        if (!isfinite(p.value) || (y->log && p.value <= 0)) {
            down = false;
            continue;
        }
        pm_chart_point(html, down ? 'L' : 'M', pm_scale_at(x, p.step),
                       1000 - pm_scale_at(y, p.value));
        down = true;
    }
}

static void draw_area(struct pm_str *html, const struct pm_chart *c, int n,
                      const struct pm_scale *x, const struct pm_scale *y)
{
    const struct pm_chart_series *s = &c->series[n];

    for (int i = 0; i < s->count; i++)
        pm_chart_point(html, i ? 'L' : 'M', pm_scale_at(x, s->points[i].step),
                  1000 - pm_scale_at(y, top_of(c, n, i)));
    for (int i = s->count; i-- > 0;)
        pm_chart_point(html, 'L', pm_scale_at(x, s->points[i].step),
                  1000 - pm_scale_at(y, top_of(c, n, i) - s->points[i].value));
    pm_html_raw(html, "Z");
}

static void draw_series(struct pm_str *html, const struct pm_chart *c, int n,
                        const struct pm_scale *x, const struct pm_scale *y)
{
    static const char *const kinds[] = { "raw", "line", "line", "area" };
    const struct pm_chart_series *s = &c->series[n];

    pm_str_add(html, "<path class=\"%s c%d d%d", kinds[s->style], s->color, s->dash);
    if (s->run >= 0)
        pm_str_add(html, " r%d", s->run);
    pm_html_raw(html, "\" d=\"");
    if (s->style == PM_CHART_AREA)
        draw_area(html, c, n, x, y);
    else
        draw_line(html, s, x, y);
    pm_html_raw(html, "\"/>");
    if (s->style != PM_CHART_DOTS || s->count > DOTS)
        return;
    pm_str_add(html, "<path class=\"dots c%d", s->color);
    if (s->run >= 0)
        pm_str_add(html, " r%d", s->run);
    pm_html_raw(html, "\" d=\"");
    for (int i = 0; i < s->count; i++)
        if (!y->log || s->points[i].value > 0) {
            pm_chart_point(html, 'M', pm_scale_at(x, s->points[i].step),
                      1000 - pm_scale_at(y, s->points[i].value));
            pm_html_raw(html, "h.01");
        }
    pm_html_raw(html, "\"/>");
}

char *pm_chart_tick_text(enum pm_chart_format format, double v, char buf[PM_TEXT])
{
    if (format == PM_CHART_SECONDS)
        return pm_text_seconds(v, buf);
    if (format == PM_CHART_NUMBER)
        return pm_text_number(fabs(v) < 1e-12 ? 0 : v, buf);
    snprintf(buf, PM_TEXT, "%.5g\xc2\xa0%%", 100 * v);
    return buf;
}

void pm_chart_grid(struct pm_str *html, const struct pm_scale *y)
{
    double ticks[PM_SCALE_TICKS];
    const int n = pm_scale_ticks(y, 5, ticks);

    pm_html_raw(html, "<path class=\"grid\" d=\"");
    for (int i = 0; i < n; i++) {
        pm_chart_point(html, 'M', 0, 1000 - pm_scale_at(y, ticks[i]));
        pm_html_raw(html, "H1000");
    }
    pm_html_raw(html, "\"/>");
}

void pm_chart_values(struct pm_str *html, const struct pm_scale *y, enum pm_chart_format format)
{
    double ticks[PM_SCALE_TICKS];
    const int n = pm_scale_ticks(y, 5, ticks);
    char text[PM_TEXT];

    for (int i = 0; i < n; i++) {
        pm_str_add(html, "<span class=\"y\" style=\"top:%.2f%%\">",
                   100 - pm_scale_at(y, ticks[i]) / 10);
        PM_HTML(html, "{}</span>", pm_chart_tick_text(format, ticks[i], text));
    }
}

/* One view: grid, lines and axis values. */
static void draw_view(struct pm_str *html, const struct pm_chart *c, const struct pm_scale *x,
                      const struct pm_scale *y)
{
    pm_str_add(html, "<div class=\"%s\">" PM_CHART_SVG, y->log ? "log" : "lin");
    pm_chart_grid(html, y);
    for (int i = 0; i < c->count; i++)
        draw_series(html, c, i, x, y);
    pm_html_raw(html, "</svg>");
    pm_chart_values(html, y, c->format);
    pm_html_raw(html, "</div>");
}

static void draw_steps(struct pm_str *html, const struct pm_chart *c, const struct pm_scale *x)
{
    double ticks[PM_SCALE_TICKS];
    const int n = pm_scale_ticks(x, 4, ticks);

    for (int i = 0; i < n; i++)
        if (x->log) {
            pm_str_add(html, "<span class=\"x\" style=\"left:%.2f%%\">",
                       pm_scale_at(x, ticks[i]) / 10);
            PM_HTML(html, "{}{}</span>", PM_NUMBER(ticks[i]), c->unit ? c->unit : "");
        } else if (ticks[i] == floor(ticks[i])) {
            pm_str_add(html, "<span class=\"x\" style=\"left:%.2f%%\">",
                       pm_scale_at(x, ticks[i]) / 10);
            PM_HTML(html, "{}{}</span>", PM_COUNT_TEXT(ticks[i]), c->unit ? c->unit : "");
        }
}

/* ---- words ------------------------------------------------------------------------------- */

static char *value_text(const struct pm_chart *c, double v, char buf[PM_TEXT])
{
    return c->format == PM_CHART_SHARE ? pm_text_share(v, buf) :
           c->format == PM_CHART_SECONDS ? pm_text_seconds(v, buf) : pm_text_number(v, buf);
}

/* The text for screen readers. */
static void describe(struct pm_str *html, const struct pm_chart *c)
{
    char first[PM_TEXT], last[PM_TEXT];

    const char *axis = c->axis ? c->axis : "step", *unit = c->unit ? c->unit : "";

    PM_HTML(html, "{} by {}", c->title, axis);
    for (int n = 0; n < c->count; n++) {
        const struct pm_chart_series *s = &c->series[n];
        if (s->style == PM_CHART_RAW || s->count == 0)
            continue;
        const double from = s->points[0].step, to = s->points[s->count - 1].step;
        PM_HTML(html, "; {}: {} at {} {}{}, {} at {} {}{}", s->label,
                value_text(c, s->points[0].value, first), axis,
                c->log_axis ? PM_NUMBER(from) : PM_COUNT_TEXT(from), unit,
                value_text(c, s->points[s->count - 1].value, last), axis,
                c->log_axis ? PM_NUMBER(to) : PM_COUNT_TEXT(to), unit);
    }
}

static void write_legend(struct pm_str *html, const struct pm_chart *c)
{
    pm_html_raw(html, "<ul class=\"legend\">");
    for (int n = c->count; n-- > 0;) { /* areas: the uppermost first */
        const struct pm_chart_series *s = &c->series[has_area(c) ? n : c->count - 1 - n];
        if (s->style == PM_CHART_RAW)
            continue;
        pm_str_add(html, "<li class=\"c%d d%d%s", s->color, s->dash,
                   s->style == PM_CHART_AREA   ? " area"
                   : s->style == PM_CHART_DOTS ? " dotted"
                                               : "");
        if (s->run >= 0)
            pm_str_add(html, " r%d\" data-run=\"%d", s->run, s->run);
        pm_html_raw(html, "\"><i></i>");
        PM_HTML(html, s->note ? "{} <b>{}</b></li>" : "{}{}</li>", s->label, s->note);
    }
    pm_html_raw(html, "</ul>");
}

/* Whether most of a linear view would be empty: curves that end far below their top. */
static bool falls_far(const struct pm_chart *c, double top)
{
    double last = INFINITY;

    for (int n = 0; n < c->count; n++)
        if (c->series[n].count > 0)
            last = fmin(last, c->series[n].points[c->series[n].count - 1].value);
    return c->log == PM_CHART_LOG_IF_FAR && last > 0 && top > 10 * last;
}

static void write_tools(struct pm_str *html, const struct pm_chart *c, bool log, double top)
{
    bool raw = false;

    for (int n = 0; n < c->count; n++)
        raw |= c->series[n].style == PM_CHART_RAW;
    if (!raw && !log)
        return;
    pm_html_raw(html, "<span class=\"tools\">");
    if (raw)
        PM_HTML(html, "<label><input type=\"checkbox\" class=\"show-raw\" id=\"{}-raw\" checked>"
                "<span>each value</span></label>", c->id);
    if (log)
        PM_HTML(html, "<label><input type=\"checkbox\" class=\"show-log\" id=\"{}-log\"{}>"
                "<span>log</span></label>", c->id, falls_far(c, top) ? " checked" : "");
    pm_html_raw(html, "</span>");
}

/* ---- for the script ---------------------------------------------------------------------- */

static void write_range(struct pm_str *json, const char *name, const struct pm_scale *s)
{
    pm_str_add(json, ",\"%s\":[%.9g,%.9g]", name, s->log ? log10(s->from) : s->from,
               s->log ? log10(s->to) : s->to);
}

static void write_json(struct pm_str *json, const struct pm_chart *c, const struct pm_scale *x,
                       const struct pm_scale *lin, const struct pm_scale *log)
{
    static const char *const formats[] = { "number", "share", "seconds" };
    static const char *const kinds[] = { "raw", "line", "dots", "area" };

    pm_html_raw(json, json->length ? ",\n{\"id\":" : "{\"id\":");
    pm_html_json_text(json, c->id);
    pm_str_add(json, ",\"format\":\"%s\"", formats[c->format]);
    if (c->axis) {
        pm_html_raw(json, ",\"axis\":");
        pm_html_json_text(json, c->axis);
        pm_html_raw(json, ",\"unit\":");
        pm_html_json_text(json, c->unit ? c->unit : "");
    }
    write_range(json, "x", x);
    write_range(json, "y", lin);
    if (log)
        write_range(json, "log", log);
    pm_html_raw(json, ",\"series\":[");
    for (int n = 0; n < c->count; n++) {
        const struct pm_chart_series *s = &c->series[n];
        pm_html_raw(json, n ? ",{\"name\":" : "{\"name\":");
        pm_html_json_text(json, s->label);
        pm_str_add(json, ",\"kind\":\"%s\",\"run\":%d,\"color\":%d,\"at\":[", kinds[s->style],
                   s->run, s->color);
        for (int i = 0; i < s->count; i++)
            pm_str_add(json, i ? ",%.15g" : "%.15g", s->points[i].step);
        pm_html_raw(json, "],\"v\":[");
        for (int i = 0; i < s->count; i++) {
            pm_html_raw(json, i ? "," : "");
            pm_html_json_number(json, s->points[i].value);
        }
        pm_html_raw(json, "]}");
    }
    pm_html_raw(json, "]}");
}

/* ---- the figure -------------------------------------------------------------------------- */

void pm_chart_write(struct pm_chart *c, struct pm_str *html, struct pm_str *json)
{
    const struct pm_scale x = step_range(c);
    struct pm_scale lin, log;
    const bool any = value_range(c, false, &lin),
               has_log = any && c->log && value_range(c, true, &log);

    PM_HTML(html, "<figure class=\"card chart{}\" id=\"{}\"><figcaption><h3>{}</h3>",
            c->wide ? " wide" : "", c->id, c->title);
    if (any)
        write_tools(html, c, has_log, lin.to);
    pm_html_raw(html, "</figcaption>");
    if (c->note)
        PM_HTML(html, "<p class=\"note\">{}</p>", c->note);
    if (any) {
        if (c->legend)
            write_legend(html, c);
        pm_html_raw(html, "<div class=\"plot\" tabindex=\"0\" role=\"img\" aria-label=\"");
        describe(html, c);
        pm_html_raw(html, "\">");
        draw_view(html, c, &x, &lin);
        if (has_log)
            draw_view(html, c, &x, &log);
        draw_steps(html, c, &x);
        pm_html_raw(html, "</div>");
        if (!c->log_axis)
            write_json(json, c, &x, &lin, has_log ? &log : NULL);
    } else {
        PM_HTML(html, "<p class=\"empty\">{}</p>", c->empty ? c->empty : "No values yet.");
    }
    pm_html_raw(html, "</figure>\n");
    for (int n = 0; n < c->count; n++) {
        pm_free(c->series[n].label);
        pm_free(c->series[n].note);
        pm_free(c->series[n].points);
    }
    c->count = 0;
}
