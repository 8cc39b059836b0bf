/* chart: a figure with curves, drawn as SVG, so that it needs no script. The plot stretches with
 * the page while its text keeps its size: the lines are in an SVG with non-uniform scaling and
 * non-scaling strokes, and the text is positioned beside it in percent. */
#ifndef PM_CHART_H
#define PM_CHART_H

#include "report/curves.h"
#include "report/html.h"
#include "report/scale.h"

enum pm_chart_style { PM_CHART_RAW, PM_CHART_LINE, PM_CHART_DOTS, PM_CHART_AREA };
enum pm_chart_format { PM_CHART_NUMBER, PM_CHART_SHARE, PM_CHART_SECONDS };
/* Whether there is a logarithmic view, and whether it is the first one of curves that fall far. */
enum pm_chart_log { PM_CHART_NO_LOG, PM_CHART_LOG, PM_CHART_LOG_IF_FAR };
enum { PM_CHART_COLORS = 8, PM_CHART_SERIES = 64 };

struct pm_chart_series {
    char *label;                    /* owned */
    char *note;                     /* owned: follows the label in the legend, or NULL */
    int run;                        /* class r0, r1, ...: what the page can hide; -1: none */
    int color;                      /* of PM_CHART_COLORS */
    int dash;                       /* 0 = drawn through */
    enum pm_chart_style style;      /* AREA: on top of the areas before it, which have its steps */
    struct pm_curve_point *points;  /* owned */
    int count;
};
struct pm_chart {
    const char *id, *title, *note;  /* note: NULL, or a line below the title */
    const char *empty;              /* text if there are no points */
    const char *axis, *unit;        /* of the points' step: "recall", "\xc2\xa0%"; NULL: steps */
    bool log_axis;                  /* the points' steps are positive, on a logarithmic scale; the
                                     * script does not read values off such a figure */
    bool from_zero;                 /* the linear scale begins at 0 */
    enum pm_chart_format format;
    enum pm_chart_log log;
    bool wide;                      /* over both columns */
    bool legend;                    /* names the series */
    struct pm_chart_series series[PM_CHART_SERIES];
    int count;
};

/* The dash of curve i, whose colour is i: of the first 32 curves each looks different. */
int pm_chart_dash(int i);
/* Adds a curve: with many values a smooth line over a pale line of the values, otherwise a line
 * with dots. Adds nothing for NULL. */
void pm_chart_curve(struct pm_chart *c, const struct pm_curve *curve, const char *label, int run,
                    int color, int dash);
/* Adds only the smooth line; dots for few values. */
void pm_chart_smooth(struct pm_chart *c, const struct pm_curve *curve, const char *label,
                     int color);
/* Adds dots joined by a line, for few values. */
void pm_chart_dots(struct pm_chart *c, const struct pm_curve *curve, const char *label, int run,
                   int color, int dash);
/* Adds a line without dots; points are copied. */
void pm_chart_line(struct pm_chart *c, const char *label, int color, int dash,
                   const struct pm_curve_point *points, int count);
/* Adds an area; values are copied. note: follows the label in the legend. */
void pm_chart_area(struct pm_chart *c, const char *label, const char *note, int color,
                   const struct pm_curve_point *points, int count);
/* Writes the figure, and an object for the script's list (after a comma if json is not empty).
 * Frees the series. */
void pm_chart_write(struct pm_chart *c, struct pm_str *html, struct pm_str *json);

/* Parts for figures of other kinds: the begin of the stretched drawing, whose places are 0..1000
 * from the left and from the top; a step of a path to such a place; lines across it at the round
 * values of y; these values beside it; and the text of such a value, in buf. */
#define PM_CHART_SVG                                                                               \
    "<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
void pm_chart_point(struct pm_str *s, char letter, double x, double y);
void pm_chart_grid(struct pm_str *html, const struct pm_scale *y);
void pm_chart_values(struct pm_str *html, const struct pm_scale *y, enum pm_chart_format format);
char *pm_chart_tick_text(enum pm_chart_format format, double v, char buf[PM_TEXT]);

#endif
