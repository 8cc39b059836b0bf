/* page_study: the sections of a study's page: its state, the table of its points, how the metric
 * depends on the keys, the curves of its best runs, and the config of the best point. */
#include "report/axes.h"
#include "report/page.h"

#include <pumice/options.h>

#include <math.h>
#include <string.h>

enum {
    MOST_RUNS = 10000, /* whose folders are looked for */
    MOST_AXES = 24,
    MANY = 15,         /* points: a longer table has a bar of its own */
};

/* ---- run folders ------------------------------------------------------------------------- */

void pm_study_runs_open(struct pm_study_runs *r, const struct pm_study_report *s,
                        bool (*is_training)(const char *run))
{
    struct pm_arena *a = pm_arena_create();
    int looked = 0;

    *r = (struct pm_study_runs){ 0 };
    for (int i = 0; i < s->points; i++)
        for (int k = 0; k < s->repeats && looked < MOST_RUNS; k++, looked++) {
            const char *name =
                pm_study_folder_of(a, s->rows[i].name, s->repeats, s->seed, k);
            const char *folder = pm_arena_printf(a, "%s/%s", s->folder, name);

            if (!*name || strchr(name, '/') || *name == '.' || !pm_is_folder(folder))
                continue;
            const bool live = is_training && is_training(folder);
            r->all++;
            r->training += live;
            if (r->count < PM_MAX_REPORTS)
                r->list[r->count++] = pm_report_open(folder, live);
        }
    pm_arena_destroy(&a);
}

void pm_study_runs_close(struct pm_study_runs *r)
{
    for (int i = 0; i < r->count; i++)
        pm_report_close(&r->list[i]);
}

/* ---- headline ---------------------------------------------------------------------------- */

static bool is_share(const struct pm_study_report *s)
{
    bool any = false;

    for (int i = 0; i < s->points; i++)
        if (isfinite(s->rows[i].mean)) {
            if (s->rows[i].mean < 0 || s->rows[i].mean > 1)
                return false;
            any = true;
        }
    return any && !strstr(s->metric, "loss");
}

static bool has_best_file(const struct pm_study_report *s)
{
    struct pm_str path = { 0 };

    pm_str_add(&path, "%s/best.json", s->folder);
    const bool has = pm_file_exists(path.text);
    pm_str_free(&path);
    return has;
}

const char *pm_study_state(const struct pm_study_report *s, const struct pm_study_runs *r,
                           bool live)
{
    return live || r->training > 0                                ? "running"
           : s->runs_done > 0 && s->runs_failed == s->runs_done   ? "failed"
           : has_best_file(s)                                     ? "finished"
                                                                  : "stopped";
}

void pm_page_study_tiles(struct pm_str *html, const struct pm_study_report *s,
                         const struct pm_study_runs *r)
{
    const struct pm_study_row *best = s->points && isfinite(s->rows[0].mean) ? s->rows : NULL;
    struct pm_str below = { 0 }, name = { 0 };
    char value[PM_TEXT];

    pm_html_raw(html, "<dl class=\"tiles\">\n");
    pm_str_add(&name, "Best %s", *s->metric ? s->metric : "metric");
    pm_page_tile(html, name.text,
                 best ? pm_report_value(best->mean, is_share(s), value) : "\xe2\x80\x93",
                 best ? best->name : "no result yet");
    pm_str_add(&below, s->repeats > 1 ? "%d runs each" : "one run each", s->repeats);
    pm_page_tile(html, "Points", PM_COUNT_TEXT(s->points), below.text);
    pm_str_free(&below);
    pm_str_add(&below, "of %s", PM_COUNT_TEXT((double)s->points * s->repeats));
    pm_page_tile(html, "Runs with a result", PM_COUNT_TEXT(s->runs_done), below.text);
    pm_page_tile(html, "Failed runs", PM_COUNT_TEXT(s->runs_failed),
                 s->runs_failed ? "the table has the messages" : "");
    pm_page_tile(html, "Training now", PM_COUNT_TEXT(r->training),
                 pm_plural(r->training, "run", "runs"));
    pm_page_tile(html, "Time", PM_SECONDS(s->seconds), "of all results together");
    pm_html_raw(html, "</dl>\n");
    pm_str_free(&below);
    pm_str_free(&name);
}

