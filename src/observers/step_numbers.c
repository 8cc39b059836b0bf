/* step_numbers: step_numbers.h has the contract. */
#include "observers/step_numbers.h"

#include "base/pack.h"

#include <pumice/replicas.h>

#include <math.h>
#include <string.h>

struct pm_step_numbers {
    struct pm_train_metrics *train;        /* owned; NULL: none */
    const struct pm_batch_metric *of;      /* borrowed; NULL: none */
    double (*sums)[PM_MAX_BATCH_METRICS];  /* [slots], owned: over the pictures of this process */
    struct pm_batch_number value[PM_MAX_BATCH_METRICS];
};

struct pm_step_numbers *pm_step_numbers_create(const struct pm_experiment *e, int slots)
{
    struct pm_step_numbers *n = pm_calloc(1, sizeof *n);

    n->train = pm_train_metrics_create(pm_experiment_train_output(e), e->config->run.batch_size,
                                       slots);
    n->of = e->task_row->batch_metrics;
    n->sums = pm_calloc((size_t)slots, sizeof *n->sums);
    return n;
}

void pm_step_numbers_destroy(struct pm_step_numbers **n)
{
    if (*n) {
        pm_train_metrics_destroy(&(*n)->train);
        pm_free((*n)->sums);
        pm_free(*n);
    }
    *n = NULL;
}

size_t pm_step_numbers_most(const struct pm_step_numbers *n)
{
    return PM_MAX_BATCH_METRICS + pm_train_metrics_values(n->train);
}

struct pm_train_metrics *pm_step_numbers_train(struct pm_step_numbers *n)
{
    return n->train;
}

void pm_step_numbers_batch(struct pm_step_numbers *n, const struct pm_run_facts *run, int slot,
                           const struct pm_batch *batch)
{
    if (n->train)
        pm_train_metrics_batch(n->train, slot, batch);
    if (run->e->task_row->measure_batch)
        run->e->task_row->measure_batch(run->e->task, batch, n->sums[slot]);
}

/* Returns the sum of an output with a number per example over this process's part of the batch;
 * NAN: the plans do not have it. */
static double sum_of(const struct pm_clones *c, int slot, const char *output)
{
    double sum = 0;
    int count;

    for (int part = 0; (count = pm_clones_part(c, part)) > 0; part++) {
        const float *v = pm_clones_output(c, part, slot, output);

        for (int i = 0; v && i < count; i++)
            sum += (double)v[i];
        if (!v)
            return NAN;
    }
    return sum;
}

/* Replaces this process's counts and sums by those of all. */
static int merge(struct pm_step_numbers *n, struct pm_replicas *r, double *sums)
{
    size_t *sizes = pm_calloc((size_t)pm_replicas_count(r), sizeof *sizes);
    struct pm_str own = { 0 };
    char *all = NULL;
    const uint8_t *at;
    int err = PM_OK;

    for (int i = 0; i < PM_MAX_BATCH_METRICS; i++) {
        pm_pack_double(&own, sums[i]);
        sums[i] = 0;
    }
    if (n->train)
        pm_train_metrics_pack(n->train, &own);
    PM_TRY(pm_replicas_gather_bytes(r, true, own.text, own.length, &all, sizes));
    at = (const uint8_t *)all;
    for (int k = 0; k < pm_replicas_count(r); at += sizes[k++]) {
        struct pm_unpack u = { at, sizes[k], false };

        for (int i = 0; i < PM_MAX_BATCH_METRICS; i++)
            sums[i] += pm_unpack_double(&u);
        if (n->train)
            pm_train_metrics_merge(n->train, &u);
        if (u.damaged || u.left > 0)
            PM_TRY(pm_fail(PM_EFAIL, "rank %d (%s) sent damaged counts of a step", k,
                           pm_replicas_host(r, k)));
    }
out:
    pm_str_free(&own);
    pm_free(all);
    pm_free(sizes);
    return err;
}

int pm_step_numbers_count(struct pm_step_numbers *n, const struct pm_run_facts *run, int slot,
                          struct pm_step_values *out)
{
    double sums[PM_MAX_BATCH_METRICS] = { 0 };
    int err = PM_OK;

    *out = (struct pm_step_values){ .batch = n->value };
    if (n->train)
        pm_train_metrics_count(n->train, slot, run->clones);
    for (int i = 0; n->of && n->of[i].name; i++)
        sums[i] = n->of[i].output ? sum_of(run->clones, slot, n->of[i].output) : n->sums[slot][i];
    if (run->replicas && (n->train || n->of))
        PM_TRY(merge(n, run->replicas, sums));
    if (n->train)
        pm_train_metrics_finish(n->train, &out->train);
    for (int i = 0; n->of && n->of[i].name; i++)
        if (!isnan(sums[i]))
            n->value[out->count++] = (struct pm_batch_number){ &n->of[i], sums[i] /
                                                               run->c->run.batch_size };
out:
    return err;
}
