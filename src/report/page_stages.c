/* page_stages: the card of an evaluation that shows at which stage a detector of two stages loses
 * objects: evaluation.json's member stages. */
#include "report/result.h"

#include <math.h>
#include <stdlib.h>

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

/* False without objects, or if a count is missing. */
static bool is_whole(const struct row *r)
{
    bool whole = r->v[OBJECTS] > 0;

    for (int k = FOUND; k <= SUPPRESSED; k++)
        whole &= r->v[k] >= 0 && r->v[k] <= r->v[OBJECTS];
    return whole;
}

static bool read_all(const cJSON *stages, struct row *out)
{
    *out = (struct row){ .name = "all classes", .index = -1 };
    for (int k = 0; k < COLUMNS; k++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(stages, columns[k].member);

        out->v[k] = cJSON_IsNumber(value) ? value->valuedouble : NAN;
    }
    return is_whole(out);
}

/* Lists the classes with objects; returns their number. */
static int read_classes(const struct result *r, const cJSON *stages, struct row *list)
{
    const cJSON *per_class = cJSON_GetObjectItemCaseSensitive(stages, "per_class");
    double *v[COLUMNS];
    int n = 0;

    for (int k = 0; k < COLUMNS; k++)
        v[k] = pm_result_list(r, per_class, columns[k].member);
    for (int c = 0; c + 1 < r->classes; c++) { /* the last one is the background */
        list[n] = (struct row){ .name = r->names[c], .index = c };
        for (int k = 0; k < COLUMNS; k++)
            list[n].v[k] = v[k][c];
        n += is_whole(&list[n]);
    }
    for (int k = 0; k < COLUMNS; k++)
        pm_free(v[k]);
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
            "it. Rejected: a proposal covers it, but no second-stage box of its class with such a "
            "score does. Suppressed: such a box covers it, but suppression removed the box. "
            "Last: recall of the proposals, the share of the objects that a proposal covers, with "
            "an IoU of at least 0.5 or 0.7.</p>",
            PM_NUMBER(pm_json_number_of(r->evaluation, "threshold")));
    pm_page_classes_open(html, r, "stages", "Lost objects by class", n);
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
    pm_page_classes_close(html, n, 1);
    pm_html_raw(html, "</div>\n");
    pm_free(list);
}
