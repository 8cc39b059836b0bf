/* page: report.html, a single file without external references: a style sheet, the sections, the
 * data of the curves as JSON, and a script for interaction: reading values off curves, finding
 * rows, enlarging the matrix, following a run. Without scripts all content is still visible. The
 * page's security policy forbids connections and all scripts except its own. */
#include "report/page.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <time.h>

/* ---- head -------------------------------------------------------------------------------- */

static void write_head(struct pm_str *html, const char *title)
{
    pm_html_raw(html, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                      "img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action "
                      "'none'; script-src 'sha256-");
    pm_str_base64(html, pm_page_js_sha256, sizeof pm_page_js_sha256);
    PM_HTML(html,
            "'\">\n<link rel=\"icon\" href=\"data:,\"><title>{} \xc2\xb7 Pumice</title>\n<style>",
            title);
    pm_html_raw(html, pm_page_css);
    pm_html_raw(html,
                "</style></head>\n<body>\n<a class=\"skip\" href=\"#main\">To the content</a>\n");
}

/* Rules that hide an unticked run everywhere. */
static void write_run_rules(struct pm_str *html, int count)
{
    pm_html_raw(html, "<style>");
    for (int i = 0; i < count; i++)
        pm_str_add(html, ":root:has(#run-%d:not(:checked)) :is(svg,.legend) .r%d{display:none}", i,
                   i);
    pm_html_raw(html, "</style>\n");
}

static void write_bar(struct pm_str *html, const char *const (*links)[2], bool live)
{
    pm_html_raw(html, "<div class=\"bar\"><div class=\"inner\"><span "
                      "class=\"brand\">Pumice</span><nav aria-label=\"Sections\">");
    for (; (*links)[0]; links++)
        PM_HTML(html, "<a href=\"#{}\">{}</a>", (*links)[0], (*links)[1]);
    pm_html_raw(html, "</nav>");
    if (live)
        pm_html_raw(html, "<label class=\"live\" hidden><input type=\"checkbox\" id=\"live\" "
                          "checked><span>follow</span></label>");
    pm_html_raw(html, "<fieldset class=\"theme\"><legend>Colours</legend>");
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = { "auto", "light", "dark" };
        PM_HTML(html,
                "<label><input type=\"radio\" name=\"theme\" "
                "id=\"theme-{}\"{}><span>{}</span></label>",
                names[i], i ? "" : " checked", names[i]);
    }
    pm_html_raw(html, "</fieldset></div></div>\n<main id=\"main\">\n");
}

static void write_foot(struct pm_str *html, const struct pm_str *json, const struct pm_str *cells,
                       const char *version, bool live)
{
    char now[64];
    const time_t t = time(NULL);
    struct tm tm;

    strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S UTC", gmtime_r(&t, &tm));
    PM_HTML(html, "</main>\n<footer>Written {} by Pumice " PUMICE_VERSION, now);
    if (version && strcmp(version, PUMICE_VERSION) != 0)
        PM_HTML(html, "; trained by Pumice {}", version);
    pm_html_raw(html, "</footer>\n<div id=\"tip\" role=\"status\" hidden></div>\n"
                      "<script type=\"application/json\" id=\"data\">{\"live\":");
    pm_str_add(html, "%s,\"written\":%lld,\"charts\":[", live ? "true" : "false", (long long)t);
    pm_str_bytes(html, json->text, json->length);
    pm_html_raw(html, "],\"matrices\":[");
    pm_str_bytes(html, cells->text, cells->length);
    pm_html_raw(html, "]}</script>\n<script>");
    pm_html_raw(html, pm_page_js);
    pm_html_raw(html, "</script></body></html>\n");
}

/* ---- headline ---------------------------------------------------------------------------- */

static const char *state_mark(const char *state)
{
    static const char *const marks[][2] = {
        { "running", "\xe2\x97\x8f training" }, { "finished", "\xe2\x9c\x93 finished" },
        { "stopped", "\xe2\x96\xa0 stopped" }, { "failed", "\xe2\x9c\x95 failed" },
        { "interrupted", "! interrupted" },
    };

    for (size_t i = 0; state && i < PM_COUNT(marks); i++)
        if (strcmp(state, marks[i][0]) == 0)
            return marks[i][1];
    return "state not known";
}

static double last_value(const struct pm_report *r, const char *kind, const char *name)
{
    const struct pm_curve *c = pm_curves_find(&r->curves, kind, name);

    return c ? c->last : NAN;
}

