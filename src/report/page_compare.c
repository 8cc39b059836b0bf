/* page_compare: compares several runs: their metrics, their curves in common charts, and the
 * settings in which they differ. Run i has colour i, its own dash pattern, and the class ri; its
 * check box in the table hides everything of that class. The script makes the table's headings
 * buttons that sort it, by the numbers in data-v. On narrow screens each run is a card, whose
 * values have the headings of data-label; the roles keep it a table for screen readers. */
#include "report/axes.h"
#include "report/page.h"

#include <math.h>
#include <string.h>

enum { MOST_AXES = 12 }; /* settings in figures */

/* An evaluation metric of the runs, [run]. */
struct compared {
    const char *name;
    double best[PM_MAX_REPORTS], step[PM_MAX_REPORTS]; /* NAN: the run has none */
    int winner;                                        /* the best run, -1: none */
};

/* The metrics in the order of the first run that has them. */
struct metrics {
    struct compared *list; /* owned */
    int count, capacity;
};

static void add_metric(struct metrics *m, const char *name)
{
    for (int i = 0; i < m->count; i++)
        if (strcmp(m->list[i].name, name) == 0)
            return;
    PM_GROW(m->list, m->count, m->capacity);
    m->list[m->count++] = (struct compared){ .name = name };
}

/* Freed with pm_free(metrics.list). */
static struct metrics eval_metrics(struct pm_report *const *runs, int count)
{
    struct metrics m = { 0 };

    for (int i = 0; i < count; i++)
        for (int k = 0; k < runs[i]->curves.count; k++) {
            const struct pm_curve *c = &runs[i]->curves.list[k];
            if (strcmp(c->kind, "eval") == 0 && c->count > 0 && !pm_report_is_threshold(c->name))
                add_metric(&m, c->name);
        }
    return m;
}

static bool all_shares(struct pm_report *const *runs, int count, const char *metric)
{
    for (int i = 0; i < count; i++) {
        const struct pm_curve *c = pm_curves_find(&runs[i]->curves, "eval", metric);
        if (c && !pm_report_is_share(c))
            return false;
    }
    return true;
}

/* ---- the table --------------------------------------------------------------------------- */

/* Fills the best values of a metric. */
static void find_best(struct pm_report *const *runs, int count, struct compared *m)
{
    m->winner = -1;
    for (int i = 0; i < count; i++) {
        const struct pm_curve *c = pm_curves_find(&runs[i]->curves, "eval", m->name);
        const bool higher = pm_report_higher(runs[0], m->name);
        const struct pm_curve_point best =
            c ? pm_curve_best(c, higher) : (struct pm_curve_point){ NAN, NAN };

        m->best[i] = best.value;
        m->step[i] = best.step;
        if (isfinite(best.value) && (m->winner < 0 || (higher ? best.value > m->best[m->winner]
                                                              : best.value < m->best[m->winner])))
            m->winner = i;
    }
}

/* The run's name in tables and legends: its folder if another run has the same name. */
static const char *label_of(struct pm_report *const *runs, int count, int i)
{
    for (int k = 0; k < count; k++)
        if (k != i && strcmp(runs[k]->name, runs[i]->name) == 0)
            return runs[i]->folder;
    return runs[i]->name;
}

/* The split of all runs' evaluations; NULL: they differ, or are not known. */
static const char *common_split(struct pm_report *const *runs, int count)
{
    const char *first = pm_report_split(runs[0]);

    for (int i = 1; i < count; i++) {
        const char *other = pm_report_split(runs[i]);
        if (!first || !other || strcmp(first, other) != 0)
            return NULL;
    }
    return first;
}

void pm_page_heading(struct pm_str *html, bool number, const char *first, const char *of,
                     const char *name)
{
    PM_HTML(html, "<th scope=\"col\" role=\"columnheader\" class=\"{}\" data-first=\"{}\">{}{}"
            "</th>", number ? "n" : "", first, of, name);
}

void pm_page_cell(struct pm_str *html, const char *of, const char *name, double value, bool number,
                  bool best)
{
    PM_HTML(html, "<td role=\"cell\" class=\"{}{}\" data-label=\"{}{}\"", number ? "n" : "",
            best ? " best" : "", of, name);
    if (isfinite(value))
        pm_str_add(html, " data-v=\"%.9g\"", value);
    pm_html_raw(html, ">");
}

