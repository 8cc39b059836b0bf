/* chart: a figure with curves, drawn as SVG so that it is there without scripts. The plot stretches
 * with the page while its text keeps its size: lines are in an SVG that is scaled unevenly, with
 * strokes that are not, and what is written stands beside them at per cents. */
#ifndef PM_CHART_H
#define PM_CHART_H

#include "report/curves.h"

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
    const char *empty;              /* what is said when there are no points */
    enum pm_chart_format format;
    enum pm_chart_log log;
    bool wide;                      /* over both columns */
    bool legend;                    /* names the series */
    struct pm_chart_series series[PM_CHART_SERIES];
    int count;
};

/* The dash of curve i, whose colour is i: of the first 32 curves each looks different. */
int pm_chart_dash(int i);
/* Adds a curve: a smooth line over a pale one of the values where it has many, else a line with
 * dots. NULL: nothing is added. */
void pm_chart_curve(struct pm_chart *c, const struct pm_curve *curve, const char *label, int run,
                    int color, int dash);
/* The smooth line alone, to be told apart by its colour; dots for few values. */
void pm_chart_smooth(struct pm_chart *c, const struct pm_curve *curve, const char *label, int color);
/* Dots joined by a line, for few values. */
void pm_chart_dots(struct pm_chart *c, const struct pm_curve *curve, const char *label, int run,
                   int color, int dash);
/* A layer; values are copied. note: follows the label in the legend. */
void pm_chart_area(struct pm_chart *c, const char *label, const char *note, int color,
                   const struct pm_curve_point *points, int count);
/* The figure, and an object for the script's list (with a comma before it where json is not empty).
 * Frees the series. */
void pm_chart_write(struct pm_chart *c, struct pm_str *html, struct pm_str *json);

#endif
