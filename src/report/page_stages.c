/* page_stages: the card of an evaluation that shows at which stage a detector of two stages loses
 * objects: evaluation.json's member stages. */
#include "report/result.h"

#include <math.h>
#include <stdlib.h>

enum { ON_PAPER = 40 /* rows that page.css lets stand */ };

/* The members, and the heads of their columns. */
static const struct { const char *member, *head; } columns[] = {
    { "objects", "objects" },
    { "found", "found" },
    { "no_proposal", "no proposal" },
    { "rejected", "rejected" },
    { "suppressed", "suppressed" },
    { "proposal_recall_50", "proposed at 0.5" },
    { "proposal_recall_70", "at 0.7" },
};
enum { OBJECTS, FOUND, SUPPRESSED = 4, COLUMNS = PM_COUNT(columns) };

/* The numbers of one class, or of all. */
struct row {
    const char *name;
    int index; /* of the class; -1: all */
    double v[COLUMNS];
};

/* Reads the values of a row. Returns false without objects, or if a count is missing. */
static bool read_row(const cJSON *const value[COLUMNS], const char *name, int index,
                     struct row *out)
{
    bool whole = true;

    *out = (struct row){ .name = name, .index = index };
    for (int k = 0; k < COLUMNS; k++)
        out->v[k] = cJSON_IsNumber(value[k]) ? value[k]->valuedouble : NAN;
    for (int k = FOUND; k <= SUPPRESSED; k++)
        whole &= out->v[k] >= 0 && out->v[k] <= out->v[OBJECTS];
    return whole && out->v[OBJECTS] > 0;
}

static bool read_all(const cJSON *stages, struct row *out)
{
    const cJSON *value[COLUMNS];

    for (int k = 0; k < COLUMNS; k++)
        value[k] = cJSON_GetObjectItemCaseSensitive(stages, columns[k].member);
    return read_row(value, "all classes", -1, out);
}

/* Lists the classes with objects; returns their number. */
static int read_classes(const struct result *r, const cJSON *stages, struct row *list)
{
    const cJSON *per_class = cJSON_GetObjectItemCaseSensitive(stages, "per_class");
    const cJSON *value[COLUMNS];
    int n = 0;

    for (int k = 0; k < COLUMNS; k++) {
        const cJSON *of = cJSON_GetObjectItemCaseSensitive(per_class, columns[k].member);

        value[k] = cJSON_IsArray(of) ? of->child : NULL;
    }
    for (int c = 0; c + 1 < r->classes; c++) { /* the last one is the background */
        n += read_row(value, r->names[c], c, &list[n]);
        for (int k = 0; k < COLUMNS; k++)
            value[k] = value[k] ? value[k]->next : NULL;
    }
    return n;
}

static double found_share(const struct row *r)
{
    return r->v[FOUND] / r->v[OBJECTS];
}

/* The worst first. */
static int by_found(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (found_share(x) != found_share(y))
        return found_share(x) < found_share(y) ? -1 : 1;
    return x->index - y->index;
}

static void write_row(struct pm_str *html, const struct row *r)
{
    PM_HTML(html, r->index < 0 ? "<tr class=\"best\"><td>{}</td><td class=\"n\">{}</td>"
                               : "<tr><td>{}</td><td class=\"n\">{}</td>",
            r->name, PM_COUNT_TEXT(r->v[OBJECTS]));
    for (int k = FOUND; k <= SUPPRESSED; k++)
        PM_HTML(html, "<td class=\"n\">{} ({})</td>", PM_PERCENT(r->v[k] / r->v[OBJECTS]),
                PM_COUNT_TEXT(r->v[k]));
    for (int k = SUPPRESSED + 1; k < COLUMNS; k++)
        PM_HTML(html, "<td class=\"n\">{}</td>", PM_PERCENT(r->v[k]));
    pm_html_raw(html, "</tr>\n");
}

static void write_head(struct pm_str *html, const struct result *r, int n)
{
    PM_HTML(html, "<div class=\"card wide\"><h3>Where objects are lost</h3><p class=\"note\">A box "
            "covers an object if their IoU is at least 0.5. Found: a detection of the object's "
            "class with a score above {} covers it. No proposal: no box of the first stage covers "
            "it. Rejected: a proposal covers it, but no box of the second stage with its class and "
            "such a score. Suppressed: such a box covers it, but suppression removed the box. "
            "Last: recall of the proposals, the share of the objects that a proposal covers, with "
            "an IoU of at least 0.5 or 0.7.</p>",
            PM_NUMBER(pm_json_number_of(r->evaluation, "threshold")));
    if (n > 20)
        pm_str_add(html,
                   "<input type=\"search\" class=\"filter\" data-filter=\"stages-%d\" hidden "
                   "placeholder=\"Find a class\" aria-label=\"Find a class\">", r->index);
    PM_HTML(html, "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Lost "
            "objects by class\"><table class=\"rows classes\" id=\"stages-{}\"><thead><tr>"
            "<th>class</th>", PM_COUNT_TEXT(r->index));
    for (int k = 0; k < COLUMNS; k++)
        PM_HTML(html, "<th class=\"n\">{}</th>", columns[k].head);
    pm_html_raw(html, "</tr></thead><tbody>\n");
}

void pm_page_stages(struct pm_str *html, const struct result *r)
{
    const cJSON *stages = cJSON_GetObjectItemCaseSensitive(r->evaluation, "stages");
    struct row *list, all;
    int n;

    if (!read_all(stages, &all))
        return;
    list = pm_malloc(((size_t)r->classes + 1) * sizeof *list);
    n = read_classes(r, stages, list);
    qsort(list, (size_t)n, sizeof *list, by_found);
    write_head(html, r, n);
    write_row(html, &all);
    for (int i = 0; i < n; i++)
        write_row(html, &list[i]);
    pm_html_raw(html, "</tbody></table></div>");
    if (n >= ON_PAPER)
        PM_HTML(html, "<p class=\"note on-paper\">On paper the {} worst only.</p>",
                PM_COUNT_TEXT(ON_PAPER - 1));
    pm_html_raw(html, "</div>\n");
    pm_free(list);
}