static void write_metric(struct pm_str *html, const struct compared *m, int i, bool share,
                         bool best)
{
    char text[PM_TEXT];

    pm_page_cell(html, "best ", m->name, m->best[i], true, best);
    PM_HTML(html, "{}{}", best ? "\xe2\x98\x85\xc2\xa0" : "",
            pm_report_value(m->best[i], share, text));
    if (isfinite(m->step[i]))
        PM_HTML(html, "<small>step {}</small>", PM_COUNT_TEXT(m->step[i]));
    pm_html_raw(html, "</td>");
}

static void write_number(struct pm_str *html, const char *name, double value, const char *text)
{
    pm_page_cell(html, "", name, value, true, false);
    PM_HTML(html, "{}</td>", text);
}

static double last_of(const struct pm_report *r, const char *name)
{
    const struct pm_curve *c = pm_curves_find(&r->curves, "train", name);
    struct pm_curve_point points[PM_CURVE_BINS];
    size_t count = c ? (size_t)pm_curve_smooth(c, points) : 0;

    return count ? points[count - 1].value : NAN;
}

static void write_run(struct pm_str *html, struct pm_report *const *runs, int count, int i)
{
    const struct pm_report *r = runs[i];
    const char *net = pm_json_text_of(r->run, "net"), *state = pm_report_state(r);
    const char *label = label_of(runs, count, i), *split = pm_report_split(r);

    pm_str_add(html, "<tr role=\"row\" data-run=\"%d\"><th scope=\"row\" role=\"rowheader\">"
               "<label class=\"run c%d d%d\"><input type=\"checkbox\" id=\"run-%d\" checked><i>"
               "</i><span>", i, i % PM_CHART_COLORS, pm_chart_dash(i), i);
    PM_HTML(html, "{}<small>{}</small>", label, strcmp(label, r->folder) ? r->folder : "");
    if (split && !common_split(runs, count))
        PM_HTML(html, "<small>evaluated on {}</small>", split);
    PM_HTML(html, "</span></label></th><td role=\"cell\" data-label=\"net\">{}<small>{}</small>"
            "</td>", net ? net : "\xe2\x80\x93", state ? state : "");
    write_number(html, "steps", pm_report_step(r), PM_COUNT_TEXT(pm_report_step(r)));
}

static void write_headings(struct pm_str *html, struct pm_report *const *runs, int count,
                           struct metrics *metrics)
{
    pm_html_raw(html, "<thead role=\"rowgroup\"><tr role=\"row\">");
    pm_page_heading(html, false, "ascending", "", "run");
    pm_page_heading(html, false, "ascending", "", "net");
    pm_page_heading(html, true, "descending", "", "steps");
    for (int m = 0; m < metrics->count; m++) {
        find_best(runs, count, &metrics->list[m]);
        pm_page_heading(html, true,
                      pm_report_higher(runs[0], metrics->list[m].name) ? "descending" : "ascending",
                      "best ", metrics->list[m].name);
    }
    pm_page_heading(html, true, "ascending", "", "training loss");
    pm_page_heading(html, true, "descending", "", "images/s");
    pm_page_heading(html, true, "ascending", "", "time");
    pm_html_raw(html, "</tr></thead>");
}

void pm_page_compare_table(struct pm_str *html, struct pm_report *const *runs, int count)
{
    struct metrics metrics = eval_metrics(runs, count);
    const char *split = common_split(runs, count);

    pm_html_raw(html, "<section id=\"runs\"><h2>Runs</h2><div class=\"card\"><div class=\"scroll\">"
                      "<table class=\"rows compare\" role=\"table\">");
    write_headings(html, runs, count, &metrics);
    pm_html_raw(html, "<tbody role=\"rowgroup\">\n");
    for (int i = 0; i < count; i++) {
        const double seconds = pm_json_number_of(runs[i]->run, "seconds");

        write_run(html, runs, count, i);
        for (int k = 0; k < metrics.count; k++) {
            const struct compared *m = &metrics.list[k];

            write_metric(html, m, i, all_shares(runs, count, m->name),
                         count > 1 && m->winner == i);
        }
        write_number(html, "training loss", last_of(runs[i], "loss"),
                     PM_NUMBER(last_of(runs[i], "loss")));
        write_number(html, "images/s", last_of(runs[i], "images_per_second"),
                     PM_NUMBER(last_of(runs[i], "images_per_second")));
        write_number(html, "time", seconds, PM_SECONDS(seconds));
        pm_html_raw(html, "</tr>\n");
    }
    pm_html_raw(html, "</tbody></table></div><p class=\"note\">\xe2\x98\x85 marks the best of all "
                      "runs. Untick a run to hide its curves.");
    if (split)
        PM_HTML(html, " All runs were evaluated on {}.", split);
    pm_html_raw(html, "</p></div></section>\n");
    pm_free(metrics.list);
}