/* ---- the table --------------------------------------------------------------------------- */

/* The keys that vary: those of study.vary, else of the first point. */
static const cJSON *keys_of(const struct pm_study_report *s)
{
    const cJSON *vary = cJSON_GetObjectItemCaseSensitive(s->study, "vary");

    if (cJSON_IsObject(vary))
        return vary->child;
    for (int i = 0; i < s->points; i++)
        if (s->rows[i].values)
            return s->rows[i].values->child;
    return NULL;
}

/* An object by its name, with its other members below. */
static void write_object(struct pm_str *html, const cJSON *v)
{
    struct pm_str rest = { 0 };

    for (const cJSON *m = v->child; m; m = m->next) {
        char *text = cJSON_IsString(m) ? pm_strdup(m->valuestring) : pm_json_print(m);

        text[strcspn(text, "\n")] = '\0';
        if (strcmp(m->string, "name") != 0)
            pm_str_add(&rest, "%s%s %s", rest.length ? ", " : "", m->string, text);
        pm_free(text);
    }
    PM_HTML(html, "{}<small>{}</small>", pm_json_text_of(v, "name"), rest.text);
    pm_str_free(&rest);
}

static void write_value(struct pm_str *html, const cJSON *v, const char *key)
{
    pm_page_cell(html, "", key, cJSON_IsNumber(v) ? v->valuedouble : NAN, cJSON_IsNumber(v),
                 false);
    if (!v) {
        pm_html_raw(html, "\xe2\x80\x93");
    } else if (cJSON_IsString(v)) {
        PM_HTML(html, "{}", v->valuestring);
    } else if (cJSON_IsNumber(v)) {
        PM_HTML(html, "{}", PM_NUMBER(v->valuedouble));
    } else if (pm_json_text_of(v, "name")) {
        write_object(html, v);
    } else {
        char *text = cJSON_PrintUnformatted(v);
        PM_HTML(html, "<code>{}</code>", text ? text : "");
        cJSON_free(text);
    }
    pm_html_raw(html, "</td>");
}

/* Whether all values of a key are numbers. */
static bool is_number(const struct pm_study_report *s, const char *key)
{
    for (int i = 0; i < s->points; i++) {
        const cJSON *v = cJSON_GetObjectItemCaseSensitive(s->rows[i].values, key);
        if (v && !cJSON_IsNumber(v))
            return false;
    }
    return true;
}

/* A point's name, whose lines may end at its commas. */
static void write_name(struct pm_str *html, const char *name)
{
    while (*name) {
        const size_t n = strcspn(name, ",");

        pm_html_escape(html, name, n);
        name += n;
        if (*name == ',') {
            pm_html_raw(html, ",<wbr>");
            name++;
        }
    }
}

static void write_row(struct pm_str *html, const struct pm_study_report *s, int rank, bool share)
{
    const struct pm_study_row *w = &s->rows[rank];
    const bool best = rank == 0 && isfinite(w->mean);
    char text[PM_TEXT];

    pm_str_add(html, "<tr role=\"row\" data-run=\"%d\"><th scope=\"row\" role=\"rowheader\">",
               rank);
    write_name(html, *w->name ? w->name : "a point without a name");
    if (w->failed)
        PM_HTML(html, "<small class=\"bad\">{} failed: {}</small>", PM_COUNT_TEXT(w->failed),
                w->message);
    pm_html_raw(html, "</th>");
    pm_page_cell(html, "", s->metric, w->mean, true, best);
    PM_HTML(html, "{}{}</td>", best ? "\xe2\x98\x85\xc2\xa0" : "",
            pm_report_value(w->mean, share, text));
    if (s->repeats > 1) {
        pm_page_cell(html, "", "spread", w->spread, true, false);
        PM_HTML(html, "{}</td>", pm_report_value(w->spread, share, text));
    }
    pm_page_cell(html, "", "runs", w->runs - w->failed, true, false);
    PM_HTML(html, "{}</td>", PM_COUNT_TEXT(w->runs - w->failed));
    pm_page_cell(html, "", "step", w->step < 0 ? NAN : w->step == 0 ? 0x1p62 : (double)w->step,
                 true, false);
    PM_HTML(html, "{}</td>", w->step < 0 ? "\xe2\x80\x93" : w->step == 0 ? "end"
                                                         : PM_COUNT_TEXT(w->step));
    for (const cJSON *k = keys_of(s); k; k = k->next)
        write_value(html, cJSON_GetObjectItemCaseSensitive(w->values, k->string), k->string);
    pm_html_raw(html, "</tr>\n");
}

