/* balancer: a clone's share is proportional to its examples per second, in the median of a few
 * steps: in a single one, other programs may have slowed it down. A process that trains alone takes
 * the devices' own times of their parts. With several processes, the time in which a process waits
 * for data counts for each of its clones. */
#include "clones/balancer.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SKIP = 3 }; /* steps, which compile and warm up */
static const double worth_it = 0.1; /* least relative change of some clone's share */

void pm_balancer_start(struct pm_balancer *b, int count)
{
    *b = (struct pm_balancer){ .count = count };
    b->seconds = pm_calloc((size_t)count * PM_BALANCE_STEPS, sizeof *b->seconds);
    b->clones = pm_calloc((size_t)count, sizeof *b->clones);
}

void pm_balancer_free(struct pm_balancer *b)
{
    pm_free(b->seconds);
    pm_free(b->clones);
    b->seconds = NULL;
    b->clones = NULL;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* Returns the examples per second of clone i. Its measured seconds are sorted. */
static double rate_of(const struct pm_balancer *b, int i)
{
    const double *s = b->seconds + (size_t)i * PM_BALANCE_STEPS;

    return 2 / (s[(PM_BALANCE_STEPS - 1) / 2] + s[PM_BALANCE_STEPS / 2]);
}

/* Sets the shares to the measured rates, if that changes one of them enough. */
static void set_shares(struct pm_balancer *b)
{
    double total_old = 0, total_new = 0, change = 0;

    for (int i = 0; i < b->count; i++) {
        qsort(b->seconds + (size_t)i * PM_BALANCE_STEPS, PM_BALANCE_STEPS, sizeof *b->seconds,
              by_size);
        if (!isfinite(rate_of(b, i)))
            return;
        total_old += b->clones[i].share;
        total_new += rate_of(b, i);
    }
    for (int i = 0; i < b->count; i++) {
        const double old = b->clones[i].share / total_old, new = rate_of(b, i) / total_new;

        change = fmax(change, fabs(new - old) / old);
    }
    b->moved = change >= worth_it;
    for (int i = 0; b->moved && i < b->count; i++)
        b->clones[i].share = rate_of(b, i) / total_new;
}

bool pm_balancer_step(struct pm_balancer *b, const struct pm_clones *c)
{
    if (b->step < 0 || ++b->step <= SKIP)
        return false;
    for (int i = 0; i < b->count; i++)
        b->seconds[i * PM_BALANCE_STEPS + b->step - SKIP - 1] =
            pm_clones_seconds_of(c, i) / pm_clones_examples_of(c, i);
    if (b->step < SKIP + PM_BALANCE_STEPS)
        return false;
    b->step = -1;
    set_shares(b);
    return true;
}

void pm_balancer_say(const struct pm_balancer *b)
{
    for (int i = 0; i < b->count; i++) {
        const struct pm_balanced *k = &b->clones[i];

        PM_INFO("clones", "%s%s%s: %.1f images/s alone, %.0f %% of the batch",
                k->host ? k->host : "", k->host ? ", " : "", k->device, rate_of(b, i),
                100 * k->share);
    }
}

/* Whether an entry of shares.json is of this clone. */
static bool is_of(const struct cJSON *entry, const struct pm_balanced *k)
{
    const char *device = cJSON_GetStringValue(cJSON_GetObjectItem(entry, "device"));
    const char *host = cJSON_GetStringValue(cJSON_GetObjectItem(entry, "host"));

    return device && strcmp(device, k->device) == 0 &&
           (host && k->host ? strcmp(host, k->host) == 0 : !host && !k->host);
}

bool pm_balancer_load(const char *run, struct pm_balanced *clones, int count)
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
            const struct cJSON *share = cJSON_GetObjectItem(entry, "share");

            if (!is_of(entry, &clones[i]) || !cJSON_IsNumber(share) || !(share->valuedouble > 0))
                goto out;
            if (pass == 1)
                clones[i].share = share->valuedouble;
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

int pm_balancer_save(const char *run, const struct pm_balanced *clones, int count)
{
    struct cJSON *list = cJSON_CreateArray();
    char path[4096], *text;
    int err;

    for (int i = 0; i < count; i++) {
        struct cJSON *entry = cJSON_CreateObject();

        if (clones[i].host)
            cJSON_AddStringToObject(entry, "host", clones[i].host);
        cJSON_AddStringToObject(entry, "device", clones[i].device);
        cJSON_AddNumberToObject(entry, "share", clones[i].share);
        cJSON_AddItemToArray(list, entry);
    }
    text = pm_json_print(list);
    snprintf(path, sizeof path, "%s/shares.json", run);
    err = pm_file_write(path, text, strlen(text));
    pm_free(text);
    cJSON_Delete(list);
    return err;
}