/* ---- curves ------------------------------------------------------------------------------ */

static void write_train(struct pm_str *html, struct pm_str *json, struct pm_report *const *runs,
                        int count, const char *name, struct pm_chart *c)
{
    for (int i = 0; i < count; i++) {
        const struct pm_curve *curve = pm_curves_find(&runs[i]->curves, "train", name);

        if (strcmp(name, "lr") == 0)
            pm_chart_dots(c, curve, label_of(runs, count, i), i, i, pm_chart_dash(i));
        else
            pm_chart_curve(c, curve, label_of(runs, count, i), i, i, pm_chart_dash(i));
    }
    c->legend = true;
    pm_chart_write(c, html, json);
}

void pm_page_compare_curves(struct pm_str *html, struct pm_str *json,
                            struct pm_report *const *runs, int count)
{
    const struct metrics metrics = eval_metrics(runs, count);
    struct pm_chart c = {
        .id = "loss", .title = "Training loss", .log = PM_CHART_LOG_IF_FAR, .wide = true
    };

    pm_html_raw(html, "<section id=\"curves\"><h2>Curves</h2><div class=\"charts\">\n");
    write_train(html, json, runs, count, "loss", &c);
    for (int m = 0; m < metrics.count; m++) {
        char id[32], title[256];
        const char *name = metrics.list[m].name;
        const bool share = all_shares(runs, count, name);

        snprintf(id, sizeof id, "metric-%d", m);
        snprintf(title, sizeof title, "Evaluation: %s", name);
        c = (struct pm_chart){ .id = id,
                               .title = title,
                               .log = share ? PM_CHART_NO_LOG : PM_CHART_LOG_IF_FAR,
                               .format = share ? PM_CHART_SHARE : PM_CHART_NUMBER };
        for (int i = 0; i < count; i++)
            pm_chart_dots(&c, pm_curves_find(&runs[i]->curves, "eval", name),
                          label_of(runs, count, i), i, i, pm_chart_dash(i));
        c.legend = true;
        pm_chart_write(&c, html, json);
    }
    c = (struct pm_chart){ .id = "lr", .title = "Learning rate", .log = PM_CHART_LOG };
    write_train(html, json, runs, count, "lr", &c);
    c = (struct pm_chart){ .id = "images_per_second", .title = "Images per second" };
    write_train(html, json, runs, count, "images_per_second", &c);
    pm_html_raw(html, "</div></section>\n");
    pm_free(metrics.list);
}

/* ---- settings ---------------------------------------------------------------------------- */

static bool differs(const struct pm_flat *flats, int count, const char *key)
{
    const char *first = pm_flat_find(&flats[0], key);

    for (int i = 1; i < count; i++) {
        const char *other = pm_flat_find(&flats[i], key);
        if (!first != !other || (first && strcmp(first, other) != 0))
            return true;
    }
    return false;
}

static void write_setting(struct pm_str *html, struct pm_report *const *runs,
                          const struct pm_flat *flats, int count, const char *key)
{
    PM_HTML(html, "<tr role=\"row\"><th scope=\"row\" role=\"rowheader\">{}</th>", key);
    for (int i = 0; i < count; i++) {
        const char *value = pm_flat_find(&flats[i], key);

        if (value && strlen(value) > 120)
            PM_HTML(html, "<td role=\"cell\" data-label=\"{}\"><details><summary>a list</summary>"
                    "<pre>{}</pre></details></td>", label_of(runs, count, i), value);
        else
            PM_HTML(html, "<td role=\"cell\" data-label=\"{}\"><code>{}</code></td>",
                    label_of(runs, count, i), value ? value : "\xe2\x80\x93");
    }
    pm_html_raw(html, "</tr>\n");
}

/* The keys in which the runs differ: in the first run's order, then those that only later runs
 * have. Borrowed from flats; free the list with pm_free. */
static const char **different_keys(const struct pm_flat *flats, int count, int *n)
{
    const char **keys = NULL;
    int capacity = 0;

    *n = 0;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < flats[i].count; k++) {
            const char *key = flats[i].rows[k].key;
            bool earlier = strcmp(key, "run.folder") == 0;

            for (int e = 0; e < i; e++)
                earlier |= pm_flat_find(&flats[e], key) != NULL;
            if (earlier || !differs(flats, count, key))
                continue;
            PM_GROW(keys, *n, capacity);
            keys[(*n)++] = key;
        }
    return keys;
}