static bool same(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

/* "lenet on mnist, 10 classes, 55,000 pictures, a device" */
static void write_subtitle(struct pm_str *html, const struct pm_report *r)
{
    const char *net = pm_json_text_of(r->run, "net"), *data = pm_json_text_of(r->run, "data");
    const double parameters = pm_json_number_of(r->run, "parameters");
    const double classes = pm_json_number_of(r->run, "classes");
    const double examples = pm_json_number_of(r->run, "train_examples");
    const cJSON *devices = cJSON_GetObjectItemCaseSensitive(r->run, "devices"), *d;
    const char *between = " \xc2\xb7 ";

    pm_html_raw(html, "<p class=\"subtitle\">");
    if (net)
        PM_HTML(html, "<b>{}</b> on <b>{}</b>", net, data ? data : "data of its own");
    if (isfinite(parameters))
        PM_HTML(html, "{}{} {}", between, PM_COUNT_TEXT(parameters),
                pm_plural(parameters, "parameter", "parameters"));
    if (isfinite(classes))
        PM_HTML(html, "{}{} {}", between, PM_COUNT_TEXT(classes),
                pm_plural(classes, "class", "classes"));
    if (isfinite(examples))
        PM_HTML(html, "{}{} training {}", between, PM_COUNT_TEXT(examples),
                pm_plural(examples, "picture", "pictures"));
    for (d = devices ? devices->child : NULL; d; d = d->next) {
        const char *name = pm_json_text_of(d, "name");
        int times = 1;

        for (; name && d->next && same(name, pm_json_text_of(d->next, "name")); d = d->next)
            times++;
        if (name && times > 1)
            PM_HTML(html, "{}{} \xc3\x97 {}", between, PM_COUNT_TEXT(times), name);
        else if (name)
            PM_HTML(html, "{}{}", between, name);
    }
    pm_html_raw(html, "</p>\n");
}

static void write_progress(struct pm_str *html, const struct pm_report *r, const char *state)
{
    const double step = pm_report_step(r), steps = pm_json_number_of(r->run, "steps");
    const double each = last_value(r, "train", "seconds_per_step");

    PM_HTML(html, "<div class=\"progress\"><span class=\"state {}\">{}</span> <span>step <b>{}</b>",
            state ? state : "", state_mark(state), PM_COUNT_TEXT(step));
    if (steps > 0)
        PM_HTML(html, " of {}", PM_COUNT_TEXT(steps));
    if (steps > step && isfinite(each) && state && strcmp(state, "running") == 0)
        PM_HTML(html, ", about {} left", PM_SECONDS((steps - step) * each));
    pm_html_raw(html, "</span>");
    if (steps > 0)
        pm_str_add(html,
                   "<div class=\"track\" role=\"progressbar\" aria-label=\"Steps done\" "
                   "aria-valuemin=\"0\" aria-valuemax=\"%.0f\" aria-valuenow=\"%.0f\">"
                   "<i style=\"width:%.2f%%\"></i></div>",
                   steps, step, fmin(100, 100 * step / steps));
    pm_html_raw(html, "</div>\n");
    if (pm_json_text_of(r->run, "error"))
        PM_HTML(html, "<p class=\"failure\">{}</p>", pm_json_text_of(r->run, "error"));
}

void pm_page_tile(struct pm_str *html, const char *name, const char *value, const char *below)
{
    PM_HTML(html, "<div class=\"tile\"><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", name,
            value, below);
}

static void write_best(struct pm_str *html, const struct pm_report *r)
{
    const char *metric = pm_report_metric(r);
    const struct pm_curve *c = metric ? pm_curves_find(&r->curves, "eval", metric) : NULL;
    struct pm_str below = { 0 }, name = { 0 };
    char text[PM_TEXT];

    if (!c) {
        pm_page_tile(html, "Best metric", "\xe2\x80\x93",
                     r->evaluation_count ? "not evaluated while training" : "no evaluation yet");
        return;
    }
    const char *split = pm_report_split(r);
    const bool share = pm_report_is_share(c);
    const struct pm_curve_point best = pm_curve_best(c, pm_report_higher(r, metric));

    pm_str_add(&name, "Best %s", metric);
    pm_str_add(&below, "at step %s", PM_COUNT_TEXT(best.step));
    if (split) /* that of the curve, whatever else was evaluated */
        pm_str_add(&below, " on %s", split);
    if (c->last_step != (uint64_t)best.step)
        pm_str_add(&below, "; last %s", pm_report_value(c->last, share, text));
    pm_page_tile(html, name.text, pm_report_value(best.value, share, text), below.text);
    pm_str_free(&name);
    pm_str_free(&below);
}

static void write_tiles(struct pm_str *html, const struct pm_report *r)
{
    const struct pm_curve *loss = pm_curves_find(&r->curves, "train", "loss");
    struct pm_curve_point points[PM_CURVE_BINS];
    const double speed = last_value(r, "train", "images_per_second");
    const double each = last_value(r, "train", "seconds_per_step");
    const double wait = last_value(r, "train", "wait_share");
    const double rate = last_value(r, "train", "lr");
    const char *started = pm_json_text_of(r->run, "started");
    struct pm_str below = { 0 };

    pm_html_raw(html, "<dl class=\"tiles\">\n");
    write_best(html, r);
    pm_page_tile(html, "Training loss",
                 PM_NUMBER(loss ? points[pm_curve_smooth(loss, points) - 1].value : NAN),
                 loss ? "smoothed, with weight decay" : "no step logged yet");
    pm_str_add(&below, "%s", isfinite(each) ? PM_SECONDS(each) : "");
    pm_str_add(&below, "%s", isfinite(each) ? " a step" : "no step logged yet");
    pm_page_tile(html, "Images per second", PM_NUMBER(speed), below.text);
    pm_page_tile(html, "Waiting for data", PM_PERCENT(wait),
                 wait > 0.2 ? "of the last logged steps: raise data.threads"
                            : "of the last logged steps");
    pm_page_tile(html, "Learning rate", PM_NUMBER(rate), "at the last logged step");
    pm_str_free(&below);
    pm_str_add(&below, "%s%.16s", started ? "since " : "", started ? started : "");
    pm_page_tile(html, "Training time", PM_SECONDS(pm_json_number_of(r->run, "seconds")),
                 below.text);
    pm_html_raw(html, "</dl>\n");
    pm_str_free(&below);
}

/* ---- pages ------------------------------------------------------------------------------- */

static void write_run(struct pm_str *out, const struct pm_report *r)
{
    static const char *const links[][2] = {
        { "curves", "Curves" }, { "evaluation", "Evaluation" }, { "devices", "Devices" },
        { "config", "Configuration" }, { "log", "Log" }, { NULL, NULL },
    };
    const char *state = pm_report_state(r);
    const bool live = state && strcmp(state, "running") == 0;
    struct pm_str json = { 0 }, cells = { 0 };

    write_head(out, r->name);
    write_bar(out, links, live);
    PM_HTML(out, "<header><p class=\"eyebrow\">Training run</p><h1>{}</h1>\n", r->name);
    write_subtitle(out, r);
    write_progress(out, r, state);
    pm_html_raw(out, "</header>\n");
    write_tiles(out, r);
    pm_page_curves(out, &json, r);
    pm_page_evaluation(out, &json, &cells, r);
    pm_page_devices(out, r);
    pm_page_replicas(out, r);
    pm_page_config(out, r);
    pm_page_log(out, r);
    write_foot(out, &json, &cells, pm_json_text_of(r->run, "version"), live);
    pm_str_free(&json);
    pm_str_free(&cells);
}

static void write_comparison(struct pm_str *out, struct pm_report *const *runs, int count)
{
    static const char *const links[][2] = {
        { "runs", "Runs" }, { "curves", "Curves" }, { "config", "Differences" }, { NULL, NULL },
    };
    struct pm_str json = { 0 }, none = { 0 }, title = { 0 };

    pm_str_add(&title, "%d runs compared", count);
    write_head(out, title.text);
    write_run_rules(out, count);
    write_bar(out, links, false);
    PM_HTML(out, "<header><p class=\"eyebrow\">Comparison</p><h1>{} runs</h1></header>\n",
            PM_COUNT_TEXT(count));
    pm_page_compare_table(out, runs, count);
    pm_page_compare_curves(out, &json, runs, count);
    pm_page_compare_config(out, runs, count);
    write_foot(out, &json, &none, NULL, false);
    pm_str_free(&json);
    pm_str_free(&title);
}

void pm_report_page(struct pm_report *const *runs, int count, struct pm_str *out)
{
    assert(count >= 1 && count <= PM_MAX_REPORTS);
    if (count == 1)
        write_run(out, runs[0]);
    else
        write_comparison(out, runs, count);
}

void pm_study_page(const struct pm_study_report *s, bool live, bool (*is_training)(const char *run),
                   struct pm_str *out)
{
    static const char *const links[][2] = {
        { "points", "Points" }, { "keys", "Values" }, { "curves", "Curves" },
        { "best", "Best config" }, { NULL, NULL },
    };
    struct pm_str json = { 0 }, none = { 0 };
    struct pm_study_runs runs;

    pm_study_runs_open(&runs, s, is_training);
    const char *state = pm_study_state(s, &runs, live);
    live = strcmp(state, "running") == 0;
    write_head(out, s->name);
    write_bar(out, links, live);
    PM_HTML(out, "<header><p class=\"eyebrow\">Study</p><h1>{}</h1>\n<div class=\"progress\">"
            "<span class=\"state {}\">{}</span> <span><b>{}</b> of {} runs have a result</span>"
            "</div></header>\n", s->name, state, state_mark(state), PM_COUNT_TEXT(s->runs_done),
            PM_COUNT_TEXT((double)s->points * s->repeats));
    pm_page_study_tiles(out, s, &runs);
    pm_page_study_table(out, s);
    pm_page_study_axes(out, s);
    pm_page_study_curves(out, &json, &runs);
    pm_page_study_best(out, s);
    write_foot(out, &json, &none, NULL, live);
    pm_study_runs_close(&runs);
    pm_str_free(&json);
}

void pm_report_rates(const struct pm_rate_report *r, struct pm_str *out)
{
    static const char *const links[][2] = { { "rates", "Rates" }, { NULL, NULL } };
    struct pm_str json = { 0 }, none = { 0 };

    write_head(out, r->name);
    write_bar(out, links, false);
    PM_HTML(out, "<header><p class=\"eyebrow\">Learning rate range test</p><h1>{}</h1></header>\n",
            r->name);
    pm_page_rates(out, &json, r);
    write_foot(out, &json, &none, NULL, false);
    pm_str_free(&json);
}
