/* page_setup: devices, processes, configuration and log of the run. */
#include "report/page.h"

#include <pumice/options.h>

#include <math.h>
#include <string.h>

/* ---- devices ----------------------------------------------------------------------------- */

static void write_bytes(struct pm_str *html, double bytes)
{
    char text[24];

    PM_HTML(html, "<td class=\"n\">{}</td>",
            bytes > 0 && bytes < 0x1p63 ? pm_bytes_text((uint64_t)bytes, text) : "\xe2\x80\x93");
}

static void write_device(struct pm_str *html, const cJSON *d, double batch)
{
    const char *name = pm_json_text_of(d, "name"), *driver = pm_json_text_of(d, "driver");
    const char *address = pm_json_text_of(d, "address");
    const double examples = pm_json_number_of(d, "examples");

    PM_HTML(html, "<tr><td><b>{}</b><small>{}</small></td><td><small>{}</small></td>",
            name ? name : "unnamed", address ? address : "", driver ? driver : "");
    PM_HTML(html, "<td class=\"n\">{}<small>{}</small></td>", PM_COUNT_TEXT(examples),
            PM_PERCENT(batch > 0 ? examples / batch : NAN));
    write_bytes(html, pm_json_number_of(d, "memory_used"));
    write_bytes(html, pm_json_number_of(d, "memory_bytes"));
    PM_HTML(html, "<td class=\"n\">{}</td></tr>\n",
            PM_NUMBER(pm_json_number_of(d, "images_per_second")));
}

void pm_page_devices(struct pm_str *html, const struct pm_report *r)
{
    const cJSON *devices = cJSON_GetObjectItemCaseSensitive(r->run, "devices"), *d;
    const double batch = pm_json_number_of(r->run, "batch_size");

    pm_html_raw(html, "<section id=\"devices\"><h2>Devices</h2>\n");
    if (cJSON_GetArraySize(devices) == 0) {
        pm_html_raw(html, "<p class=\"card empty\">Not known: the folder has no run.json.</p>"
                          "</section>\n");
        return;
    }
    pm_html_raw(html, "<div class=\"card\"><div class=\"scroll\"><table class=\"rows\"><thead><tr>"
                      "<th>clone</th><th>driver</th><th class=\"n\">pictures a step</th>"
                      "<th class=\"n\">memory used</th><th class=\"n\">of</th>"
                      "<th class=\"n\">images/s</th></tr></thead><tbody>\n");
    cJSON_ArrayForEach(d, devices)
        write_device(html, d, batch);
    pm_html_raw(html, "</tbody></table></div>");
    if (cJSON_GetArraySize(devices) > 1)
        pm_html_raw(html, "<p class=\"note\">Images/s is a clone's speed on its own part, without "
                          "waiting for the others.</p>");
    pm_html_raw(html, "</div></section>\n");
}

/* ---- processes --------------------------------------------------------------------------- */

static void write_rank(struct pm_str *html, const cJSON *o, double batch)
{
    const cJSON *devices = cJSON_GetObjectItemCaseSensitive(o, "devices"), *d;
    const char *host = pm_json_text_of(o, "host");
    const double examples = pm_json_number_of(o, "examples");

    PM_HTML(html, "<tr><td class=\"n\">{}</td><td><b>{}</b></td><td><small>",
            PM_COUNT_TEXT(pm_json_number_of(o, "rank")), host ? host : "unknown");
    cJSON_ArrayForEach(d, devices)
        PM_HTML(html, "{}<br>", cJSON_IsString(d) ? d->valuestring : "unnamed");
    PM_HTML(html, "</small></td><td class=\"n\">{}<small>{}</small></td>",
            PM_COUNT_TEXT(examples), PM_PERCENT(batch > 0 ? examples / batch : NAN));
    PM_HTML(html, "<td class=\"n\">{}</td></tr>\n",
            PM_NUMBER(pm_json_number_of(o, "images_per_second")));
}