/* ---- the metric against the settings ------------------------------------------------------- */

/* A setting's text as a value: a number, or the text itself. Free it with cJSON_Delete. */
static cJSON *value_of(const char *text)
{
    cJSON *v = cJSON_Parse(text);

    if (cJSON_IsNumber(v))
        return v;
    cJSON_Delete(v);
    return cJSON_CreateString(text);
}

/* Whether two runs have different values. Options that one of several optimizers has do not count:
 * the optimizer's name says the same. */
static bool has_two_values(const struct pm_flat *flats, int count, const char *key)
{
    const char *first = NULL;

    for (int i = 0; i < count; i++) {
        const char *value = pm_flat_find(&flats[i], key);
        if (first && value && strcmp(first, value) != 0)
            return true;
        first = first ? first : value;
    }
    return false;
}

static void add_axis(struct pm_axes *a, const struct pm_flat *flats, int count, const char *key)
{
    cJSON *values[PM_MAX_REPORTS] = { NULL };

    for (int i = 0; i < count; i++)
        if (pm_flat_find(&flats[i], key))
            values[i] = value_of(pm_flat_find(&flats[i], key));
    pm_axes_add(a, key, (const cJSON *const *)values, PM_AXIS_AUTO, NULL);
    for (int i = 0; i < count; i++)
        cJSON_Delete(values[i]);
}

static void write_axes(struct pm_str *html, struct pm_report *const *runs,
                       const struct pm_flat *flats, int count, const char *const *keys, int n)
{
    struct compared m = { .name = pm_report_metric(runs[0]) };
    const char *names[PM_MAX_REPORTS];
    double spread[PM_MAX_REPORTS];
    struct pm_axes a = { .points = count, .thing = "run", .things = "runs", .names = names,
                         .mean = m.best, .spread = spread, .metric = m.name };
    int all = 0;

    if (!m.name || n == 0)
        return;
    find_best(runs, count, &m);
    a.higher = pm_report_higher(runs[0], m.name);
    a.best = m.winner;
    for (int i = 0; i < count; i++) {
        names[i] = label_of(runs, count, i);
        spread[i] = NAN;
    }
    for (int k = 0; k < n; k++)
        if (has_two_values(flats, count, keys[k]) && all++ < MOST_AXES)
            add_axis(&a, flats, count, keys[k]);
    if (a.count > 0 && m.winner >= 0)
        PM_HTML(html, "<h3 class=\"above-charts\">Best {} against these settings</h3>", m.name);
    pm_axes_write(html, &a);
    if (all > MOST_AXES)
        PM_HTML(html, "<p class=\"note\">The figures show the first {} of {} settings.</p>",
                PM_COUNT_TEXT(MOST_AXES), PM_COUNT_TEXT(all));
    pm_axes_free(&a);
}

void pm_page_compare_config(struct pm_str *html, struct pm_report *const *runs, int count)
{
    struct pm_flat flats[PM_MAX_REPORTS];
    const char **keys;
    int n;

    for (int i = 0; i < count; i++)
        pm_flat_config(runs[i]->config, &flats[i]);
    keys = different_keys(flats, count, &n);
    pm_html_raw(html, "<section id=\"config\"><h2>Differences of configuration</h2>\n");
    if (n == 0) {
        pm_html_raw(html, "<p class=\"card empty\">The runs differ only in their folders.</p>");
    } else {
        pm_str_add(html, "<div class=\"card\"><div class=\"scroll\"><table class=\"rows settings "
                   "sides\" role=\"table\" style=\"min-width:%drem\"><thead role=\"rowgroup\"><tr "
                   "role=\"row\"><th role=\"columnheader\">key</th>", 13 + 8 * count);
        for (int i = 0; i < count; i++) {
            pm_str_add(html, "<th role=\"columnheader\"><span class=\"run c%d d%d\"><i></i>",
                       i % PM_CHART_COLORS, pm_chart_dash(i));
            PM_HTML(html, "{}</span></th>", label_of(runs, count, i));
        }
        pm_html_raw(html, "</tr></thead><tbody role=\"rowgroup\">\n");
        for (int k = 0; k < n; k++)
            write_setting(html, runs, flats, count, keys[k]);
        pm_html_raw(html, "</tbody></table></div></div>");
    }
    write_axes(html, runs, flats, count, keys, n);
    pm_html_raw(html, "</section>\n");
    pm_free(keys);
    for (int i = 0; i < count; i++)
        pm_flat_free(&flats[i]);
}