void pm_page_study_table(struct pm_str *html, const struct pm_study_report *s)
{
    const bool share = is_share(s);

    pm_html_raw(html, "<section id=\"points\"><h2>Points</h2>\n");
    if (s->points == 0) {
        pm_html_raw(html, "<p class=\"card empty\">study.json has no points.</p></section>\n");
        return;
    }
    PM_HTML(html, "<div class=\"card\"><div class=\"scroll{}\" tabindex=\"0\"><table class=\"rows "
            "compare points\" role=\"table\"><thead role=\"rowgroup\"><tr role=\"row\">",
            s->points > MANY ? " tall" : "");
    pm_page_heading(html, false, "ascending", "", "point");
    pm_page_heading(html, true, s->higher_is_better ? "descending" : "ascending", "", s->metric);
    if (s->repeats > 1)
        pm_page_heading(html, true, "ascending", "", "spread");
    pm_page_heading(html, true, "descending", "", "runs");
    pm_page_heading(html, true, "descending", "", "step");
    for (const cJSON *k = keys_of(s); k; k = k->next)
        pm_page_heading(html, is_number(s, k->string), "ascending", "", k->string);
    pm_html_raw(html, "</tr></thead><tbody role=\"rowgroup\">\n");
    for (int i = 0; i < s->points; i++)
        write_row(html, s, i, share);
    PM_HTML(html, "</tbody></table></div><p class=\"note\">The best point is first: points that "
            "were trained further come before others, and of these {} {} is better.{}</p></div>"
            "</section>\n", s->higher_is_better ? "a higher" : "a lower", s->metric,
            s->repeats > 1 ? " The metric is the mean of a point's runs, the spread their standard "
                             "deviation." : "");
}

/* ---- the keys ---------------------------------------------------------------------------- */

static bool is_range(const cJSON *spec)
{
    return cJSON_IsObject(spec) && (cJSON_GetObjectItemCaseSensitive(spec, "uniform") ||
                                    cJSON_GetObjectItemCaseSensitive(spec, "log_uniform") ||
                                    cJSON_GetObjectItemCaseSensitive(spec, "int"));
}

static enum pm_axis_kind kind_of(const cJSON *spec)
{
    return !is_range(spec)                                       ? PM_AXIS_AUTO
           : cJSON_GetObjectItemCaseSensitive(spec, "log_uniform") ? PM_AXIS_LOG
                                                                   : PM_AXIS_LINEAR;
}

static bool has_axis(const struct pm_axes *a, const char *name)
{
    for (int i = 0; i < a->count; i++)
        if (strcmp(a->list[i].name, name) == 0)
            return true;
    return false;
}

/* Adds an axis for each range that is a member of an entry: "optim.beta1". */
static void add_inner(struct pm_axes *a, const struct pm_study_report *s, const cJSON *key,
                      const cJSON **values)
{
    const cJSON *entry, *m;

    for (entry = cJSON_IsArray(key) ? key->child : NULL; entry; entry = entry->next)
        for (m = cJSON_IsObject(entry) ? entry->child : NULL; m; m = m->next) {
            struct pm_str name = { 0 };

            pm_str_add(&name, "%s.%s", key->string, m->string);
            if (is_range(m) && !has_axis(a, name.text) && a->count < MOST_AXES) {
                for (int i = 0; i < s->points; i++) {
                    const cJSON *v =
                        cJSON_GetObjectItemCaseSensitive(s->rows[i].values, key->string);
                    values[i] = cJSON_GetObjectItemCaseSensitive(v, m->string);
                }
                pm_axes_add(a, name.text, values, kind_of(m), NULL);
            }
            pm_str_free(&name);
        }
}