void pm_page_replicas(struct pm_str *html, const struct pm_report *r)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(r->run, "replicas"), *o;
    const double batch = pm_json_number_of(r->run, "batch_size");

    if (cJSON_GetArraySize(list) == 0)
        return;
    pm_html_raw(html, "<section id=\"replicas\"><h2>Processes</h2>\n<div class=\"card\">"
                      "<div class=\"scroll\"><table class=\"rows\"><thead><tr>"
                      "<th class=\"n\">rank</th><th>host</th><th>devices</th>"
                      "<th class=\"n\">pictures a step</th><th class=\"n\">images/s</th>"
                      "</tr></thead><tbody>\n");
    cJSON_ArrayForEach(o, list)
        write_rank(html, o, batch);
    pm_html_raw(html, "</tbody></table></div><p class=\"note\">Images/s is a process's speed on "
                      "its own part, without waiting for the others. Rank 0 wrote this page.</p>"
                      "</div></section>\n");
}

/* ---- configuration ----------------------------------------------------------------------- */

static void add_flat(struct pm_flat *f, const char *key, const cJSON *value, int depth)
{
    const cJSON *member;

    if (cJSON_IsObject(value) && value->child && depth < 8) {
        cJSON_ArrayForEach(member, value)
        {
            struct pm_str path = { 0 };

            pm_str_add(&path, "%s%s%s", key, *key ? "." : "", member->string);
            add_flat(f, path.text, member, depth + 1);
            pm_str_free(&path);
        }
        return;
    }
    char *text = cJSON_IsString(value) ? pm_strdup(value->valuestring) : pm_json_print(value);

    PM_GROW(f->rows, f->count, f->capacity);
    f->rows[f->count++] = (struct pm_flat_row){ pm_strdup(key), text };
    for (size_t n = strlen(text); n > 0 && text[n - 1] == '\n'; n--)
        text[n - 1] = '\0';
}

void pm_flat_config(const cJSON *config, struct pm_flat *out)
{
    *out = (struct pm_flat){ 0 };
    if (config)
        add_flat(out, "", config, 0);
}

void pm_flat_free(struct pm_flat *f)
{
    for (int i = 0; i < f->count; i++) {
        pm_free(f->rows[i].key);
        pm_free(f->rows[i].value);
    }
    pm_free(f->rows);
    *f = (struct pm_flat){ 0 };
}

const char *pm_flat_find(const struct pm_flat *f, const char *key)
{
    for (int i = 0; i < f->count; i++)
        if (strcmp(f->rows[i].key, key) == 0)
            return f->rows[i].value;
    return NULL;
}

