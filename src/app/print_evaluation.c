/* print_evaluation: prints an evaluation as text: the metrics and a table of classes. The table
 * shows all classes if they are few, else the worst ones. */
#include "app/print_evaluation.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALL_OF = 20, WORST = 10, NAME_WIDTH = 24 };

static double number(const cJSON *object, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(object, name));
}

/* ---- columns ----------------------------------------------------------------------------- */

/* Adds a name of exactly width columns: cut at a whole character, or padded. */
static void add_name(struct pm_str *s, const char *text, int width)
{
    size_t left = strlen(text);
    int n = 0;

    while (left > 0) {
        char piece[PM_PRINTABLE];
        int used;
        const int bytes = pm_printable_next(text, left, piece, &used);
        const int columns = piece[0] == '\\' ? bytes : 1;
        if (n + columns > width)
            break;
        pm_str_bytes(s, piece, (size_t)bytes);
        n += columns;
        text += used;
        left -= (size_t)used;
    }
    pm_str_add(s, "%*s", width - n, "");
}

static void add_share(struct pm_str *s, double v)
{
    if (isfinite(v))
        pm_str_add(s, "  %9.4f", v);
    else
        pm_str_add(s, "  %9s", "-");
}

/* The score in the last column. */
static const char *score_of(const cJSON *row)
{
    return cJSON_GetObjectItem(row, "iou") ? "iou" : "f1";
}

static void add_row(struct pm_str *s, const cJSON *row)
{
    const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(row, "name"));
    char label[32];

    snprintf(label, sizeof label, "%.0f", number(row, "label"));
    pm_str_add(s, "  ");
    add_name(s, name ? name : label, NAME_WIDTH);
    pm_str_add(s, "  %8.0f", number(row, "support"));
    add_share(s, number(row, "precision"));
    add_share(s, number(row, "recall"));
    add_share(s, number(row, score_of(row)));
    pm_str_add(s, "\n");
}

/* ---- which ------------------------------------------------------------------------------- */

/* Orders by lowest F1; among equals, more pictures first, then by label. */
static int by_f1(const void *a, const void *b)
{
    const cJSON *x = *(const cJSON *const *)a, *y = *(const cJSON *const *)b;
    const double f = number(x, "f1"), g = number(y, "f1");

    if (f != g)
        return f < g ? -1 : 1;
    if (number(x, "support") != number(y, "support"))
        return number(x, "support") > number(y, "support") ? -1 : 1;
    return number(x, "label") < number(y, "label") ? -1 : 1;
}

/* Adds the worst classes among those that have pictures. */
static void add_worst(struct pm_str *s, const cJSON *rows)
{
    const cJSON **list = pm_calloc((size_t)cJSON_GetArraySize(rows) + 1, sizeof(*list));
    const cJSON *row;
    size_t n = 0;

    cJSON_ArrayForEach(row, rows) if (number(row, "support") > 0)
        list[n++] = row;
    qsort(list, n, sizeof(*list), by_f1);
    for (size_t i = 0; i < n && i < WORST; i++)
        add_row(s, list[i]);
    pm_free(list);
}

/* Adds a line about a detector of two stages: what became of the objects. */
static void add_stages(struct pm_str *s, const cJSON *stages)
{
    const double objects = number(stages, "objects");

    if (!cJSON_IsObject(stages))
        return;
    pm_str_add(s, "  of %.0f %s: %.0f found, %.0f without a proposal, %.0f rejected by the second "
                  "stage, %.0f suppressed\n", objects, pm_plural(objects, "object", "objects"),
               number(stages, "found"), number(stages, "no_proposal"), number(stages, "rejected"),
               number(stages, "suppressed"));
}

void app_evaluation_text(const struct cJSON *report, const char *unit, bool classes,
                         struct pm_str *out)
{
    const cJSON *rows = cJSON_GetObjectItem(report, "per_class"), *m;
    const int count = cJSON_GetArraySize(rows);

    if (cJSON_IsNumber(cJSON_GetObjectItem(report, "step")))
        pm_str_add(out, "step %.0f", number(report, "step"));
    else
        pm_str_name(out, cJSON_GetStringValue(cJSON_GetObjectItem(report, "checkpoint")), 0);
    pm_str_add(out, "%s, %.0f %s in %.1f s\n",
               cJSON_IsTrue(cJSON_GetObjectItem(report, "averages")) ? ", moving averages" : "",
               number(report, "count"), pm_plural(number(report, "count"), "picture", "pictures"),
               number(report, "seconds"));
    cJSON_ArrayForEach(m, cJSON_GetObjectItem(report, "metrics")) if (cJSON_IsNumber(m))
    {
        pm_str_add(out, "  %-14s ", m->string);
        if (isfinite(m->valuedouble))
            pm_str_add(out, "%.4f", m->valuedouble);
        else
            pm_str_add(out, "-");
        pm_str_add(out, "\n");
    }
    add_stages(out, cJSON_GetObjectItem(report, "stages"));
    if (!classes || count == 0)
        return;
    pm_str_add(out, "\n  ");
    add_name(out, count > ALL_OF ? "worst classes" : "class", NAME_WIDTH);
    pm_str_add(out, "  %8s  %9s  %9s  %9s\n", unit, "precision", "recall",
               score_of(cJSON_GetArrayItem(rows, 0)));
    if (count > ALL_OF) {
        add_worst(out, rows);
        return;
    }
    cJSON_ArrayForEach(m, rows) add_row(out, m);
}
