/* axes_charts: the figures of axes.h, drawn as SVG without a script. A point's colour says how good
 * it is: --q is 0 % for the worst and 100 % for the best. Its title names it. */
#include "report/axes.h"

#include "report/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_DRAWN = 500,  /* points: the best ones */
    ROOM_BESIDE = 130, /* between two labels on a horizontal axis, of 1000 */
    ROOM_BELOW = 55,   /* and on a vertical one */
};

/* The points that have the metric, the worst first, and the axis of the metric. */
struct drawing {
    const struct pm_axes *a;
    struct pm_scale y;    /* of the metric with its spread */
    double low, high;     /* of the means */
    enum pm_chart_format format;
    int *order;           /* owned */
    int count, all;       /* drawn; that have the metric */
};

/* ---- the metric -------------------------------------------------------------------------- */

static const struct pm_axes *sorted; /* for qsort */

static int compare(const void *a, const void *b)
{
    const int i = *(const int *)a, j = *(const int *)b;
    const double x = sorted->mean[i], y = sorted->mean[j];

    if (i == sorted->best || j == sorted->best)
        return i == j ? 0 : i == sorted->best ? 1 : -1;
    return x == y ? j - i : (x < y) == sorted->higher ? -1 : 1;
}

static struct drawing begin(const struct pm_axes *a)
{
    struct drawing d = { .a = a, .low = INFINITY, .high = -INFINITY };
    double from = INFINITY, to = -INFINITY;

    d.order = pm_calloc((size_t)a->points + 1, sizeof *d.order);
    for (int i = 0; i < a->points; i++)
        if (isfinite(a->mean[i]))
            d.order[d.all++] = i;
    sorted = a;
    qsort(d.order, (size_t)d.all, sizeof *d.order, compare);
    d.count = d.all < MOST_DRAWN ? d.all : MOST_DRAWN;
    memmove(d.order, d.order + d.all - d.count, (size_t)d.count * sizeof *d.order);
    for (int k = 0; k < d.count; k++) {
        const int i = d.order[k];
        const double spread = isfinite(a->spread[i]) ? a->spread[i] : 0;

        d.low = fmin(d.low, a->mean[i]);
        d.high = fmax(d.high, a->mean[i]);
        from = fmin(from, a->mean[i] - spread);
        to = fmax(to, a->mean[i] + spread);
    }
    d.format = d.low >= 0 && d.high <= 1 && !strstr(a->metric, "loss") ? PM_CHART_SHARE
                                                                       : PM_CHART_NUMBER;
    if (d.low > 0 && from > 0 && d.high > 10 * d.low && d.format != PM_CHART_SHARE)
        d.y = (struct pm_scale){ from / 1.1, to * 1.1, true };
    else if (from < to)
        d.y = (struct pm_scale){ from - 0.06 * (to - from), to + 0.06 * (to - from), false };
    else
        d.y = (struct pm_scale){ from - fabs(from) * 0.1 - (from == 0),
                                 to + fabs(to) * 0.1 + (to == 0), false };
    return d;
}

static char *value_text(const struct drawing *d, double v, char buf[PM_TEXT])
{
    return pm_report_value(v, d->format == PM_CHART_SHARE, buf);
}

/* Begins the path of a point, with its colour and then its title. */
static void begin_path(struct pm_str *html, const struct drawing *d, int i, const char *kind)
{
    const double share = d->low < d->high ? (d->y.log ? log(d->a->mean[i] / d->low) /
                                                            log(d->high / d->low)
                                                      : (d->a->mean[i] - d->low) /
                                                            (d->high - d->low))
                                          : 1;

    pm_str_add(html, "<path class=\"%s\" style=\"--q:%.0f%%\" d=\"", kind,
               100 * (d->a->higher || d->low == d->high ? share : 1 - share));
}

static void end_path(struct pm_str *html, const struct drawing *d, int i)
{
    char mean[PM_TEXT], spread[PM_TEXT];

    PM_HTML(html, "\"><title>{}: {} {}", d->a->names[i], d->a->metric,
            value_text(d, d->a->mean[i], mean));
    if (d->a->spread[i] > 0)
        PM_HTML(html, " \xc2\xb1 {}", value_text(d, d->a->spread[i], spread));
    pm_html_raw(html, "</title></path>");
}

/* ---- parallel coordinates ---------------------------------------------------------------- */

/* The labels of a vertical axis at `left` per cent, without those that would lie on others. */
static void write_ticks(struct pm_str *html, const struct pm_axis *x, double left)
{
    double last = -ROOM_BELOW;

    for (int i = 0; i < x->labels_count; i++) {
        if (fabs(x->ticks[i] - last) < ROOM_BELOW)
            continue;
        last = x->ticks[i];
        pm_str_add(html, "<span class=\"tick\" style=\"left:%.2f%%;top:%.2f%%\" ", left,
                   100 - x->ticks[i] / 10);
        PM_HTML(html, "title=\"{}\">{}</span>", x->labels[i], x->labels[i]);
    }
}

