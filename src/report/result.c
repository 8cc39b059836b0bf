/* result: evaluation.json's counts. */
#include "report/result.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_count(const void *a, const void *b)
{
    const struct cell *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return x->truth != y->truth ? x->truth - y->truth : x->predicted - y->predicted;
}

static void read_cells(struct result *r)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(r->evaluation, "confusion");
    const cJSON *v;
    double part[3];
    int n = 0;

    r->cells = pm_calloc((size_t)cJSON_GetArraySize(list) / 3 + 1, sizeof *r->cells);
    cJSON_ArrayForEach(v, list)
    {
        part[n++] = cJSON_IsNumber(v) ? v->valuedouble : -1;
        if (n < 3)
            continue;
        n = 0;
        if (part[0] >= 0 && part[0] < r->classes && part[1] >= 0 && part[1] < r->classes &&
            part[2] > 0)
            r->cells[r->cells_count++] = (struct cell){ (int)part[0], (int)part[1], part[2] };
    }
    qsort(r->cells, (size_t)r->cells_count, sizeof *r->cells, by_count);
}

void pm_result_read(struct result *r, const cJSON *evaluation, const struct kind *kind, int index)
{
    const cJSON *per_class = cJSON_GetObjectItemCaseSensitive(evaluation, "per_class");
    const cJSON *counts = cJSON_GetObjectItemCaseSensitive(per_class, "count");
    const cJSON *right = cJSON_GetObjectItemCaseSensitive(per_class, "right");
    const cJSON *predicted = cJSON_GetObjectItemCaseSensitive(per_class, "predicted");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(evaluation, "labels");
    const double offset = pm_json_number_of(evaluation, "labels_offset");
    const size_t n = (size_t)cJSON_GetArraySize(counts), all = n + (n && kind->background);

    *r = (struct result){ .evaluation = evaluation, .kind = kind, .index = index,
                          .classes = (int)all };
    r->names = pm_calloc(all + 1, sizeof *r->names);
    r->count = pm_calloc(all + 1, sizeof *r->count);
    r->right = pm_calloc(all + 1, sizeof *r->right);
    r->predicted = pm_calloc(all + 1, sizeof *r->predicted);
    counts = counts ? counts->child : NULL;
    right = right ? right->child : NULL;
    predicted = predicted ? predicted->child : NULL;
    name = name ? name->child : NULL;
    for (size_t i = 0; i < n; i++) {
        char number[32];

        snprintf(number, sizeof number, "%.0f", (double)i + (isfinite(offset) ? offset : 0));
        r->names[i] = pm_strdup(cJSON_IsString(name) ? name->valuestring : number);
        r->count[i] = cJSON_IsNumber(counts) ? fmax(0, counts->valuedouble) : 0;
        r->right[i] = cJSON_IsNumber(right) ? fmax(0, right->valuedouble) : 0;
        r->predicted[i] = cJSON_IsNumber(predicted) ? fmax(0, predicted->valuedouble) : NAN;
        counts = counts->next;
        right = right ? right->next : NULL;
        predicted = predicted ? predicted->next : NULL;
        name = name ? name->next : NULL;
    }
    if (all > n) {
        r->names[n] = pm_strdup("(background)");
        r->predicted[n] = NAN;
    }
    read_cells(r);
    for (int i = 0; i < r->cells_count && all > n; i++)
        if (r->cells[i].truth == (int)n)
            r->count[n] += r->cells[i].count;
}

void pm_result_free(struct result *r)
{
    for (int i = 0; i < r->classes; i++)
        pm_free(r->names[i]);
    pm_free(r->names);
    pm_free(r->count);
    pm_free(r->right);
    pm_free(r->predicted);
    pm_free(r->cells);
}

double *pm_result_list(const struct result *r, const cJSON *per_class, const char *name)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(per_class, name);
    double *out = pm_malloc(((size_t)r->classes + 1) * sizeof *out);

    v = cJSON_IsArray(v) ? v->child : NULL;
    for (int c = 0; c < r->classes; c++) {
        out[c] = cJSON_IsNumber(v) ? v->valuedouble : NAN;
        v = v ? v->next : NULL;
    }
    return out;
}

double pm_result_share(double part, double whole)
{
    return whole > 0 ? fmin(1, part / whole) : NAN;
}
