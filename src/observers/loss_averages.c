/* loss_averages: loss_averages.h has the contract. */
#include "observers/loss_averages.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

static const double decay = 0.9;

void pm_loss_averages_free(struct pm_loss_averages *a)
{
    pm_free(a->list);
    *a = (struct pm_loss_averages){ 0 };
}

void pm_loss_averages_copy(struct pm_loss_averages *to, const struct pm_loss_averages *from)
{
    to->count = 0;
    for (int i = 0; i < from->count; i++) {
        PM_GROW(to->list, to->count, to->capacity);
        to->list[to->count++] = from->list[i];
    }
}

/* Finds or adds an entry. */
static struct pm_loss_average *entry(struct pm_loss_averages *a, const char *name)
{
    struct pm_loss_average *e;

    for (int i = 0; i < a->count; i++)
        if (strncmp(a->list[i].name, name, sizeof a->list[i].name - 1) == 0)
            return &a->list[i];
    PM_GROW(a->list, a->count, a->capacity);
    e = &a->list[a->count++];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->value = 0;
    return e;
}

static void add(struct pm_loss_averages *a, const char *name, double loss)
{
    struct pm_loss_average *e = entry(a, name);

    e->value = decay * e->value + (1 - decay) * loss;
}

void pm_loss_averages_add(struct pm_loss_averages *a, const struct pm_step_result *r)
{
    add(a, "total_loss", r->loss + (double)r->l2);
    for (int i = 0; i < r->part_count; i++)
        add(a, r->parts[i].name, r->parts[i].value);
}

void pm_loss_averages_print(const struct pm_loss_averages *a, struct pm_str *json)
{
    struct cJSON *object = cJSON_CreateObject();
    char *text;

    for (int i = 0; i < a->count; i++)
        cJSON_AddNumberToObject(object, a->list[i].name, a->list[i].value);
    text = pm_json_print(object); /* its numbers read back exactly */
    pm_str_add(json, "%s", text);
    pm_free(text);
    cJSON_Delete(object);
}

void pm_loss_averages_read(struct pm_loss_averages *a, const struct cJSON *object)
{
    const struct cJSON *m;

    a->count = 0;
    cJSON_ArrayForEach(m, object)
        if (m->string && cJSON_IsNumber(m) && isfinite(m->valuedouble))
            entry(a, m->string)->value = m->valuedouble;
}