static void write_parallel(struct pm_str *html, const struct drawing *d)
{
    const struct pm_axes *a = d->a;
    char low[PM_TEXT], high[PM_TEXT];
    double ticks[PM_SCALE_TICKS];
    const int n = pm_scale_ticks(&d->y, 5, ticks);

    PM_HTML(html, "<figure class=\"card chart wide axes\" id=\"parallel\"><figcaption><h3>Parallel "
            "coordinates</h3></figcaption><p class=\"note\">Each line is a {}. Its colour is its "
            "{}: <span class=\"ramp\"><b>{}</b><i></i><b>{}</b></span></p>",
            a->thing, a->metric,
            value_text(d, a->higher ? d->low : d->high, low),
            value_text(d, a->higher ? d->high : d->low, high));
    pm_str_add(html, "<div class=\"scroll\"><div class=\"plot\" role=\"img\" style=\"--n:%d\" ",
               a->count + 1);
    PM_HTML(html, "aria-label=\"{} and the values of the keys; the table has the numbers\">"
            PM_CHART_SVG "<path class=\"grid\" d=\"", a->metric);
    for (int k = 0; k <= a->count; k++) {
        pm_chart_point(html, 'M', 1000.0 * k / a->count, 0);
        pm_html_raw(html, "V1000");
    }
    pm_html_raw(html, "\"/>");
    for (int p = 0; p < d->count; p++) {
        const int i = d->order[p];

        begin_path(html, d, i, i == a->best ? "point top" : "point");
        for (int k = 0; k < a->count; k++)
            pm_chart_point(html, k ? 'L' : 'M', 1000.0 * k / a->count, 1000 - a->list[k].at[i]);
        pm_chart_point(html, 'L', 1000, 1000 - pm_scale_at(&d->y, a->mean[i]));
        end_path(html, d, i);
    }
    pm_html_raw(html, "</svg>");
    for (int k = 0; k < a->count; k++) {
        const double left = 100.0 * k / a->count;

        pm_str_add(html, "<span class=\"key\" style=\"left:%.2f%%\" ", left);
        PM_HTML(html, "title=\"{}\">{}</span>", a->list[k].name, a->list[k].name);
        write_ticks(html, &a->list[k], left);
    }
    PM_HTML(html, "<span class=\"key\" style=\"left:100%\">{}</span>", a->metric);
    for (int i = 0; i < n; i++) {
        pm_str_add(html, "<span class=\"tick\" style=\"left:100%%;top:%.2f%%\">",
                   100 - pm_scale_at(&d->y, ticks[i]) / 10);
        PM_HTML(html, "{}</span>", pm_chart_tick_text(d->format, ticks[i], low));
    }
    pm_html_raw(html, "</div></div></figure>\n");
}

/* ---- the metric against one key ---------------------------------------------------------- */

/* The place of a point from the left, with room at both sides. */
static double inside(double at)
{
    return 40 + 0.92 * at;
}

static void write_dots(struct pm_str *html, const struct drawing *d, const struct pm_axis *x)
{
    for (int p = 0; p < d->count; p++) {
        const int i = d->order[p];
        const double mean = d->a->mean[i], spread = d->a->spread[i], at = inside(x->at[i]);

        if (spread > 0) {
            begin_path(html, d, i, "spread");
            pm_chart_point(html, 'M', at, 1000 - pm_scale_at(&d->y, mean - spread));
            pm_chart_point(html, 'L', at, 1000 - pm_scale_at(&d->y, mean + spread));
            end_path(html, d, i);
        }
        begin_path(html, d, i, "dot");
        pm_chart_point(html, 'M', at, 1000 - pm_scale_at(&d->y, mean));
        pm_html_raw(html, "h.01");
        end_path(html, d, i);
    }
}

static void write_key(struct pm_str *html, const struct drawing *d, int k)
{
    const struct pm_axis *x = &d->a->list[k];
    const int shown = x->labels_count < 6 ? x->labels_count : 6;
    double last = -INFINITY;

    pm_str_add(html, "<figure class=\"card chart\" id=\"key-%d\"><figcaption><h3>", k);
    PM_HTML(html, "{} by {}</h3></figcaption><div class=\"plot\" role=\"img\" aria-label=\"{} "
            "against {}; the table has the numbers\">" PM_CHART_SVG, d->a->metric, x->name,
            d->a->metric, x->name);
    pm_chart_grid(html, &d->y);
    write_dots(html, d, x);
    pm_html_raw(html, "</svg>");
    pm_chart_values(html, &d->y, d->format);
    for (int i = 0; i < x->labels_count; i++) {
        const double at = inside(x->ticks[i]);

        if (fabs(at - last) < (x->numbers ? ROOM_BESIDE : 920.0 / 6))
            continue;
        last = at;
        pm_str_add(html, "<span class=\"x\" style=\"left:%.2f%%;max-width:%.0f%%\" ", at / 10,
                   x->numbers ? 100 : 92.0 / (shown > 1 ? shown - 0.5 : 1));
        PM_HTML(html, "title=\"{}\">{}</span>", x->labels[i], x->labels[i]);
    }
    pm_html_raw(html, "</div></figure>\n");
}

void pm_axes_write(struct pm_str *html, const struct pm_axes *a)
{
    struct drawing d = begin(a);

    if (d.count > 0 && a->count > 0) {
        pm_html_raw(html, "<div class=\"charts\">\n");
        write_parallel(html, &d);
        for (int k = 0; k < a->count; k++)
            write_key(html, &d, k);
        pm_html_raw(html, "</div>\n");
        if (d.count < d.all || d.all < a->points) {
            pm_html_raw(html, "<p class=\"note\">");
            if (d.count < d.all)
                PM_HTML(html, "The figures show the best {} of {} {}. ",
                        PM_COUNT_TEXT(d.count), PM_COUNT_TEXT(d.all), a->things);
            if (d.all < a->points)
                PM_HTML(html, "{} {} {} no {}.", PM_COUNT_TEXT(a->points - d.all),
                        pm_plural(a->points - d.all, a->thing, a->things),
                        pm_plural(a->points - d.all, "has", "have"), a->metric);
            pm_html_raw(html, "</p>\n");
        }
    }
    pm_free(d.order);
}