static double lines_of(const char *text)
{
    double n = 1;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void write_row(struct pm_str *html, const struct pm_flat_row *row, const char *origin)
{
    PM_HTML(html, "<tr class=\"{}\"><th scope=\"row\">{}</th><td>", origin ? "set" : "default",
            row->key);
    if (strlen(row->value) <= 120)
        PM_HTML(html, "<code>{}</code>", row->value);
    else
        PM_HTML(html, "<details><summary>{} lines</summary><pre>{}</pre></details>",
                PM_COUNT_TEXT(lines_of(row->value)), row->value);
    const char *slash = origin ? strrchr(origin, '/') : NULL;

    PM_HTML(html, "</td><td class=\"from\"><small title=\"{}\">{}</small></td></tr>\n",
            origin ? origin : "", slash ? slash + 1 : origin ? origin : "default");
}

void pm_page_config(struct pm_str *html, const struct pm_report *r)
{
    const cJSON *origins = cJSON_GetObjectItemCaseSensitive(r->run, "origins");
    struct pm_flat flat;

    pm_html_raw(html, "<section id=\"config\"><h2>Configuration</h2>\n");
    if (!r->config) {
        pm_html_raw(html, "<p class=\"card empty\">Not known: the folder has no config.json.</p>"
                          "</section>\n");
        return;
    }
    pm_flat_config(r->config, &flat);
    pm_html_raw(html, "<div class=\"card\"><div class=\"above\"><input type=\"search\" "
                      "class=\"filter\" data-filter=\"settings\" hidden placeholder=\"Find a key "
                      "or value\" aria-label=\"Find a key or value\">");
    if (origins)
        pm_html_raw(html, "<label><input type=\"checkbox\" id=\"only-set\" checked><span>only "
                          "changed values</span></label>");
    pm_html_raw(html, "</div><div class=\"scroll\"><table class=\"rows settings\" id=\"settings\">"
                      "<thead><tr><th>key</th><th>value</th><th>from</th></tr></thead><tbody>\n");
    for (int i = 0; i < flat.count; i++)
        write_row(html, &flat.rows[i], pm_json_text_of(origins, flat.rows[i].key));
    pm_html_raw(html, "</tbody></table></div></div></section>\n");
    pm_flat_free(&flat);
}

/* ---- log --------------------------------------------------------------------------------- */

enum { LOG_LINES = 200, WARNINGS = 20 };

/* "2026-01-02T03:04:05Z warning: data: ..." */
static const char *level_of(const char *line, size_t length)
{
    static const char *const marks[] = { "error: ", "warning: " };
    const char *space = memchr(line, ' ', length);

    for (size_t i = 0; space && i < PM_COUNT(marks); i++)
        if ((size_t)(line + length - space) > strlen(marks[i]) &&
            strncmp(space + 1, marks[i], strlen(marks[i])) == 0)
            return i == 0 ? "error" : "warning";
    return NULL;
}

/* The text as lines; returns their number. lines may be NULL. */
static int cut_lines(const char *text, const char **lines)
{
    int n = 0;

    for (const char *at = text; *at; n++) {
        const char *end = strchr(at, '\n');

        if (lines)
            lines[n] = at;
        at = end ? end + 1 : at + strlen(at);
    }
    return n;
}

static void write_line(struct pm_str *html, const char *line, bool item)
{
    const size_t length = strcspn(line, "\n");
    const char *level = level_of(line, length);

    if (item)
        PM_HTML(html, "<li class=\"{}\">", level ? level : "");
    else if (level)
        PM_HTML(html, "<span class=\"{}\">", level);
    pm_html_escape(html, line, length);
    pm_html_raw(html, item ? "</li>\n" : level ? "</span>\n" : "\n");
}

void pm_page_log(struct pm_str *html, const struct pm_report *r)
{
    const char *text = r->log ? r->log : "";
    const int n = cut_lines(text, NULL);
    const char **lines = pm_calloc((size_t)n + 1, sizeof *lines);
    int shown = 0;

    cut_lines(text, lines);
    pm_html_raw(html, "<section id=\"log\"><h2>Log</h2>\n");
    for (int i = n; i-- > 0 && shown < WARNINGS;)
        if (level_of(lines[i], strcspn(lines[i], "\n"))) {
            if (shown++ == 0)
                pm_html_raw(html, "<div class=\"card\"><h3>Warnings and errors, newest first</h3>"
                                  "<ul class=\"warnings\">\n");
            write_line(html, lines[i], true);
        }
    if (shown)
        pm_html_raw(html, "</ul></div>\n");
    if (n == 0)
        pm_html_raw(html, "<p class=\"card empty\">The folder has no log.txt yet.</p>\n");
    else
        pm_html_raw(html, "<pre class=\"card journal\" tabindex=\"0\" role=\"region\" "
                          "aria-label=\"Last lines of the log\">");
    for (int i = n > LOG_LINES ? n - LOG_LINES : 0; i < n; i++)
        write_line(html, lines[i], false);
    pm_html_raw(html, n ? "</pre></section>\n" : "</section>\n");
    pm_free(lines);
}
