/* balancer: a device's share is proportional to its examples per second, by its own timing of its
 * part. */
#include "clones/balancer.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

enum { SKIP = 3, MEASURE = 6 }; /* steps; the first ones compile and warm up */
static const double worth_it = 0.1; /* least relative change of some clone's share */

void pm_balancer_start(struct pm_balancer *b, int count)
{
    *b =
        (struct pm_balancer){ .count = count, .seconds = pm_calloc((size_t)count, sizeof(double)) };
}

void pm_balancer_free(struct pm_balancer *b)
{
    pm_free(b->seconds);
    b->seconds = NULL;
}

bool pm_balancer_step(struct pm_balancer *b, const struct pm_clones *c, struct pm_clone_spec *specs)
{
    double total_old = 0, total_new = 0, change = 0;

    if (b->step < 0 || ++b->step <= SKIP)
        return false;
    for (int i = 0; i < b->count; i++)
        b->seconds[i] += pm_clones_seconds(c, i) / pm_clones_examples(c, i);
    if (b->step < SKIP + MEASURE)
        return false;
    b->step = -1;
    for (int i = 0; i < b->count; i++) {
        if (!(b->seconds[i] > 0))
            return true;
        total_old += specs[i].share;
        total_new += 1 / b->seconds[i];
    }
    for (int i = 0; i < b->count; i++) {
        double old = specs[i].share / total_old, new = 1 / b->seconds[i] / total_new;

        change = fmax(change, fabs(new - old) / old);
    }
    b->moved = change >= worth_it;
    if (!b->moved)
        return true;
    for (int i = 0; i < b->count; i++) {
        specs[i].share = 1 / b->seconds[i] / total_new;
        PM_INFO("clones", "%s: %.1f images/s alone, %.0f %% of the batch", specs[i].info.name,
                MEASURE / b->seconds[i], 100 * specs[i].share);
    }
    return true;
}

bool pm_balancer_load(const char *run, struct pm_clone_spec *specs, int count)
{
    char path[4096], *text = NULL;
    struct cJSON *json = NULL;
    const struct cJSON *entry;
    bool ok = false;
    int i = 0;

    snprintf(path, sizeof path, "%s/shares.json", run);
    if (!pm_file_exists(path) || pm_text_read(path, PM_MOST_TEXT, &text) < 0)
        return false;
    if (pm_json_parse(path, text, &json) < 0 || cJSON_GetArraySize(json) != count)
        goto out;
    for (int pass = 0; pass < 2; pass++, i = 0)
        cJSON_ArrayForEach(entry, json)
        {
            const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(entry, "device"));
            const struct cJSON *share = cJSON_GetObjectItem(entry, "share");

            if (!name || strcmp(name, specs[i].info.name) != 0 || !cJSON_IsNumber(share) ||
                !(share->valuedouble > 0))
                goto out;
            if (pass == 1)
                specs[i].share = share->valuedouble;
            i++;
        }
    ok = true;
out:
    if (!ok)
        PM_WARN("clones",
                "%s is from other devices: measuring their speed again, so results can differ in "
                "the last bits",
                path);
    cJSON_Delete(json);
    pm_free(text);
    return ok;
}

int pm_balancer_save(const char *run, const struct pm_clone_spec *specs, int count)
{
    struct cJSON *list = cJSON_CreateArray();
    char path[4096], *text;
    int err;

    for (int i = 0; i < count; i++) {
        struct cJSON *entry = cJSON_CreateObject();

        cJSON_AddStringToObject(entry, "device", specs[i].info.name);
        cJSON_AddNumberToObject(entry, "share", specs[i].share);
        cJSON_AddItemToArray(list, entry);
    }
    text = pm_json_print(list);
    snprintf(path, sizeof path, "%s/shares.json", run);
    err = pm_file_write(path, text, strlen(text));
    pm_free(text);
    cJSON_Delete(list);
    return err;
}