void pm_page_study_axes(struct pm_str *html, const struct pm_study_report *s)
{
    const size_t n = (size_t)s->points + 1;
    const char **names = pm_calloc(n, sizeof *names);
    const cJSON **values = pm_calloc(n, sizeof *values);
    double *mean = pm_calloc(n, sizeof *mean), *spread = pm_calloc(n, sizeof *spread);
    struct pm_axes a = { .points = s->points, .names = names, .mean = mean, .spread = spread,
                         .thing = "point", .things = "points", .metric = s->metric,
                         .higher = s->higher_is_better, .best = 0 }; /* rows have a rank */

    for (int i = 0; i < s->points; i++) {
        names[i] = s->rows[i].name;
        mean[i] = s->rows[i].mean;
        spread[i] = s->rows[i].spread;
    }
    for (const cJSON *k = keys_of(s); k && a.count < MOST_AXES; k = k->next) {
        for (int i = 0; i < s->points; i++)
            values[i] = cJSON_GetObjectItemCaseSensitive(s->rows[i].values, k->string);
        pm_axes_add(&a, k->string, values, kind_of(k), cJSON_IsArray(k) ? k : NULL);
        add_inner(&a, s, k, values);
    }
    pm_html_raw(html, "<section id=\"keys\"><h2>Values and results</h2>\n");
    if (s->points > 0 && s->rows[0].step != s->rows[s->points - 1].step)
        PM_HTML(html, "<p class=\"note before\">A point that was ended early has the {} of its "
                "last step.</p>\n", s->metric);
    const size_t figures = html->length;
    pm_axes_write(html, &a);
    if (html->length == figures)
        pm_html_raw(html, "<p class=\"card empty\">No point has a result yet.</p>");
    pm_html_raw(html, "</section>\n");
    pm_axes_free(&a);
    pm_free(names);
    pm_free(values);
    pm_free(mean);
    pm_free(spread);
}

/* ---- curves and the best config ---------------------------------------------------------- */

void pm_page_study_curves(struct pm_str *html, struct pm_str *json, const struct pm_study_runs *r)
{
    if (r->count == 0) {
        pm_html_raw(html, "<section id=\"curves\"><h2>Curves</h2><p class=\"card empty\">No run "
                          "has a folder yet.</p></section>\n");
        return;
    }
    pm_page_compare_curves(html, json, r->list, r->count);
    if (r->count < r->all)
        PM_HTML(html, "<p class=\"note\">These are the runs of the best points: {} of {}. Compare "
                "others with pumice report and their folders.</p>\n", PM_COUNT_TEXT(r->count),
                PM_COUNT_TEXT(r->all));
}

void pm_page_study_best(struct pm_str *html, const struct pm_study_report *s)
{
    struct pm_str path = { 0 };
    char *text = NULL;

    pm_str_add(&path, "%s/best.json", s->folder);
    pm_html_raw(html, "<section id=\"best\"><h2>Config of the best point</h2>\n");
    if (pm_file_exists(path.text) && pm_text_read(path.text, PM_MOST_TEXT, &text) == PM_OK)
        PM_HTML(html, "<div class=\"card\"><p class=\"note\">This is <code>{}</code>. Copy it to "
                "train with it.</p><div class=\"settings\"><pre tabindex=\"0\">{}</pre></div>"
                "</div>", path.text, text);
    else
        PM_HTML(html, "<p class=\"card empty\">{} is written when the study ends.</p>", path.text);
    pm_html_raw(html, "</section>\n");
    pm_free(text);
    pm_str_free(&path);
}
