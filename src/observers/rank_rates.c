/* rank_rates: rank_rates.h has the contract. */
#include "observers/rank_rates.h"

#include <pumice/replicas.h>

#include <cjson/cJSON.h>
#include <math.h>

struct pm_rank_rates {
    int count;             /* ranks */
    double *seconds;       /* [count] since the last take; owned, as are all below */
    double *examples;      /* [count] */
    double *rates;         /* [count] images per second at the last take; NAN: none */
    char (*names)[40];     /* [count] of the metrics */
    struct pm_replicas *replicas; /* borrowed */
    uint64_t sent;         /* bytes at the last take */
};

struct pm_rank_rates *pm_rank_rates_create(const struct pm_run_facts *run)
{
    struct pm_rank_rates *r;

    if (!run->replicas)
        return NULL;
    r = pm_calloc(1, sizeof *r);
    r->replicas = run->replicas;
    r->count = pm_replicas_count(run->replicas);
    r->seconds = pm_calloc((size_t)r->count, sizeof *r->seconds);
    r->examples = pm_calloc((size_t)r->count, sizeof *r->examples);
    r->rates = pm_calloc((size_t)r->count, sizeof *r->rates);
    r->names = pm_calloc((size_t)r->count, sizeof *r->names);
    for (int k = 0; k < r->count; k++) {
        r->rates[k] = NAN;
        snprintf(r->names[k], sizeof r->names[k], "rank_%d_images_per_second", k);
    }
    r->sent = pm_replicas_sent(r->replicas);
    return r;
}

void pm_rank_rates_destroy(struct pm_rank_rates **r)
{
    if (*r) {
        pm_free((*r)->seconds);
        pm_free((*r)->examples);
        pm_free((*r)->rates);
        pm_free((*r)->names);
        pm_free(*r);
    }
    *r = NULL;
}

void pm_rank_rates_step(struct pm_rank_rates *r, const struct pm_run_facts *run)
{
    for (int k = 0, at = 0; r && k < r->count; k++) {
        double slowest = 0;

        for (const int end = at + pm_clones_of_rank(run->clones, k); at < end; at++) {
            slowest = fmax(slowest, pm_clones_seconds_of(run->clones, at));
            r->examples[k] += pm_clones_examples_of(run->clones, at);
        }
        r->seconds[k] += slowest;
    }
}

size_t pm_rank_rates_values(const struct pm_rank_rates *r)
{
    return r ? 2 + (size_t)r->count : 0;
}

size_t pm_rank_rates_take(struct pm_rank_rates *r, struct pm_metric *out)
{
    uint64_t sent;
    int slowest = 0;

    if (!r)
        return 0;
    sent = pm_replicas_sent(r->replicas);
    for (int k = 0; k < r->count; k++) {
        if (r->seconds[k] > r->seconds[slowest])
            slowest = k;
        r->rates[k] = r->seconds[k] > 0 ? r->examples[k] / r->seconds[k] : NAN;
        out[2 + k] = (struct pm_metric){ r->names[k], r->rates[k] };
    }
    out[0] = (struct pm_metric){ "slowest_rank", slowest };
    out[1] = (struct pm_metric){ "exchanged_bytes", (double)(sent - r->sent) };
    for (int k = 0; k < r->count; k++)
        r->seconds[k] = r->examples[k] = 0;
    r->sent = sent;
    return pm_rank_rates_values(r);
}

static void add_rank(const struct pm_rank_rates *r, const struct pm_run_facts *run, int rank,
                     int first, cJSON *list)
{
    const int clones = run->clones ? pm_clones_of_rank(run->clones, rank) : 0;
    cJSON *o = cJSON_CreateObject(), *devices = cJSON_CreateArray();
    int examples = 0;

    for (int i = first; i < first + clones; i++) {
        cJSON_AddItemToArray(devices, cJSON_CreateString(run->device_names[i]));
        examples += pm_clones_examples_of(run->clones, i);
    }
    cJSON_AddNumberToObject(o, "rank", rank);
    cJSON_AddStringToObject(o, "host", pm_replicas_host(r->replicas, rank));
    cJSON_AddItemToObject(o, "devices", devices);
    cJSON_AddNumberToObject(o, "examples", examples);
    if (isfinite(r->rates[rank]))
        cJSON_AddNumberToObject(o, "images_per_second", r->rates[rank]);
    cJSON_AddItemToArray(list, o);
}

void pm_rank_rates_describe(const struct pm_rank_rates *r, const struct pm_run_facts *run,
                            struct cJSON *out)
{
    cJSON *list;

    if (!r)
        return;
    list = cJSON_AddArrayToObject(out, "replicas");
    for (int k = 0, first = 0; k < r->count; k++) {
        add_rank(r, run, k, first, list);
        first += run->clones ? pm_clones_of_rank(run->clones, k) : 0;
    }
}
