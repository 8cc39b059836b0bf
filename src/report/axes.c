/* axes: the place of each point on each axis. */
#include "report/axes.h"

#include "report/html.h"

#include <math.h>
#include <string.h>

enum { FEW = 8 }; /* different numbers that are labelled themselves */

#define MISSING "\xe2\x80\x93" /* the label of points without the key */

/* ---- labels ------------------------------------------------------------------------------ */

static const char *name_of(const cJSON *v)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(v, "name"));
}

static bool is_only_one(const cJSON *entries, const char *name)
{
    const cJSON *e;
    int same = 0;

    cJSON_ArrayForEach(e, entries)
        same += name_of(e) && strcmp(name_of(e), name) == 0;
    return same == 1;
}

/* The caller frees it. */
static char *label_of(const cJSON *v, const cJSON *entries)
{
    if (!v)
        return pm_strdup(MISSING);
    if (cJSON_IsString(v))
        return pm_strdup(v->valuestring);
    if (cJSON_IsNumber(v))
        return pm_strdup(PM_NUMBER(v->valuedouble));
    if (cJSON_IsObject(v) && name_of(v) && is_only_one(entries, name_of(v)))
        return pm_strdup(name_of(v));
    char *text = cJSON_PrintUnformatted(v), *copy = pm_strdup(text ? text : "");
    cJSON_free(text);
    return copy;
}

/* Takes the label. Returns its number. */
static int add_label(struct pm_axis *x, char *label)
{
    for (int i = 0; i < x->labels_count; i++)
        if (strcmp(x->labels[i], label) == 0) {
            pm_free(label);
            return i;
        }
    PM_GROW(x->labels, x->labels_count, x->capacity);
    x->labels[x->labels_count] = label;
    return x->labels_count++;
}

static void drop_labels(struct pm_axis *x)
{
    for (int i = 0; i < x->labels_count; i++)
        pm_free(x->labels[i]);
    pm_free(x->labels);
    x->labels = NULL;
    x->labels_count = x->capacity = 0;
}

/* ---- places ------------------------------------------------------------------------------ */

/* Whether all values are numbers and not all the same. */
static bool number_range(const struct pm_axes *a, const cJSON *const *values, bool *missing,
                         struct pm_scale *out)
{
    *out = (struct pm_scale){ INFINITY, -INFINITY, false };
    *missing = false;
    for (int i = 0; i < a->points; i++) {
        if (!values[i]) {
            *missing = true;
            continue;
        }
        if (!cJSON_IsNumber(values[i]) || !isfinite(values[i]->valuedouble))
            return false;
        out->from = fmin(out->from, values[i]->valuedouble);
        out->to = fmax(out->to, values[i]->valuedouble);
    }
    return out->from < out->to;
}

/* Numbers are on the whole axis, or above the points that lack the key. */
static void place_numbers(struct pm_axis *x, int points, const cJSON *const *values, bool missing)
{
    const double low = missing ? 150 : 0;
    int few = 0;

    for (int i = 0; i < points; i++)
        x->at[i] = values[i] ? low + (1000 - low) / 1000 *
                                         pm_scale_at(&x->scale, values[i]->valuedouble)
                             : 0;
    for (int i = 0; i < points && few <= FEW; i++) {
        add_label(x, label_of(values[i], NULL));
        few = x->labels_count;
    }
    x->ticks = pm_calloc((size_t)x->labels_count + PM_SCALE_TICKS, sizeof *x->ticks);
    if (few <= FEW) {
        for (int i = 0; i < points; i++)
            x->ticks[add_label(x, label_of(values[i], NULL))] = x->at[i];
        return;
    }
    double ticks[PM_SCALE_TICKS];
    const int n = pm_scale_ticks(&x->scale, 5, ticks);

    drop_labels(x);
    for (int i = 0; i < n; i++)
        x->ticks[add_label(x, pm_strdup(PM_NUMBER(fabs(ticks[i]) < 1e-12 ? 0 : ticks[i])))] =
            low + (1000 - low) / 1000 * pm_scale_at(&x->scale, ticks[i]);
    if (missing)
        x->ticks[add_label(x, pm_strdup(MISSING))] = 0;
}

static void place_names(struct pm_axis *x, int points, const cJSON *const *values,
                        const cJSON *entries)
{
    char **of = pm_calloc((size_t)points + 1, sizeof *of);
    const cJSON *e;

    for (int i = 0; i < points; i++)
        of[i] = label_of(values[i], entries);
    cJSON_ArrayForEach(e, entries) /* in the list's order, those that occur */
    {
        char *label = label_of(e, entries);
        int i = 0;

        while (i < points && strcmp(of[i], label) != 0)
            i++;
        if (i < points)
            add_label(x, label);
        else
            pm_free(label);
    }
    for (int i = 0; i < points; i++)
        x->at[i] = add_label(x, of[i]);
    pm_free(of);
    x->ticks = pm_calloc((size_t)x->labels_count + 1, sizeof *x->ticks);
    const double step = x->labels_count > 1 ? 1000.0 / (x->labels_count - 1) : 0;
    const double first = x->labels_count > 1 ? 0 : 500;
    for (int i = 0; i < points; i++)
        x->at[i] = first + step * x->at[i];
    for (int i = 0; i < x->labels_count; i++)
        x->ticks[i] = first + step * i;
}

void pm_axes_add(struct pm_axes *a, const char *key, const cJSON *const *values,
                 enum pm_axis_kind kind, const cJSON *entries)
{
    struct pm_axis x = { .name = pm_strdup(key) };
    bool missing;

    x.at = pm_calloc((size_t)a->points + 1, sizeof *x.at);
    x.numbers = number_range(a, values, &missing, &x.scale);
    if (x.numbers) {
        x.scale.log = x.scale.from > 0 && (kind == PM_AXIS_LOG || (kind == PM_AXIS_AUTO &&
                                           x.scale.to > 10 * x.scale.from));
        place_numbers(&x, a->points, values, missing);
    } else {
        place_names(&x, a->points, values, cJSON_IsArray(entries) ? entries : NULL);
    }
    PM_GROW(a->list, a->count, a->capacity);
    a->list[a->count++] = x;
}

void pm_axes_free(struct pm_axes *a)
{
    for (int i = 0; i < a->count; i++) {
        pm_free(a->list[i].name);
        pm_free(a->list[i].ticks);
        pm_free(a->list[i].at);
        drop_labels(&a->list[i]);
    }
    pm_free(a->list);
    a->list = NULL;
    a->count = a->capacity = 0;
}
