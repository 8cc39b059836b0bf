/* per_class: per_class.h has the contract. */
#include "observers/per_class.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* ---- rows -------------------------------------------------------------------------------- */

/* Adds part / whole; null if whole is 0. */
static void add_share(cJSON *row, const char *name, double part, double whole)
{
    cJSON_AddNumberToObject(row, name, whole > 0 ? part / whole : NAN);
}

static cJSON *make_row(double label, const cJSON *name, double support, double predicted,
                       double right, bool iou)
{
    cJSON *row = cJSON_CreateObject();

    cJSON_AddNumberToObject(row, "label", label);
    if (cJSON_IsString(name))
        cJSON_AddStringToObject(row, "name", name->valuestring);
    else
        cJSON_AddNullToObject(row, "name");
    cJSON_AddNumberToObject(row, "support", support);
    cJSON_AddNumberToObject(row, "predicted", predicted);
    cJSON_AddNumberToObject(row, "right", right);
    add_share(row, "precision", right, predicted);
    add_share(row, "recall", right, support);
    add_share(row, "f1", 2 * right, support + predicted);
    if (iou)
        add_share(row, "iou", right, support > 0 ? support + predicted - right : 0);
    return row;
}

struct cJSON *pm_per_class_rows(const struct cJSON *detail)
{
    const cJSON *counts = cJSON_GetObjectItem(detail, "per_class");
    const cJSON *support = cJSON_GetObjectItem(counts, "count");
    const cJSON *predicted = cJSON_GetObjectItem(counts, "predicted");
    const cJSON *right = cJSON_GetObjectItem(counts, "right");
    const cJSON *name = cJSON_GetObjectItem(detail, "labels");
    double label = cJSON_GetNumberValue(cJSON_GetObjectItem(detail, "labels_offset"));
    cJSON *rows;

    if (!support || !predicted || !right || !name)
        return NULL;
    rows = cJSON_CreateArray();
    support = support->child, predicted = predicted->child, right = right->child;
    name = name->child;
    while (support && predicted && right && name) {
        cJSON_AddItemToArray(rows, make_row(label++, name, support->valuedouble,
                                            predicted->valuedouble, right->valuedouble,
                                            cJSON_GetObjectItem(counts, "iou") != NULL));
        support = support->next, predicted = predicted->next, right = right->next;
        name = name->next;
    }
    return rows;
}

/* ---- the file ---------------------------------------------------------------------------- */

/* Appends the number; empty if there is none. */
static void add_number(struct pm_str *s, const cJSON *row, const char *name)
{
    const double v = cJSON_GetNumberValue(cJSON_GetObjectItem(row, name));

    pm_str_add(s, isfinite(v) ? ",%.9g" : ",", v);
}

int pm_per_class_write(const char *folder, uint64_t step, const struct cJSON *rows)
{
    static const char *const columns[] = { "support", "predicted", "right",
                                           "precision", "recall", "f1", "iou" };
    const bool iou = cJSON_GetObjectItem(cJSON_GetArrayItem(rows, 0), "iou") != NULL;
    struct pm_str text = { 0 }, path = { 0 };
    const cJSON *row;
    int err = PM_OK;

    pm_str_add(&text, "step,label,name,support,predicted,right,precision,recall,f1%s\n",
               iou ? ",iou" : "");
    cJSON_ArrayForEach(row, rows)
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(row, "name"));

        pm_str_add(&text, "%llu", (unsigned long long)step);
        add_number(&text, row, "label");
        pm_str_add(&text, ",");
        pm_str_csv(&text, name ? name : "");
        for (size_t i = 0; i < PM_COUNT(columns) - !iou; i++)
            add_number(&text, row, columns[i]);
        pm_str_add(&text, "\n");
    }
    pm_str_add(&path, "%s/per_class.csv", folder);
    PM_TRY(pm_make_folder(folder));
    PM_TRY(pm_file_write(path.text, text.text, text.length));
out:
    pm_str_free(&text);
    pm_str_free(&path);
    return err;
}
